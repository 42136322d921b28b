//! What is said on the line to an executor.
//!
//! Every question has a number of the asker's choosing, and every answer the number of its question. An
//! execution is answered more than once: that it was begun, what happens, and what became of it; and so is
//! a terminal. Where an answer hands over a file, its descriptor comes with it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sandbox_model::execution::Language;
use sandbox_model::id::ExecutionId;
use serde::{Deserialize, Serialize};

use crate::execution::{Happening, Request};
use crate::listing::Page;
use crate::terminal::Opening;

/// Something asked of an executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its number.
    pub number: u64,
    /// What.
    pub ask: Ask,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Is anybody there?
    Ping,
    /// Code in this language comes next.
    Foresee(Language),
    /// Run this.
    Execute(Request),
    /// End that.
    Cancel(ExecutionId),
    /// Let the executions to come find this in their environment, over what there is anyway and instead of
    /// what was said before.
    Configure {
        /// The variables.
        env: BTreeMap<String, String>,
    },
    /// Hand over the file at this path in the workspace, for reading.
    Read(PathBuf),
    /// Hand over a new file for this path in the workspace, for writing.
    Write(PathBuf),
    /// Hand over a new file, for writing. Where it goes is said when it is whole.
    Begin,
    /// What was written is whole: put it in its place.
    Commit(u64),
    /// What was written is whole: put it at this path in the workspace.
    CommitAt {
        /// Which.
        upload: u64,
        /// Where it goes, whatever was said before.
        path: PathBuf,
    },
    /// What was written is not wanted.
    Abandon(u64),
    /// What is in a directory?
    List {
        /// Where it is.
        path: PathBuf,
        /// What the page before said to be next.
        after: Option<String>,
        /// How many entries are wanted; there is a [most](crate::listing::MOST).
        limit: usize,
    },
    /// Hand over the directory at this path as a tar archive, to be read from a pipe.
    Archive(PathBuf),
    /// Remove the file, the link or the empty directory at this path.
    Remove(PathBuf),
    /// Remove what is at this path, with all that is in it.
    RemoveAll(PathBuf),
    /// Start a program on a terminal of its own.
    Terminal(Opening),
    /// End what was started, or is about to be, for the question of this number, with everything that it
    /// started.
    Hang(u64),
    /// Hand over a connection to this TCP port on the loopback of something that runs here.
    Connect(u16),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The question's number.
    pub number: u64,
    /// What is answered.
    pub answer: Result<Answer, Refusal>,
}

/// What can be answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It was done, and there is nothing more to say.
    Done,
    /// The execution was begun.
    Begun,
    /// This happened to the execution.
    Happening(Happening),
    /// Was there such an execution?
    Cancelled(bool),
    /// A file of this size; its descriptor comes with it.
    File(u64),
    /// A new file under this number, for commit or abandon; its descriptor comes with it.
    Upload(u64),
    /// An archive is being written. What it can be read from comes with it; when it is not complete, it ends
    /// in the middle of something.
    Archive,
    /// What is in the directory.
    Entries(Page),
    /// The program runs. Our end of its terminal comes with it.
    Terminal,
    /// It ended, with this exit status.
    TerminalEnded(i32),
    /// There is a connection; it comes with this.
    Connected,
}

impl Answer {
    /// Does nothing more follow to the same question?
    pub fn is_last(&self) -> bool {
        match self {
            Answer::Begun | Answer::Terminal => false,
            Answer::Happening(happening) => matches!(happening, Happening::Outcome(_)),
            _ => true,
        }
    }
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What sort of reason it is.
    pub kind: RefusalKind,
    /// The reason in words.
    pub reason: String,
}

/// What sort of reason there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// There is nothing of that name.
    NotFound,
    /// There is, but it is not what was asked for.
    Wrong,
    /// There is no room left.
    Full,
    /// As much is under way as may be; it can be asked again later.
    Busy,
    /// Something else failed.
    Failed,
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Refusal {
        use std::io::ErrorKind;
        let kind = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => RefusalKind::NotFound,
            ErrorKind::IsADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename
            | ErrorKind::DirectoryNotEmpty => RefusalKind::Wrong,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => RefusalKind::Full,
            ErrorKind::ResourceBusy => RefusalKind::Busy,
            _ => RefusalKind::Failed,
        };
        Refusal {
            kind,
            reason: error.to_string(),
        }
    }
}
