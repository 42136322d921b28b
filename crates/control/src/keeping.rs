//! What ended sessions leave, kept where every server finds it.
//!
//! A workspace stays on its node for a while after its session's end, and that is where files are asked for.
//! Where the objects are beyond this machine, its files are copied there when it ends, so that they can be had
//! even when the node is away. Copying is done one session after the other, beside requests. They are due until they
//! are there or the workspace is gone, also when servers or the objects end meanwhile: that is written down with the
//! session's end. What cannot be copied stays in the workspace, and the log has it.

use std::time::Duration;

use sandbox_executor::listing::{Entry, Kind};
use sandbox_executor::protocol::{Answer, Ask};
use sandbox_model::{Session, SessionId};
use sandbox_runtime::LineError;
use sandbox_store::ObjectsError;
use sandbox_store::objects::{ObjectPrefix, content_of};

use crate::control::Control;
use crate::error::{ControlError, Kind as Noun};
use crate::file::{LINK_LIFE, key};
use crate::live::{Use, workspace_of};

/// The most files of one session that are copied.
const MOST_FILES: usize = 100_000;

/// How many entries of a directory are looked at together.
const PAGE: usize = 1000;

/// How many sessions whose files are due are looked for at a time.
const BATCH: u64 = 100;

/// How long it waits before it tries again what failed: at first, and at most.
const WAIT: Duration = Duration::from_secs(5);
const MOST_WAIT: Duration = Duration::from_secs(60);

/// What became of all that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Kept,
    /// Not all of it.
    Left,
}

impl Control {
    /// Keeps the files of those that ended, for as long as the server runs.
    pub(crate) async fn keep_all(self) {
        if !self.shared.objects.is_elsewhere() {
            return;
        }
        let mut wait = WAIT;
        loop {
            let due = self.keep_due().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot look for sessions whose files are to be kept");
                Due::Left
            });
            match due {
                Due::Kept => {
                    wait = WAIT;
                    self.shared.left.notified().await;
                }
                Due::Left => {
                    tokio::time::sleep(wait).await;
                    wait = MOST_WAIT.min(wait * 2);
                }
            }
        }
    }

    /// Keeps what is due now, the longest over first.
    async fn keep_due(&self) -> Result<Due, ControlError> {
        let (records, node) = (&self.shared.records, &self.shared.settings.node_id);
        let (mut due, mut after) = (Due::Kept, None);
        loop {
            let found = records.sessions_with_files_due(node, after.as_ref(), BATCH);
            let found = found.await?;
            for ended in &found {
                let id = &ended.id;
                let Err(error) = self.keep_files(id).await else {
                    continue;
                };
                tracing::warn!(session = %id, %error, "cannot keep the files of session {id} yet");
                due = Due::Left;
                // Where the objects are away it would be the same with every other.
                if self.shared.objects.ping().await.is_err() {
                    return Ok(due);
                }
            }
            after = found.into_iter().next_back();
            if after.is_none() {
                return Ok(due);
            }
        }
    }

    async fn keep_files(&self, id: &SessionId) -> Result<(), ControlError> {
        let session = self.holder(self.session(id).await?).await?;
        // One that never ran has nothing that anybody wrote, and one without its workspace nothing any more. Who has
        // the workspace now has it kept at its own end.
        let is_left = session.started_at.is_some() && session.workspace_removed_at.is_none();
        if is_left && session.status.is_over() {
            self.copy_files(&session).await?;
        }
        self.shared.records.mark_files_kept(id).await?;
        Ok(())
    }

    async fn copy_files(&self, session: &Session) -> Result<(), ControlError> {
        let id = &session.id;
        let used = self.line_to_files(session).await?;
        let mut directories = vec![String::new()];
        let mut copied = 0;
        // A file with holes in it can be far longer than what is in it.
        let mut left = session.resources.disk.0;
        while let Some(directory) = directories.pop() {
            let mut after = None;
            loop {
                let list = Ask::List {
                    path: directory.clone().into(),
                    after,
                    limit: PAGE,
                };
                let page = match self.asked(&used, list).await {
                    Ok((Answer::Entries(page), _)) => page,
                    // Its name is not text, or too long: nobody can ask for what is in it.
                    Err(LineError::Refused(_)) => break,
                    Ok(_) => return Err(LineError::Nonsense.into()),
                    Err(error) => return Err(error.into()),
                };
                for entry in page.entries {
                    let path = below(&directory, &entry);
                    match entry.kind {
                        Kind::Directory => directories.push(path),
                        Kind::File if copied < MOST_FILES => {
                            left = self.copy_file(session, &used, &path, left).await?;
                            copied += 1;
                        }
                        Kind::File => {
                            tracing::warn!(session = %id, "more than {MOST_FILES} files of session {id} are not kept");
                            return Ok(());
                        }
                        Kind::Link | Kind::Other => {}
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Copies a file, if it is not longer than what is `left`: what is left then. One that the objects do not take,
    /// though they answer, is tried once more and then passed over: nothing else waits for it.
    async fn copy_file(
        &self,
        session: &Session,
        used: &Use,
        path: &str,
        left: u64,
    ) -> Result<u64, ControlError> {
        // A name that is too long for an object is one that nobody can ask for there.
        let Ok(key) = key(session, path) else {
            return Ok(left);
        };
        let (id, objects) = (&session.id, &self.shared.objects);
        let mut was_refused = false;
        loop {
            let (file, size) = match self.asked(used, Ask::Read(path.into())).await {
                Ok((Answer::File(size), Some(file))) => (file, size),
                // Its name is not text, or it is not what it was a moment ago: there is nothing to be had by it.
                Err(LineError::Refused(_)) => return Ok(left),
                Ok(_) => return Err(LineError::Nonsense.into()),
                Err(error) => return Err(error.into()),
            };
            let Some(rest) = left.checked_sub(size) else {
                tracing::warn!(session = %id, size, "a file of session {id} is not kept: all of them are longer than its disk");
                return Ok(left);
            };
            match objects.put_stream(&key, content_of(file), size).await {
                Ok(_) => return Ok(rest),
                // A later session of the same agent writes to it, and has it kept at its own end.
                Err(ObjectsError::TooLarge { .. }) => {
                    tracing::warn!(session = %id, size, "a file of session {id} is not kept: it grew meanwhile");
                    return Ok(rest);
                }
                Err(error) if objects.ping().await.is_err() => return Err(error.into()),
                Err(error) if was_refused => {
                    tracing::warn!(session = %id, %key, %error, "a file of session {id} is not kept: the objects do not take it");
                    return Ok(left);
                }
                Err(_) => was_refused = true,
            }
        }
    }

    /// A link to what was kept of a file whose session ended on a node that is away; none when the session is
    /// on this one.
    pub async fn link_kept(
        &self,
        id: &SessionId,
        path: &str,
        disposition: &str,
    ) -> Result<Option<String>, ControlError> {
        let session = self.session(id).await?;
        if session.node_id == self.shared.settings.node_id {
            return Ok(None);
        }
        let (key, objects) = (key(&session, path)?, &self.shared.objects);
        match objects.head(&key).await {
            Ok(_) => {}
            Err(ObjectsError::NotFound { .. }) => {
                // It may be there, but only where nobody can look now.
                return Err(match self.shared.records.are_files_due(id).await? {
                    true => ControlError::away(&session.node_id, "its files were not copied yet"),
                    false => ControlError::not_found(Noun::File, path),
                });
            }
            Err(error) => return Err(error.into()),
        }
        let link = objects
            .presign_get(&key, LINK_LIFE, Some(disposition))
            .await?;
        Ok(Some(link))
    }

    /// Removes what was kept of a session.
    pub(crate) async fn forget_files(&self, session: &Session) -> Result<(), ControlError> {
        let prefix = ObjectPrefix::session(workspace_of(session));
        self.shared.objects.delete_prefix(&prefix).await?;
        Ok(())
    }
}

fn below(directory: &str, entry: &Entry) -> String {
    match directory {
        "" => entry.name.clone(),
        directory => format!("{directory}/{}", entry.name),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;
    use jiff::Timestamp;
    use sandbox_model::resources::Quantity;
    use sandbox_model::{SessionMode, SessionStatus};

    use super::*;
    use crate::stage::{Deed, Given, Stage};

    /// What is kept of a session that ended, whose disk holds 100 bytes and which has these files.
    async fn kept_of(files: Vec<Given>) -> Vec<String> {
        let stage = Stage::still().await;
        stage.host.give(files);
        let session = stage.written(|session| {
            session.status = SessionStatus::Terminated;
            session.resources.disk = Quantity(100);
        });
        let session = session.await;
        stage.control.copy_files(&session).await.unwrap();
        names(&stage, session.id).await
    }

    /// What is kept of a session.
    async fn names(stage: &Stage, session: SessionId) -> Vec<String> {
        let prefix = ObjectPrefix::session(session);
        let objects = stage.control.objects();
        let kept = objects.list(&prefix).try_collect::<Vec<_>>();
        let name = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
        let kept = kept.await.unwrap();
        let mut kept: Vec<_> = kept.iter().map(|object| name(object.key.path())).collect();
        kept.sort();
        kept
    }

    fn plain(name: &'static str, size: u64) -> Given {
        Given {
            name,
            size,
            content: vec![b'x'; usize::try_from(size).unwrap()],
        }
    }

    fn ended(session: &mut Session) {
        session.started_at = Some(Timestamp::now());
        session.status = SessionStatus::Terminated;
    }

    #[tokio::test]
    async fn what_a_server_left_due_is_kept_once_by_the_next() {
        let stage = Stage::still().await;
        stage.host.give(vec![plain("a", 1)]);
        let running = stage.written(|_| {}).await;
        let session = stage.written(ended).await;
        for _ in 0..2 {
            assert_eq!(stage.control.keep_due().await.unwrap(), Due::Kept);
            assert_eq!(
                stage.host.done(Deed::Raise),
                std::slice::from_ref(&session.id)
            );
        }
        assert_eq!(names(&stage, session.id).await, ["a"]);
        assert_eq!(names(&stage, running.id).await, [""; 0]);
    }

    #[tokio::test]
    async fn what_cannot_be_kept_is_due_until_it_can_be() {
        let stage = Stage::still().await;
        stage.host.give(vec![plain("a", 1)]);
        let session = stage.written(ended).await;
        stage.host.fail(Deed::Raise);
        for _ in 0..2 {
            assert_eq!(stage.control.keep_due().await.unwrap(), Due::Left);
        }
        assert_eq!(names(&stage, session.id.clone()).await, [""; 0]);
        stage.host.succeed(Deed::Raise);
        assert_eq!(stage.control.keep_due().await.unwrap(), Due::Kept);
        assert_eq!(names(&stage, session.id).await, ["a"]);
    }

    #[tokio::test]
    async fn a_file_that_the_objects_do_not_take_holds_up_no_other() {
        let stage = Stage::still().await;
        stage.host.give(vec![plain("a", 1), plain("b", 1)]);
        let session = stage.written(ended).await;
        // On files, nothing can be called as a directory is.
        let in_the_way = key(&session, "a/x").unwrap();
        let nothing = futures_util::stream::empty();
        let objects = stage.control.objects();
        objects.put_stream(&in_the_way, nothing, 0).await.unwrap();
        assert_eq!(stage.control.keep_due().await.unwrap(), Due::Kept);
        assert_eq!(names(&stage, session.id).await, ["a/x", "b"]);
    }

    #[tokio::test]
    async fn nothing_is_raised_for_what_never_ran_or_is_another_sessions_now() {
        let stage = Stage::still().await;
        stage
            .written(|session| session.status = SessionStatus::Failed)
            .await;
        let agents = |session: &mut Session| {
            session.mode = SessionMode::Persistent;
            session.agent_id = Some("ada".to_owned());
            session.workspace_path = "workspace/sess_0000000000000001".to_owned();
        };
        let before = |session: &mut Session| {
            agents(session);
            ended(session);
            session.created_at = Timestamp::UNIX_EPOCH;
        };
        stage.written(before).await;
        stage.written(agents).await;
        assert_eq!(stage.control.keep_due().await.unwrap(), Due::Kept);
        assert_eq!(stage.host.count(Deed::Raise), 0);
    }

    #[tokio::test]
    async fn no_more_is_kept_of_a_session_than_its_disk_holds() {
        let full_of_holes = Given {
            size: 1 << 40,
            ..plain("b", 5)
        };
        let files = vec![
            plain("a", 60),
            full_of_holes,
            plain("c", 41),
            plain("d", 40),
        ];
        assert_eq!(kept_of(files).await, ["a", "d"]);
    }

    #[tokio::test]
    async fn a_file_that_grows_while_it_is_copied_is_not_followed() {
        let growing = Given {
            size: 1,
            ..plain("b", 200)
        };
        let files = vec![plain("a", 1), growing, plain("c", 98)];
        assert_eq!(kept_of(files).await, ["a", "c"]);
    }
}
