//! Terminals: typing to a program in a session.
//!
//! A terminal's program is started by the session's executor, which hands over our end of it; what is
//! typed and shown goes through that, and nowhere is more of it kept than the kernel keeps. As long as
//! somebody is at a terminal the session is in use: it is not idle, and its processes stay. While it is
//! paused the program stands still, and what is typed waits. The program ends with everything it started
//! when the terminal is closed, the session ends, or the server does.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use sandbox_executor::Opening;
use sandbox_model::{Session, SessionId};
use sandbox_runtime::LineError;
use serde_json::json;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::watch;

use crate::activity::Presence;
use crate::caller::Caller;
use crate::control::Control;
use crate::error::ControlError;
use crate::live::Use;

/// How large either side of a terminal may be.
const SIDES: std::ops::RangeInclusive<u16> = 1..=1000;

/// The longest command.
const MOST_COMMAND_BYTES: usize = 64 << 10;

/// How long a program may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long those who are at terminals may take to leave when the server ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// How often one looks again whether a program has opened a terminal that it had closed.
const LOOK: Duration = Duration::from_millis(100);

/// How large a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    columns: u16,
    rows: u16,
}

/// A terminal to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTerminal {
    /// What runs on it, as a shell reads it; a shell to type to where nothing is said.
    pub command: Option<String>,
    /// How large it is.
    pub size: Size,
}

/// A terminal with a program on it.
#[derive(Debug)]
pub struct Terminal {
    shown: Receiver,
    typed: Sender,
    over: watch::Receiver<Option<Over>>,
    hearing: tokio::task::AbortHandle,
    visit: Option<Visit>,
}

/// How a terminal's program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// By itself, with this exit status.
    Exited(i32),
    /// With its session.
    Lost,
}

/// What is told, and given up, when somebody leaves.
#[derive(Debug)]
struct Visit {
    control: Control,
    caller: Caller,
    session: SessionId,
    _presence: Presence,
    /// Whoever ends the server waits for this to be dropped.
    ending: watch::Receiver<bool>,
}

/// Whether there may be terminals.
#[derive(Debug)]
pub(crate) struct Terminals {
    ending: watch::Sender<bool>,
}

impl Default for Terminals {
    fn default() -> Terminals {
        let (ending, _) = watch::channel(false);
        Terminals { ending }
    }
}

impl Terminals {
    fn enter(&self) -> Result<watch::Receiver<bool>, ControlError> {
        let ending = self.ending.subscribe();
        if *ending.borrow() {
            return Err(ControlError::Exhausted {
                problem: "the server is ending".to_owned(),
                solution: "ask the server that takes its place".to_owned(),
            });
        }
        Ok(ending)
    }

    /// Tells everybody to leave, and waits until they have.
    pub(crate) async fn close(&self) {
        self.ending.send_replace(true);
        let _ = tokio::time::timeout(FAREWELL, self.ending.closed()).await;
    }
}

impl Control {
    /// Starts a program on a terminal in a session. It ends when what this returns is dropped.
    pub async fn open_terminal(
        &self,
        caller: &Caller,
        id: &SessionId,
        new: NewTerminal,
    ) -> Result<Terminal, ControlError> {
        new.check()?;
        let ending = self.shared.terminals.enter()?;
        let session = self.running_session(id).await?;
        let presence = self.attend(id);
        let opening = Opening {
            command: new.command,
            columns: new.size.columns,
            rows: new.size.rows,
        };
        let started = tokio::time::timeout(PATIENCE, self.start_there(&session, opening)).await;
        let (used, course, end) = started.map_err(|late| ControlError::Unavailable {
            part: "the session's executor".into(),
            source: late.into(),
        })??;
        // What has ended meanwhile is not to go on because somebody came late.
        self.running_session(id).await?;
        let failed = |error| ControlError::failed("watch a terminal", error);
        rustix::io::ioctl_fionbio(&end, true).map_err(|error| failed(error.into()))?;
        // It is no pipe, but what is asked of one it can do.
        let again = end.try_clone().map_err(failed)?;
        let shown = Receiver::from_owned_fd_unchecked(again).map_err(failed)?;
        let typed = Sender::from_owned_fd_unchecked(end).map_err(failed)?;
        let (tell, over) = watch::channel(None);
        let hearing = tokio::spawn(hear(used, course, tell)).abort_handle();
        let visit = Visit {
            control: self.clone(),
            caller: caller.clone(),
            session: id.clone(),
            _presence: presence,
            ending,
        };
        visit.tell("open", json!({ "state": "opened" })).await;
        Ok(Terminal {
            shown,
            typed,
            over,
            hearing,
            visit: Some(visit),
        })
    }

    async fn start_there(
        &self,
        session: &Session,
        opening: Opening,
    ) -> Result<(Use, sandbox_runtime::Terminal, OwnedFd), ControlError> {
        let mut used = self.line_to_run(session, None).await?;
        let opened = match used.line.open_terminal(opening.clone()).await {
            // It was ended for not being used, at this very moment.
            Err(LineError::Cut | LineError::Unreachable(_)) => {
                used = self.line_to_run(session, None).await?;
                used.line.open_terminal(opening).await
            }
            opened => opened,
        };
        let (course, end) = opened?;
        Ok((used, course, end))
    }
}

/// Waits for a program's end, and tells of it. The session stays raised meanwhile.
async fn hear(used: Use, mut course: sandbox_runtime::Terminal, tell: watch::Sender<Option<Over>>) {
    let over = match course.ended().await {
        Ok(status) => Over::Exited(status),
        Err(_) => Over::Lost,
    };
    // Nobody may be there any more.
    let _ = tell.send(Some(over));
    drop(used);
}

impl Terminal {
    /// What is shown next, into `buffer`: how much it is. Nothing when it is over.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut over = self.over.clone();
        loop {
            // Looked at first: what was shown before the end is there by then.
            let is_over = over.borrow_and_update().is_some();
            if !is_over {
                tokio::select! {
                    ready = self.shown.readable() => ready?,
                    _ = over.changed() => {}
                }
            }
            let mut read = || Ok(rustix::io::read(&self.shown, &mut *buffer)?);
            let read = match is_over {
                // Nobody is waited for any more, and the runtime may not know yet that there is something.
                true => read(),
                false => self.shown.try_io(read),
            };
            // So it is told that nobody has it open: because all have ended, or all have closed it.
            let is_closed = |error: &io::Error| Errno::from_io_error(error) == Some(Errno::IO);
            let is_empty = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
            match read {
                Err(error) if is_over && (is_closed(&error) || is_empty(&error)) => return Ok(0),
                Err(error) if is_closed(&error) => {
                    let _ = tokio::time::timeout(LOOK, over.changed()).await;
                }
                Err(error) if is_empty(&error) => {}
                read => return read,
            }
        }
    }

    /// Types all of `bytes`. Waits while the program has not read what was typed before.
    pub async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.typed.writable().await?;
            match self.typed.try_write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Nobody is there to read it.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the program how large its terminal is now.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        let size = Winsize {
            ws_col: size.columns,
            ws_row: size.rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(&self.typed, size)?)
    }

    /// Waits until the program has ended. There may be more to read then.
    pub async fn ended(&self) -> Over {
        let mut over = self.over.clone();
        let told = over.wait_for(Option::is_some).await;
        told.ok().and_then(|over| *over).unwrap_or(Over::Lost)
    }

    /// Waits until the server is to end.
    pub async fn ending(&self) {
        if let Some(visit) = &self.visit {
            let mut ending = visit.ending.clone();
            // An error would tell that the server has ended.
            let _ = ending.wait_for(|ending| *ending).await;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // With it ends what still runs.
        self.hearing.abort();
        let exit_code = match *self.over.borrow() {
            Some(Over::Exited(status)) => Some(status),
            _ => None,
        };
        if let (Some(visit), Ok(runtime)) =
            (self.visit.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(async move {
                let detail = json!({ "state": "closed", "exit_code": exit_code });
                visit.tell("close", detail).await;
            });
        }
    }
}

impl Visit {
    /// Writes down that somebody came or left.
    async fn tell(&self, what: &str, detail: serde_json::Value) {
        let id = &self.session;
        self.control.notice(id, "terminal", detail.clone()).await;
        let action = format!("terminal.{what}");
        self.control
            .audit(&self.caller, &action, id.as_str(), detail)
            .await;
    }
}

impl Size {
    /// So many characters beside each other and lines below each other, if that is a size at all.
    pub fn new(columns: u16, rows: u16) -> Result<Size, ControlError> {
        for (field, side) in [("columns", columns), ("rows", rows)] {
            if !SIDES.contains(&side) {
                let (least, most) = (SIDES.start(), SIDES.end());
                let problem = format!("{side} is not between {least} and {most}");
                return Err(ControlError::invalid(
                    field,
                    problem,
                    "choose one in between",
                ));
            }
        }
        Ok(Size { columns, rows })
    }
}

impl NewTerminal {
    fn check(&self) -> Result<(), ControlError> {
        let Some(command) = &self.command else {
            return Ok(());
        };
        let (problem, solution) = match command {
            command if command.trim().is_empty() => {
                ("is empty", "leave it out: then there is a shell")
            }
            command if command.contains('\0') => ("has a zero byte in it", "leave that out"),
            command if command.len() > MOST_COMMAND_BYTES => {
                ("is too long", "upload it as a file, and run that")
            }
            _ => return Ok(()),
        };
        Err(ControlError::invalid("command", problem, solution))
    }
}
