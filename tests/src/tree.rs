//! A whole tree as it stands, to be compared with itself later.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

/// Every entry below a directory: kind, mode, owner, times, contents, attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<OsString, Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    kind: &'static str,
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    contents: Vec<u8>,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Snapshot {
    /// Reads the tree at `directory`, itself included.
    pub fn of(directory: &Path) -> Snapshot {
        let mut entries = BTreeMap::new();
        let mut pending = vec![directory.to_owned()];
        while let Some(path) = pending.pop() {
            let metadata = fs::symlink_metadata(&path).expect("an entry's metadata");
            if metadata.is_dir() {
                let children = fs::read_dir(&path).expect("a directory's entries");
                pending.extend(children.map(|child| child.expect("an entry").path()));
            }
            let name = path
                .strip_prefix(directory)
                .expect("below")
                .as_os_str()
                .to_owned();
            entries.insert(name, Entry::of(&path, &metadata));
        }
        Snapshot(entries)
    }

    /// The same without times: for a tree that was made again rather than left alone.
    pub fn without_times(mut self) -> Snapshot {
        for entry in self.0.values_mut() {
            entry.modified = (0, 0);
        }
        self
    }

    /// The same without the times of directories, which change with their entries.
    pub fn without_directory_times(mut self) -> Snapshot {
        for entry in self
            .0
            .values_mut()
            .filter(|entry| entry.kind == "directory")
        {
            entry.modified = (0, 0);
        }
        self
    }

    /// Without what is at or below `name`.
    pub fn without(mut self, name: &str) -> Snapshot {
        self.0.retain(|path, _| !Path::new(path).starts_with(name));
        self
    }

    /// Fails, naming what differs, unless both are the same.
    #[track_caller]
    pub fn must_equal(&self, other: &Snapshot, what: &str) {
        let names: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let differences: Vec<String> = names
            .into_iter()
            .filter_map(|name| match (self.0.get(name), other.0.get(name)) {
                (Some(a), Some(b)) if a == b => None,
                (a, b) => Some(format!("{name:?}: {} / {}", told(a), told(b))),
            })
            .collect();
        assert!(
            differences.is_empty(),
            "{what}:\n{}",
            differences.join("\n")
        );
    }
}

fn told(entry: Option<&Entry>) -> String {
    entry.map_or_else(
        || String::from("absent"),
        |e| {
            let contents = String::from_utf8_lossy(&e.contents[..e.contents.len().min(60)]);
            format!(
                "{} {:o} {:?} {:?} {} bytes {contents:?} {:?}",
                e.kind,
                e.mode,
                e.owner,
                e.modified,
                e.contents.len(),
                e.attributes
                    .keys()
                    .map(|k| String::from_utf8_lossy(k))
                    .collect::<Vec<_>>(),
            )
        },
    )
}

impl Entry {
    fn of(path: &Path, metadata: &fs::Metadata) -> Entry {
        let file_type = metadata.file_type();
        let (kind, contents) = if file_type.is_symlink() {
            let target = fs::read_link(path).expect("a link's target");
            ("symlink", target.as_os_str().as_bytes().to_vec())
        } else if file_type.is_dir() {
            ("directory", Vec::new())
        } else if file_type.is_file() {
            ("file", fs::read(path).expect("a file's contents"))
        } else if file_type.is_fifo() {
            ("fifo", Vec::new())
        } else if file_type.is_socket() {
            ("socket", Vec::new())
        } else {
            ("device", metadata.rdev().to_string().into_bytes())
        };
        Entry {
            kind,
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            contents,
            attributes: attributes(path),
        }
    }
}

fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 1 << 16];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names) else {
        return BTreeMap::new();
    };
    names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 1 << 16];
            let length = rustix::fs::lgetxattr(path, name, &mut value).unwrap_or(0);
            value.truncate(length);
            (name.to_vec(), value)
        })
        .collect()
}
