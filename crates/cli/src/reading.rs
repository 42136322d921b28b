//! Opening a sandbox to look at it, locked against those who must be alone.

use std::path::{Component, Path, PathBuf};

use sandbox_model::RelPath;
use sandbox_workspace::lock::Lock;
use sandbox_workspace::{Sandbox, View};

use crate::command::create::shown;
use crate::report::{Problem, Refusal};
use crate::surroundings;

/// A sandbox that nobody changes as a whole while this lives.
pub(crate) struct Reading {
    /// The sandbox.
    pub(crate) sandbox: Sandbox,
    _lock: Lock,
}

impl Reading {
    /// Opens the sandbox of this name.
    pub(crate) fn open(name: &str) -> Result<Reading, Problem> {
        Reading::of(surroundings::sandbox(name)?)
    }

    /// Locks an open sandbox.
    pub(crate) fn of(sandbox: Sandbox) -> Result<Reading, Problem> {
        let lock = sandbox.lock_shared()?;
        Ok(Reading {
            sandbox,
            _lock: lock,
        })
    }

    /// Unlocks it.
    pub(crate) fn release(self) -> Sandbox {
        self.sandbox
    }

    /// Both of its sides.
    pub(crate) fn view(&self) -> Result<View<'_>, Problem> {
        Ok(View::open(&self.sandbox)?)
    }
}

/// Paths as typed, below the source: from the working directory where that is inside the source,
/// else from the source's top.
pub(crate) fn below_source(sandbox: &Sandbox, typed: &[PathBuf]) -> Result<Vec<RelPath>, Problem> {
    below(sandbox.source(), typed)
}

/// The same for a source without its sandbox.
pub(crate) fn below(source: &Path, typed: &[PathBuf]) -> Result<Vec<RelPath>, Problem> {
    let from = match std::env::current_dir() {
        Ok(current) if current.starts_with(source) => current,
        _ => source.to_owned(),
    };
    typed
        .iter()
        .map(|path| relative(source, &from.join(path), path))
        .collect()
}

fn relative(source: &Path, full: &Path, typed: &Path) -> Result<RelPath, Problem> {
    let clean = without_dots(full);
    let below = clean.strip_prefix(source).ok().map(RelPath::from_path);
    match below {
        Some(Ok(path)) => Ok(path),
        _ => Err(
            Refusal::new(format!("{} is not inside {}", shown(typed), shown(source)))
                .hint("paths are relative to the source, or to the current directory inside it")
                .into(),
        ),
    }
}

/// `.` and `..` taken out by the letter: the path may exist on one side only.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_paths_stay_below_the_source() {
        let source = Path::new("/home/ada/app");
        let ok = |full: &str| relative(source, Path::new(full), Path::new("x")).ok();
        assert_eq!(
            ok("/home/ada/app/src/../Makefile"),
            RelPath::new(b"Makefile").ok()
        );
        assert_eq!(ok("/home/ada/app/"), Some(RelPath::root()));
        assert_eq!(ok("/home/ada/app/../other"), None);
        assert_eq!(ok("/home/ada/apple"), None);
    }
}
