//! `sandbox create`

use std::path::{Path, PathBuf};

use sandbox_isolation::limits;
use sandbox_model::{BackendChoice, SandboxName};
use sandbox_workspace::root::{CreateRequest, caution};
use sandbox_workspace::{Root, Sandbox};
use serde::Serialize;

use crate::ending::Ending;
use crate::isolation_options::{IsolationOptions, backends};
use crate::narration;
use crate::output;
use crate::progress::Bar;
use crate::prompt;
use crate::record::{Detail, recorded};
use crate::report::{Problem, Refusal};
use crate::surroundings;

/// Make a sandbox of a directory
///
/// The sandbox is an exact copy-on-write view: dotfiles, ignored files, links and modes included. The
/// directory itself is not touched. Isolation options are stored and hold for everything that runs
/// in the sandbox. The name is printed on stdout.
///
/// Examples:
///   sandbox create
///   sandbox create risky-refactor
///   sandbox create risky --from ~/app --isolated-network --allow-host crates.io:443
///   sandbox create frozen --backend copy --memory 2G
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Its name; a memorable one is made up without it
    #[arg(value_name = "NAME")]
    name: Option<SandboxName>,

    /// The directory to sandbox [default: the current one]
    #[arg(long, short, value_name = "DIR")]
    from: Option<PathBuf>,

    /// How to copy; auto takes the best that works
    #[arg(long, visible_alias = "copy", value_name = "BACKEND", value_parser = backends())]
    backend: Option<BackendChoice>,

    /// Sandbox '/', the home directory or the sandbox root itself, too
    #[arg(long, short)]
    yes: bool,

    /// Print JSON: {"name", "source", "backend", "created", "directory"}
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    isolation: IsolationOptions,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Created<'s> {
    name: &'s SandboxName,
    source: String,
    backend: &'static str,
    created: jiff::Timestamp,
    directory: String,
}

pub(crate) fn create(args: &Args) -> Result<Ending, Problem> {
    let source = match &args.from {
        Some(directory) => surroundings::absolute(directory)?,
        None => surroundings::current_dir()?,
    };
    let config = surroundings::config()?;
    let root = surroundings::root_for(&source)?;
    if let Some(Declined) = check_breadth(&source, &root, args.yes)? {
        return Ok(Ending::DONE);
    }
    let request = CreateRequest {
        name: args.name.clone(),
        source,
        backend: surroundings::backend(args.backend, &config)?,
        settings: args.isolation.over(&config.settings()),
    };
    let sandbox = make(&root, &request)?;
    warn_of_worktree(sandbox.source());
    say_notes(&sandbox);
    say_unenforceable(&sandbox);
    if args.json {
        output::print_json(&Created {
            name: sandbox.name(),
            source: shown(sandbox.source()),
            backend: sandbox.meta.backend.as_str(),
            created: sandbox.meta.created,
            directory: shown(&sandbox.dir),
        })?;
        return Ok(Ending::DONE);
    }
    output::print_line(sandbox.name().as_str())?;
    let (name, backend) = (sandbox.name(), sandbox.meta.backend);
    narration::say(format_args!(
        "Created sandbox '{name}' of {} ({backend}).",
        shown(sandbox.source())
    ));
    narration::say(format_args!("Enter it with: sandbox enter {name}"));
    Ok(Ending::DONE)
}

/// A git worktree's repository lies elsewhere, so it is not part of the copy: it can be read inside,
/// but nothing can be committed to it.
fn warn_of_worktree(source: &Path) {
    let link = source.join(".git");
    if !link.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return;
    }
    let text = std::fs::read_to_string(&link).unwrap_or_default();
    if let Some(repository) = text.strip_prefix("gitdir: ") {
        narration::warn(format_args!(
            "this is a git worktree; its repository {} is outside of it and read-only inside, so \
             commits there fail",
            shown(Path::new(repository.trim_end()))
        ));
    }
}

/// Creates, with a progress bar, and leaves a record.
pub(crate) fn make(root: &Root, request: &CreateRequest) -> Result<Sandbox, Problem> {
    use sandbox_model::Operation;
    recorded(root, Operation::Create, |detail: &mut Detail| {
        let sandbox = root.create(request, &mut Bar::default())?;
        detail.about(&sandbox);
        detail.text = sandbox.meta.backend.to_string();
        Ok(sandbox)
    })
}

/// The person said no.
pub(crate) struct Declined;

/// `/`, the home and the sandbox root are seldom what was meant, and a copy of them is large: they
/// need a yes.
pub(crate) fn check_breadth(
    source: &Path,
    root: &Root,
    yes: bool,
) -> Result<Option<Declined>, Problem> {
    let canonical = source.canonicalize().unwrap_or_else(|_| source.to_owned());
    let homes = surroundings::homes().unwrap_or_default();
    let homes = homes.iter().filter_map(|home| home.canonicalize().ok());
    let found = homes
        .map(Some)
        .chain([None])
        .find_map(|home| caution(&canonical, home.as_deref(), root.path()));
    let Some(caution) = found else {
        return Ok(None);
    };
    if yes {
        narration::warn(format_args!("{caution}"));
        return Ok(None);
    }
    if !prompt::is_interactive() {
        return Err(Refusal::new(format!("{caution}: {}", shown(&canonical)))
            .hint("give --yes if that is what you want, or --from DIR for another directory")
            .into());
    }
    narration::warn(format_args!("{caution}"));
    match prompt::confirm(&format!("Sandbox {} all the same?", shown(&canonical))) {
        true => Ok(None),
        false => {
            narration::say(format_args!("Aborted."));
            Ok(Some(Declined))
        }
    }
}

/// Says what will not work inside.
pub(crate) fn say_notes(sandbox: &Sandbox) {
    for note in sandbox.notes().unwrap_or_default() {
        narration::warn(format_args!("{note}"));
    }
}

/// A limit that does not hold here is stored all the same, for where it does; said now rather than
/// at the first run, which refuses.
fn say_unenforceable(sandbox: &Sandbox) {
    for held in limits::holding(&sandbox.meta.settings.limits) {
        if let Err(reason) = held.by {
            narration::warn(format_args!(
                "{} cannot be enforced here, so runs will be refused: {reason}",
                held.limit
            ));
        }
    }
}

/// A path as one printable line.
pub(crate) fn shown(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    sandbox_model::path::escape(path.as_os_str().as_bytes())
}
