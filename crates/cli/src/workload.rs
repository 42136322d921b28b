//! One command in one sandbox, from lock to record: what `run`, `try` and `enter` share.
//!
//! This is the product's latency. In order: lock shared, launch, wait; and while the kernel takes the sandbox down, record the base of what was touched,
//! unlock, append to the history.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use sandbox_isolation::launch::{Ended, LaunchError};
use sandbox_isolation::network::Refused;
use sandbox_isolation::{
    Home, Identity, Policy, Root, Run, Runs, Terminal, environment, launch_after,
};
use sandbox_linux::mount;
use sandbox_model::{ByteSize, Class, Operation, Outcome, RelPath, Settings, WorkspaceMount};
use sandbox_workspace::backend::manifest::Manifest;
use sandbox_workspace::sandbox::SandboxError;
use sandbox_workspace::{Sandbox, base};

use crate::bridge;
use crate::credentials;
use crate::ending::Ending;
use crate::narration;
use crate::record::{Detail, recorded};
use crate::refusals;
use crate::report::{self, Problem, Refusal};
use crate::surroundings;

/// What to run.
#[derive(Debug)]
pub(crate) struct Workload {
    /// The command; the first word is looked up in `PATH` inside.
    pub(crate) command: Vec<OsString>,
    /// The walls around it.
    pub(crate) settings: Settings,
    /// Where its terminal comes from.
    pub(crate) terminal: Terminal,
    /// What to call it in the history, when the command itself tells nothing.
    pub(crate) label: Option<String>,
    /// Variables set besides those of `settings`.
    pub(crate) variables: Vec<(&'static str, OsString)>,
}

impl Workload {
    /// A command on the caller's own streams.
    pub(crate) fn plain(command: Vec<OsString>, settings: Settings) -> Workload {
        let terminal = Terminal::Inherit;
        Workload {
            command,
            settings,
            terminal,
            label: None,
            variables: Vec::new(),
        }
    }
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Performed {
    /// How we should end.
    pub(crate) ending: Ending,
    /// Connections that were refused.
    pub(crate) refused: Vec<Refused>,
}

/// Runs it and leaves a record.
pub(crate) fn perform(
    sandbox: &Sandbox,
    workload: &Workload,
    operation: Operation,
) -> Result<Performed, Problem> {
    // Dropped last: what is left to do here is done while the kernel takes the sandbox down.
    let mut remains = None;
    recorded(&sandbox.root, operation, |detail| {
        detail.about(sandbox);
        detail.text = workload
            .label
            .clone()
            .unwrap_or_else(|| shown_command(&workload.command));
        let performed = attend(sandbox, workload, detail, &mut remains)?;
        detail.outcome = Some(Outcome::Exited {
            status: performed.ending.code(),
        });
        Ok(performed)
    })
}

fn attend(
    sandbox: &Sandbox,
    workload: &Workload,
    detail: &mut Detail,
    remains: &mut Option<Run>,
) -> Result<Performed, Problem> {
    let lock = sandbox.lock_for_run()?;
    check_hidden(sandbox, &workload.settings)?;
    let policy = policy(sandbox, workload)?;
    let mut began = None;
    let note_beginning = || {
        began = Some(base::run_began(sandbox)?);
        Ok(())
    };
    let runs = Runs::open(&sandbox.runs_dir());
    let run = match launch_after(&policy, &runs, lock.fd.as_fd(), note_beginning) {
        Ok(run) => remains.insert(run),
        Err(error) => {
            // Nothing ran, so there is nothing to record; this takes the mark away.
            let _ = began.map(|began| base::record(sandbox, began));
            return not_launched(sandbox, error, detail);
        }
    };
    let ended = match workload.terminal {
        Terminal::Inherit => run.ended(),
        Terminal::New => bridge::attend(run),
    };
    let ended = ended.map_err(|error| Refusal::io("cannot wait for the command", error))?;
    if let Some(Err(error)) = began.map(|began| base::record(sandbox, began)) {
        // The mark of this run stays, so the next look records it; the command's end still counts.
        let name = sandbox.name();
        narration::warn(format_args!(
            "cannot record what sandbox '{name}' started from: {error}"
        ));
    }
    if let Err(error) = refusals::add(sandbox, &ended.refused) {
        narration::warn(format_args!("cannot record refused connections: {error}"));
    }
    drop(lock);
    judge(sandbox, &policy.settings, ended)
}

/// A command that is not there, or cannot be run, is told like an error and has the status a shell
/// gives it. Any other failure is ours.
fn not_launched(
    sandbox: &Sandbox,
    error: LaunchError,
    detail: &mut Detail,
) -> Result<Performed, Problem> {
    let status = match &error {
        LaunchError::Exec { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
        LaunchError::Exec { .. } => 126,
        _ if !sandbox.source().is_dir() => {
            let (name, path) = (sandbox.name().clone(), sandbox.source().to_owned());
            return Err(SandboxError::SourceGone { name, path }.into());
        }
        _ => return Err(error.into()),
    };
    report::tell(&error.into());
    detail.text.push_str(" (not run)");
    Ok(Performed {
        ending: Ending::Status(status),
        refused: Vec::new(),
    })
}

/// Limits that struck are told; the size limit's is an error of its own.
fn judge(sandbox: &Sandbox, settings: &Settings, ended: Ended) -> Result<Performed, Problem> {
    if ended.out_of_memory {
        narration::warn(format_args!(
            "the memory limit was reached and something inside was killed"
        ));
    }
    if let Some(used) = ended.over_size {
        let limit = settings.limits.size.map_or(0, |size| size.0);
        let took = match used {
            // Told so where not everything could be looked at.
            u64::MAX => "could not be counted, against".to_owned(),
            used => format!("took {}, over", ByteSize(used)),
        };
        return Err(Refusal::new(format!(
            "the changes of sandbox '{}' {took} the limit of {}; the command was stopped",
            sandbox.name(),
            ByteSize(limit)
        ))
        .class(Class::DiskFull)
        .hint("free space inside, or give a larger --size")
        .into());
    }
    Ok(Performed {
        ending: Ending::of(ended.status),
        refused: ended.refused,
    })
}

/// Refuses where something that is to be hidden was in the copy and no longer is where it was: it may
/// have another name there. An overlay is asked when it is mounted.
fn check_hidden(sandbox: &Sandbox, settings: &Settings) -> Result<(), Problem> {
    let WorkspaceMount::Bind { dir } = sandbox.mount() else {
        return Ok(());
    };
    for path in &settings.hide {
        let name = match path.strip_prefix(sandbox.source()) {
            Ok(name) if !name.as_os_str().is_empty() => name,
            _ => continue,
        };
        let is_gone = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            )
        };
        let found = std::fs::File::open(&dir).and_then(|top| mount::resolve(top, name));
        if !found.is_err_and(|error| is_gone(&error)) {
            continue;
        }
        let manifest = Manifest::load(&sandbox.dir)
            .map_err(|error| Refusal::io("cannot read what was copied", error))?;
        let was_copied = RelPath::from_path(name).is_ok_and(|name| manifest.get(&name).is_some());
        if was_copied {
            let path = sandbox_model::path::escape(path.as_os_str().as_encoded_bytes());
            return Err(Refusal::new(format!(
                "cannot hide {path}: it is no longer there in the sandbox, and could be read under \
                 another name"
            ))
            .hint("`sandbox rollback` to a snapshot from before that, or discard the sandbox")
            .into());
        }
    }
    Ok(())
}

fn policy(sandbox: &Sandbox, workload: &Workload) -> Result<Policy, Problem> {
    let mut ours = vec![
        ("SANDBOX_NAME", OsString::from(sandbox.name().as_str())),
        ("SANDBOX_SOURCE", sandbox.source().into()),
        ("SANDBOX_CREATED", sandbox.meta.created.to_string().into()),
        ("IN_SANDBOX", "1".into()),
    ];
    ours.extend(workload.variables.iter().cloned());
    let workspace = sandbox.mount();
    let layer = match &workspace {
        WorkspaceMount::Overlay { upper, .. } => upper.clone(),
        WorkspaceMount::Bind { dir } => dir.clone(),
    };
    Ok(Policy {
        name: sandbox.name().clone(),
        workspace,
        source: sandbox.source().to_owned(),
        cwd: cwd_inside(sandbox),
        home: Some(Home {
            paths: surroundings::homes()?,
            layer: sandbox.home_dir(),
            credentials: credentials::named(surroundings::variables()),
        }),
        hide: vec![sandbox.root.path().to_owned()],
        env: environment::inside(surroundings::variables(), &workload.settings, &ours),
        settings: workload.settings.clone(),
        command: workload.command.clone(),
        terminal: workload.terminal,
        layer,
        root: Root::Host,
        identity: Identity::Own,
    })
}

/// The caller's directory where that is inside the source, else the source.
fn cwd_inside(sandbox: &Sandbox) -> PathBuf {
    match std::env::current_dir() {
        Ok(current) if current.starts_with(sandbox.source()) => current,
        _ => sandbox.source().to_owned(),
    }
}

/// The command as one printable line, cut where it gets long: for the history.
pub(crate) fn shown_command(command: &[OsString]) -> String {
    const LONGEST: usize = 200;
    let words: Vec<String> = command
        .iter()
        .map(|word| sandbox_model::path::escape(word.as_encoded_bytes()))
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}
