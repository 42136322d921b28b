//! The copy backend against `cp -a --reflink=auto`, on filesystems with and without reflinks.

use crate::report::Row;
use crate::stage::{Filesystem, Stage, StageError};
use crate::timing::{Attempt, interleave};
use crate::tree::{Git, plant};

const ROUNDS: usize = 5;

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let mut rows = Vec::new();
    for filesystem in [Filesystem::Tmpfs, Filesystem::Btrfs, Filesystem::Xfs] {
        let place = stage.place(filesystem, "copy")?;
        let stage = &*stage;
        let (tree, twin) = (place.dir.join("tree"), place.dir.join("twin"));
        plant(stage, &tree, 50_000, Git::No)?;

        let ours: Attempt<'_> = Box::new(|_| {
            let mut create = stage.sandbox(&place);
            create
                .args(["create", "bench", "--backend", "copy", "--from"])
                .arg(&tree);
            stage.settle();
            let took = stage.timed(&mut create)?;
            stage.run(stage.sandbox(&place).args(["discard", "--force", "bench"]))?;
            Ok(took)
        });
        let peer: Attempt<'_> = Box::new(|_| {
            let mut copy = stage.command("cp", &place.dir);
            copy.args(["-a", "--reflink=auto"]).arg(&tree).arg(&twin);
            stage.settle();
            let took = stage.timed(&mut copy)?;
            stage.remove(&twin)?;
            Ok(took)
        });
        let medians = interleave(ROUNDS, vec![ours, peer])?;
        rows.push(Row::ratio(
            &format!("create, copy of 50,000 files, {}", filesystem.name()),
            medians[0],
            ("cp -a --reflink=auto", medians[1]),
            1.0,
        ));
    }
    Ok(rows)
}
