//! What a running `sandbox run` takes besides the command: the proportional set size of every
//! process in its tree except the command's own. bubblewrap's is told beside it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::processes::Process;
use crate::report::Row;
use crate::stage::{Filesystem, Stage, StageError};
use crate::tree::{Git, plant, sandbox_of};

/// The command: says it is there, then becomes `sleep`, the process that is not counted.
const SCRIPT: &str = "echo ready; exec sleep 1000";

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "memory")?;
    let stage = &*stage;
    let project = place.dir.join("project");
    plant(stage, &project, 500, Git::No)?;
    sandbox_of(stage, &place, "bench", &project, "overlay")?;

    let mut run = stage.sandbox(&place);
    run.args(["run", "bench", "--", "sh", "-c", SCRIPT]);
    let mut bwrap = stage.command("bwrap", &project);
    bwrap.args([
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
    ]);
    bwrap.args(["--dev", "/dev", "--tmpfs", "/tmp", "sh", "-c", SCRIPT]);

    let (ours, peer) = (besides_the_command(run)?, besides_the_command(bwrap)?);
    Ok(vec![Row::memory(
        "memory of a running run",
        ours,
        Some(("bwrap", peer)),
        4096,
    )])
}

fn besides_the_command(mut command: Command) -> Result<u64, StageError> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|source| StageError::spawn(&command, source))?;
    let measured = await_ready(&mut child).and_then(|()| tree_size(child.id()));
    // The tree dies with its first process; that is its promise, and the tests hold it to it.
    let _ = child.kill();
    let _ = child.wait();
    measured.ok_or_else(|| StageError::Output {
        command: format!("{command:?}"),
        output: "it ended before it could be measured".to_owned(),
    })
}

fn await_ready(child: &mut Child) -> Option<()> {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut()?)
        .read_line(&mut line)
        .ok()?;
    (line == "ready\n").then_some(())
}

/// KiB of the process and its descendants, without any `sleep`.
fn tree_size(process: u32) -> Option<u64> {
    let mut size = 0;
    let mut sleeping = false;
    for process in Process(process).tree() {
        // `ready` comes before the exec that makes it a sleep: wait for that event.
        while process.name()? == "sh" {
            std::thread::yield_now();
        }
        if process.name()? == "sleep" {
            sleeping = true;
        } else {
            size += process.weight().memory;
        }
    }
    sleeping.then_some(size)
}
