//! What an executor that is reached over a network reports of itself.
//!
//! Its reports may come twice, late, or out of order. The first result of an execution is kept; the same
//! again is no news, and another one is refused. That one ran out of time or crashed may be told before its result,
//! which is then the first that says the same. Who may report is the door's affair.

use jiff::Timestamp;
use sandbox_executor::{Ending, Outcome};
use sandbox_model::execution::Artifact;
use sandbox_model::report::MOST_ARTIFACTS;
use sandbox_model::{
    Execution, ExecutionEvent, ExecutionId, ExecutionStatus, Session, SessionEvent, SessionId,
    SessionStatus,
};
use sandbox_store::StoreError;
use sandbox_store::records::{Added, Report, Reported};
use serde_json::json;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::ControlError;
use crate::outcome::{artifact, confirmed, digest_of, ended, first_digest_of};
use crate::session::check_path;

/// A container that came up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// What its runtime calls it.
    pub container_id: String,
    /// Where its executor listens.
    pub executor_url: String,
    /// Since when.
    pub ready_at: Timestamp,
}

/// A container that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Well if it is 0.
    pub exit_code: i32,
    /// When.
    pub exited_at: Timestamp,
    /// Why, in a word.
    pub reason: &'static str,
}

/// Whether a report is news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It is, and was kept.
    First,
    /// It is what is kept already.
    Again,
}

impl Control {
    /// Whose execution it is, for whoever asks who may report of it; nobody's where there is none.
    pub async fn session_of(&self, id: &ExecutionId) -> Result<Option<SessionId>, ControlError> {
        Ok(self.shared.records.session_of(id).await?)
    }

    /// A session's container came up.
    pub async fn container_ready(
        &self,
        id: &SessionId,
        ready: &Ready,
    ) -> Result<News, ControlError> {
        let session = self.session(id).await?;
        let is_known = session.container_id.as_deref() == Some(&ready.container_id)
            && session.executor_url.as_deref() == Some(&ready.executor_url);
        if session.status == SessionStatus::Running && is_known {
            return Ok(News::Again);
        }
        let with = |session: &mut Session| {
            session.container_id = Some(ready.container_id.clone());
            session.executor_url = Some(ready.executor_url.clone());
            session.started_at = Some(within(session, ready.ready_at));
        };
        self.change(id, SessionEvent::Ready, with).await?;
        Ok(News::First)
    }

    /// A session's container ended. The session ends with it, as it does when somebody ends it.
    pub async fn container_exited(
        &self,
        caller: &Caller,
        id: &SessionId,
        exit: &Exit,
    ) -> Result<News, ControlError> {
        if self.session(id).await?.status.is_over() {
            return Ok(News::Again);
        }
        let Exit {
            exit_code,
            exited_at,
            reason,
        } = exit;
        let reason = format!("its container exited with status {exit_code} ({reason})");
        let with = |session: &mut Session| {
            session.terminated_at = Some(within(session, *exited_at));
            if *exit_code != 0 {
                session.error = Some(reason.clone());
            }
        };
        let event = SessionEvent::Exited(*exit_code);
        let exited = match self.change(id, event, with).await {
            Ok(session) => session,
            Err(ControlError::Conflict { .. }) if self.session(id).await?.status.is_over() => {
                return Ok(News::Again);
            }
            Err(error) => return Err(error),
        };
        let crashed = self.crash_all_in(id, "its container exited").await;
        // What this server has of it ends, too.
        self.wind_up(caller, &exited, &reason).await?;
        crashed?;
        Ok(News::First)
    }

    /// Writes down of every execution that is under way in a session that it is lost.
    pub(crate) async fn crash_all_in(
        &self,
        id: &SessionId,
        reason: &str,
    ) -> Result<(), ControlError> {
        for summary in self.shared.records.live_executions(id).await? {
            if let Some(execution) = self.shared.records.execution(&summary.value.id).await? {
                self.crash(execution, reason).await;
            }
        }
        Ok(())
    }

    /// An execution began.
    pub async fn execution_started(&self, id: &ExecutionId) -> Result<News, ControlError> {
        loop {
            let stored = self.stored_execution(id).await?;
            if stored.value.status == ExecutionStatus::Running {
                return Ok(News::Again);
            }
            let mut new = stored.value.clone();
            new.status = after(&stored.value, ExecutionEvent::Started)?;
            new.started_at = Some(Timestamp::now());
            match self.shared.records.update_execution(&stored, &new).await {
                Ok(_) => return Ok(News::First),
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// An execution ended so; what it printed is still to come. Where its result is there already, that is no news.
    pub async fn execution_ended(
        &self,
        id: &ExecutionId,
        ending: Ending,
        error: Option<String>,
    ) -> Result<News, ControlError> {
        let outcome = Outcome {
            ending,
            error,
            ..Outcome::lost(id.clone(), String::new())
        };
        loop {
            let stored = self.stored_execution(id).await?;
            if confirmed(&stored.value, &outcome).is_some() {
                return Ok(News::Again);
            }
            let Some(new) = ended(&stored.value, &outcome) else {
                return Err(ControlError::conflict(
                    format!("execution {id} is {}", stored.value.status),
                    "report nothing more of it",
                ));
            };
            match self.shared.records.update_execution(&stored, &new).await {
                Ok(kept) => {
                    self.tell_end(&kept.value).await;
                    return Ok(News::First);
                }
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// An execution goes on, and says so of its progress, as JSON text.
    pub async fn execution_heartbeat(
        &self,
        id: &ExecutionId,
        progress: Option<&str>,
    ) -> Result<(), ControlError> {
        let records = &self.shared.records;
        let beat = records.heartbeat(id, Timestamp::now(), progress);
        if beat.await? {
            return Ok(());
        }
        let execution = self.execution(id).await?;
        Err(ControlError::conflict(
            format!("execution {id} is {}", execution.status),
            "report nothing more of it",
        ))
    }

    /// An execution made files. Once its result is there they stay as they are.
    pub async fn execution_artifacts(
        &self,
        id: &ExecutionId,
        artifacts: &[Artifact],
    ) -> Result<News, ControlError> {
        artifacts
            .iter()
            .try_for_each(|artifact| check_artifact_path(&artifact.path))?;
        let records = &self.shared.records;
        let added = records.add_artifacts(id, artifacts, MOST_ARTIFACTS).await?;
        match added {
            Added::New(_) => Ok(News::First),
            Added::Known(_) => Ok(News::Again),
            Added::Late => Err(ControlError::conflict(
                format!("execution {id} has its result, and other files"),
                "report files before the result",
            )),
            Added::TooMany => Err(ControlError::invalid(
                "artifacts",
                format!(
                    "has more than {MOST_ARTIFACTS} files, with those that were reported before"
                ),
                "report the first ones",
            )),
        }
    }

    /// An execution is over.
    pub async fn execution_result(&self, outcome: &Outcome) -> Result<News, ControlError> {
        let digest = digest_of(outcome);
        let artifacts: Vec<_> = outcome
            .artifacts
            .iter()
            .map(|found| artifact(outcome, found))
            .collect();
        let report = Report {
            digest: &digest,
            result: &outcome.result,
            artifacts: &artifacts,
        };
        let id = &outcome.execution_id;
        loop {
            let stored = self.stored_execution(id).await?;
            let known = self.known(outcome, &digest).await?;
            let new = ended(&stored.value, outcome).or_else(|| confirmed(&stored.value, outcome));
            let reported = match (known, new) {
                (Some(known), _) => known,
                (None, Some(new)) => {
                    match self.shared.records.finish(&stored, &new, &report).await {
                        Ok(reported) => reported,
                        Err(StoreError::Stale { .. }) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                (None, None) => {
                    return Err(ControlError::conflict(
                        format!(
                            "execution {id} is {}, not as this result says",
                            stored.value.status
                        ),
                        "how it was first told to have ended stands",
                    ));
                }
            };
            return match reported {
                Reported::First(kept) => {
                    self.tell_end(&kept.value).await;
                    Ok(News::First)
                }
                Reported::Same => Ok(News::Again),
                Reported::Different => Err(ControlError::conflict(
                    format!("execution {id} has another result already"),
                    "the first result stands",
                )),
            };
        }
    }

    /// Tells who watches its session that an execution is over.
    async fn tell_end(&self, execution: &Execution) {
        let detail = json!({ "execution_id": execution.id, "status": execution.status });
        self.notice(&execution.session_id, "execution", detail)
            .await;
    }

    /// Whether there is a report already, and whether it is this one.
    async fn known(
        &self,
        outcome: &Outcome,
        digest: &str,
    ) -> Result<Option<Reported>, ControlError> {
        let records = &self.shared.records;
        let known = records.reported(&outcome.execution_id, digest).await?;
        if known != Some(Reported::Different) {
            return Ok(known);
        }
        // A server before this one may have kept it.
        let digest = first_digest_of(outcome);
        Ok(records.reported(&outcome.execution_id, &digest).await?)
    }
}

/// A path as executors report them: that of a file in the workspace, written in one way only, and not hidden.
fn check_artifact_path(path: &str) -> Result<(), ControlError> {
    check_path(path)?;
    let plain = |part: &str| !part.is_empty() && !part.starts_with('.');
    match path.split('/').all(plain) {
        true => Ok(()),
        false => Err(ControlError::invalid(
            "path",
            format!(
                "'{}' has a part that begins with a dot or is empty",
                path.escape_debug()
            ),
            "report what is at plain paths in the workspace",
        )),
    }
}

fn after(execution: &Execution, event: ExecutionEvent) -> Result<ExecutionStatus, ControlError> {
    execution.status.after(event).map_err(|refusal| {
        let problem = format!("execution {}: {refusal}", execution.id);
        ControlError::conflict(problem, "report nothing more of it")
    })
}

/// A time that a container told, by a clock that nobody here has set: not before there was the session, nor to come.
fn within(session: &Session, time: Timestamp) -> Timestamp {
    time.min(Timestamp::now()).max(session.created_at)
}

#[cfg(test)]
mod tests {
    use sandbox_store::records::PageRequest;

    use super::*;
    use crate::stage::{Deed, Stage};

    #[tokio::test]
    async fn the_end_of_a_container_is_in_the_audit_even_if_something_of_it_cannot_be_ended() {
        let stage = Stage::new().await;
        let session = stage.session().await;
        stage.host.fail(Deed::End);
        let (control, caller) = (&stage.control, Caller::nobody());
        let exit = Exit {
            exit_code: 0,
            exited_at: Timestamp::MAX,
            reason: "normal",
        };
        let exited = control.container_exited(&caller, &session.id, &exit);
        exited.await.unwrap_err();
        // By our clock, where the other is wrong.
        let ended = control.session(&session.id).await.unwrap().terminated_at;
        assert!(ended.unwrap() <= Timestamp::now());
        let page = PageRequest::first(10).unwrap();
        let audit = control.shared.records.audit(&page).await.unwrap().items;
        let mut ends = audit.iter().filter(|record| record.action == "session.end");
        let end = ends.next().expect("it is in the audit");
        assert_eq!(end.object, session.id.as_str());
    }

    #[test]
    fn artifacts_are_at_plain_paths_in_the_workspace() {
        let longest = "x".repeat(4096);
        for path in ["a", "out/plot.png", "a b/\u{e9}", "a..b/c.", &longest] {
            assert!(check_artifact_path(path).is_ok(), "{path}");
        }
        let longer = "x".repeat(4097);
        for path in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            ".",
            "./a",
            "a/./b",
            ".hidden",
            "a/.hidden/b",
            "a//b",
            "a/",
            "a\0b",
            &longer,
        ] {
            assert!(check_artifact_path(path).is_err(), "{path}");
        }
    }
}
