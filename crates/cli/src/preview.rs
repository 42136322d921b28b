//! A promote's plan, in lines.

use sandbox_model::RelPath;
use sandbox_workspace::promote::{Action, Conflict, LeftOut, LeftOutReason, Plan, Privilege, Step};

use crate::command::create::shown;
use crate::narration::Paint;
use crate::summary::{counted, flag_words};

/// Does the step change the source?
pub(crate) fn changes_source(step: &Step) -> bool {
    !matches!(step.action, Action::AlreadyThere | Action::KeepSource)
}

/// How many steps change the source.
pub(crate) fn effective(plan: &Plan) -> usize {
    plan.steps
        .iter()
        .filter(|step| changes_source(step))
        .count()
}

/// The whole plan: what will be done, what is left out, what stands in the way.
pub(crate) fn lines(plan: &Plan, paint: Paint) -> Vec<String> {
    let count = counted(effective(plan), "change", "changes");
    let mut lines = vec![format!(
        "{count} from sandbox '{}' to {}:",
        plan.sandbox,
        shown(&plan.source)
    )];
    lines.extend(plan.steps.iter().map(|step| step_line(step, paint)));
    lines.extend(left_out_lines(&plan.left_out, paint));
    lines.extend(plan.refused.iter().map(|refused| {
        format!(
            "  {}  {}: {}",
            paint.bad("refused "),
            refused.path,
            refused.reason
        )
    }));
    lines.extend(
        plan.conflicts
            .iter()
            .map(|conflict| conflict_line(conflict, paint)),
    );
    lines
}

/// One step: its action, its path and what to look at twice.
pub(crate) fn step_line(step: &Step, paint: Paint) -> String {
    let action = match step.action {
        Action::Create => paint.good("create  "),
        Action::MakeDirectory => paint.good("mkdir   "),
        Action::Replace => "replace ".to_owned(),
        Action::Merge => "merge   ".to_owned(),
        Action::Delete => paint.bad("delete  "),
        Action::DeleteDirectory => paint.bad("rmdir   "),
        Action::Attributes => "chmod   ".to_owned(),
        Action::AlreadyThere => paint.faint("same    "),
        Action::KeepSource => paint.faint("theirs  "),
    };
    let mut notes: Vec<&str> = step.flags.iter().map(|flag| flag_words(*flag)).collect();
    notes.extend(step.stripped.iter().map(|privilege| match privilege {
        Privilege::SetUserId => "set-user-id bit removed",
        Privilege::SetGroupId => "set-group-id bit removed",
        Privilege::Capabilities => "file capabilities removed",
    }));
    if step.splits_hard_link {
        notes.push("its other hard links keep the old contents");
    }
    let notes = match notes.is_empty() {
        true => String::new(),
        false => paint.caution(&format!("  ! {}", notes.join(", "))),
    };
    format!("  {action}  {}{notes}", step.path)
}

/// How many paths of one repository are named.
const NAMED: usize = 8;

/// What is left out. Of a repository with many paths, the first, and how many more.
fn left_out_lines(left_out: &[LeftOut], paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = left_out;
    while let Some(first) = rest.first() {
        let repository = dot_git(first);
        let together = |left: &&LeftOut| repository.is_some() && dot_git(left) == repository;
        let (group, after) = rest.split_at(rest.iter().take_while(together).count().max(1));
        let named = group.len().min(NAMED);
        lines.extend(group[..named].iter().map(|left| left_out_line(left, paint)));
        if let (Some(repository), 1..) = (repository, group.len() - named) {
            lines.push(format!(
                "  {}  {repository}: {} more of its paths; --allow-git-control applies them",
                paint.caution("left out"),
                group.len() - named
            ));
        }
        rest = after;
    }
    lines
}

/// The `.git` that a path left out for git's sake is in.
fn dot_git(left: &LeftOut) -> Option<RelPath> {
    if left.reason != LeftOutReason::GitControl {
        return None;
    }
    let names: Vec<&[u8]> = left.path.components().collect();
    let at = names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(b".git"))?;
    RelPath::new(&names[..=at].join(&b'/')).ok()
}

fn left_out_line(left: &LeftOut, paint: Paint) -> String {
    let reason = match left.reason {
        LeftOutReason::GitControl => {
            "steers git on this machine, or makes or breaks a repository; --allow-git-control applies it"
        }
        LeftOutReason::Skipped => "skipped",
        LeftOutReason::Socket => "a socket means nothing without its process",
        LeftOutReason::NotEmpty => "something in it is left out",
    };
    format!("  {}  {}: {reason}", paint.caution("left out"), left.path)
}

/// One conflict, and whether a merge would settle it.
pub(crate) fn conflict_line(conflict: &Conflict, paint: Paint) -> String {
    let merge = if conflict.mergeable {
        " (merge would settle it)"
    } else {
        ""
    };
    let kind = conflict.kind.as_str();
    format!(
        "  {}  {}: {kind}{merge}",
        paint.bad("conflict"),
        conflict.path
    )
}
