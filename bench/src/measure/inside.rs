//! Working inside: `find` over 50,000 files and `git status`, inside against outside.
//!
//! The clock is this program's `timer` mode, started inside and outside in turn, so start-up is in
//! neither. In each turn the first pass warms the caches (an overlay mounted a moment ago has none
//! of its own); it is told beside, for information.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::report::Row;
use crate::stage::{Filesystem, Stage, StageError};
use crate::timing::median;
use crate::tree::{Git, plant, sandbox_of};

const TURNS: usize = 12;
const PASSES: usize = 6;

#[derive(Default)]
struct Samples {
    first: Vec<Duration>,
    warm: Vec<Duration>,
}

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "inside")?;
    let stage = &*stage;
    let tree = place.dir.join("tree");
    plant(stage, &tree, 50_000, Git::Committed)?;
    sandbox_of(stage, &place, "bench", &tree, "overlay")?;
    let passes = PASSES.to_string();
    let bin = stage
        .timer()
        .parent()
        .unwrap_or(&tree)
        .display()
        .to_string();

    let mut rows = Vec::new();
    for (what, job) in [("find", ["find", "."]), ("git status", ["git", "status"])] {
        let (mut inside, mut outside) = (Samples::default(), Samples::default());
        for _ in 0..TURNS {
            let mut run = stage.sandbox(&place);
            run.args(["run", "--expose", &bin, "bench", "--"]);
            run.arg(stage.timer()).args(["timer", &passes]).args(job);
            inside.take(stage, &mut run)?;
            outside.take(stage, &mut plain(stage, &tree, &passes, job))?;
        }
        let ([first, warm], [first_outside, warm_outside]) = (inside.medians(), outside.medians());
        let peer = |time| ("outside", time);
        rows.push(Row::ratio(
            &format!("{what} inside"),
            warm,
            peer(warm_outside),
            1.3,
        ));
        let first = Row::ratio(
            &format!("{what} inside, first pass after the mount"),
            first,
            peer(first_outside),
            1.3,
        );
        rows.push(first.for_information());
    }
    Ok(rows)
}

fn plain(stage: &Stage, tree: &Path, passes: &str, job: [&str; 2]) -> Command {
    let mut command = stage.command(stage.timer(), tree);
    command.args(["timer", passes]).args(job);
    command
}

impl Samples {
    fn take(&mut self, stage: &Stage, timer: &mut Command) -> Result<(), StageError> {
        let output = stage.output(timer)?;
        let times: Option<Vec<_>> = output
            .lines()
            .map(|line| line.parse().ok().map(Duration::from_nanos))
            .collect();
        match times.as_deref() {
            Some([first, warm @ ..]) if warm.len() == PASSES - 1 => {
                self.first.push(*first);
                self.warm.extend(warm);
                Ok(())
            }
            _ => Err(StageError::Output {
                command: format!("{timer:?}"),
                output,
            }),
        }
    }

    fn medians(self) -> [Duration; 2] {
        [median(self.first), median(self.warm)]
    }
}
