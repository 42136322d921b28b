//! Starting a command: `run` and `try` against bubblewrap, with and without a network of its own.
//!
//! One bwrap is the peer of all four: the five commands take turns.

use std::process::Command;

use crate::report::Row;
use crate::stage::{Filesystem, Stage, StageError};
use crate::timing::{Attempt, interleave};
use crate::tree::{Git, plant, sandbox_of};

const ROUNDS: usize = 200;

const BWRAP: [&str; 12] = [
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "/bin/true",
];

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "launch")?;
    let stage = &*stage;
    let project = place.dir.join("project");
    plant(stage, &project, 500, Git::No)?;
    sandbox_of(stage, &place, "bench", &project, "overlay")?;

    let in_project = |arguments: &'static [&'static str]| -> Attempt<'_> {
        let (place, project) = (&place, &project);
        Box::new(move |_| stage.timed(stage.sandbox(place).current_dir(project).args(arguments)))
    };
    let bwrap = |_| {
        let mut command: Command = stage.command("bwrap", &project);
        stage.timed(command.args(BWRAP))
    };
    let medians = interleave(
        ROUNDS,
        vec![
            Box::new(bwrap),
            in_project(&["run", "bench", "/bin/true"]),
            in_project(&["try", "--discard", "--", "/bin/true"]),
            in_project(&["run", "--isolated-network", "bench", "/bin/true"]),
            in_project(&["try", "--discard", "--isolated-network", "--", "/bin/true"]),
        ],
    )?;
    let [bwrap, run, attempt, run_alone, attempt_alone] = medians[..] else {
        unreachable!("a median for each attempt")
    };
    let peer = ("bwrap", bwrap);
    Ok(vec![
        Row::ratio("run /bin/true", run, peer, 0.8),
        Row::ratio("try --discard -- /bin/true", attempt, peer, 1.0),
        Row::ratio("run --isolated-network", run_alone, peer, 1.1),
        Row::ratio("try --isolated-network", attempt_alone, peer, 1.3),
    ])
}
