//! Data, to stdout.
//!
//! Every write goes through [`Output`], which remembers whether it was *our* writing that failed:
//! a reader that went away (`sandbox list | head -1`) is not an error, a full disk behind a
//! redirection is.

use std::io::{self, BufWriter, StdoutLock, Write};

use sandbox_model::Failure;
use serde::Serialize;

use crate::narration::Paint;
use crate::report::{Problem, Refusal};
use crate::table::Table;

/// Stdout, buffered.
pub(crate) struct Output {
    inner: BufWriter<StdoutLock<'static>>,
    failed: Option<io::ErrorKind>,
}

/// A write to stdout that failed.
#[derive(Debug)]
pub(crate) struct OutputError(io::Error);

impl OutputError {
    /// Did the reader go away?
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }

    /// As an error to tell.
    pub(crate) fn unwritable(self) -> impl Failure {
        Refusal::io("cannot write the output", self.0)
    }
}

impl Output {
    /// Opens stdout. One at a time.
    pub(crate) fn open() -> Output {
        Output {
            inner: BufWriter::with_capacity(32 << 10, io::stdout().lock()),
            failed: None,
        }
    }

    /// One line.
    pub(crate) fn line(&mut self, line: impl AsRef<[u8]>) -> Result<(), OutputError> {
        self.write_all(line.as_ref())
            .and_then(|()| self.write_all(b"\n"))
            .map_err(OutputError)
    }

    /// A value as indented JSON, with a line end.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Problem> {
        match serde_json::to_writer_pretty(&mut *self, value) {
            Ok(()) => Ok(self.line("")?),
            Err(error) => Err(self.blame(error.into(), "cannot write JSON")),
        }
    }

    /// Sorts an error of something that read files *and* wrote to us: ours, or theirs to tell as
    /// `what`.
    pub(crate) fn blame(&self, error: io::Error, what: &str) -> Problem {
        match self.failed {
            Some(_) => OutputError(error).into(),
            None => Refusal::io(what, error).into(),
        }
    }

    /// Writes out what is buffered. Must be called before a command ends well: an error on drop
    /// would be lost.
    pub(crate) fn finish(mut self) -> Result<(), OutputError> {
        self.flush().map_err(OutputError)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner
            .write(bytes)
            .inspect_err(|error| self.failed = Some(error.kind()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner
            .flush()
            .inspect_err(|error| self.failed = Some(error.kind()))
    }
}

/// Prints one line of data and finishes.
pub(crate) fn print_line(line: impl AsRef<[u8]>) -> Result<(), Problem> {
    let mut out = Output::open();
    out.line(line)?;
    Ok(out.finish()?)
}

/// Prints one value as JSON and finishes.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Problem> {
    let mut out = Output::open();
    out.json(value)?;
    Ok(out.finish()?)
}

/// Prints a table and finishes.
pub(crate) fn print_table(table: &Table) -> Result<(), Problem> {
    let mut out = Output::open();
    for line in table.lines(Paint::stdout()) {
        out.line(line)?;
    }
    Ok(out.finish()?)
}

/// Prints labels with one line or several each, and finishes. Those without a line are left out.
pub(crate) fn print_fields(fields: &[(&str, Vec<String>)]) -> Result<(), Problem> {
    let paint = Paint::stdout();
    let mut out = Output::open();
    for (label, values) in fields {
        for (index, value) in values.iter().enumerate() {
            let label = if index == 0 { *label } else { "" };
            out.line(format!("{} {value}", paint.strong(&format!("{label:<12}"))))?;
        }
    }
    Ok(out.finish()?)
}
