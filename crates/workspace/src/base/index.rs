//! The store's index: one line per path, appended, each readable by itself.
//!
//! Seven fields with tabs between: path, flags, chain, entry, content, link, attributes. A line that
//! does not parse is a torn write and is passed over; that path counts as not recorded.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use sandbox_model::path::{escape, unescape};
use sandbox_model::{Entry, EntryKind, Fingerprint, RelPath, Timestamp};

use super::{Base, BaseContent};
use crate::side::Xattrs;

/// One recorded path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) base: Base,
    /// Nothing else existed below it: what is not recorded there was absent.
    pub(super) complete: bool,
}

pub(super) type Records = HashMap<RelPath, Record>;

const NOTHING: &str = "-";

/// Reads the index at `path`; a missing one is empty. A later line of a path replaces an earlier.
pub(super) fn read(path: &Path) -> io::Result<Records> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| parse(std::str::from_utf8(line).ok()?))
            .collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Records::new()),
        Err(error) => Err(error),
    }
}

/// Appends `lines` (each ended by a newline) in one write.
pub(super) fn append(path: &Path, lines: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .read(true)
        .create(true)
        .append(true)
        .open(path)?;
    if ends_torn(&file)? {
        file.write_all(b"\n")?;
    }
    file.write_all(lines.as_bytes())
}

fn ends_torn(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let size = file.metadata()?.len();
    let mut last = [b'\n'];
    if size > 0 {
        file.read_exact_at(&mut last, size - 1)?;
    }
    Ok(last[0] != b'\n')
}

/// Replaces the whole index.
pub(super) fn rewrite(path: &Path, records: &Records) -> io::Result<()> {
    let mut lines = String::new();
    for (path, record) in records {
        line(&mut lines, path, record);
    }
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, lines)?;
    std::fs::rename(&temporary, path)
}

/// Adds the line of `path`.
pub(super) fn line(lines: &mut String, path: &RelPath, record: &Record) {
    let base = &record.base;
    let flags = match (base.uncertain, record.complete) {
        (false, false) => NOTHING,
        (true, false) => "u",
        (false, true) => "c",
        (true, true) => "uc",
    };
    let chain = base
        .chain
        .iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let content = match &base.content {
        BaseContent::None => NOTHING.to_owned(),
        BaseContent::Saved(name) => format!("s{name}"),
        BaseContent::Hash(hash) => format!("h{hash}"),
        BaseContent::Frozen => "f".to_owned(),
    };
    let link = base
        .link
        .as_ref()
        .map_or(NOTHING.to_owned(), |link| format!("={}", escape(link)));
    let fields = [
        path.to_escaped(),
        flags.to_owned(),
        chain,
        base.entry
            .as_ref()
            .map_or(NOTHING.to_owned(), fingerprint_text),
        content,
        link,
        base.xattrs.as_ref().map_or(NOTHING.to_owned(), xattrs_text),
    ];
    lines.push_str(&fields.join("\t"));
    lines.push('\n');
}

fn parse(line: &str) -> Option<(RelPath, Record)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [path, flags, chain, entry, content, link, xattrs] = fields.try_into().ok()?;
    let chain = chain.split(',').filter(|number| !number.is_empty());
    let base = Base {
        chain: chain.map(str::parse).collect::<Result<_, _>>().ok()?,
        entry: if entry == NOTHING {
            None
        } else {
            Some(parse_fingerprint(entry)?)
        },
        content: parse_content(content)?,
        link: match link.strip_prefix('=') {
            Some(link) => Some(unescape(link).ok()?),
            None => None,
        },
        xattrs: if xattrs == NOTHING {
            None
        } else {
            Some(parse_xattrs(xattrs)?)
        },
        uncertain: flags.contains('u'),
    };
    let record = Record {
        base,
        complete: flags.contains('c'),
    };
    Some((RelPath::from_escaped(path).ok()?, record))
}

fn parse_content(text: &str) -> Option<BaseContent> {
    Some(match (text.get(..1)?, text.get(1..)?) {
        (NOTHING, "") => BaseContent::None,
        ("f", "") => BaseContent::Frozen,
        ("s", name) if !name.is_empty() && !name.contains('/') => {
            BaseContent::Saved(name.to_owned())
        }
        ("h", hash) => BaseContent::Hash(hash.to_owned()),
        _ => return None,
    })
}

fn fingerprint_text(found: &Fingerprint) -> String {
    let entry = &found.entry;
    let born = found
        .btime
        .map_or("-,-".to_owned(), |at| format!("{},{}", at.0, at.1));
    format!(
        "{},{},{},{},{},{},{},{},{},{},{},{},{born}",
        found.dev,
        found.ino,
        found.nlink,
        entry.mode | entry.kind.mode_bits(),
        entry.uid,
        entry.gid,
        entry.size,
        entry.rdev,
        entry.mtime.0,
        entry.mtime.1,
        found.ctime.0,
        found.ctime.1,
    )
}

fn parse_fingerprint(text: &str) -> Option<Fingerprint> {
    let fields: Vec<&str> = text.split(',').collect();
    let [
        dev,
        ino,
        nlink,
        mode,
        uid,
        gid,
        size,
        rdev,
        ms,
        mn,
        cs,
        cn,
        bs,
        bn,
    ] = fields.try_into().ok()?;
    let time =
        |seconds: &str, nanos: &str| Some(Timestamp(seconds.parse().ok()?, nanos.parse().ok()?));
    let mode: u32 = mode.parse().ok()?;
    Some(Fingerprint {
        dev: dev.parse().ok()?,
        ino: ino.parse().ok()?,
        nlink: nlink.parse().ok()?,
        entry: Entry {
            kind: EntryKind::from_mode(mode)?,
            mode: mode & 0o7777,
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
            size: size.parse().ok()?,
            mtime: time(ms, mn)?,
            rdev: rdev.parse().ok()?,
        },
        ctime: time(cs, cn)?,
        btime: if bs == NOTHING {
            None
        } else {
            Some(time(bs, bn)?)
        },
    })
}

fn xattrs_text(xattrs: &Xattrs) -> String {
    let pairs = xattrs
        .iter()
        .map(|(name, value)| format!("{}={}", hex(name), hex(value)));
    format!("={}", pairs.collect::<Vec<_>>().join(","))
}

fn parse_xattrs(text: &str) -> Option<Xattrs> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((unhex(name)?, unhex(value)?))
    };
    let pairs = text
        .strip_prefix('=')?
        .split(',')
        .filter(|pair| !pair.is_empty());
    pairs.map(pair).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(link: Option<Vec<u8>>, name: Vec<u8>, value: Vec<u8>, born: bool) -> Record {
        Record {
            base: Base {
                chain: vec![2, 77, 1 << 40],
                entry: Some(Fingerprint {
                    dev: 1,
                    ino: 99,
                    nlink: 1,
                    entry: Entry {
                        kind: EntryKind::Symlink,
                        mode: 0o777,
                        uid: 1000,
                        gid: 0,
                        size: 12,
                        mtime: Timestamp(-5, 7),
                        rdev: 0,
                    },
                    ctime: Timestamp(1, 2),
                    btime: born.then_some(Timestamp(3, 4)),
                }),
                content: BaseContent::Hash("ab".into()),
                link,
                xattrs: (!name.is_empty()).then(|| Xattrs::from([(name, value)])),
                uncertain: born,
            },
            complete: !born,
        }
    }

    proptest! {
        #[test]
        fn a_line_reads_back_as_it_was_written(
            path in proptest::collection::vec(1u8.., 1..30),
            link in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)),
            name in proptest::collection::vec(1u8.., 0..9),
            value in proptest::collection::vec(any::<u8>(), 0..9),
            born: bool,
        ) {
            let Ok(path) = RelPath::new(&path) else { return Ok(()) };
            let record = record(link, name, value, born);
            let mut text = String::new();
            line(&mut text, &path, &record);
            prop_assert_eq!(text.matches('\n').count(), 1);
            prop_assert_eq!(parse(text.trim_end_matches('\n')), Some((path, record)));
        }
    }

    #[test]
    fn a_torn_line_loses_itself_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index");
        let path = |name: &[u8]| RelPath::new(name).unwrap();
        let record = record(None, b"user.a".to_vec(), vec![], true);
        let mut text = String::new();
        line(&mut text, &path(b"one"), &record);
        line(&mut text, &path(b"two"), &record);
        std::fs::write(&index, &text.as_bytes()[..text.len() - 9]).unwrap();
        assert_eq!(read(&index).unwrap().len(), 1);
        let mut more = String::new();
        line(&mut more, &path(b"three"), &record);
        append(&index, &more).unwrap();
        let mut found: Vec<_> = read(&index).unwrap().into_keys().collect();
        found.sort();
        assert_eq!(found, [path(b"one"), path(b"three")]);
    }
}
