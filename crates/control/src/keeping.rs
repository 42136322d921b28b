//! What ended sessions leave, kept where every server finds it.
//!
//! A workspace stays on its node for a while after its session's end, and that is where files are asked for.
//! Where the objects are beyond this machine, its files are copied there when it ends, so that they can be had
//! even when the node is away. Copying is done one session after the other, beside requests; what cannot be
//! copied stays in the workspace, and the log has it.

use std::time::Duration;

use sandbox_executor::listing::{Entry, Kind};
use sandbox_executor::protocol::{Answer, Ask};
use sandbox_model::{Session, SessionId};
use sandbox_runtime::LineError;
use sandbox_store::ObjectsError;
use sandbox_store::objects::{ObjectPrefix, content_of};
use tokio::sync::mpsc;

use crate::control::Control;
use crate::error::{ControlError, Kind as Noun};
use crate::file::{LINK_LIFE, key};
use crate::live::{Use, workspace_of};

/// The most files of one session that are copied.
const MOST_FILES: usize = 100_000;

/// How many entries of a directory are looked at together.
const PAGE: usize = 1000;

/// How often it is tried, and how long it waits before it tries again.
const TRIES: u32 = 5;
const WAIT: Duration = Duration::from_secs(5);

/// Sessions whose files are to be kept.
pub(crate) type Leaving = mpsc::UnboundedSender<SessionId>;

impl Control {
    /// A session ended: its files are kept, as soon as it is their turn.
    pub(crate) fn keep_files(&self, session: &SessionId) {
        if self.shared.objects.is_elsewhere() {
            // There is nobody to hear it only when the server ends.
            let _ = self.shared.leaving.send(session.clone());
        }
    }

    /// Keeps the files of those that ended, for as long as the server runs.
    pub(crate) async fn keep_all(self, mut leaving: mpsc::UnboundedReceiver<SessionId>) {
        while let Some(id) = leaving.recv().await {
            for attempt in 1..=TRIES {
                match self.copy_files(&id).await {
                    Ok(()) => break,
                    Err(error) => {
                        tracing::warn!(session = %id, attempt, %error, "cannot keep the files of session {id}");
                        tokio::time::sleep(WAIT).await;
                    }
                }
            }
        }
    }

    async fn copy_files(&self, id: &SessionId) -> Result<(), ControlError> {
        let session = self.session(id).await?;
        let used = self.line_to_files(&session).await?;
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
                let (Answer::Entries(page), _) = self.asked(&used, list).await? else {
                    return Err(LineError::Nonsense.into());
                };
                for entry in page.entries {
                    let path = below(&directory, &entry);
                    match entry.kind {
                        Kind::Directory => directories.push(path),
                        Kind::File if copied < MOST_FILES => {
                            left = self.copy_file(&session, &used, &path, left).await?;
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

    /// Copies a file, if it is not longer than what is `left`: what is left then.
    async fn copy_file(
        &self,
        session: &Session,
        used: &Use,
        path: &str,
        left: u64,
    ) -> Result<u64, ControlError> {
        let (file, size) = match self.asked(used, Ask::Read(path.into())).await {
            Ok((Answer::File(size), Some(file))) => (file, size),
            // Its name is not text, or it is not what it was a moment ago: there is nothing to be had by it.
            Err(LineError::Refused(_)) => return Ok(left),
            Ok(_) => return Err(LineError::Nonsense.into()),
            Err(error) => return Err(error.into()),
        };
        // A name that is too long for an object is one that nobody can ask for there.
        let Ok(key) = key(session, path) else {
            return Ok(left);
        };
        let id = &session.id;
        let Some(rest) = left.checked_sub(size) else {
            tracing::warn!(session = %id, size, "a file of session {id} is not kept: all of them are longer than its disk");
            return Ok(left);
        };
        let content = content_of(file);
        match self.shared.objects.put_stream(&key, content, size).await {
            Ok(_) => {}
            // A later session of the same agent writes to it, and has it kept at its own end.
            Err(ObjectsError::TooLarge { .. }) => {
                tracing::warn!(session = %id, size, "a file of session {id} is not kept: it grew meanwhile");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(rest)
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
                return Err(ControlError::not_found(Noun::File, path));
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
    use sandbox_model::SessionStatus;
    use sandbox_model::resources::Quantity;

    use super::*;
    use crate::stage::{Given, Stage};

    /// What is kept of a session that ended, whose disk holds 100 bytes and which has these files.
    async fn kept_of(files: Vec<Given>) -> Vec<String> {
        let stage = Stage::still().await;
        stage.host.give(files);
        let session = stage.written(|session| {
            session.status = SessionStatus::Terminated;
            session.resources.disk = Quantity(100);
        });
        let session = session.await;
        stage.control.copy_files(&session.id).await.unwrap();
        let prefix = ObjectPrefix::session(session.id);
        let kept = stage
            .control
            .objects()
            .list(&prefix)
            .try_collect::<Vec<_>>();
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
