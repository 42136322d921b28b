//! Contents of regular files, without ever reading a hole.
//!
//! A sparse file can claim to be larger than the disk. Comparing and digesting go from data segment
//! to data segment (`SEEK_DATA`), so their cost is that of the blocks really allocated, and two
//! files are alike when their bytes are, wherever each keeps its holes.

use std::fs::File;
use std::io;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// How much is read at once; digests are taken over blocks of this size.
const BLOCK: usize = 64 * 1024;

/// Do both files hold the same bytes?
pub fn same(a: &File, b: &File) -> io::Result<bool> {
    let size = a.metadata()?.len();
    if size != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (block_for(size), block_for(size));
    let mut position = 0;
    while position < size {
        // A hole of less than a block is read sooner than it is looked for.
        if size > BLOCK as u64 {
            position = next_data(a, position, size)?.min(next_data(b, position, size)?);
            if position >= size {
                break;
            }
        }
        let read = read_at(a, &mut left, position)?;
        if read_at(b, &mut right, position)? != read || left[..read] != right[..read] {
            return Ok(false);
        }
        if read == 0 {
            break; // Truncated while we looked; both ended here.
        }
        position += read as u64;
    }
    Ok(true)
}

/// The blake3 of a file's size and of its blocks that are not all zero, each with its number: equal
/// for equal bytes, and quick on a file that is mostly holes.
pub fn digest(file: &File) -> io::Result<String> {
    let size = file.metadata()?.len();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&size.to_le_bytes());
    let mut block = block_for(size);
    let mut position = 0;
    while position < size {
        // A hole of less than a block is read sooner than it is looked for.
        if size > BLOCK as u64 {
            position = next_data(file, position, size)?;
            position -= position % BLOCK as u64;
        }
        if position >= size {
            break;
        }
        let read = read_at(file, &mut block, position)?;
        if read == 0 {
            break;
        }
        if block[..read].iter().any(|byte| *byte != 0) {
            hasher.update(&position.to_le_bytes());
            hasher.update(&block[..read]);
        }
        position += BLOCK as u64;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// The whole contents, or `None` when there are more than `limit` bytes of them.
pub fn read_up_to(file: &File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let size = file.metadata()?.len();
    if size > limit {
        return Ok(None);
    }
    let capacity = usize::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut contents = vec![0; capacity];
    let read = read_at(file, &mut contents, 0)?;
    contents.truncate(read);
    Ok(Some(contents))
}

/// Room for a block of a file of `size` bytes.
fn block_for(size: u64) -> Vec<u8> {
    vec![0; usize::try_from(size).map_or(BLOCK, |size| size.min(BLOCK))]
}

/// Where data begins at or after `position`; `size` when only a hole is left.
fn next_data(file: &File, position: u64, size: u64) -> io::Result<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(position)) {
        Ok(found) => Ok(found.max(position)),
        Err(Errno::NXIO) => Ok(size),
        // Not every filesystem knows holes; then all of it is data.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(position),
        Err(error) => Err(error.into()),
    }
}

/// Fills as much of `buffer` as the file has from `position` on.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(contents: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(contents).unwrap();
        file
    }

    /// `size` bytes, of which only `data` at `offset` is not a hole.
    fn sparse(size: u64, offset: u64, data: &[u8]) -> File {
        use std::os::unix::fs::FileExt;
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        file.write_all_at(data, offset).unwrap();
        file
    }

    #[test]
    fn files_are_the_same_when_their_bytes_are() {
        assert!(same(&file(b"abc"), &file(b"abc")).unwrap());
        assert!(!same(&file(b"abc"), &file(b"abd")).unwrap());
        assert!(!same(&file(b"abc"), &file(b"abcd")).unwrap());
        assert!(same(&file(b""), &file(b"")).unwrap());
    }

    #[test]
    fn holes_and_written_zeros_are_the_same_bytes() {
        let mut written = vec![0; 300_000];
        written[200_000..200_004].copy_from_slice(b"data");
        let (holes, full) = (sparse(300_000, 200_000, b"data"), file(&written));
        assert!(same(&holes, &full).unwrap());
        assert_eq!(digest(&holes).unwrap(), digest(&full).unwrap());
    }

    #[test]
    fn a_file_of_a_terabyte_of_holes_is_compared_and_digested_without_reading_them() {
        let terabyte = 1 << 40;
        let (a, b) = (
            sparse(terabyte, 1 << 39, b"x"),
            sparse(terabyte, 1 << 39, b"x"),
        );
        let other = sparse(terabyte, 1 << 39, b"y");
        assert!(same(&a, &b).unwrap());
        assert!(!same(&a, &other).unwrap());
        assert_eq!(digest(&a).unwrap(), digest(&b).unwrap());
        assert_ne!(digest(&a).unwrap(), digest(&other).unwrap());
        assert!(read_up_to(&a, 1 << 20).unwrap().is_none());
    }

    #[test]
    fn a_digest_tells_size_and_place_apart() {
        assert_ne!(
            digest(&sparse(10, 0, b"")).unwrap(),
            digest(&sparse(11, 0, b"")).unwrap()
        );
        assert_ne!(
            digest(&sparse(1 << 20, 0, b"x")).unwrap(),
            digest(&sparse(1 << 20, 1 << 19, b"x")).unwrap()
        );
    }
}
