//! Sessions: telling of them, changing them, ending them.

mod creation;
mod lifetime;
mod network;
mod source;
mod workspace;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sandbox_model::{Language, Session, SessionEvent, SessionId, SessionStatus, TemplateId};
use sandbox_runtime::{Image, Workspace};
use sandbox_store::records::{Along, Note, Page, PageRequest, SessionFilter};
use sandbox_store::{StoreError, Stored};
use serde_json::json;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, Kind};
use crate::live::{Start, Use};

pub use creation::{Asked, NewSession, check_agent_id};
pub use source::Source;
pub(crate) use source::check_path;

impl Control {
    /// The session of that name.
    pub async fn session(&self, id: &SessionId) -> Result<Session, ControlError> {
        Ok(self.stored_session(id).await?.value)
    }

    /// Sessions, newest first.
    pub async fn sessions(
        &self,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<Page<Session>, ControlError> {
        let page = self.shared.records.sessions(filter, page).await?;
        Ok(Page {
            items: page.items.into_iter().map(|stored| stored.value).collect(),
            total: page.total,
            next: page.next,
        })
    }

    /// Ends a session. `false` when it had ended already.
    pub async fn terminate_session(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<bool, ControlError> {
        let session = self.session(id).await?;
        if session.status.is_over() {
            return Ok(false);
        }
        // Said by another than its node, it would go on there.
        if !self.is_lost(&session.node_id).await? {
            self.is_here(&session)?;
        }
        let ended = self.end_session(caller, id, SessionEvent::Terminate, "somebody ended it");
        ended.await
    }

    /// Ends a session for this reason. `false` when it had ended already.
    pub(crate) async fn end_session(
        &self,
        caller: &Caller,
        id: &SessionId,
        event: SessionEvent,
        reason: &str,
    ) -> Result<bool, ControlError> {
        let ended = match self.change(id, event, |_| {}).await {
            Ok(session) => session,
            Err(ControlError::Conflict { .. }) if self.session(id).await?.status.is_over() => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        self.wind_up(caller, &ended, reason).await?;
        Ok(true)
    }

    /// Does what is to be done when a session was written down as ended. From here on nothing new starts in it;
    /// what runs is ended, and written down by whoever waits for it. Where that fails the rest is done all the
    /// same: nobody comes here a second time.
    pub(crate) async fn wind_up(
        &self,
        caller: &Caller,
        ended: &Session,
        reason: &str,
    ) -> Result<(), ControlError> {
        let id = &ended.id;
        let stopped = match self.is_here(ended) {
            Ok(()) => {
                let stopped = self.shared.live.end_of(ended).await;
                stopped.map_err(ControlError::from)
            }
            // Nobody waits for what ran in it; what is left of it there, its node ends when it is back.
            Err(_) => {
                let reason = "its session ended while its node was away";
                self.crash_all_in(id, reason).await
            }
        };
        self.shared.left.notify_one();
        let detail = json!({ "reason": reason });
        self.audit(caller, "session.end", id.as_str(), detail).await;
        metrics::counter!("sandbox_sessions_deleted_total").increment(1);
        stopped
    }

    /// Takes a session through an event, changes what else the event changes, and writes it down.
    pub(crate) async fn change(
        &self,
        id: &SessionId,
        event: SessionEvent,
        and: impl Fn(&mut Session),
    ) -> Result<Session, ControlError> {
        let stored = self.stored_session(id).await?;
        self.change_stored(stored, event, and).await
    }

    /// The same, of a session as it was just read or written down.
    pub(crate) async fn change_stored(
        &self,
        mut stored: Stored<Session>,
        event: SessionEvent,
        and: impl Fn(&mut Session),
    ) -> Result<Session, ControlError> {
        let id = &stored.value.id.clone();
        loop {
            let status = stored.value.status.after(event).map_err(|refusal| {
                let problem = format!("session {id}: {refusal}");
                ControlError::conflict(problem, "look at its status")
            })?;
            let now = Timestamp::now();
            let mut new = stored.value.clone();
            new.status = status;
            new.updated_at = now;
            if status == SessionStatus::Running {
                new.started_at.get_or_insert(now);
            }
            if status.is_over() {
                new.terminated_at = Some(now);
            }
            and(&mut new);
            let detail = json!({ "status": status, "cause": event, "error": new.error });
            let along = Along {
                notice: Some(Note {
                    session: id,
                    kind: "status",
                    detail: &detail.to_string(),
                }),
                audit: None,
            };
            let records = &self.shared.records;
            match records.update_session_along(&stored, &new, &along).await {
                Ok(changed) => {
                    self.wake(id);
                    return Ok(changed.value);
                }
                Err(StoreError::Stale { .. }) => stored = self.stored_session(id).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) async fn stored_session(
        &self,
        id: &SessionId,
    ) -> Result<Stored<Session>, ControlError> {
        let found = self.shared.records.session(id).await?;
        let mut found = found.ok_or_else(|| ControlError::not_found(Kind::Session, id))?;
        if let Some(used) = self.shared.activity.latest(id) {
            found.value.last_activity_at = found.value.last_activity_at.max(used);
        }
        Ok(found)
    }

    /// The line to a session, which is raised if it is not.
    pub(crate) async fn line(&self, session: &Session) -> Result<Use, ControlError> {
        self.line_from(session, Workspace::Empty, None).await
    }

    /// The line to a session in which something is to run, code in `expected` if that is known. Where it must be raised
    /// for that, it may have ended since it was read: then it is not.
    pub(crate) async fn line_to_run(
        &self,
        session: &Session,
        expected: Option<Language>,
    ) -> Result<Use, ControlError> {
        if let Some(used) = self.shared.live.up(session).await {
            return Ok(used);
        }
        let session = self.running_session(&session.id).await?;
        let used = self.line_from(&session, Workspace::Empty, expected).await?;
        // Whoever ends it from now on finds what was raised, and ends that.
        match self.running_session(&session.id).await {
            Ok(_) => Ok(used),
            Err(error) => {
                self.shared.live.end_used(&used).await?;
                Err(error)
            }
        }
    }

    /// The line to a session; where it has no workspace yet, it starts from `workspace`. Code in `expected` is
    /// likely to come at once.
    pub(crate) async fn line_from(
        &self,
        session: &Session,
        workspace: Workspace,
        expected: Option<Language>,
    ) -> Result<Use, ControlError> {
        // Raised here, one of another node would have an empty workspace.
        self.is_here(session)?;
        let start = Start {
            image: image_of(session)?,
            workspace,
            warm: None,
            expected: expected.filter(|_| self.shared.live.has_plenty()),
        };
        Ok(self.shared.live.line(session, start).await?)
    }

    /// The same, with the interpreter that its template is for waiting in it.
    pub(crate) async fn warm_line(&self, session: &Session) -> Result<Use, ControlError> {
        let start = Start {
            image: image_of(session)?,
            workspace: Workspace::Empty,
            warm: language_of(&session.template_id),
            expected: None,
        };
        Ok(self.shared.live.line(session, start).await?)
    }

    /// Is a session on this node? Nobody else can do anything to its processes.
    pub(crate) fn is_here(&self, session: &Session) -> Result<(), ControlError> {
        match session.node_id == self.shared.settings.node_id {
            true => Ok(()),
            false => {
                let reason = format!("session {} is not on this node", session.id);
                Err(ControlError::away(&session.node_id, reason))
            }
        }
    }

    /// The session, if code can run in it now.
    pub(crate) async fn running_session(&self, id: &SessionId) -> Result<Session, ControlError> {
        let session = self.session(id).await?;
        let solution = match session.status {
            SessionStatus::Running => return Ok(session),
            SessionStatus::Paused => "resume it first",
            SessionStatus::Creating => "wait until it is running",
            _ => "make a new session",
        };
        let problem = format!("session {id} is {}, not running", session.status);
        Err(ControlError::conflict(problem, solution))
    }
}

/// The image that a text names; none for a reference to one in a registry.
pub(crate) fn image_named(text: &str) -> Option<Image> {
    match Path::new(text) {
        _ if text == HOST => Some(Image::Host),
        directory if directory.is_absolute() => Some(Image::Directory(directory.to_owned())),
        _ => None,
    }
}

/// What a session finds around it. Of one that is over only its files are of interest, and they are there without
/// its image.
pub(crate) fn image_of(session: &Session) -> Result<Image, ControlError> {
    let image = session.image.as_deref().unwrap_or(HOST);
    if session.status.is_over() || image == HOST {
        return Ok(Image::Host);
    }
    let refused = |problem: &str, solution: &str| {
        let problem = format!("its image '{image}' {problem}");
        Err(ControlError::invalid("template_id", problem, solution))
    };
    match PathBuf::from(image) {
        image if !image.is_absolute() => refused(
            "is not one that the local runtime has",
            "use `host`, or unpack the image and name its directory",
        ),
        image if !image.is_dir() => refused(
            "is not a directory on this host",
            "unpack it there, or give the template another image",
        ),
        image => Ok(Image::Directory(image)),
    }
}

/// The image that is this machine's own system.
const HOST: &str = "host";

/// What code for a template is most likely written in, by its name. A guess that is wrong costs nothing but
/// an interpreter that waits in vain.
pub(crate) fn language_of(template: &TemplateId) -> Option<Language> {
    let name = template.as_str();
    match (name.contains("python"), name.contains("node")) {
        (true, _) => Some(Language::Python),
        (_, true) => Some(Language::Javascript),
        _ => None,
    }
}
