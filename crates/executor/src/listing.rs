//! What is in a directory, a page at a time.
//!
//! A directory may have a million names, and they come in no order. A page is made of the names that come
//! first after the last one of the page before, and only those are held while all are read.

use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{FileType, Statx};
use serde::{Deserialize, Serialize};

use crate::{bytes, entries, uploads};

/// The most entries of a page.
pub const MOST: usize = 1_000;

/// What is seen of a file from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in its directory; what is not UTF-8 is replaced.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// How long it is.
    pub size: u64,
    /// When it was last written, in seconds since 1970.
    pub modified: i64,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is what it is called")]
pub enum Kind {
    File,
    Directory,
    Link,
    Other,
}

/// Some of what is in a directory, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The entries.
    pub entries: Vec<Entry>,
    /// What to ask for to get those after them, if there are more.
    pub next: Option<String>,
}

/// The first `limit` entries of `directory` that come after what was said to be next.
pub(crate) async fn list(
    directory: OwnedFd,
    after: Option<&str>,
    limit: usize,
) -> io::Result<Page> {
    let limit = limit.clamp(1, MOST);
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "there is no such page");
    let after = after.map(|text| bytes::from_text(text).ok_or_else(invalid));
    let after = after.transpose()?.map(OsString::from_vec);
    let mut first = BinaryHeap::new();
    let mut more = false;
    while let Some(names) = entries::portion(&directory)? {
        for (name, _) in names {
            if uploads::is_hidden(&name) || after.as_ref().is_some_and(|after| name <= *after) {
                continue;
            }
            first.push(name);
            if first.len() > limit {
                more = true;
                first.pop();
            }
        }
        tokio::task::yield_now().await;
    }
    let names = first.into_sorted_vec();
    let last = names.last().filter(|_| more);
    let next = last.map(|name| bytes::to_text(name.as_bytes()));
    let mut entries = Vec::new();
    for name in &names {
        match entries::look(&directory, name) {
            Ok(found) => entries.push(describe(name, &found)),
            // Removed meanwhile.
            Err(error) if entries::is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Page { entries, next })
}

fn describe(name: &OsStr, found: &Statx) -> Entry {
    Entry {
        name: name.to_string_lossy().into_owned(),
        kind: match entries::kind(found) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Other,
        },
        size: found.stx_size,
        modified: found.stx_mtime.tv_sec,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn pages_make_up_the_whole_in_order_whatever_the_names_are() {
        let directory = tempfile::tempdir().unwrap();
        let mut names: Vec<OsString> = (0..95).map(|n| format!("{n:03}").into()).collect();
        names.extend(["new\nline", "é", " "].map(OsString::from));
        names.extend([&b"\xff"[..], b"\xfe\xff"].map(|name| OsString::from_vec(name.to_vec())));
        for name in &names {
            File::create(directory.path().join(name)).unwrap();
        }
        File::create(directory.path().join(".sandbox-upload-1")).unwrap();
        names.sort();
        let expected: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            for limit in [1, 7, 100, 101] {
                let (mut seen, mut after) = (Vec::new(), None);
                loop {
                    let opened = File::open(directory.path()).unwrap().into();
                    let page = list(opened, after.as_deref(), limit).await.unwrap();
                    assert!(page.entries.len() <= limit);
                    seen.extend(page.entries.into_iter().map(|entry| entry.name));
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                }
                assert_eq!(seen, expected, "{limit}");
            }
            let opened = File::open(directory.path()).unwrap().into();
            let refused = list(opened, Some("\u{100}"), 1).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        });
    }
}
