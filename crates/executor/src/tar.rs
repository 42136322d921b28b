//! Headers of a tar archive, as POSIX has it.
//!
//! The classic header has no room for long names and large files; what does not fit comes before it, in an
//! extended header of its own.

/// What everything in an archive is a multiple of.
pub(crate) const BLOCK: usize = 512;

/// What a header tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'m> {
    /// Its path; a directory's ends with a slash.
    pub(crate) path: &'m [u8],
    pub(crate) kind: Kind<'m>,
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// In seconds since 1970.
    pub(crate) modified: i64,
}

/// What it is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'m> {
    /// A file of this size; its bytes follow.
    File(u64),
    Directory,
    /// A link that leads here.
    Link(&'m [u8]),
}

/// The longest name in a classic header, and its largest numbers.
const LONGEST: usize = 100;
const LARGEST: u64 = 0o777_7777_7777;
const LARGEST_ID: u32 = 0o777_7777;

/// The header of `member`.
pub(crate) fn header(member: &Member<'_>) -> Vec<u8> {
    let (size, link) = match member.kind {
        Kind::File(size) => (size, &[][..]),
        Kind::Directory => (0, &[][..]),
        Kind::Link(link) => (0, link),
    };
    let mut extended = Vec::new();
    if member.path.len() > LONGEST {
        extended.extend(record(b"path", member.path));
    }
    if link.len() > LONGEST {
        extended.extend(record(b"linkpath", link));
    }
    if size > LARGEST {
        extended.extend(record(b"size", size.to_string().as_bytes()));
    }
    if std::str::from_utf8(&extended).is_err() {
        // Names are bytes, and not of any encoding.
        extended = [record(b"hdrcharset", b"BINARY"), extended].concat();
    }
    let mut header = Vec::new();
    if !extended.is_empty() {
        let about = Member {
            path: b"pax",
            kind: Kind::Directory,
            ..*member
        };
        header.extend(block(&about, b'x', extended.len() as u64, &[]));
        header.extend(&extended);
        header.resize(header.len() + padding(extended.len() as u64), 0);
    }
    let flag = match member.kind {
        Kind::File(_) => b'0',
        Kind::Link(_) => b'2',
        Kind::Directory => b'5',
    };
    header.extend(block(member, flag, size.min(LARGEST), link));
    header
}

/// What says that something follows, when nothing does. Without an end mark an archive is not whole, but
/// few who unpack one look for it.
pub(crate) fn cut_off() -> [u8; BLOCK] {
    let nothing = Member {
        path: b"pax",
        kind: Kind::Directory,
        mode: 0,
        user: 0,
        group: 0,
        modified: 0,
    };
    block(&nothing, b'x', BLOCK as u64, &[])
}

/// How many bytes follow `size` bytes until the next block.
pub(crate) fn padding(size: u64) -> usize {
    let over = (size % BLOCK as u64) as usize;
    (BLOCK - over) % BLOCK
}

/// A classic header.
fn block(member: &Member<'_>, flag: u8, size: u64, link: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let fits = |bytes: &[u8]| bytes.len().min(LONGEST);
    put(0, &member.path[..fits(member.path)]);
    put(100, format!("{:07o}", member.mode & 0o777).as_bytes());
    put(
        108,
        format!("{:07o}", member.user.min(LARGEST_ID)).as_bytes(),
    );
    put(
        116,
        format!("{:07o}", member.group.min(LARGEST_ID)).as_bytes(),
    );
    put(124, format!("{size:011o}").as_bytes());
    let modified = u64::try_from(member.modified).unwrap_or(0).min(LARGEST);
    put(136, format!("{modified:011o}").as_bytes());
    // The sum is made as if its own place held spaces.
    put(148, &[b' '; 8]);
    put(156, &[flag]);
    put(157, &link[..fits(link)]);
    put(257, b"ustar\0");
    put(263, b"00");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// A line of an extended header, with its own length before it.
fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
    let rest = [b" ", key, b"=", value, b"\n"].concat();
    let mut length = rest.len();
    // The digits count, too.
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    [length.to_string().as_bytes(), &rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_itself() {
        for length in [1, 80, 88, 89, 90, 91, 980, 990, 991, 992, 993] {
            let record = record(b"path", &vec![b'x'; length]);
            let digits = record.iter().take_while(|byte| **byte != b' ').count();
            let told: usize = std::str::from_utf8(&record[..digits])
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(told, record.len(), "{length}");
        }
    }

    #[test]
    fn what_fits_is_one_block() {
        let member = Member {
            path: &[b'x'; LONGEST],
            kind: Kind::File(LARGEST),
            mode: 0o644,
            user: u32::MAX,
            group: 0,
            modified: i64::MAX,
        };
        assert_eq!(header(&member).len(), BLOCK);
        let longer = Member {
            path: &[b'x'; LONGEST + 1],
            ..member
        };
        assert_eq!(header(&longer).len(), 3 * BLOCK);
        assert_eq!((padding(0), padding(1), padding(512)), (0, 511, 0));
    }
}
