//! `sandbox try`

use std::ffi::OsString;
use std::time::{Duration, Instant};

use sandbox_model::{BackendChoice, ChangeSet, Operation, RelPath};
use sandbox_workspace::changes::{ChangeOptions, change_set};
use sandbox_workspace::diff::{self, Colour};
use sandbox_workspace::promote::Review;
use sandbox_workspace::root::CreateRequest;
use sandbox_workspace::sandbox::SandboxError;
use sandbox_workspace::{Sandbox, View};

use crate::chooser;
use crate::command::create::{self, Declined};
use crate::command::run::shell_wrapped;
use crate::command::{discard, list};
use crate::ending::Ending;
use crate::isolation_options::{IsolationOptions, backends};
use crate::narration::{self, Paint};
use crate::progress::Bar;
use crate::promotion::{self, Consent, Wishes};
use crate::prompt;
use crate::repair;
use crate::report::{Problem, Refusal};
use crate::summary;
use crate::surroundings;
use crate::workload::{self, Workload};

/// Run a command on a copy of the current directory, look, then decide
///
/// The command runs in a new sandbox of the current directory. Then what changed is shown, and one key
/// decides: [p]romote applies it, [k]eep leaves the sandbox for later, [d]iff shows all of it,
/// [x] discards it. Enter, Ctrl-C and the end of input keep it; keys typed before the question do not answer
/// it. Without a terminal and without a flag the sandbox is kept. When nothing changed, it is deleted without
/// a question. What was discarded can be restored for some days: `sandbox discard --undo`.
///
/// The exit status is the command's own, or 5 when --promote meets a conflict.
///
/// Examples:
///   sandbox try -- make risky-thing
///   sandbox try --discard -- ./install.sh --prefix=/usr/local
///   sandbox try --promote -- cargo fix
///   sandbox try --isolated-network 'npm ci && npm test'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(
    verbatim_doc_comment,
    override_usage = "sandbox try [OPTIONS] [--] <CMD>..."
)]
pub(crate) struct Args {
    /// The command and its arguments; one argument is given to `sh -c`
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    #[arg(value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,

    /// Apply the changes when the command succeeds; keep the sandbox when it fails
    #[arg(long, conflicts_with_all = ["keep", "discard"])]
    pub(crate) promote: bool,

    /// Keep the sandbox
    #[arg(long, conflicts_with = "discard")]
    pub(crate) keep: bool,

    /// Discard the sandbox
    #[arg(long)]
    pub(crate) discard: bool,

    /// How to copy; auto takes the best that works
    #[arg(long, visible_alias = "copy", value_name = "BACKEND", value_parser = backends())]
    pub(crate) backend: Option<BackendChoice>,

    /// Sandbox '/', the home directory or the sandbox root itself, too; with --promote, do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) isolation: IsolationOptions,
}

pub(crate) fn try_(args: &Args) -> Result<Ending, Problem> {
    let source = surroundings::current_dir()?;
    let config = surroundings::config()?;
    let root = surroundings::root_unrepaired()?;
    repair::source(&root, &source);
    if let Some(Declined) = create::check_breadth(&source, &root, args.yes)? {
        return Ok(Ending::DONE);
    }
    let request = CreateRequest {
        name: None,
        source,
        backend: surroundings::backend(args.backend, &config)?,
        settings: args.isolation.over(&config.settings()),
    };
    let sandbox = root.create(&request, &mut Bar::default())?;
    let workload = Workload::plain(shell_wrapped(&args.command), sandbox.meta.settings.clone());
    let performed = match workload::perform(&sandbox, &workload, Operation::Try) {
        Ok(performed) => performed,
        Err(problem) => {
            leave(sandbox)?;
            return Err(problem);
        }
    };
    summary::say_refused(&performed.refused);
    // Before anything is shown: what is promoted in the end is what was shown.
    let review = match begin_review(&sandbox) {
        Ok(review) => review,
        Err(error) => {
            leave(sandbox)?;
            return Err(error.into());
        }
    };
    let changes = changes_of(&sandbox)?;
    match changes.is_empty() {
        true => {
            drop(review);
            discard::silently(sandbox)?;
        }
        false => decide(sandbox, review, args, performed.ending)?,
    }
    Ok(performed.ending)
}

/// Begins the review; a listing, which looks at every sandbox for a moment, is waited for. There is no
/// event to wait for: a lock that is waited for would be waited for as long as a command runs.
fn begin_review(sandbox: &Sandbox) -> Result<Review, SandboxError> {
    const PATIENCE: Duration = Duration::from_millis(500);
    let began = Instant::now();
    loop {
        match Review::begin(sandbox) {
            Err(SandboxError::Busy { .. }) if began.elapsed() < PATIENCE => {
                std::thread::yield_now();
            }
            begun => return begun,
        }
    }
}

/// What the person, or the flags, decided.
enum Decision {
    Promote,
    Keep,
    Discard,
}

fn decide(sandbox: Sandbox, review: Review, args: &Args, ending: Ending) -> Result<(), Problem> {
    let failed = ending != Ending::DONE;
    let decision = match (args.promote, args.keep, args.discard) {
        (true, _, _) if failed => {
            narration::say(format_args!("The command failed, so nothing is promoted."));
            Decision::Keep
        }
        (true, _, _) => Decision::Promote,
        (_, true, _) => Decision::Keep,
        (_, _, true) => Decision::Discard,
        _ if prompt::is_interactive() => ask(&sandbox)?,
        _ => Decision::Keep,
    };
    match decision {
        Decision::Promote => promote_and_leave(sandbox, review),
        Decision::Keep => {
            say_kept(&sandbox);
            Ok(())
        }
        Decision::Discard => {
            drop(review);
            let way_back = discard::after_try(sandbox)?;
            narration::say(format_args!("Discarded."));
            if let Some(way_back) = way_back {
                narration::say(format_args!("{way_back}"));
            }
            Ok(())
        }
    }
}

/// One key; the end of input keeps.
fn ask(sandbox: &Sandbox) -> Result<Decision, Problem> {
    let question = "[p]romote / [k]eep / [d]iff / [x] discard? ";
    loop {
        match prompt::key(question, &['p', 'k', 'd', 'x']) {
            Some('p') => return Ok(Decision::Promote),
            Some('x') => return Ok(Decision::Discard),
            Some('d') => {
                chooser::show_diff(&View::open(sandbox)?, &RelPath::root())?;
            }
            _ => return Ok(Decision::Keep),
        }
    }
}

fn promote_and_leave(sandbox: Sandbox, review: Review) -> Result<(), Problem> {
    let (name, root) = (sandbox.name().clone(), sandbox.root.clone());
    let wishes = Wishes {
        consent: Consent::Given,
        review: Some(review),
        ..Wishes::default()
    };
    let promoted = promotion::promote(sandbox, wishes);
    leave(root.sandbox(name.as_str())?)?;
    promoted.map(|_| ())
}

/// A sandbox of which nothing is left has served its purpose; any other is kept.
fn leave(sandbox: Sandbox) -> Result<(), Problem> {
    match list::count_changes(&sandbox) {
        Some(0) => discard::silently(sandbox),
        _ => {
            say_kept(&sandbox);
            Ok(())
        }
    }
}

/// What changed: counted per file, with what deserves a second look.
fn changes_of(sandbox: &Sandbox) -> Result<ChangeSet, Problem> {
    let view = View::open(sandbox)?;
    let changes = change_set(&view, &ChangeOptions::default(), &mut Bar::default())?;
    if !changes.is_empty() {
        let paint = Paint::stderr();
        let colour = if paint.is_on() {
            Colour::Terminal
        } else {
            Colour::Monochrome
        };
        let mut text = Vec::new();
        diff::stat(&view, &changes, colour, &mut text)
            .map_err(|error| Refusal::io("cannot read the changes", error))?;
        narration::raw(&String::from_utf8_lossy(&text));
        summary::say_flags(&changes);
    }
    Ok(changes)
}

fn say_kept(sandbox: &Sandbox) {
    let name = sandbox.name();
    narration::say(format_args!("Kept as sandbox '{name}'. Go on with:"));
    for (command, what) in [
        ("diff", "see what changed"),
        ("promote", "apply it"),
        ("discard", "throw it away"),
    ] {
        narration::say(format_args!(
            "  sandbox {:<28} {what}",
            format!("{command} {name}")
        ));
    }
}
