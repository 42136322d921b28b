//! `sandbox promote`

use std::path::PathBuf;

use sandbox_workspace::Sandbox;
use sandbox_workspace::promote::{Backup, GitControl, Resolution, Resolutions, Selection};
use sandbox_workspace::undo::{Changed, Direction};

use crate::ending::Ending;
use crate::promotion::{self, Consent, Form, Wishes};
use crate::reading;
use crate::report::{Problem, Refusal};
use crate::surroundings;
use crate::undoing;

/// Apply a sandbox's changes to its source
///
/// Shows the plan, asks, and applies all of it or nothing: Ctrl-C puts everything back, and a crash
/// halfway is rolled back by the next command. Nothing is applied if a command ran in the sandbox since
/// the plan was shown. Files that run on your machine (.envrc, editor tasks, build scripts, new
/// executables) are marked. What steers git (hooks, configuration, the state of a rebase), and a
/// repository that is new, deleted or broken, needs --allow-git-control besides --yes; commits and
/// branches do not.
///
/// A path that also changed in the source is a conflict: nothing is applied and the exit status is 5,
/// unless each is resolved, at the prompt or by flags. `ours` is the sandbox's version, `theirs` the
/// source's, `merge` both where they fit together, `skip` leaves the path out.
///
/// --undo takes the last promote out of the source and gives the changes back to the sandbox; where the
/// sandbox is gone, or has changed a path since, they are kept, and --redo applies them again. Both do
/// all or nothing: if a path changed in the source since, it is named, nothing is done, and the exit
/// status is 5; with --force the other paths are done. The last 20 promotes of a source are kept, for
/// 30 days.
///
/// Examples:
///   sandbox promote risky
///   sandbox promote risky src/ --dry-run
///   sandbox promote risky --interactive
///   sandbox promote risky --yes --resolve Cargo.lock=theirs --merge
///   sandbox promote risky --undo
///   sandbox promote risky --redo
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("again").args(["undo", "redo"]))]
pub(crate) struct Args {
    /// The sandbox; with --undo or --redo it may be one that was discarded, or none for the current directory
    #[arg(value_name = "NAME", required_unless_present_any = ["undo", "redo"])]
    name: Option<String>,

    /// Only what is at or below these
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Show the plan and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Decide per file and per hunk
    #[arg(long, short, conflicts_with_all = ["yes", "dry_run"])]
    interactive: bool,

    /// Also copy what is replaced or deleted to SOURCE.sandbox-backup-TIME, beside the source
    #[arg(long)]
    backup: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Take the last promote of this source back
    #[arg(long, conflicts_with_all = ["interactive", "backup", "resolve", "ours", "theirs", "merge"])]
    undo: bool,

    /// Apply again what the last --undo took back
    #[arg(long, conflicts_with_all = ["interactive", "backup", "resolve", "ours", "theirs", "merge"])]
    redo: bool,

    /// With --undo or --redo: leave paths that changed since as they are, and do the others
    #[arg(long, requires = "again")]
    force: bool,

    /// Apply what steers git (.git/config, .git/hooks) and new, deleted or broken repositories, too
    #[arg(long)]
    allow_git_control: bool,

    /// Resolve one conflict: PATH=ours, theirs, merge or skip
    #[arg(long, value_name = "PATH=HOW", help_heading = "Conflicts")]
    resolve: Vec<String>,

    /// Resolve all other conflicts with the sandbox's version
    #[arg(long, conflicts_with_all = ["theirs", "merge"], help_heading = "Conflicts")]
    ours: bool,

    /// Resolve all other conflicts with the source's version
    #[arg(long, conflicts_with = "merge", help_heading = "Conflicts")]
    theirs: bool,

    /// Resolve all other conflicts by merging; what overlaps stays a conflict
    #[arg(long, help_heading = "Conflicts")]
    merge: bool,

    /// Print JSON: the plan, and whether it was applied
    #[arg(long, conflicts_with = "interactive")]
    json: bool,
}

pub(crate) fn promote(args: &Args) -> Result<Ending, Problem> {
    let consent = match (args.dry_run, args.yes) {
        (true, _) => Consent::DryRun,
        (false, true) => Consent::Given,
        (false, false) => Consent::Ask,
    };
    let form = if args.json { Form::Json } else { Form::Text };
    let git_control = match args.allow_git_control {
        true => GitControl::Apply,
        false => GitControl::LeaveOut,
    };
    if args.undo || args.redo {
        let request = undoing::Request {
            name: args.name.as_deref(),
            typed: &args.paths,
            direction: match args.undo {
                true => Direction::Apply,
                false => Direction::TakeBack,
            },
            changed: match args.force {
                true => Changed::Leave,
                false => Changed::Refuse,
            },
            git_control,
        };
        return undoing::undo(&request, consent, form);
    }
    let sandbox = surroundings::sandbox(args.name.as_deref().unwrap_or_default())?;
    let wishes = Wishes {
        selection: Selection {
            paths: reading::below_source(&sandbox, &args.paths)?,
            git_control,
            ..Selection::default()
        },
        resolutions: args.resolutions(&sandbox)?,
        backup: if args.backup {
            Backup::Beside
        } else {
            Backup::None
        },
        consent,
        choose: args.interactive,
        form,
        review: None,
    };
    promotion::promote(sandbox, wishes)?;
    Ok(Ending::DONE)
}

impl Args {
    fn resolutions(&self, sandbox: &Sandbox) -> Result<Resolutions, Problem> {
        let others = match (self.ours, self.theirs, self.merge) {
            (true, _, _) => Some(Resolution::Ours),
            (_, true, _) => Some(Resolution::Theirs),
            (_, _, true) => Some(Resolution::Merge),
            _ => None,
        };
        let mut resolutions = Resolutions {
            others,
            ..Resolutions::default()
        };
        for text in &self.resolve {
            let (path, resolution) = parse_resolution(text)?;
            let below = reading::below_source(sandbox, &[path])?;
            resolutions
                .paths
                .extend(below.into_iter().map(|path| (path, resolution)));
        }
        Ok(resolutions)
    }
}

/// `PATH=HOW`; the path may hold `=` itself.
fn parse_resolution(text: &str) -> Result<(PathBuf, Resolution), Refusal> {
    let parsed = text.rsplit_once('=').and_then(|(path, how)| {
        let resolution = match how {
            "ours" => Resolution::Ours,
            "theirs" => Resolution::Theirs,
            "merge" => Resolution::Merge,
            "skip" => Resolution::Skip,
            _ => return None,
        };
        (!path.is_empty()).then(|| (PathBuf::from(path), resolution))
    });
    parsed.ok_or_else(|| {
        Refusal::new(format!("'{text}' is not a resolution"))
            .hint("write PATH=ours, PATH=theirs, PATH=merge or PATH=skip")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolution_is_a_path_and_a_way() {
        let parsed = parse_resolution("a=b.txt=merge").unwrap();
        assert_eq!(parsed, (PathBuf::from("a=b.txt"), Resolution::Merge));
        for text in ["", "a", "a=", "=ours", "a=mine"] {
            assert!(parse_resolution(text).is_err(), "{text:?}");
        }
    }
}
