//! Saying what changed: `diff --files` of a hundred changes against `git status` of the same, and
//! against itself on a small tree, since it must grow with the changes and not with the tree.

use std::path::Path;
use std::process::Command;

use crate::report::Row;
use crate::stage::{Filesystem, Place, Stage, StageError};
use crate::timing::{Attempt, interleave};
use crate::tree::{Git, hundred_changes, plant, sandbox_of, transplant};

const ROUNDS: usize = 40;

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let mut rows = Vec::new();
    for (backend, filesystem) in [("overlay", Filesystem::Host), ("btrfs", Filesystem::Btrfs)] {
        let place = stage.place(filesystem, "diff")?;
        let large = place.dir.join("large");
        let small = place.dir.join("small");
        let worked = place.dir.join("worked");
        for (tree, files) in [(&large, 50_000), (&small, 500)] {
            if filesystem == Filesystem::Btrfs {
                let mut subvolume = Command::new("btrfs");
                stage.run(subvolume.args(["subvolume", "create"]).arg(tree))?;
                stage.give(tree)?;
            }
            plant(stage, tree, files, Git::Committed)?;
        }
        transplant(stage, &large, &worked)?;
        change(stage, &place, "large", &large, backend)?;
        change(stage, &place, "small", &small, backend)?;
        let script = hundred_changes();
        stage.run(stage.command("sh", &worked).args(["-c", &script]))?;
        stage.settle();

        let medians = interleave(
            ROUNDS,
            vec![
                diff(stage, &place, "large"),
                diff(stage, &place, "small"),
                Box::new(|_| stage.timed(stage.command("git", &worked).arg("status"))),
            ],
        )?;
        let what = format!("diff --files, 100 changes in 50,000 files, {backend}");
        rows.push(Row::ratio(
            &what,
            medians[0],
            ("git status", medians[2]),
            0.15,
        ));
        rows.push(Row::ratio(
            &what,
            medians[0],
            ("500 files", medians[1]),
            1.5,
        ));
    }
    Ok(rows)
}

fn change(
    stage: &Stage,
    place: &Place,
    name: &str,
    tree: &Path,
    backend: &str,
) -> Result<(), StageError> {
    sandbox_of(stage, place, name, tree, backend)?;
    stage.run(stage.sandbox(place).args(["run", name, &hundred_changes()]))?;
    let files = stage.output(stage.sandbox(place).args(["diff", name, "--files"]))?;
    // A fast diff that found something else would be worth nothing.
    if files.lines().count() == 100 {
        Ok(())
    } else {
        Err(StageError::Output {
            command: format!("diff --files of a hundred changes in {name}"),
            output: format!("{} lines", files.lines().count()),
        })
    }
}

fn diff<'a>(stage: &'a Stage, place: &'a Place, name: &'a str) -> Attempt<'a> {
    Box::new(move |_| stage.timed(stage.sandbox(place).args(["diff", name, "--files"])))
}
