//! Making a sandbox of a large tree and of a small one: it must not depend on the size.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::report::Row;
use crate::stage::{Filesystem, Place, Stage, StageError};
use crate::timing::{Attempt, interleave};
use crate::tree::{Git, plant};

const ROUNDS: usize = 30;

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let mut rows = Vec::new();
    for (backend, filesystem) in [("overlay", Filesystem::Host), ("btrfs", Filesystem::Btrfs)] {
        let place = stage.place(filesystem, "create")?;
        let (large, small) = (place.dir.join("large"), place.dir.join("small"));
        for (tree, files) in [(&large, 50_000), (&small, 500)] {
            if filesystem == Filesystem::Btrfs {
                let mut subvolume = Command::new("btrfs");
                stage.run(subvolume.args(["subvolume", "create"]).arg(tree))?;
                stage.give(tree)?;
            }
            plant(stage, tree, files, Git::No)?;
        }
        stage.settle();
        let medians = interleave(
            ROUNDS,
            vec![
                create(stage, &place, backend, &large),
                create(stage, &place, backend, &small),
            ],
        )?;
        let what = format!("create, 50,000 files, {backend}");
        rows.push(Row::ratio(
            &what,
            medians[0],
            ("500 files", medians[1]),
            1.5,
        ));
        rows.push(Row::at_most(&what, medians[0], Duration::from_millis(15)));
    }
    Ok(rows)
}

fn create<'a>(stage: &'a Stage, place: &'a Place, backend: &'a str, tree: &'a Path) -> Attempt<'a> {
    Box::new(move |_| {
        let mut create = stage.sandbox(place);
        create
            .args(["create", "bench", "--backend", backend, "--from"])
            .arg(tree);
        let took = stage.timed(&mut create)?;
        stage.run(stage.sandbox(place).args(["discard", "--force", "bench"]))?;
        Ok(took)
    })
}
