//! What is known of each execution, on disk.
//!
//! An execution has one file, whose name tells how far it is:
//!
//! ```text
//! ID.begun    it was accepted; holds the request that it came of
//! ID.report   it is over; holds all that the control plane is to be told
//! ID.told     the control plane has it, or wants to hear no more; empty, and gone after a day
//! ```
//!
//! Each appears whole or not at all: written under another name, synced, renamed. So whoever starts next knows
//! which were accepted and never ended (they crashed with their executor, and are told so), which are still to
//! be told, and which must not run a second time. A report is never written again: what is told twice is the
//! same.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox_executor::{Ending, Outcome};
use sandbox_model::{ExecutionId, ExecutionResult, RequestId};
use serde::{Deserialize, Serialize};

use crate::report::{Part, Report};

/// The longest first line of a file.
const LONGEST_HEAD: u64 = 64 << 10;

/// What an execution is told to have ended by that was running when everything here ended.
const LOST: &str = "its executor ended before it did";

/// How long it is remembered that an execution was told: nobody asks for one again that long after.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// How often those are looked for that need not be remembered any more.
const OFTEN: Duration = Duration::from_secs(60 * 60);

/// The directory of all of them. Everything here waits for the disk.
#[derive(Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
    /// When it was last swept.
    swept: Mutex<Option<Instant>>,
}

/// Whether an execution can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It is new.
    Fresh,
    /// It was accepted before.
    Known,
}

/// A report to be sent.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What it came of.
    pub(crate) request_id: RequestId,
    /// Where it is.
    pub(crate) file: Arc<File>,
    /// Its parts: where each begins, and how long it is.
    pub(crate) parts: Vec<(Part, u64, u64)>,
}

/// What a report begins with.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    request_id: RequestId,
    parts: Vec<(Part, u64)>,
}

/// How far an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Begun,
    Report,
    Told,
}

impl Stage {
    const ALL: [Stage; 3] = [Stage::Begun, Stage::Report, Stage::Told];

    fn as_str(self) -> &'static str {
        match self {
            Stage::Begun => "begun",
            Stage::Report => "report",
            Stage::Told => "told",
        }
    }
}

impl Spool {
    /// The one in `directory`.
    pub(crate) fn open(directory: &Path) -> Spool {
        Spool {
            directory: directory.to_owned(),
            swept: Mutex::default(),
        }
    }

    /// Sets right what a life before this one left, and gives what is to be told.
    pub(crate) fn recover(&self) -> io::Result<Vec<ExecutionId>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            match staged(&entry.path()) {
                Some(known) => found.push(known),
                // What was being written when everything ended.
                None => std::fs::remove_file(entry.path())?,
            }
        }
        // The furthest of each is where it is; what it was before has been left over.
        let mut furthest: BTreeMap<&ExecutionId, Stage> = BTreeMap::new();
        for (id, stage) in &found {
            let known = furthest.entry(id).or_insert(*stage);
            *known = (*known).max(*stage);
        }
        for (id, stage) in &found {
            if furthest.get(id) > Some(stage) {
                self.remove(id, *stage)?;
            }
        }
        let mut pending = Vec::new();
        for (id, stage) in furthest {
            match stage {
                Stage::Begun => {
                    self.end(&lost(id))?;
                    pending.push(id.clone());
                }
                Stage::Report => pending.push(id.clone()),
                Stage::Told => {}
            }
        }
        self.sweep()?;
        Ok(pending)
    }

    /// An execution is accepted, if it was not before.
    pub(crate) fn begin(&self, id: &ExecutionId, request_id: &RequestId) -> io::Result<Begun> {
        if self.is_known(id) {
            return Ok(Begun::Known);
        }
        let head = Head {
            request_id: request_id.clone(),
            parts: Vec::new(),
        };
        self.write(id, Stage::Begun, |file| line(file, &head))?;
        Ok(Begun::Fresh)
    }

    /// Was it accepted before?
    pub(crate) fn is_known(&self, id: &ExecutionId) -> bool {
        Stage::ALL
            .into_iter()
            .any(|stage| self.path(id, stage).exists())
    }

    /// It was not begun after all.
    pub(crate) fn forget(&self, id: &ExecutionId) -> io::Result<()> {
        self.remove(id, Stage::Begun)
    }

    /// It is over: this is to be told.
    pub(crate) fn end(&self, outcome: &Outcome) -> io::Result<()> {
        let id = &outcome.execution_id;
        let begun = File::open(self.path(id, Stage::Begun))?;
        let Head { request_id, .. } = head(&mut BufReader::new(begun))?.0;
        let report = Report::of(outcome);
        let head = Head {
            request_id,
            parts: report.parts(),
        };
        self.write(id, Stage::Report, |file| {
            line(&mut *file, &head)?;
            report.write(file)
        })?;
        self.remove(id, Stage::Begun)
    }

    /// What is to be told of it; nothing where nothing is.
    pub(crate) fn entry(&self, id: &ExecutionId) -> io::Result<Option<Entry>> {
        let file = match File::open(self.path(id, Stage::Report)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let (Head { request_id, parts }, mut at) = head(&mut BufReader::new(&file))?;
        let mut placed = Vec::new();
        for (part, length) in parts {
            placed.push((part, at, length));
            at += length;
        }
        Ok(Some(Entry {
            request_id,
            file: Arc::new(file),
            parts: placed,
        }))
    }

    /// It was told, or is not to be.
    pub(crate) fn settle(&self, id: &ExecutionId) -> io::Result<()> {
        File::create(self.path(id, Stage::Told))?;
        self.remove(id, Stage::Report)?;
        // What stays this time goes the next.
        let _ = self.sweep();
        Ok(())
    }

    /// Forgets those that were told long ago, now and then.
    fn sweep(&self) -> io::Result<()> {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.is_some_and(|swept| swept.elapsed() < OFTEN) {
            return Ok(());
        }
        *swept = Some(Instant::now());
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let Some((id, Stage::Told)) = staged(&entry.path()) else {
                continue;
            };
            let told = entry.metadata()?.modified()?;
            if told.elapsed().is_ok_and(|since| since > REMEMBERED) {
                self.remove(&id, Stage::Told)?;
            }
        }
        Ok(())
    }

    fn path(&self, id: &ExecutionId, stage: Stage) -> PathBuf {
        self.directory.join(format!("{id}.{}", stage.as_str()))
    }

    fn remove(&self, id: &ExecutionId, stage: Stage) -> io::Result<()> {
        match std::fs::remove_file(self.path(id, stage)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }

    /// Writes the file of `id` at `stage`, so that it is there whole, and stays.
    fn write(
        &self,
        id: &ExecutionId,
        stage: Stage,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let written = self.directory.join(format!("{id}.{}.new", stage.as_str()));
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let write = || -> io::Result<()> {
            let mut file = BufWriter::new(options.open(&written)?);
            content(&mut file)?;
            file.into_inner()?.sync_all()?;
            std::fs::rename(&written, self.path(id, stage))?;
            File::open(&self.directory)?.sync_all()
        };
        write().inspect_err(|_| drop(std::fs::remove_file(&written)))
    }
}

/// Whose file this is, and at which stage; nobody's, where it is not whole.
fn staged(path: &Path) -> Option<(ExecutionId, Stage)> {
    let (id, stage) = path.file_name()?.to_str()?.split_once('.')?;
    let stage = Stage::ALL
        .into_iter()
        .find(|known| known.as_str() == stage)?;
    Some((id.parse().ok()?, stage))
}

/// What became of one that everything ended beneath.
fn lost(id: &ExecutionId) -> Outcome {
    Outcome {
        execution_id: id.clone(),
        ending: Ending::Crashed,
        result: ExecutionResult {
            exit_code: -1,
            ..ExecutionResult::default()
        },
        error: Some(LOST.to_owned()),
        artifacts: Vec::new(),
    }
}

fn line(mut to: impl Write, head: &Head) -> io::Result<()> {
    serde_json::to_writer(&mut to, head)?;
    to.write_all(b"\n")
}

/// The first line of a file, and how long it is.
fn head(from: &mut impl BufRead) -> io::Result<(Head, u64)> {
    let mut text = Vec::new();
    let length = io::Read::take(from, LONGEST_HEAD).read_until(b'\n', &mut text)?;
    Ok((serde_json::from_slice(&text)?, length as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const ID: &str = "exec_20261116_aaaaaaaa";

    fn spool() -> (tempfile::TempDir, Spool, ExecutionId, RequestId) {
        let directory = tempfile::tempdir().expect("a directory");
        let spool = Spool::open(directory.path());
        let request = "request-1".parse().expect("an identifier");
        (
            directory,
            spool,
            ID.parse().expect("an identifier"),
            request,
        )
    }

    fn finished(id: &ExecutionId, stdout: &str) -> Outcome {
        Outcome {
            ending: Ending::Finished,
            error: None,
            result: ExecutionResult {
                stdout: stdout.to_owned(),
                ..ExecutionResult::default()
            },
            ..lost(id)
        }
    }

    fn told(entry: &Entry) -> serde_json::Value {
        let (_, at, length) = *entry.parts.last().expect("a result");
        let mut bytes = vec![0; length as usize];
        entry.file.read_exact_at(&mut bytes, at).expect("its bytes");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    #[test]
    fn an_execution_is_accepted_once_whatever_became_of_it() {
        let (_directory, spool, id, request) = spool();
        assert_eq!(spool.begin(&id, &request).unwrap(), Begun::Fresh);
        assert_eq!(spool.begin(&id, &request).unwrap(), Begun::Known);
        spool.end(&finished(&id, "x")).unwrap();
        assert_eq!(spool.begin(&id, &request).unwrap(), Begun::Known);
        spool.settle(&id).unwrap();
        assert_eq!(spool.begin(&id, &request).unwrap(), Begun::Known);
        assert!(spool.entry(&id).unwrap().is_none());
    }

    #[test]
    fn one_that_was_not_begun_after_all_may_come_again() {
        let (_directory, spool, id, request) = spool();
        spool.begin(&id, &request).unwrap();
        spool.forget(&id).unwrap();
        assert_eq!(spool.begin(&id, &request).unwrap(), Begun::Fresh);
    }

    #[test]
    fn a_report_comes_back_as_it_was_written() {
        let (_directory, spool, id, request) = spool();
        spool.begin(&id, &request).unwrap();
        spool.end(&finished(&id, "printed")).unwrap();
        let entry = spool.entry(&id).unwrap().expect("a report");
        assert_eq!(entry.request_id, request);
        assert_eq!(told(&entry)["stdout"], "printed");
        assert_eq!(spool.recover().unwrap(), [id]);
    }

    #[test]
    fn what_was_running_is_told_to_have_crashed() {
        let (_directory, spool, id, request) = spool();
        spool.begin(&id, &request).unwrap();
        assert_eq!(spool.recover().unwrap(), std::slice::from_ref(&id));
        let entry = spool.entry(&id).unwrap().expect("a report");
        assert_eq!(entry.request_id, request);
        let told = told(&entry);
        assert_eq!(
            (&told["status"], &told["error"]),
            (&"crashed".into(), &LOST.into())
        );
        // Again, it is the same.
        assert_eq!(spool.recover().unwrap(), [id]);
    }

    #[test]
    fn a_life_may_end_between_any_two_steps() {
        let (directory, spool, id, request) = spool();
        let names = || {
            let entries = std::fs::read_dir(directory.path()).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        };
        // While the report was written.
        spool.begin(&id, &request).unwrap();
        std::fs::write(directory.path().join(format!("{ID}.report.new")), "{\"re").unwrap();
        spool.recover().unwrap();
        assert_eq!(names(), [format!("{ID}.report")]);
        // When it was, and the mark of the beginning still stood.
        std::fs::write(directory.path().join(format!("{ID}.begun")), "").unwrap();
        assert_eq!(spool.recover().unwrap().len(), 1);
        assert_eq!(names(), [format!("{ID}.report")]);
        // When it was told, and still stood.
        std::fs::write(directory.path().join(format!("{ID}.told")), "").unwrap();
        assert!(spool.recover().unwrap().is_empty());
        assert_eq!(names(), [format!("{ID}.told")]);
    }

    #[test]
    fn what_was_told_is_remembered_for_a_day() {
        let (directory, spool, id, request) = spool();
        let mark = |number: usize, age: Duration| {
            let path = directory
                .path()
                .join(format!("exec_20261116_{number:08}.told"));
            let told = File::create(&path).unwrap();
            let then = std::time::SystemTime::now() - age;
            told.set_modified(then).unwrap();
            path
        };
        let (old, new) = (REMEMBERED + OFTEN, REMEMBERED - OFTEN);
        let (gone, stays) = (mark(1, old), mark(2, new));
        assert!(spool.recover().unwrap().is_empty());
        assert!(!gone.exists() && stays.exists());
        // One that lives long does not wait for the next life.
        let other = Spool::open(directory.path());
        let gone = mark(3, old);
        other.begin(&id, &request).unwrap();
        other.end(&finished(&id, "x")).unwrap();
        other.settle(&id).unwrap();
        assert!(!gone.exists() && stays.exists());
        // And does not look each time.
        let unseen = mark(4, old);
        other.settle(&id).unwrap();
        assert!(unseen.exists());
    }

    #[test]
    fn many_that_are_to_be_told_do_not_hold_up_the_start() {
        const MANY: usize = 40_000;
        let (directory, spool, ..) = spool();
        for number in 0..MANY {
            let name = format!("exec_20261116_{number:08}.report");
            File::create(directory.path().join(name)).unwrap();
        }
        let begin = Instant::now();
        assert_eq!(spool.recover().unwrap().len(), MANY);
        // Compared each with all others they take a minute.
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{:?}",
            begin.elapsed()
        );
    }
}
