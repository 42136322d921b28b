//! Compares the index of a git repository by what it says about the tree.
//!
//! `git status` and `git diff` rewrite the index: with the new times and inode numbers of unchanged files, and with caches
//! in extensions. An undo must not take that for a change by the user.

use std::fs::File;
use std::io;

use super::bytes::{number, take, varint};
use crate::content;

/// The name of the file in a git directory.
pub(crate) const NAME: &[u8] = b"index";

/// A larger file is compared byte by byte.
const LARGEST: u64 = 256 << 20;

/// Stage and "assume unchanged". The length of the name and "extended" follow from the rest.
const FLAGS: u16 = 0xB000;
const EXTENDED: u16 = 0x4000;

/// Returns the digest of the entries: their paths, modes, object ids and flags. `None` if `file` is not an index, or
/// is one that depends on other files or on extensions.
pub(crate) fn digest(file: &File) -> io::Result<Option<String>> {
    let mut magic = [0; 4];
    if content::read_at(file, &mut magic, 0)? != magic.len() || magic != *b"DIRC" {
        return Ok(None);
    }
    let bytes = content::read_up_to(file, LARGEST)?;
    // The length of object ids is a setting of the repository. An index fits one of the two only.
    Ok(bytes.and_then(|bytes| [20, 32].iter().find_map(|length| entries(&bytes, *length))))
}

fn entries(bytes: &[u8], id_length: usize) -> Option<String> {
    let mut rest = bytes.get(..bytes.len().checked_sub(id_length)?)?;
    let rest = &mut rest;
    take(rest, 4)?;
    let version = number(rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    let mut path = Vec::new();
    for _ in 0..number(rest)? {
        let before = rest.len();
        take(rest, 24)?;
        hasher.update(take(rest, 4)?); // mode
        take(rest, 12)?;
        hasher.update(take(rest, id_length)?);
        let flags = u16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
        hasher.update(&(flags & FLAGS).to_be_bytes());
        if flags & EXTENDED != 0 {
            hasher.update(take(rest, 2)?);
        } else {
            hasher.update(&[0; 2]);
        }
        match version {
            // A path is the one before, less some bytes at its end, and more.
            4 => path.truncate(
                path.len()
                    .checked_sub(usize::try_from(varint(rest)?).ok()?)?,
            ),
            _ => path.clear(),
        }
        let length = rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(take(rest, length)?);
        hasher.update(&(path.len() as u64).to_be_bytes());
        hasher.update(&path);
        let padding = match version {
            4 => 1,
            _ => 8 - (before - rest.len()) % 8,
        };
        if take(rest, padding)?.iter().any(|byte| *byte != 0) {
            return None;
        }
    }
    while !rest.is_empty() {
        // A capital letter begins the name of what may be ignored.
        if !take(rest, 4)?[0].is_ascii_uppercase() {
            return None;
        }
        let length = number(rest)?;
        take(rest, usize::try_from(length).ok()?)?;
    }
    Some(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn git(repository: &Path, line: &str) {
        let mut command = Command::new("sh");
        command.args(["-ec", line]).current_dir(repository);
        for (name, value) in [("HOME", "/nonexistent"), ("GIT_CONFIG_NOSYSTEM", "1")] {
            command.env(name, value);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }

    /// The digest of the repository's index, and the index itself.
    fn index(repository: &Path) -> (Option<String>, Vec<u8>) {
        let path = repository.join(".git/index");
        let digest = digest(&File::open(&path).unwrap()).unwrap();
        (digest, std::fs::read(&path).unwrap())
    }

    #[test]
    fn a_refresh_changes_nothing_and_an_edit_does() {
        for (format, version) in [("sha1", 2), ("sha1", 4), ("sha256", 2), ("sha256", 4)] {
            let directory = tempfile::tempdir().unwrap();
            let repository = directory.path();
            git(
                repository,
                &format!(
                    "git init -q --object-format={format} .; git config index.version {version}; mkdir -p dir/deep;
                     for name in a dir/b dir/deep/c dir/deep/cc 'x y'; do echo $name > \"$name\"; done; git add ."
                ),
            );
            let (before, bytes) = index(repository);
            assert!(before.is_some(), "{format} {version}");
            git(
                repository,
                "touch -d '2020-01-01' a dir/deep/c; git write-tree >/dev/null; git status >/dev/null",
            );
            let (refreshed, other) = index(repository);
            assert_ne!(bytes, other, "{format} {version}");
            assert_eq!(before, refreshed, "{format} {version}");
            let mut last = before;
            for edit in [
                "echo edited > a; git add a",
                "chmod +x dir/b; git add dir/b",
                "git mv dir/deep/c dir/deep/d",
                "git update-index --assume-unchanged 'x y'",
                "git update-index --skip-worktree dir/b",
                "echo > new; git add -N new",
                "git rm -q --cached a",
            ] {
                git(repository, edit);
                let (now, _) = index(repository);
                assert!(now.is_some() && now != last, "{format} {version}: {edit}");
                last = now;
            }
        }
    }

    #[test]
    fn what_is_no_whole_index_is_not_compared_by_entries() {
        let directory = tempfile::tempdir().unwrap();
        let repository = directory.path();
        git(
            repository,
            "git init -q .; echo > a; echo > b; git add .; cp .git/index whole; git update-index --split-index",
        );
        assert_eq!(index(repository).0, None, "it depends on another file");
        let whole = std::fs::read(repository.join("whole")).unwrap();
        let path = repository.join("part");
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(
                digest(&File::open(&path).unwrap()).unwrap(),
                None,
                "{length}"
            );
        }
    }
}
