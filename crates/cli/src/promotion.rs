//! From a change set to the source: plan, show, settle conflicts, ask, apply. What `promote`, `try` and
//! `sync --direction sandbox-to-source` share.

use sandbox_model::{Operation, Outcome};
use sandbox_workspace::promote::{
    self, Backup, Conflict, GitControl, LeftOutReason, Plan, PromoteError, Promoted, Resolution,
    Resolutions, Review, Selection,
};
use sandbox_workspace::{Sandbox, View};
use serde::Serialize;

use crate::chooser;
use crate::command::create::shown;
use crate::interruption::{self, Interruptible};
use crate::narration::{self, Paint};
use crate::output::{self, Output};
use crate::preview;
use crate::progress::Bar;
use crate::prompt;
use crate::record::recorded;
use crate::repair;
use crate::report::{Problem, Refusal};
use crate::summary::counted;

/// What the user wants of a promote.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// What to promote.
    pub(crate) selection: Selection,
    /// How conflicts are settled.
    pub(crate) resolutions: Resolutions,
    /// Whether visible copies are left.
    pub(crate) backup: Backup,
    /// How far to go.
    pub(crate) consent: Consent,
    /// Decide per file and hunk.
    pub(crate) choose: bool,
    /// In which form the plan is printed.
    pub(crate) form: Form,
    /// The review under way, where the changes were shown already.
    pub(crate) review: Option<Review>,
}

/// Who says yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Consent {
    /// The person at the terminal.
    #[default]
    Ask,
    /// Said already.
    Given,
    /// Nobody: only show the plan.
    DryRun,
}

/// How the plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    /// In lines.
    #[default]
    Text,
    /// As JSON, with what became of it.
    Json,
}

/// What became of a promote.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Applied.
    Done,
    /// There was nothing to apply, or only the plan was wanted.
    Nothing,
    /// The person said no.
    Declined,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'p> {
    plan: &'p Plan,
    applied: bool,
    promoted: Option<Promoted>,
}

/// Promotes and leaves a record (not of a dry run).
pub(crate) fn promote(sandbox: Sandbox, mut wishes: Wishes) -> Result<Verdict, Problem> {
    repair::source_thoroughly(&sandbox.root, sandbox.source());
    if wishes.consent == Consent::DryRun {
        let _lock = sandbox.lock_shared()?;
        let plan = settle(&sandbox, &mut wishes)?;
        return finish_dry_run(plan, wishes.form);
    }
    let root = sandbox.root.clone();
    recorded(&root, Operation::Promote, |detail| {
        detail.about(&sandbox);
        // From before the plan is made until it is applied: what is promoted is what was shown.
        let review = match wishes.review.take() {
            Some(review) => review,
            None if wishes.consent == Consent::Given => Review::begin_alone(&sandbox)?,
            None => Review::begin(&sandbox)?,
        };
        let plan = settle(&sandbox, &mut wishes)?;
        if plan.steps.is_empty() {
            say_nothing(&plan, wishes.form)?;
            detail.text = "nothing to promote".to_owned();
            return Ok(Verdict::Nothing);
        }
        if !agreed(&plan, wishes.consent)? {
            narration::say(format_args!("Aborted."));
            detail.outcome = Some(Outcome::Declined);
            return Ok(Verdict::Declined);
        }
        detail.text = counted(preview::effective(&plan), "change", "changes");
        apply(&sandbox, review, plan, &wishes)?;
        Ok(Verdict::Done)
    })
}

/// Plans until nothing is in the way, asking where there is somebody to ask; then shows the plan.
fn settle(sandbox: &Sandbox, wishes: &mut Wishes) -> Result<Plan, Problem> {
    let view = View::open(sandbox)?;
    let may_ask = wishes.consent == Consent::Ask && prompt::is_interactive();
    let make = |wishes: &Wishes| {
        promote::plan(
            &view,
            &wishes.selection,
            &wishes.resolutions,
            &mut Bar::default(),
        )
    };
    let mut plan = make(wishes)?;
    if wishes.choose {
        chooser::choose(&view, &plan, wishes)?;
        plan = make(wishes)?;
    }
    while may_ask && !plan.conflicts.is_empty() {
        for conflict in &plan.conflicts {
            let Some(resolution) = ask_resolution(&view, conflict)? else {
                show(&plan, wishes)?;
                return Err(PromoteError::Conflicts(plan.conflicts).into());
            };
            wishes
                .resolutions
                .paths
                .insert(conflict.path.clone(), resolution);
        }
        plan = make(wishes)?;
    }
    if may_ask && ask_git_control(&plan) {
        wishes.selection.git_control = GitControl::Apply;
        plan = make(wishes)?;
    }
    show(&plan, wishes)?;
    if !plan.conflicts.is_empty() {
        return Err(PromoteError::Conflicts(plan.conflicts).into());
    }
    if !plan.refused.is_empty() {
        return Err(PromoteError::Refused(plan.refused).into());
    }
    Ok(plan)
}

/// A dry run's plan is data, any other's is narration.
fn show(plan: &Plan, wishes: &Wishes) -> Result<(), Problem> {
    let blocked = !plan.conflicts.is_empty() || !plan.refused.is_empty();
    match (wishes.form, wishes.consent) {
        (Form::Json, _) if blocked => output::print_json(&Report {
            plan,
            applied: false,
            promoted: None,
        }),
        (Form::Json, _) => Ok(()),
        (Form::Text, Consent::DryRun) => {
            let mut out = Output::open();
            for line in preview::lines(plan, Paint::stdout()) {
                out.line(line)?;
            }
            Ok(out.finish()?)
        }
        (Form::Text, _) => {
            let empty = plan.steps.is_empty() && plan.left_out.is_empty() && !blocked;
            if !empty {
                let mut text = preview::lines(plan, Paint::stderr()).join("\n");
                text.push('\n');
                narration::raw(&text);
            }
            Ok(())
        }
    }
}

fn finish_dry_run(plan: Plan, form: Form) -> Result<Verdict, Problem> {
    if form == Form::Json {
        output::print_json(&Report {
            plan: &plan,
            applied: false,
            promoted: None,
        })?;
    }
    Ok(Verdict::Nothing)
}

fn say_nothing(plan: &Plan, form: Form) -> Result<(), Problem> {
    if form == Form::Json {
        output::print_json(&Report {
            plan,
            applied: false,
            promoted: None,
        })?;
    }
    narration::say(format_args!("Nothing to promote."));
    Ok(())
}

fn agreed(plan: &Plan, consent: Consent) -> Result<bool, Problem> {
    // Paths that only leave the change set need no yes: the source stays as it is.
    if consent == Consent::Given || preview::effective(plan) == 0 {
        return Ok(true);
    }
    let count = counted(preview::effective(plan), "change", "changes");
    let source = shown(&plan.source);
    if !prompt::is_interactive() {
        return Err(
            Refusal::new(format!("not applying {count} to {source} unasked"))
                .hint("there is no terminal to ask at; give --yes to apply, --dry-run to look")
                .into(),
        );
    }
    Ok(prompt::confirm(&format!("Apply {count} to {source}?")))
}

fn apply(sandbox: &Sandbox, review: Review, plan: Plan, wishes: &Wishes) -> Result<(), Problem> {
    let count = counted(preview::effective(&plan), "change", "changes");
    let source = shown(&plan.source);
    let kept = (wishes.form == Form::Json).then(|| plan.clone());
    interruption::hold();
    let mut progress = Interruptible::default();
    let promoted = promote::apply_reviewed(sandbox, review, plan, wishes.backup, &mut progress)?;
    narration::say(format_args!("Promoted {count} to {source}."));
    if let Some(backup) = &promoted.backup {
        narration::say(format_args!(
            "What was replaced is also in {}.",
            shown(backup)
        ));
    }
    narration::say(format_args!(
        "Take it back with: sandbox promote {} --undo",
        sandbox.name()
    ));
    match &kept {
        Some(plan) => output::print_json(&Report {
            plan,
            applied: true,
            promoted: Some(promoted),
        }),
        None => Ok(()),
    }
}

/// Asks about one conflict; `None` gives up.
fn ask_resolution(
    view: &sandbox_workspace::View<'_>,
    conflict: &Conflict,
) -> Result<Option<Resolution>, Problem> {
    narration::say(format_args!(
        "{}",
        preview::conflict_line(conflict, Paint::stderr())
    ));
    let question =
        "    [o]urs (sandbox) / [t]heirs (source) / [m]erge / [s]kip / [d]iff / [q]uit? ";
    loop {
        return Ok(Some(
            match prompt::choose(
                question,
                &["ours", "theirs", "merge", "skip", "diff", "quit"],
            ) {
                Some('o') => Resolution::Ours,
                Some('t') => Resolution::Theirs,
                Some('m') => Resolution::Merge,
                Some('s') => Resolution::Skip,
                Some('d') => {
                    chooser::show_diff(view, &conflict.path)?;
                    continue;
                }
                _ => return Ok(None),
            },
        ));
    }
}

/// What steers git on the host needs a yes of its own.
fn ask_git_control(plan: &Plan) -> bool {
    const NAMED: usize = 20;
    let control: Vec<_> = plan
        .left_out
        .iter()
        .filter(|left| left.reason == LeftOutReason::GitControl)
        .map(|left| left.path.to_string())
        .collect();
    if control.is_empty() {
        return false;
    }
    let more = match control.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    narration::warn(format_args!(
        "these steer git on this machine, or make or break a repository: {}{more}",
        control[..control.len().min(NAMED)].join(", ")
    ));
    prompt::confirm("Apply them too?")
}
