//! Mounts below a directory. An overlay, a snapshot and a reflink all stop at them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The mount points strictly below `path`, without those below `except`.
pub fn below(path: &Path, except: &Path) -> io::Result<Vec<PathBuf>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    Ok(parse(&table)
        .filter(|point| point != path && point.starts_with(path) && !point.starts_with(except))
        .collect())
}

/// Every mount point in a mountinfo table.
fn parse(table: &[u8]) -> impl Iterator<Item = PathBuf> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|point| PathBuf::from(OsString::from_vec(unescape(point))))
}

/// The kernel writes blanks, newlines and backslashes as three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        match (first, tail) {
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    after @ ..,
                ],
            ) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// The reason to give when there are mounts below `source`.
pub(crate) fn refusal(source: &Path, state: &Path) -> Option<String> {
    // Not knowing is no reason to refuse: the trial still decides.
    let points = below(source, state).unwrap_or_default();
    let first = points.first()?;
    let shown = sandbox_model::path::escape(first.as_os_str().as_bytes());
    Some(match points.len() {
        1 => format!("{shown} is mounted inside it, and would be empty"),
        count => format!(
            "{shown} and {} more are mounted inside it, and would be empty",
            count - 1
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_mount_points_are_read() {
        let table = b"36 35 98:0 / /mnt/a\\040b\\134c rw - ext4 /dev/sda rw\n37 35 0:4 / /proc rw - proc proc rw\n";
        let points: Vec<_> = parse(table).collect();
        assert_eq!(
            points,
            [PathBuf::from("/mnt/a b\\c"), PathBuf::from("/proc")]
        );
    }

    #[test]
    fn the_root_has_mounts_below_it_and_an_empty_directory_has_none() {
        let nowhere = Path::new("/nonexistent");
        assert!(
            below(Path::new("/"), nowhere)
                .unwrap()
                .contains(&PathBuf::from("/proc"))
        );
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(below(dir.path(), nowhere).unwrap(), Vec::<PathBuf>::new());
    }
}
