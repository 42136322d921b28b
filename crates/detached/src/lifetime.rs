//! The life of the door, from the first word to the last.
//!
//! It says that it is ready, and goes on saying so until somebody hears it; meanwhile it answers and tells.
//! When it is told to end, it ends what runs, tells what became of that as long as its grace lasts, says that
//! it has ended, and does. What was not heard by then stays in the spool, for whoever starts next.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use jiff::Timestamp;
use sandbox_isolation::Status;
use sandbox_isolation::keeper::Kept;
use sandbox_model::{Class, Failure, SessionId};
use sandbox_runtime::Line;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::arguments::Arguments;
use crate::content;
use crate::control_plane::{ControlPlane, Telling, Verdict};
use crate::courier::{Backoff, Courier};
use crate::door::Door;
use crate::executions::Executions;
use crate::journal;
use crate::raise::Raised;
use crate::spool::Spool;
use crate::state::State;
use crate::token::Token;

/// How long a word on the container may be on its way.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the last word may take, however little grace is left.
const LAST: Duration = Duration::from_secs(2);

/// Why it ended.
#[derive(Debug, Error)]
pub(crate) enum LifetimeError {
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot read what is still to be told")]
    Spool(#[source] io::Error),
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
    #[error("cannot reach the process that runs code")]
    Line(#[source] io::Error),
    #[error("the control plane refuses session {session}: {status}: {reason}")]
    Refused {
        session: SessionId,
        status: StatusCode,
        reason: String,
    },
    #[error("the process that runs code {0}")]
    Lost(String),
}

impl Failure for LifetimeError {
    fn class(&self) -> Class {
        match self {
            LifetimeError::Listen { source, .. } | LifetimeError::Spool(source) => {
                Class::of_io(source)
            }
            LifetimeError::Refused { .. } => Class::Permission,
            _ => Class::General,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            LifetimeError::Listen { .. } => "choose another address with --listen",
            LifetimeError::Refused { .. } => {
                "look at --session, at --control, and at where the token comes from"
            }
            LifetimeError::Lost(_) => "look at what the container may use; start it again",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// What ends it.
enum End {
    /// A signal.
    Asked,
    /// Nobody runs code any more.
    Lost(Status),
    /// The control plane does not want it.
    Refused(LifetimeError),
}

/// What is said of a container that ended.
#[derive(Debug, Serialize)]
struct Exited {
    exit_code: i32,
    exited_at: Timestamp,
    exit_reason: &'static str,
}

/// Whom it is, and who is told.
struct Life {
    session: SessionId,
    control_plane: Rc<ControlPlane>,
    executions: Rc<Executions>,
    courier: Rc<Courier>,
}

/// Lives until it is told to end. On a local set.
pub(crate) async fn live(
    arguments: Arguments,
    state: &State,
    raised: Raised,
    token: Token,
) -> Result<(), LifetimeError> {
    let Raised { kept, line, walls } = raised;
    let spool = Arc::new(Spool::open(&state.spool()));
    let pending = spool.recover().map_err(LifetimeError::Spool)?;
    let address = arguments.listen;
    let unbound = |source| LifetimeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(unbound)?;
    let address = listener.local_addr().map_err(unbound)?;
    let asked = ending()?;
    let line = Line::new(line).map_err(LifetimeError::Line)?;
    let token = Rc::new(token);
    let control_plane = Rc::new(ControlPlane::new(
        arguments.control.clone(),
        arguments.session.clone(),
        token.clone(),
    ));
    let courier = Rc::new(Courier::new(control_plane.clone(), spool.clone(), pending));
    let executions = Rc::new(Executions::new(
        line.clone(),
        control_plane.clone(),
        spool,
        courier.clone(),
    ));
    let door = Door {
        session: arguments.session.clone(),
        token,
        walls,
        line: line.clone(),
        executions: executions.clone(),
        courier: courier.clone(),
    };
    tokio::task::spawn_local(Rc::new(door).serve(listener));
    tokio::task::spawn_local(courier.clone().work());
    journal::info(
        format!("listening on http://{address}"),
        &[("session_id", &arguments.session)],
    );
    let life = Life {
        session: arguments.session.clone(),
        control_plane,
        executions,
        courier,
    };
    let end = tokio::select! {
        biased;
        () = asked => End::Asked,
        status = lost(&line, &kept) => End::Lost(status),
        error = life.introduce(&arguments, address) => End::Refused(error),
    };
    life.end(end, arguments.grace).await
}

impl Life {
    /// Says that it is ready until that is heard. Ends only where it is not wanted.
    async fn introduce(&self, arguments: &Arguments, address: SocketAddr) -> LifetimeError {
        let own = || {
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned()
        };
        let ready = json!({
            "container_id": arguments.container.clone().unwrap_or_else(own),
            "executor_url": arguments.url.clone().unwrap_or_else(|| format!("http://{address}")),
            "ready_at": Timestamp::now(),
        });
        let fields: journal::Fields<'_> = &[("session_id", &self.session)];
        let mut backoff = Backoff::default();
        loop {
            match self.tell("container_ready", &ready, PATIENCE).await {
                Verdict::Taken => break,
                Verdict::Refused { status, reason } => match status {
                    // It is known to be ready, or is over by now; what is still to be told is told.
                    StatusCode::CONFLICT => {
                        journal::warn(format!("the control plane: {status}: {reason}"), fields);
                        break;
                    }
                    status => {
                        return LifetimeError::Refused {
                            session: self.session.clone(),
                            status,
                            reason,
                        };
                    }
                },
                Verdict::Later(reason) => {
                    let message = format!("nobody hears that {} is ready: {reason}", self.session);
                    journal::warn(message, fields);
                    tokio::time::sleep(backoff.next()).await;
                }
            }
        }
        std::future::pending().await
    }

    /// Ends what runs, tells as much as the grace allows, and says how it ended.
    async fn end(&self, end: End, grace: Duration) -> Result<(), LifetimeError> {
        let deadline = Instant::now() + grace;
        let (exit_code, exit_reason, outcome) = match end {
            End::Asked => (0, "sigterm", Ok(())),
            End::Lost(status) => (1, reason(status), Err(LifetimeError::Lost(words(status)))),
            End::Refused(error) => return Err(error),
        };
        journal::info(
            format!("ending: {exit_reason}"),
            &[("session_id", &self.session)],
        );
        let settle = async {
            self.executions.drain().await;
            self.courier.idle().await;
        };
        let _ = tokio::time::timeout_at(deadline, settle).await;
        let left = self.courier.pending() + self.executions.running();
        if left > 0 {
            let message = format!("{left} results were not told; they are kept");
            journal::error(message, &[("session_id", &self.session)]);
        }
        let exited = Exited {
            exit_code,
            exited_at: Timestamp::now(),
            exit_reason,
        };
        let left = deadline.saturating_duration_since(Instant::now()).max(LAST);
        match self
            .tell("container_exited", &exited, left.min(PATIENCE))
            .await
        {
            Verdict::Taken => {}
            Verdict::Refused { reason, .. } | Verdict::Later(reason) => {
                let message = format!("nobody hears that {} ended: {reason}", self.session);
                journal::error(message, &[("session_id", &self.session)]);
            }
        }
        outcome
    }

    async fn tell(&self, what: &str, value: &impl Serialize, patience: Duration) -> Verdict {
        let telling = of_session(&self.session, what, value, patience);
        self.control_plane.tell(telling).await
    }
}

/// Says of one that could not begin that it ended, with this status.
pub(crate) async fn stillborn(arguments: &Arguments, token: Token, exit_code: i32) {
    let exited = Exited {
        exit_code,
        exited_at: Timestamp::now(),
        exit_reason: "error",
    };
    let telling = of_session(&arguments.session, "container_exited", &exited, PATIENCE);
    let control_plane = ControlPlane::new(
        arguments.control.clone(),
        arguments.session.clone(),
        Rc::new(token),
    );
    // It ends anyway, and says why to whoever started it.
    control_plane.tell(telling).await;
}

/// Something to be told of the session.
fn of_session(
    session: &SessionId,
    what: &str,
    value: &impl Serialize,
    patience: Duration,
) -> Telling<'static> {
    Telling {
        to: format!("/sessions/{session}/{what}"),
        content: content::of_json(value),
        request_id: None,
        key: None,
        patience,
    }
}

/// Until it is told to end, from the call on.
fn ending() -> Result<impl Future<Output = ()>, LifetimeError> {
    let signals = |kind| signal(kind).map_err(LifetimeError::Signals);
    let mut terminate = signals(SignalKind::terminate())?;
    let mut interrupt = signals(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Until nobody runs code any more: how that one ended.
async fn lost(line: &Line, kept: &Kept) -> Status {
    line.cut().await;
    // Its end of the line is closed by its end, or was closed by it: there is nothing left that it is for.
    kept.wait().unwrap_or(Status::Exited(1))
}

fn reason(status: Status) -> &'static str {
    match status {
        Status::Signalled(9) => "sigkill",
        _ => "error",
    }
}

fn words(status: Status) -> String {
    match status {
        Status::Exited(code) => format!("ended by itself, with status {code}"),
        Status::Signalled(signal) => format!("was killed by signal {signal}"),
    }
}
