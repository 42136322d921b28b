//! What was copied: for each path the original's fingerprint and the copy's.
//!
//! A file of records sorted by path, in a plain binary form: 50,000 entries are read in a few
//! milliseconds. It is replaced as a whole.

use std::io;
use std::path::Path;

use sandbox_model::entry::Entry as Metadata;
use sandbox_model::{EntryKind, Fingerprint, RelPath, Timestamp};

use crate::meta::replace_file;
use crate::tree::Dir;

/// The manifest's file, in the sandbox's directory.
pub(crate) const FILE: &str = "manifest";
/// The first bytes of the file; the last is the version of the format.
const MAGIC: &[u8; 8] = b"sbxcopy\x01";

/// One copied path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which.
    pub path: RelPath,
    /// The original, when it was copied or last agreed with.
    pub source: Fingerprint,
    /// The copy as it was made; `None` when it was already changed in the sandbox that this one was
    /// forked from.
    pub copy: Option<Fingerprint>,
}

/// A manifest in memory.
#[derive(Debug, Default)]
pub struct Manifest {
    entries: Vec<Entry>,
}

impl Manifest {
    /// Reads the manifest in a sandbox's directory.
    pub fn load(dir: &Path) -> io::Result<Manifest> {
        let bytes = std::fs::read(dir.join(FILE))?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the manifest is damaged");
        let mut reader = Reader {
            rest: bytes.strip_prefix(MAGIC).ok_or_else(damaged)?,
        };
        let count = reader.number().ok_or_else(damaged)?;
        let mut entries = Vec::with_capacity(usize::try_from(count).unwrap_or(0).min(bytes.len()));
        for _ in 0..count {
            entries.push(reader.entry().ok_or_else(damaged)?);
        }
        Ok(Manifest { entries })
    }

    /// Writes it back.
    pub fn save(&self, dir: &Path) -> io::Result<()> {
        write(dir, self.entries.iter().cloned())
    }

    /// What was copied to `path`.
    pub fn get(&self, path: &RelPath) -> Option<&Entry> {
        self.find(path).ok().map(|at| &self.entries[at])
    }

    /// Every entry, sorted by path, the root first.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries.iter().cloned()
    }

    /// Where in [`Manifest::entries`] `path` is.
    pub fn position(&self, path: &RelPath) -> Option<usize> {
        self.find(path).ok()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every entry, sorted by path, without copying any.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The paths at and below `path`.
    pub fn below(&self, path: &RelPath) -> impl Iterator<Item = RelPath> + '_ {
        let wanted = path.clone();
        self.entries
            .iter()
            .filter(move |entry| entry.path.starts_with(&wanted))
            .map(|entry| entry.path.clone())
    }

    /// Puts an entry in, in place of one of the same path.
    pub fn insert(&mut self, entry: Entry) {
        match self.find(&entry.path) {
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, path: &RelPath) {
        if let Ok(at) = self.find(path) {
            self.entries.remove(at);
        }
    }

    fn find(&self, path: &RelPath) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.path.cmp(path))
    }
}

/// Writes a manifest of `entries`, sorted by path.
pub(crate) fn write(dir: &Path, entries: impl Iterator<Item = Entry>) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(1 << 20);
    bytes.extend_from_slice(MAGIC);
    let counted_at = bytes.len();
    bytes.extend_from_slice(&0u64.to_le_bytes());
    let mut count: u64 = 0;
    for entry in entries {
        put_entry(&mut bytes, &entry);
        count += 1;
    }
    bytes[counted_at..counted_at + 8].copy_from_slice(&count.to_le_bytes());
    replace_file(&Dir::open(dir)?, FILE, &bytes)
}

fn put_entry(bytes: &mut Vec<u8>, entry: &Entry) {
    bytes.extend_from_slice(&(entry.path.as_bytes().len() as u64).to_le_bytes());
    bytes.extend_from_slice(entry.path.as_bytes());
    put_fingerprint(bytes, &entry.source);
    bytes.push(u8::from(entry.copy.is_some()));
    if let Some(copy) = &entry.copy {
        put_fingerprint(bytes, copy);
    }
}

fn put_fingerprint(bytes: &mut Vec<u8>, found: &Fingerprint) {
    let entry = &found.entry;
    let numbers = [
        found.dev,
        found.ino,
        u64::from(found.nlink),
        u64::from(entry.kind.mode_bits() | entry.mode),
        u64::from(entry.uid) << 32 | u64::from(entry.gid),
        entry.size,
        entry.rdev,
    ];
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let born = found.btime.unwrap_or_default();
    for time in [entry.mtime, found.ctime, born] {
        bytes.extend_from_slice(&time.0.to_le_bytes());
        bytes.extend_from_slice(&time.1.to_le_bytes());
    }
    bytes.push(u8::from(found.btime.is_some()));
}

struct Reader<'b> {
    rest: &'b [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn entry(&mut self) -> Option<Entry> {
        let length = usize::try_from(self.number()?).ok()?;
        let (path, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let path = RelPath::new(path).ok()?;
        let source = self.fingerprint()?;
        let copy = match self.take()? {
            [0] => None,
            _ => Some(self.fingerprint()?),
        };
        Some(Entry { path, source, copy })
    }

    fn fingerprint(&mut self) -> Option<Fingerprint> {
        let (dev, ino) = (self.number()?, self.number()?);
        let nlink = u32::try_from(self.number()?).ok()?;
        let mode = u32::try_from(self.number()?).ok()?;
        let owner = self.number()?;
        let (size, rdev) = (self.number()?, self.number()?);
        let (mtime, ctime, btime) = (self.time()?, self.time()?, self.time()?);
        let [born] = self.take()?;
        let entry = Metadata {
            kind: EntryKind::from_mode(mode)?,
            mode: mode & 0o7777,
            uid: (owner >> 32) as u32,
            gid: owner as u32,
            size,
            mtime,
            rdev,
        };
        let btime = (born != 0).then_some(btime);
        Some(Fingerprint {
            dev,
            ino,
            nlink,
            entry,
            ctime,
            btime,
        })
    }

    fn time(&mut self) -> Option<Timestamp> {
        let seconds = self.take().map(i64::from_le_bytes)?;
        Some(Timestamp(seconds, self.take().map(u32::from_le_bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> Entry {
        let dir = Dir::open(Path::new("/")).unwrap();
        let source = dir.stat_self().unwrap();
        let copy = Fingerprint {
            btime: None,
            ..source
        };
        Entry {
            path: RelPath::new(path.as_bytes()).unwrap(),
            source,
            copy: Some(copy),
        }
    }

    #[test]
    fn a_manifest_comes_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let entries = [
            entry(""),
            entry("a"),
            Entry {
                copy: None,
                ..entry("b\n")
            },
        ];
        write(dir.path(), entries.iter().cloned()).unwrap();
        let read = Manifest::load(dir.path()).unwrap();
        assert_eq!(read.entries(), entries);
        assert_eq!(read.get(&entries[1].path), Some(&entries[1]));
        assert_eq!(read.get(&entry("c").path), None);
    }

    #[test]
    fn a_damaged_manifest_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), [entry("a")].into_iter()).unwrap();
        let bytes = std::fs::read(dir.path().join(FILE)).unwrap();
        for cut in [0, 7, 12, bytes.len() - 1] {
            std::fs::write(dir.path().join(FILE), &bytes[..cut]).unwrap();
            let error = Manifest::load(dir.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn entries_stay_sorted() {
        let mut manifest = Manifest::default();
        for path in ["b", "a", "a/c", "b"] {
            manifest.insert(entry(path));
        }
        manifest.remove(&entry("absent").path);
        let paths: Vec<_> = manifest
            .iter()
            .map(|entry| entry.path.to_string())
            .collect();
        assert_eq!(paths, ["a", "a/c", "b"]);
    }
}
