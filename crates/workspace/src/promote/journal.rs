//! The journal: everything a recovery needs to know, on disk before the source is touched.
//!
//! A journal is written once and never changed. It names every path a transaction will touch and
//! both inodes of each: what stands there, and what shall. Whether a step was done is not recorded
//! but seen: by which of the two inodes stands at the path. The commit mark is a second file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use sandbox_model::{Entry, EntryKind, Fingerprint, RelPath, SandboxName, Timestamp, path};
use serde::{Deserialize, Serialize};

use super::fault;
use super::seal::Seals;
use crate::side::Xattrs;
use crate::tree::{Dir, Replace};

/// The format written by this version.
const VERSION: u32 = 1;
const JOURNAL: &[u8] = b"journal";
const COMMIT: &[u8] = b"committed";

/// A transaction on one source.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Journal {
    pub version: u32,
    pub id: String,
    pub kind: Kind,
    pub at: jiff::Timestamp,
    pub sandbox: SandboxIdentity,
    /// The source's root directory.
    pub root: Inode,
    /// Where new entries wait and old ones are put.
    pub stage: Place,
    /// The visible copies, as an absolute path, escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
    /// Every directory on the way to what is touched.
    pub parents: BTreeMap<RelPath, Parent>,
    /// Renames, none at or below another's path.
    pub operations: Vec<Operation>,
    /// Changes of metadata in place, after the renames.
    pub attributes: Vec<AttributeChange>,
    /// What the sandbox does after the commit.
    pub settle: Settle,
    /// What is put at each path, as digests. Versions before these were kept left none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seals: Seals,
    /// Of an undo: the paths of the other transaction that it knowingly left as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<RelPath>,
    /// What steers git on the host among the paths, and was allowed: in either direction it may go again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub git_control: BTreeSet<RelPath>,
}

/// What a transaction is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Promote,
    /// Of the transaction named.
    Undo(String),
}

/// A sandbox by name, and which of that name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SandboxIdentity {
    pub name: SandboxName,
    pub created: jiff::Timestamp,
}

/// Where the stage is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// In the transaction's own directory below the sandbox root, on the source's filesystem.
    Own,
    /// In that of the promote named: its pre-images are what this undo puts back.
    Shared(String),
    /// In the source; copies of the pre-images are in the transaction's own directory.
    Inside,
}

/// Which inode, as far as a filesystem lets one know: numbers are used again, births rarely agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inode {
    pub ino: u64,
    pub kind: EntryKind,
    pub btime: Option<Timestamp>,
}

impl Inode {
    pub fn of(found: &Fingerprint) -> Inode {
        Inode {
            ino: found.ino,
            kind: found.entry.kind,
            btime: found.btime,
        }
    }
}

/// A directory that exists and stays.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Parent {
    pub inode: Inode,
    pub mode: u32,
    pub mtime: Timestamp,
    /// Names in it change.
    pub touched: bool,
    /// The modification time to leave it with; `None` for what the changes make of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave: Option<Timestamp>,
}

/// One rename. In the stage it uses the name [`Operation::slot_name`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub path: RelPath,
    pub slot: u32,
    /// What stands there, if anything.
    pub old: Option<Standing>,
    /// What shall, if anything.
    pub new: Option<Standing>,
}

impl Operation {
    /// Where the new entry waits, and where the old one is after an exchange or a removal.
    pub fn slot_name(&self) -> Vec<u8> {
        format!("{}", self.slot).into_bytes()
    }

    /// Where the old entry is between the two steps of an exchange the filesystem cannot do.
    pub fn aside_name(&self) -> Vec<u8> {
        format!("{}.aside", self.slot).into_bytes()
    }
}

/// An entry with everything below it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub fingerprint: Fingerprint,
    /// Of a file that this transaction puts into the source: the digest of its contents. Journals of
    /// older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Relative to the entry, parents first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Below>,
}

/// Something in a directory that moves as a whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Below {
    pub path: RelPath,
    pub fingerprint: Fingerprint,
    /// As of [`Standing::digest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A change of metadata in place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttributeChange {
    pub path: RelPath,
    pub inode: Inode,
    pub before: Attributes,
    pub after: Attributes,
}

/// What can be changed in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attributes {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    #[serde(with = "escaped_xattrs")]
    pub xattrs: Xattrs,
}

impl Attributes {
    /// Those of `entry`.
    pub fn of(entry: &Entry, xattrs: Xattrs) -> Attributes {
        Attributes {
            mode: entry.mode,
            uid: entry.uid,
            gid: entry.gid,
            xattrs,
        }
    }
}

/// What the sandbox does once its changes are in the source.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Settle {
    /// These leave the change set, if the workspace still has there what was promoted.
    pub absorb: Vec<Absorbed>,
    /// The base of these is what the source has from now on; they stay in the change set.
    pub rebase: Vec<RelPath>,
    /// What is taken out of the source goes back to the change set.
    #[serde(default)]
    pub give_back: bool,
}

/// A path that leaves the change set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Absorbed {
    pub path: RelPath,
    /// What the workspace had there.
    pub workspace: Option<Fingerprint>,
    /// The workspace has there, and below, what the source has from now on: the two may differ (a
    /// merge, a stripped privilege), or the workspace's own is of no more use (a whole directory).
    #[serde(default)]
    pub take_source: bool,
    /// The same of a directory's own attributes alone.
    #[serde(default)]
    pub take_attributes: bool,
}

/// The commit mark.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Committed {
    /// The modification times touched directories were left with.
    pub directories: BTreeMap<RelPath, Timestamp>,
}

impl Journal {
    pub fn new(
        id: String,
        kind: Kind,
        sandbox: SandboxIdentity,
        root: Inode,
        stage: Place,
    ) -> Self {
        Journal {
            version: VERSION,
            id,
            kind,
            at: jiff::Timestamp::now(),
            sandbox,
            root,
            stage,
            backup: None,
            parents: BTreeMap::new(),
            operations: Vec::new(),
            attributes: Vec::new(),
            settle: Settle::default(),
            seals: Seals::new(),
            left: Vec::new(),
            git_control: BTreeSet::new(),
        }
    }

    /// The paths that it renames or changes in place, without what moves along.
    pub fn roots(&self) -> BTreeSet<RelPath> {
        let operations = self.operations.iter().map(|operation| &operation.path);
        let attributes = self.attributes.iter().map(|change| &change.path);
        operations.chain(attributes).cloned().collect()
    }

    /// Every path the transaction touches, sorted.
    pub fn paths(&self) -> Vec<RelPath> {
        touched(&self.operations, &self.attributes)
    }

    /// Writes it into the transaction's directory; on return it is on disk.
    pub fn write(&self, dir: &Dir) -> io::Result<()> {
        write_durably(dir, JOURNAL, &sealed(self)?, "journal")
    }

    /// Reads it; `None` where it was never completed.
    pub fn read(dir: &Dir) -> io::Result<Option<Journal>> {
        let Some(journal) = read_sealed::<Journal>(dir, JOURNAL)? else {
            return Ok(None);
        };
        if journal.version > VERSION {
            return Err(invalid("written by a newer version of sandbox"));
        }
        Ok(Some(journal))
    }

    /// Forgets it: the transaction's directory is rubbish from now on.
    pub fn remove(dir: &Dir) -> io::Result<()> {
        match dir.unlink(JOURNAL) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Every path that these touch, with what moves along, sorted.
pub(crate) fn touched(operations: &[Operation], attributes: &[AttributeChange]) -> Vec<RelPath> {
    let mut paths = Vec::new();
    for operation in operations {
        paths.push(operation.path.clone());
        for standing in [&operation.old, &operation.new].into_iter().flatten() {
            let below = standing.below.iter().map(|below| &below.path);
            paths.extend(below.map(|path| operation.path.join_path(path)));
        }
    }
    paths.extend(attributes.iter().map(|change| change.path.clone()));
    paths.sort();
    paths.dedup();
    paths
}

impl Committed {
    /// Sets the commit mark; on return it is on disk.
    pub fn write(&self, dir: &Dir) -> io::Result<()> {
        write_durably(dir, COMMIT, &sealed(self)?, "commit")
    }

    /// The commit mark, if it is set.
    pub fn read(dir: &Dir) -> io::Result<Option<Committed>> {
        read_sealed(dir, COMMIT)
    }

    /// Takes the mark away; on return that is on disk.
    pub fn remove(dir: &Dir) -> io::Result<()> {
        match dir.unlink(COMMIT) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| dir.sync()),
        }
    }
}

/// A line of JSON and a line with its hash.
fn sealed(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    let hash = blake3::hash(&bytes).to_hex();
    bytes.push(b'\n');
    bytes.extend_from_slice(hash.as_bytes());
    bytes.push(b'\n');
    Ok(bytes)
}

fn read_sealed<T: for<'de> Deserialize<'de>>(dir: &Dir, name: &[u8]) -> io::Result<Option<T>> {
    let Some(bytes) = read(dir, name)? else {
        return Ok(None);
    };
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let (text, hash) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    if blake3::hash(text).to_hex().as_bytes() != hash {
        return Err(invalid("its seal is broken"));
    }
    Ok(Some(serde_json::from_slice(text)?))
}

/// The whole of a small file; `None` where there is none.
pub(crate) fn read(dir: &Dir, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut file = match dir.open_file(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Under a temporary name, fsynced, renamed, the name fsynced.
pub(crate) fn write_durably(dir: &Dir, name: &[u8], bytes: &[u8], point: &str) -> io::Result<()> {
    let temporary = [name, b".new"].concat();
    dir.remove_all(&temporary)?;
    fault::at(&format!("{point} written"))?;
    let mut file = dir.create_file(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fault::at(&format!("{point} named"))?;
    dir.rename(&temporary, dir, name, Replace::Yes)?;
    dir.sync()?;
    fault::at(&format!("{point} durable"))
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

mod escaped_xattrs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::path;
    use crate::side::Xattrs;

    pub fn serialize<S: Serializer>(xattrs: &Xattrs, serializer: S) -> Result<S::Ok, S::Error> {
        let pairs: Vec<_> = xattrs
            .iter()
            .map(|(name, value)| (path::escape(name), path::escape(value)))
            .collect();
        pairs.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Xattrs, D::Error> {
        Vec::<(String, String)>::deserialize(deserializer)?
            .into_iter()
            .map(|(name, value)| Ok((path::unescape(&name)?, path::unescape(&value)?)))
            .collect::<Result<_, path::PathError>>()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_journals_without_digests() {
        let fingerprint = r#"{"dev":1,"ino":2,"nlink":1,"kind":"file","mode":420,"uid":0,"gid":0,
            "size":3,"mtime":[4,5],"rdev":0,"ctime":[6,7],"btime":null}"#;
        let text = format!(
            r#"{{"fingerprint":{fingerprint},"below":[{{"path":"a","fingerprint":{fingerprint}}}]}}"#
        );
        let standing: Standing = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (standing.digest, standing.below[0].digest.as_ref()),
            (None, None)
        );
    }
}
