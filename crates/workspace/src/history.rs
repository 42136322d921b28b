//! The history: one line per operation, appended.
//!
//! A record is one JSON line written by one `write` to a file opened for appending, so records of
//! processes at work at the same time do not mix. A crash or a full disk can tear only the last
//! line; reading passes over what does not parse.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use sandbox_model::HistoryRecord;

const FILE: &str = ".history";

/// Appends `record` to the history in the sandbox root `root`.
pub fn append(root: &Path, record: &HistoryRecord) -> io::Result<()> {
    let path = root.join(FILE);
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let mut line = Vec::with_capacity(256);
    if is_torn(&file)? {
        line.push(b'\n');
    }
    serde_json::to_writer(&mut line, record)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Does the file end in the middle of a line?
fn is_torn(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last != [b'\n'])
}

/// Every record, oldest first.
pub fn read(root: &Path) -> io::Result<Vec<HistoryRecord>> {
    let text = match std::fs::read(root.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use sandbox_model::{Operation, Outcome};

    use super::*;

    fn record(name: &str) -> HistoryRecord {
        HistoryRecord {
            at: jiff::Timestamp::UNIX_EPOCH,
            operation: Operation::Create,
            sandbox: name.parse().unwrap(),
            source: "/tmp/project".to_owned(),
            user: 0,
            outcome: Outcome::Done,
            detail: String::new(),
            took_ms: 3,
        }
    }

    #[test]
    fn records_come_back_in_order() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(read(root.path()).unwrap(), []);
        append(root.path(), &record("one")).unwrap();
        append(root.path(), &record("two")).unwrap();
        assert_eq!(read(root.path()).unwrap(), [record("one"), record("two")]);
    }

    #[test]
    fn a_torn_line_costs_only_itself() {
        let root = tempfile::tempdir().unwrap();
        append(root.path(), &record("one")).unwrap();
        let mut file = OpenOptions::new()
            .append(true)
            .open(root.path().join(FILE))
            .unwrap();
        file.write_all(br#"{"at":"1970-01-01T00:00:00Z","opera"#)
            .unwrap();
        assert_eq!(read(root.path()).unwrap(), [record("one")]);
        append(root.path(), &record("two")).unwrap();
        assert_eq!(read(root.path()).unwrap(), [record("one"), record("two")]);
    }
}
