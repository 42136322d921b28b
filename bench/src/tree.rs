//! The trees that are measured: source trees of a given number of files, the same every time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Place, Stage, StageError};

/// Files per directory.
const PER_DIRECTORY: usize = 40;

/// Directories per directory above them.
const PER_GROUP: usize = 25;

/// Is the tree a git repository?
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Git {
    /// Every file committed.
    Committed,
    /// Plain files.
    No,
}

/// Makes `dir` with `files` files in it, owned by the stage's user.
pub fn plant(stage: &Stage, dir: &Path, files: usize, git: Git) -> Result<(), StageError> {
    for index in 0..files {
        let path = dir.join(file(index));
        if index % PER_DIRECTORY == 0 {
            let parent = path.parent().unwrap_or(dir);
            fs::create_dir_all(parent).map_err(StageError::io(parent))?;
        }
        fs::write(&path, contents(index, 0)).map_err(StageError::io(&path))?;
    }
    stage.give_all(dir)?;
    if git == Git::Committed {
        commit(stage, dir)?;
    }
    Ok(())
}

fn commit(stage: &Stage, dir: &Path) -> Result<(), StageError> {
    let git = |arguments: &[&str]| stage.run(stage.command("git", dir).args(arguments));
    git(&["init", "--quiet", "--initial-branch=main"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", "everything"])?;
    git(&["repack", "-a", "-d", "--quiet"])
}

/// Where file number `index` is, beneath the tree's root.
pub fn file(index: usize) -> PathBuf {
    let directory = index / PER_DIRECTORY;
    PathBuf::from(format!(
        "part{:02}/module{directory:04}/file{index:05}.txt",
        directory / PER_GROUP
    ))
}

/// The text of file number `index` in its `version`: a source file's size, 0.2 to 6 KiB, a
/// hundredth of them 64 KiB. Versions have the same length and differ in every line.
pub fn contents(index: usize, version: usize) -> String {
    // Numerical Recipes' generator: spread, and the same every time.
    let spread = index.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) >> 8;
    let lines = if index % 100 == 99 {
        1300
    } else {
        4 + spread % 120
    };
    (0..lines)
        .map(|line| {
            format!("{index:05} {version:03} {line:04} of a file that is measured by its size\n")
        })
        .collect()
}

/// A hundred changes as a shell script to run at a tree's root: 70 edited, 20 created, 10 deleted,
/// spread over the first 500 files.
pub fn hundred_changes() -> String {
    let mut script = String::new();
    for change in 0..100 {
        let path = file(change * 5);
        let path = path.display();
        script += &match change % 10 {
            0..=6 => format!("echo changed >> {path}\n"),
            7 | 8 => format!("echo created > {path}.new\n"),
            _ => format!("rm {path}\n"),
        };
    }
    script
}

/// Copies a tree with everything about it, untimed.
pub fn transplant(stage: &Stage, from: &Path, to: &Path) -> Result<(), StageError> {
    stage.run(Command::new("cp").arg("-a").arg(from).arg(to))
}

/// Makes a sandbox of `tree`.
pub fn sandbox_of(
    stage: &Stage,
    place: &Place,
    name: &str,
    tree: &Path,
    backend: &str,
) -> Result<(), StageError> {
    let mut create = stage.sandbox(place);
    create
        .args(["create", name, "--backend", backend, "--from"])
        .arg(tree);
    stage.run(&mut create)
}
