//! The names of the references in a table of the reftable format.

use std::collections::BTreeSet;

use super::bytes::{take, varint};

/// Does the table set a reference below `prefix`? `None` if it is not a table.
///
/// Blocks of references stand one after the other from the beginning on. A reader may also find one through
/// the index, so every block that the index names is looked at, too.
pub(super) fn sets_below(table: &[u8], prefix: &[u8]) -> Option<bool> {
    let table = Table::of(table)?;
    let mut open = vec![0];
    open.extend(table.index);
    let mut seen = BTreeSet::new();
    while let Some(start) = open.pop() {
        if !seen.insert(start) {
            continue;
        }
        let Some(block) = table.block(start)? else {
            continue;
        };
        let mut name = Vec::new();
        let mut records = block.records;
        while !records.is_empty() {
            let kind = next_name(&mut records, &mut name)?;
            if block.is_index {
                open.push(usize::try_from(varint(&mut records)?).ok()?);
                continue;
            }
            table.skip_value(kind, &mut records)?;
            // Zero says that it was deleted.
            if kind != 0 && name.starts_with(prefix) {
                return Some(true);
            }
        }
        open.extend(block.next);
    }
    Some(false)
}

struct Table<'t> {
    bytes: &'t [u8],
    header: usize,
    id_length: usize,
    block_size: usize,
    /// Where the index of references is.
    index: Option<usize>,
}

struct Block<'t> {
    is_index: bool,
    records: &'t [u8],
    /// Where the next one of references may be.
    next: Option<usize>,
}

impl<'t> Table<'t> {
    fn of(bytes: &'t [u8]) -> Option<Table<'t>> {
        if !bytes.starts_with(b"REFT") {
            return None;
        }
        let (header, id_length) = match (bytes.get(4)?, bytes.get(24..28)) {
            (1, _) => (24, 20),
            (2, Some(b"sha1")) => (28, 20),
            (2, Some(b"s256")) => (28, 32),
            _ => return None,
        };
        // The header again, five offsets and a checksum.
        let footer = bytes.len().checked_sub(header + 5 * 8 + 4)?;
        let index = bytes.get(footer + header..footer + header + 8)?;
        let index = u64::from_be_bytes(index.try_into().ok()?);
        Some(Table {
            bytes: &bytes[..footer],
            header,
            id_length,
            block_size: short(bytes, 5)?,
            index: (index != 0).then_some(usize::try_from(index).ok()?),
        })
    }

    /// The block at `start`; the inner `None` if it is not one of references or of their index.
    fn block(&self, start: usize) -> Option<Option<Block<'t>>> {
        // The first begins with the header of the table.
        let at = if start == 0 { self.header } else { start };
        let is_index = match self.bytes.get(at) {
            Some(b'r') => false,
            Some(b'i') => true,
            _ => return Some(None),
        };
        let length = short(self.bytes, at + 1)?;
        let end = start.checked_add(length)?;
        let block = self.bytes.get(at + 4..end)?;
        let (rest, restarts) = block.split_at(block.len().checked_sub(2)?);
        let restarts = usize::from(u16::from_be_bytes(restarts.try_into().ok()?));
        let records = rest.get(..rest.len().checked_sub(restarts * 3)?)?;
        let is_padded =
            length < self.block_size && self.bytes.get(end).is_none_or(|byte| *byte == 0);
        Some(Some(Block {
            is_index,
            records,
            next: (!is_index).then_some(if is_padded {
                start.checked_add(self.block_size)?
            } else {
                end
            }),
        }))
    }

    /// What follows the name of a reference: when it was set, and to what.
    fn skip_value(&self, kind: u64, records: &mut &[u8]) -> Option<()> {
        varint(records)?;
        let length = match kind {
            0 => 0,
            1 => self.id_length,
            2 => 2 * self.id_length,
            3 => usize::try_from(varint(records)?).ok()?,
            _ => return None,
        };
        take(records, length).map(|_| ())
    }
}

/// The next name, which begins as the one before does, and the kind of what follows it.
fn next_name(records: &mut &[u8], name: &mut Vec<u8>) -> Option<u64> {
    let kept = usize::try_from(varint(records)?).ok()?;
    let suffix = varint(records)?;
    if kept > name.len() {
        return None;
    }
    name.truncate(kept);
    name.extend_from_slice(take(records, usize::try_from(suffix >> 3).ok()?)?);
    Some(suffix & 7)
}

/// A number of three bytes.
fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(3)?)?;
    Some(
        bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of a repository after `script`.
    fn tables(format: &str, script: &str) -> Vec<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "git init -q --ref-format=reftable --object-format={format} .; \
             git -c user.name=x -c user.email=x@y commit -q --allow-empty -m one; id=$(git rev-parse HEAD); {script}"
        );
        let mut shell = std::process::Command::new("sh");
        let status = shell.args(["-euc", &script]).current_dir(dir.path());
        assert!(status.status().unwrap().success());
        let tables = std::fs::read_dir(dir.path().join(".git/reftable")).unwrap();
        let tables = tables.map(|table| table.unwrap().path());
        let tables = tables.filter(|table| table.extension().is_some());
        let tables = tables.filter(|table| !table.ends_with("tables.list"));
        tables.map(|table| std::fs::read(table).unwrap()).collect()
    }

    #[test]
    fn references_are_found_in_tables_of_git() {
        // Enough for several blocks and an index.
        let many = "for i in $(seq 3000); do echo \"create refs/heads/branch-$i $id\"; done | git update-ref --stdin";
        for format in ["sha1", "sha256"] {
            for script in ["true", many] {
                let plain = tables(format, &format!("{script}; git pack-refs"));
                let found: Vec<_> = plain
                    .iter()
                    .map(|t| sets_below(t, b"refs/replace/"))
                    .collect();
                assert_eq!(found, [Some(false)], "{format}: {script}");
                assert_eq!(sets_below(&plain[0], b"refs/heads/"), Some(true));
                let replaced = tables(
                    format,
                    &format!(
                        "{script}; git update-ref refs/remotes/x $id; git update-ref refs/replace/$id $id; git pack-refs"
                    ),
                );
                let found: Vec<_> = replaced
                    .iter()
                    .map(|t| sets_below(t, b"refs/replace/"))
                    .collect();
                assert_eq!(found, [Some(true)], "{format}: {script}");
            }
        }
    }

    #[test]
    fn broken_tables_are_known() {
        let table = tables("sha1", "git pack-refs").remove(0);
        assert_eq!(sets_below(b"", b"refs/"), None);
        assert_eq!(sets_below(b"REFT\x01", b"refs/"), None);
        for cut in 0..table.len() {
            sets_below(&table[..cut], b"refs/x");
        }
        for at in 0..table.len() {
            let mut broken = table.clone();
            broken[at] = 0xff;
            sets_below(&broken, b"refs/x");
        }
    }
}
