//! Ports: speaking with a server that code in a session has started.
//!
//! A connection leads to the loopback of something that runs in the session, and to nothing else: its
//! executor makes it there. What is said over it is the door's affair.

use std::os::fd::OwnedFd;
use std::time::Duration;

use sandbox_executor::protocol::{Answer, Ask, RefusalKind};
use sandbox_model::SessionId;
use sandbox_runtime::LineError;

use crate::activity::Presence;
use crate::control::Control;
use crate::error::ControlError;
use crate::live::Use;

/// How long the executor may take. It gives up sooner by itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to a server in a session.
#[derive(Debug)]
pub struct Connection {
    /// A TCP socket of the session's, connected.
    pub socket: OwnedFd,
    /// To be kept for as long as the connection is.
    pub held: Held,
}

/// Keeps a session raised, and counts as a use of it.
#[derive(Debug)]
pub struct Held {
    _used: Use,
    _presence: Presence,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Nobody is there.
    #[error("nothing in session {session} listens on port {port}")]
    Nothing {
        /// In which session.
        session: SessionId,
        /// On which port.
        port: u16,
    },
    /// Something else.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl Control {
    /// Connects to a TCP port on the loopback of what runs in a session.
    pub async fn connect(&self, id: &SessionId, port: u16) -> Result<Connection, PortError> {
        let session = self.running_session(id).await?;
        let presence = self.attend(id);
        let used = self.line(&session).await?;
        let asked = tokio::time::timeout(PATIENCE, used.line.ask(Ask::Connect(port))).await;
        let nothing = || PortError::Nothing {
            session: id.clone(),
            port,
        };
        match asked {
            Ok(Ok((Answer::Connected, Some(socket)))) => Ok(Connection {
                socket,
                held: Held {
                    _used: used,
                    _presence: presence,
                },
            }),
            Ok(Ok(_)) => Err(ControlError::from(LineError::Nonsense).into()),
            Ok(Err(LineError::Refused(refusal))) if refusal.kind == RefusalKind::NotFound => {
                Err(nothing())
            }
            // With the executor ended everything that could have listened.
            Ok(Err(LineError::Cut)) => Err(nothing()),
            Ok(Err(error)) => Err(ControlError::from(error).into()),
            Err(late) => Err(PortError::Control(ControlError::Unavailable {
                part: "the session's executor".into(),
                source: late.into(),
            })),
        }
    }
}
