//! Terminals: programs that somebody types to.
//!
//! A program on a terminal is in an inner sandbox like an execution, and the terminal is in there with it:
//! nobody else in the session can open it. Our end of it is handed to whoever asked, who reads, writes and
//! resizes it without us; we see that the program ends with everything it started, when it is hung up at
//! the latest. It has no time limit and leaves no result, and what it makes is nobody's artifact.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use sandbox_isolation::keeper::{Inner, Progress};
use sandbox_isolation::{LaunchError, Order};
use sandbox_linux::terminal::Size;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::executor::Executor;
use crate::exhaustion::Exhaustion;
use crate::port::Opened;
use crate::protocol::{Refusal, RefusalKind};
use crate::running::{self, KILLED, Reports};

/// How many terminals there are at once.
const MOST: usize = 5;

/// Becomes the shell that there is, with the words that follow.
const SHELL: &str = r#"exec "$(command -v bash || command -v sh)" "$@""#;

/// What a program on a terminal finds in its environment where nothing else was asked for. A history in
/// the workspace would be among what the session changed.
const ENVIRONMENT: [(&str, &str); 2] = [("TERM", "xterm-256color"), ("HISTFILE", "")];

/// A terminal that is to be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// What is run on it, as a shell reads it; a shell to type to where nothing is said.
    pub command: Option<String>,
    /// How many characters are beside each other.
    pub columns: u16,
    /// How many lines are below each other.
    pub rows: u16,
}

/// The terminals there are, by the number of the question that each answers.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    places: RefCell<BTreeMap<u64, Rc<Notify>>>,
}

/// A terminal's place among them; given up when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    terminals: Rc<Terminals>,
    number: u64,
    hung_up: Rc<Notify>,
}

/// A program that runs on a terminal.
#[derive(Debug)]
pub(crate) struct OnTerminal {
    inner: Inner,
    reports: Reports,
    _doorway: Option<Opened>,
}

impl Executor {
    /// A place for the terminal of this number, if there is one left. It can be hung up from now on.
    pub(crate) fn expect_terminal(&self, number: u64) -> io::Result<Place> {
        let mut places = self.terminals.places.borrow_mut();
        if places.len() >= MOST {
            let reason = format!("it has {MOST} terminals already");
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
        }
        let hung_up = Rc::<Notify>::default();
        places.insert(number, hung_up.clone());
        Ok(Place {
            terminals: self.terminals.clone(),
            number,
            hung_up,
        })
    }

    /// Starts what is asked for: it, and our end of its terminal.
    pub(crate) async fn open_terminal(
        &self,
        opening: &Opening,
        place: &Place,
    ) -> Result<(OnTerminal, OwnedFd), Refusal> {
        let size = Size {
            columns: opening.columns,
            rows: opening.rows,
        };
        let ready = self.keeper.prepare().map_err(refused)?;
        let inner = ready
            .start_on_terminal(&self.order(opening), size)
            .map_err(refused)?;
        let reports = Reports::of(&inner)?;
        let started = tokio::select! {
            biased;
            () = place.hung_up.notified() => Progress::Gone,
            started = reports.next(&self.keeper, &inner) => started,
        };
        match started {
            Progress::Started {
                terminal: Some(end),
                ..
            } => {
                let _doorway = self.doorways.open(&self.keeper, &inner);
                let on_terminal = OnTerminal {
                    inner,
                    reports,
                    _doorway,
                };
                Ok((on_terminal, end))
            }
            Progress::Failed(error) => Err(refused(error)),
            _ => Err(Refusal {
                kind: RefusalKind::Failed,
                reason: "it was ended before it had begun".to_owned(),
            }),
        }
    }

    /// Waits until everything on the terminal has ended, or must: its exit status.
    pub(crate) async fn see_terminal_through(&self, on: OnTerminal, place: &Place) -> i32 {
        let ended = tokio::select! {
            biased;
            ended = on.reports.next(&self.keeper, &on.inner) => ended,
            () = place.hung_up.notified() => Progress::Gone,
        };
        match ended {
            Progress::Ended(status, _) => {
                running::retire(on.inner);
                running::exit_code(status)
            }
            _ => {
                // What it used is nobody's concern.
                let _ = on.inner.end();
                KILLED
            }
        }
    }

    /// Ends what is on the terminal of this number, if there is one.
    pub(crate) fn hang_up(&self, number: u64) {
        if let Some(hung_up) = self.terminals.places.borrow().get(&number) {
            hung_up.notify_one();
        }
    }

    fn order(&self, opening: &Opening) -> Order {
        let words = ["sh", "-c", SHELL, "sh"].map(OsString::from);
        let command = opening.command.as_ref();
        let command = command.map(|command| [OsString::from("-c"), command.into()]);
        let mut env = self.env.borrow().clone();
        for (name, value) in ENVIRONMENT {
            if !env.iter().any(|(known, _)| known == name) {
                env.push((name.into(), value.into()));
            }
        }
        Order {
            command: words
                .into_iter()
                .chain(command.into_iter().flatten())
                .collect(),
            env,
            cwd: self.settings.workspace.clone(),
            extra: None,
        }
    }
}

fn refused(error: LaunchError) -> Refusal {
    let (kind, reason) = match Exhaustion::of_launch(&error) {
        Some(exhaustion @ Exhaustion::Disk) => (RefusalKind::Full, exhaustion.text().to_owned()),
        Some(exhaustion) => (RefusalKind::Busy, exhaustion.text().to_owned()),
        None => (RefusalKind::Failed, error.to_string()),
    };
    Refusal { kind, reason }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.terminals.places.borrow_mut().remove(&self.number);
    }
}
