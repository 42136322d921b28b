//! A session's life.
//!
//! ```text
//!              Ready                Exited(0)
//!   creating ────────▶ running ───────────────────▶ completed
//!      │                │  ▲ │
//!      │ Failed   Pause │  │ │ Exited(n), Lost, Failed
//!      ├──────▶ failed ◀┼──┼─┘
//!      │                ▼  │ Resume
//!      │              paused
//!      │                │      Expired, Idle, Outlived (from running or paused)
//!      │                ├─────────────────────────▶ timeout
//!      │ Terminate      │ Terminate (also from running)
//!      └────────────────┴─────────────────────────▶ terminated
//! ```
//!
//! [`SessionStatus::after`] is the whole of it: a pure function that every change of a session's
//! status goes through. A session that has ended stays as it is.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::{NodeId, SessionId, TemplateId};
use crate::resources::Resources;
use crate::runtime::{LimitsEnforced, RuntimeKind, Walls};

/// Where a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Asked for; nothing runs yet.
    Creating,
    /// Its executor answers.
    Running,
    /// Frozen, with everything in it.
    Paused,
    /// Its executor ended by itself, well.
    Completed,
    /// It could not be made, or its executor ended badly.
    Failed,
    /// It was idle too long, or expired.
    Timeout,
    /// Somebody ended it.
    Terminated,
}

/// What can happen to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEvent {
    /// Its executor answers.
    Ready,
    /// It could not be made.
    Failed,
    /// Its executor ended with this status.
    Exited(i32),
    /// Its executor is gone, and nobody saw it go.
    Lost,
    /// It was frozen.
    Pause,
    /// It was thawed.
    Resume,
    /// Nothing happened in it for too long.
    Idle,
    /// Its time is over.
    Expired,
    /// It reached the age that no session may pass.
    Outlived,
    /// Somebody ended it.
    Terminate,
}

/// An event that cannot happen to a session in this status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a session that is {status} cannot {event}")]
pub struct SessionRefusal {
    /// Where the session is.
    pub status: SessionStatus,
    /// What was to happen.
    pub event: SessionEvent,
}

impl SessionStatus {
    /// Every status.
    pub const ALL: [SessionStatus; 7] = [
        SessionStatus::Creating,
        SessionStatus::Running,
        SessionStatus::Paused,
        SessionStatus::Completed,
        SessionStatus::Failed,
        SessionStatus::Timeout,
        SessionStatus::Terminated,
    ];

    /// The status after `event`.
    pub fn after(self, event: SessionEvent) -> Result<SessionStatus, SessionRefusal> {
        use SessionEvent as Event;
        use SessionStatus as Status;
        let next = match (self, event) {
            (Status::Creating, Event::Ready) => Status::Running,
            (Status::Creating, Event::Failed | Event::Exited(_) | Event::Lost) => Status::Failed,
            (Status::Running, Event::Failed | Event::Lost) => Status::Failed,
            (Status::Running, Event::Exited(0)) => Status::Completed,
            (Status::Running, Event::Exited(_)) => Status::Failed,
            (Status::Running, Event::Pause) => Status::Paused,
            (Status::Paused, Event::Resume) => Status::Running,
            (Status::Running | Status::Paused, Event::Idle | Event::Expired | Event::Outlived) => {
                Status::Timeout
            }
            (Status::Creating | Status::Running | Status::Paused, Event::Terminate) => {
                Status::Terminated
            }
            _ => {
                return Err(SessionRefusal {
                    status: self,
                    event,
                });
            }
        };
        Ok(next)
    }

    /// Has it ended, for good?
    pub fn is_over(self) -> bool {
        match self {
            SessionStatus::Creating | SessionStatus::Running | SessionStatus::Paused => false,
            SessionStatus::Completed
            | SessionStatus::Failed
            | SessionStatus::Timeout
            | SessionStatus::Terminated => true,
        }
    }

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionStatus::Creating => "creating",
            SessionStatus::Running => "running",
            SessionStatus::Paused => "paused",
            SessionStatus::Completed => "completed",
            SessionStatus::Failed => "failed",
            SessionStatus::Timeout => "timeout",
            SessionStatus::Terminated => "terminated",
        }
    }
}

impl fmt::Display for SessionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for SessionEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SessionEvent::Ready => "become ready",
            SessionEvent::Failed => "fail",
            SessionEvent::Exited(_) => "exit",
            SessionEvent::Lost => "be lost",
            SessionEvent::Pause => "be paused",
            SessionEvent::Resume => "be resumed",
            SessionEvent::Idle => "be idle for too long",
            SessionEvent::Expired => "expire",
            SessionEvent::Outlived => "outlive its time",
            SessionEvent::Terminate => "be terminated",
        })
    }
}

/// A text that is no status.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is not a status; there are {known}")]
pub struct StatusError {
    /// What was read.
    pub text: String,
    /// What could have been.
    pub known: String,
}

impl FromStr for SessionStatus {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let known = SessionStatus::ALL;
        known
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| StatusError {
                text: text.to_owned(),
                known: known.map(SessionStatus::as_str).join(", "),
            })
    }
}

/// How long a session and its workspace live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMode {
    /// It ends when it is idle or expires.
    Ephemeral,
    /// Its workspace is reattached by the next session of the same agent.
    Persistent,
}

impl SessionMode {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionMode::Ephemeral => "ephemeral",
            SessionMode::Persistent => "persistent",
        }
    }
}

impl FromStr for SessionMode {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        match text {
            "ephemeral" => Ok(SessionMode::Ephemeral),
            "persistent" => Ok(SessionMode::Persistent),
            _ => Err(StatusError {
                text: text.to_owned(),
                known: "ephemeral, persistent".to_owned(),
            }),
        }
    }
}

/// A session, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its identifier.
    pub id: SessionId,
    /// What it was made from.
    pub template_id: TemplateId,
    /// Where it is in its life.
    pub status: SessionStatus,
    /// How long it and its workspace live.
    pub mode: SessionMode,
    /// Whose it is; a persistent one has somebody.
    pub agent_id: Option<String>,
    /// What hosts it.
    pub runtime: RuntimeKind,
    /// Where.
    pub node_id: NodeId,
    /// What it is called there.
    pub container_id: Option<String>,
    /// Where its executor listens.
    pub executor_url: Option<String>,
    /// Where its files are.
    pub workspace_path: String,
    /// What it may use.
    pub resources: Resources,
    /// Which of that is enforced.
    pub limits_enforced: LimitsEnforced,
    /// Which walls it has.
    pub walls: Walls,
    /// What its code finds in its environment.
    pub env_vars: BTreeMap<String, String>,
    /// What of the network it may reach.
    pub network: SessionNetwork,
    /// How long it lives from its creation or last renewal, in seconds.
    pub timeout_seconds: u32,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it first ran.
    pub started_at: Option<Timestamp>,
    /// When anything of it last changed.
    pub updated_at: Timestamp,
    /// When it was last used.
    pub last_activity_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When it ended.
    pub terminated_at: Option<Timestamp>,
    /// Why it failed, where it did.
    pub error: Option<String>,
    /// When its files were removed.
    pub workspace_removed_at: Option<Timestamp>,
    /// The image it was made from. Unknown of one that is older than this field and whose template is gone.
    pub image: Option<String>,
}

/// What of the network a session's code may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionNetwork {
    /// Anything but itself?
    pub enabled: bool,
    /// If so, which hosts and ports, as `host:port`; every one where there is none.
    pub allow: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = SessionEvent> {
        use SessionEvent as Event;
        prop_oneof![
            Just(Event::Ready),
            Just(Event::Failed),
            any::<i32>().prop_map(Event::Exited),
            Just(Event::Exited(0)),
            Just(Event::Lost),
            Just(Event::Pause),
            Just(Event::Resume),
            Just(Event::Idle),
            Just(Event::Expired),
            Just(Event::Outlived),
            Just(Event::Terminate),
        ]
    }

    /// What the specification allows, written down a second time.
    fn is_allowed(from: SessionStatus, to: SessionStatus) -> bool {
        use SessionStatus::*;
        let next: &[SessionStatus] = match from {
            Creating => &[Running, Failed, Terminated],
            Running => &[Completed, Failed, Timeout, Terminated, Paused],
            Paused => &[Running, Terminated, Timeout],
            Completed | Failed | Timeout | Terminated => &[],
        };
        next.contains(&to)
    }

    proptest! {
        #[test]
        fn no_walk_leaves_the_allowed_steps(events in prop::collection::vec(any_event(), 0..40)) {
            let mut status = SessionStatus::Creating;
            for event in events {
                match status.after(event) {
                    Ok(next) => {
                        prop_assert!(is_allowed(status, next), "{} to {}", status, next);
                        prop_assert!(!status.is_over());
                        status = next;
                    }
                    Err(refusal) => prop_assert_eq!(refusal, SessionRefusal { status, event }),
                }
            }
        }
    }

    #[test]
    fn every_allowed_step_is_taken_by_some_event() {
        use SessionEvent as Event;
        let events = [
            Event::Ready,
            Event::Failed,
            Event::Exited(0),
            Event::Exited(1),
            Event::Lost,
            Event::Pause,
            Event::Resume,
            Event::Idle,
            Event::Expired,
            Event::Outlived,
            Event::Terminate,
        ];
        for from in SessionStatus::ALL {
            for to in SessionStatus::ALL {
                let taken = events.iter().any(|event| from.after(*event) == Ok(to));
                assert_eq!(taken, is_allowed(from, to), "{from} to {to}");
            }
        }
    }

    #[test]
    fn an_exit_status_decides() {
        let running = SessionStatus::Running;
        assert_eq!(
            running.after(SessionEvent::Exited(0)),
            Ok(SessionStatus::Completed)
        );
        assert_eq!(
            running.after(SessionEvent::Exited(-9)),
            Ok(SessionStatus::Failed)
        );
        let creating = SessionStatus::Creating;
        assert_eq!(
            creating.after(SessionEvent::Exited(0)),
            Ok(SessionStatus::Failed)
        );
    }

    #[test]
    fn a_refusal_says_what_cannot_be() {
        let refusal = SessionStatus::Terminated
            .after(SessionEvent::Pause)
            .unwrap_err();
        let text = "a session that is terminated cannot be paused";
        assert_eq!(refusal.to_string(), text);
    }

    #[test]
    fn a_status_reads_as_it_is_written() {
        for status in SessionStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        let error = "runing".parse::<SessionStatus>().unwrap_err().to_string();
        assert!(error.contains("creating, running, paused"), "{error}");
    }
}
