//! Promoting 1,000 files against `rsync -a` of the same files followed by `sync`.
//!
//! Both start from a source of 5,000 files of which 900 are replaced and 100 are new, in every
//! round with other contents. The journal, its fsyncs and the kept pre-images are in our time.

use std::fs;
use std::path::Path;

use crate::report::Row;
use crate::stage::{Filesystem, Stage, StageError};
use crate::timing::{Attempt, interleave};
use crate::tree::{Git, contents, file, plant, sandbox_of, transplant};

const ROUNDS: usize = 9;

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "promote")?;
    let stage = &*stage;
    let [source, twin, fresh] = ["source", "twin", "fresh"].map(|name| place.dir.join(name));
    plant(stage, &source, 5_000, Git::No)?;
    transplant(stage, &source, &twin)?;
    sandbox_of(stage, &place, "bench", &source, "overlay")?;
    // The sandbox's new contents come from here, through a path it can see.
    let delivery = format!("cp -r {}/. .", fresh.display());
    let expose = fresh.display().to_string();

    let ours: Attempt<'_> = Box::new(|round| {
        write_thousand(stage, &fresh, 2 * round + 1)?;
        let mut deliver = stage.sandbox(&place);
        stage.run(deliver.args(["run", "--expose", &expose, "bench", &delivery]))?;
        stage.settle();
        stage.timed(stage.sandbox(&place).args(["promote", "bench", "--yes"]))
    });
    let peer: Attempt<'_> = Box::new(|round| {
        write_thousand(stage, &fresh, 2 * round + 2)?;
        stage.settle();
        let script = format!("rsync -a {}/ {}/ && sync", fresh.display(), twin.display());
        stage.timed(stage.command("sh", &place.dir).args(["-c", &script]))
    });
    let medians = interleave(ROUNDS, vec![ours, peer])?;
    Ok(vec![Row::ratio(
        "promote of 1,000 files",
        medians[0],
        ("rsync -a && sync", medians[1]),
        2.0,
    )])
}

/// Makes `dir` anew with 900 files of the source and 100 others, of a version.
fn write_thousand(stage: &Stage, dir: &Path, version: usize) -> Result<(), StageError> {
    if dir.exists() {
        stage.remove(dir)?;
    }
    stage.make_dir(dir)?;
    for index in 0..1_000 {
        let path = if index < 900 {
            dir.join(file(index * 5))
        } else {
            dir.join(file(index))
                .with_extension(format!("{version}.new"))
        };
        let parent = path.parent().unwrap_or(dir);
        fs::create_dir_all(parent).map_err(StageError::io(parent))?;
        fs::write(&path, contents(index, version)).map_err(StageError::io(&path))?;
    }
    stage.give_all(dir)
}
