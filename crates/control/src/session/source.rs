//! What a workspace starts from.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use sandbox_executor::protocol::{Answer, Ask};
use sandbox_runtime::{LineError, Workspace};

use crate::control::Control;
use crate::error::ControlError;
use crate::live::Use;

/// The most that files given with the request may hold together.
const MOST_BYTES: usize = 2 << 20;

/// The most of them.
const MOST_FILES: usize = 1000;

/// What a workspace starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nothing.
    Empty,
    /// A copy of this directory, which must be below a root that the operator named.
    Directory(PathBuf),
    /// These files, by their path.
    Files(BTreeMap<String, String>),
}

impl Source {
    /// May this be asked for?
    pub(super) fn check(&self) -> Result<(), ControlError> {
        let Source::Files(files) = self else {
            return Ok(());
        };
        let size: usize = files.values().map(String::len).sum();
        if files.len() > MOST_FILES || size > MOST_BYTES {
            let problem = format!("has more than {MOST_FILES} files or {MOST_BYTES} bytes");
            return Err(ControlError::invalid(
                "source.files",
                problem,
                "upload them instead",
            ));
        }
        files
            .keys()
            .try_for_each(|path| check_path_of("source.files", path))
    }
}

impl Control {
    /// As the runtime is told. What a path from outside leads to is resolved here, once, and that is copied.
    pub(super) fn workspace_from(&self, source: &Source) -> Result<Workspace, ControlError> {
        let Source::Directory(path) = source else {
            return Ok(Workspace::Empty);
        };
        let refused = |problem: &str| {
            ControlError::invalid(
                "source.directory",
                problem,
                "name a directory below one of the server's source_roots",
            )
        };
        let found = std::fs::canonicalize(path).map_err(|_| refused("is not there"))?;
        let is_below =
            |root: &PathBuf| std::fs::canonicalize(root).is_ok_and(|root| found.starts_with(root));
        // Whether there is something elsewhere is nobody's affair.
        if !self.shared.settings.source_roots.iter().any(is_below) || !found.is_dir() {
            return Err(refused("is not there"));
        }
        Ok(Workspace::Source(found))
    }

    /// Puts files into a workspace that was just made.
    pub(super) async fn fill_workspace(
        &self,
        used: &Use,
        source: &Source,
    ) -> Result<(), ControlError> {
        let Source::Files(files) = source else {
            return Ok(());
        };
        for (path, content) in files {
            let write = Ask::Write(PathBuf::from(path));
            let (answer, file) = self.asked(used, write).await?;
            let (Answer::Upload(upload), Some(file)) = (answer, file) else {
                return Err(LineError::Nonsense.into());
            };
            let content = content.clone();
            let write = move || std::fs::File::from(file).write_all(content.as_bytes());
            let written = tokio::task::spawn_blocking(write).await;
            match written {
                Ok(Ok(())) => drop(self.asked(used, Ask::Commit(upload)).await?),
                Ok(Err(error)) => return Err(ControlError::failed(format!("write {path}"), error)),
                Err(error) => return Err(ControlError::failed(format!("write {path}"), error)),
            }
        }
        Ok(())
    }
}

/// A path in a workspace, as people write them.
pub(crate) fn check_path(path: &str) -> Result<(), ControlError> {
    check_path_of("path", path)
}

fn check_path_of(field: &str, path: &str) -> Result<(), ControlError> {
    const MOST: usize = 4096;
    let parts = Path::new(path).components();
    let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    let named = parts
        .clone()
        .any(|part| matches!(part, Component::Normal(_)));
    if path.len() > MOST || path.contains('\0') || !named || !parts.into_iter().all(plain) {
        let problem = format!("'{}' is not a path in the workspace", path.escape_debug());
        let solution = "use a path relative to /workspace, without '..'";
        return Err(ControlError::invalid(field, problem, solution));
    }
    Ok(())
}
