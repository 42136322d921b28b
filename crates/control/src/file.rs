//! The files of a session.
//!
//! While its workspace is there, that is the truth: files are read and written in it, by descriptors that
//! its executor opens beneath it. A large file is handed out through the object store, into which it is
//! copied when somebody asks for it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::TryStreamExt;
use sandbox_executor::listing::Page;
use sandbox_executor::protocol::{Answer, Ask, RefusalKind};
use sandbox_model::{Session, SessionId};
use sandbox_runtime::LineError;
use sandbox_store::ObjectsError;
use sandbox_store::objects::{ObjectInfo, ObjectKey, ObjectPrefix};
use serde_json::json;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, Kind};
use crate::live::{Use, workspace_of};
use crate::session::check_path;

/// The largest file that is taken or handed out through the object store.
pub const MOST_BYTES: u64 = 100 << 20;

/// How long a link to a file is good.
pub(crate) const LINK_LIFE: Duration = Duration::from_secs(3600);

/// A file that is open for reading.
#[derive(Debug)]
pub struct Opened {
    /// Its content.
    pub file: OwnedFd,
    /// How long it is.
    pub size: u64,
}

/// A file that is being written. Nobody sees it before it is whole; what is dropped before that was never
/// there.
#[derive(Debug)]
pub struct Upload {
    control: Control,
    caller: Caller,
    session: SessionId,
    /// Where it goes, if that was known when it was begun.
    path: Option<String>,
    number: u64,
    /// Where its content goes; taken by whoever writes it.
    pub file: Option<OwnedFd>,
    used: Option<Use>,
}

impl Control {
    /// Opens a file for reading.
    pub async fn open_file(&self, id: &SessionId, path: &str) -> Result<Opened, ControlError> {
        let (_, used) = self.files_of(id, path).await?;
        let (answer, file) = self
            .ask_of(&used, path, Ask::Read(PathBuf::from(path)))
            .await?;
        match (answer, file) {
            (Answer::File(size), Some(file)) => Ok(Opened { file, size }),
            _ => Err(LineError::Nonsense.into()),
        }
    }

    /// A part of what is in a directory, by name: `limit` entries after the one called `after`.
    pub async fn list_files(
        &self,
        id: &SessionId,
        path: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Page, ControlError> {
        if !path.is_empty() {
            check_path(path)?;
        }
        let (_, used) = self.use_files(id).await?;
        let list = Ask::List {
            path: PathBuf::from(path),
            after,
            limit,
        };
        match self.ask_of(&used, path, list).await? {
            (Answer::Entries(page), _) => Ok(page),
            _ => Err(LineError::Nonsense.into()),
        }
    }

    /// A directory as a tar archive, to be read from a pipe.
    pub async fn archive(
        &self,
        id: &SessionId,
        path: &str,
    ) -> Result<(OwnedFd, Archived), ControlError> {
        if !path.is_empty() {
            check_path(path)?;
        }
        let (_, used) = self.use_files(id).await?;
        match self
            .ask_of(&used, path, Ask::Archive(PathBuf::from(path)))
            .await?
        {
            (Answer::Archive, Some(pipe)) => Ok((pipe, Archived { _used: used })),
            _ => Err(LineError::Nonsense.into()),
        }
    }

    /// Removes a file, or a directory with all that is in it.
    pub async fn remove_file(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: &str,
    ) -> Result<(), ControlError> {
        let (_, used) = self.files_of(id, path).await?;
        self.ask_of(&used, path, Ask::RemoveAll(PathBuf::from(path)))
            .await?;
        self.audit(caller, "file.delete", id.as_str(), json!({ "path": path }))
            .await;
        Ok(())
    }

    /// Begins to write a file: for `path` where that is known already, so that what cannot be there is refused
    /// before it comes.
    pub async fn upload(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: Option<&str>,
    ) -> Result<Upload, ControlError> {
        path.map_or(Ok(()), check_path)?;
        let session = self.running_session(id).await?;
        self.shared.activity.note(id);
        let used = self.line(&session).await?;
        let begin = path.map_or(Ask::Begin, |path| Ask::Write(PathBuf::from(path)));
        match self.ask_of(&used, path.unwrap_or_default(), begin).await? {
            (Answer::Upload(number), Some(file)) => Ok(Upload {
                control: self.clone(),
                caller: caller.clone(),
                session: id.clone(),
                path: path.map(str::to_owned),
                number,
                file: Some(file),
                used: Some(used),
            }),
            _ => Err(LineError::Nonsense.into()),
        }
    }

    /// A link by which anybody can read a file for an hour; the file is copied into the object store for it. None
    /// where that has something else in its place, what was copied when other things had these names, where the file
    /// grows meanwhile, and where more would be copied of the session than its disk holds.
    pub async fn link_file(
        &self,
        id: &SessionId,
        path: &str,
        opened: &Opened,
        disposition: &str,
    ) -> Result<Option<String>, ControlError> {
        let session = self.session(id).await?;
        let key = key(&session, path)?;
        let objects = &self.shared.objects;
        let others = self.copied_beside(&key).await?;
        if others.saturating_add(opened.size) > session.resources.disk.0 {
            return Ok(None);
        }
        let file = opened.file.try_clone();
        let file = file.map_err(|error| ControlError::failed("hand out the file", error))?;
        match objects.put_copy(&key, file, opened.size).await {
            Ok(_) => {}
            Err(ObjectsError::InTheWay { .. } | ObjectsError::TooLarge { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // What was put while everything was removed would stay for ever.
        if let Err(error) = self.with_workspace(id).await {
            objects.delete(&key).await?;
            return Err(error);
        }
        let link = objects.presign_get(&key, LINK_LIFE, Some(disposition));
        Ok(Some(link.await?))
    }

    /// How many bytes the objects have of a session beside this one. Files with holes in them and files that were
    /// removed take none of its disk, and would take as much here as somebody likes.
    async fn copied_beside(&self, key: &ObjectKey) -> Result<u64, ControlError> {
        let all = ObjectPrefix::session(key.session().clone());
        let objects = self.shared.objects.list(&all);
        let beside = async |sum: u64, object: ObjectInfo| {
            let size = if object.key == *key { 0 } else { object.size };
            Ok(sum.saturating_add(size))
        };
        Ok(objects.try_fold(0, beside).await?)
    }

    /// The session and its line, if it has files and `path` may be one of them.
    async fn files_of(&self, id: &SessionId, path: &str) -> Result<(Session, Use), ControlError> {
        check_path(path)?;
        self.use_files(id).await
    }

    /// The session and its line, if it has files.
    async fn use_files(&self, id: &SessionId) -> Result<(Session, Use), ControlError> {
        let session = self.with_workspace(id).await?;
        if !session.status.is_over() {
            self.shared.activity.note(id);
        }
        let used = self.line_to_files(&session).await?;
        Ok((session, used))
    }

    /// The line to whoever has a session's files.
    pub(crate) async fn line_to_files(&self, session: &Session) -> Result<Use, ControlError> {
        let holder = self.holder(session.clone()).await?;
        self.unfrozen(&holder)?;
        self.line(&holder).await
    }

    /// Asks something about a path.
    async fn ask_of(
        &self,
        used: &Use,
        path: &str,
        ask: Ask,
    ) -> Result<(Answer, Option<OwnedFd>), ControlError> {
        match self.asked(used, ask).await {
            Err(LineError::Refused(refusal)) if refusal.kind == RefusalKind::NotFound => {
                Err(ControlError::not_found(Kind::File, path))
            }
            outcome => Ok(outcome?),
        }
    }

    fn unfrozen(&self, session: &Session) -> Result<(), ControlError> {
        use sandbox_model::SessionStatus::{Creating, Paused};
        match session.status {
            Paused | Creating => Err(ControlError::conflict(
                format!(
                    "session {} is {}: its files cannot be reached",
                    session.id, session.status
                ),
                "wait until it is running, or resume it",
            )),
            _ => Ok(()),
        }
    }
}

/// Keeps a session raised while it is archived.
#[derive(Debug)]
pub struct Archived {
    _used: Use,
}

impl Upload {
    /// Puts what was written at `path`.
    pub async fn commit(mut self, path: &str, size: u64) -> Result<(), ControlError> {
        let commit = if self.path.as_deref() == Some(path) {
            Ask::Commit(self.number)
        } else {
            check_path(path)?;
            Ask::CommitAt {
                upload: self.number,
                path: PathBuf::from(path),
            }
        };
        let Some(used) = self.used.take() else {
            return Ok(());
        };
        self.control.ask_of(&used, path, commit).await?;
        let detail = json!({ "path": path, "size": size });
        let id = self.session.as_str();
        self.control
            .audit(&self.caller, "file.upload", id, detail)
            .await;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(used) = self.used.take() {
            let (control, abandon) = (self.control.clone(), Ask::Abandon(self.number));
            tokio::spawn(async move {
                // An executor that is gone has left nothing either.
                let _ = control.asked(&used, abandon).await;
            });
        }
    }
}

/// Where a file of a session is among the objects.
pub(crate) fn key(session: &Session, path: &str) -> Result<ObjectKey, ControlError> {
    let plain: Vec<_> = Path::new(path).components().collect();
    let plain: PathBuf = plain
        .iter()
        .filter(|part| part.as_os_str() != ".")
        .collect();
    let bytes = plain.as_os_str().as_encoded_bytes();
    ObjectKey::new(workspace_of(session), bytes)
        .map_err(|error| ControlError::invalid("path", error, "use a shorter path"))
}

/// What went wrong while a file was written.
pub fn unwritable(error: io::Error) -> ControlError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ControlError::Exhausted {
            problem: "the session's disk is full".to_owned(),
            solution: "remove files, or make a session with more disk".to_owned(),
        },
        _ => ControlError::failed("write the file", error),
    }
}

#[cfg(test)]
mod tests {
    use sandbox_model::resources::Quantity;

    use super::*;
    use crate::stage::Stage;

    fn opened(size: usize) -> Opened {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &vec![b'x'; size]).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        Opened {
            file: file.into(),
            size: size as u64,
        }
    }

    #[tokio::test]
    async fn no_more_is_copied_for_links_than_a_session_could_have() {
        let stage = Stage::still().await;
        let session = stage.written(|session| session.resources.disk = Quantity(100));
        let id = session.await.id;
        let link = async |path: &str, size| {
            let opened = opened(size);
            let link = stage.control.link_file(&id, path, &opened, "attachment");
            link.await.unwrap().is_some()
        };
        assert!(link("a", 60).await);
        // Though it may be gone by now, and the other be all holes.
        assert!(!link("b", 41).await);
        assert!(link("b", 40).await);
        assert!(link("a", 60).await);
    }
}
