//! Making a plan of a change set.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use sandbox_model::{Change, Entry, EntryKind, Fingerprint, Flag, RelPath};

use super::conflict::{Conflict, ConflictKind, Resolution, Resolutions};
use super::error::PromoteError;
use super::examine::{Descent, Examiner, Verdict};
use super::plan::{
    Action, Afterwards, Content, Frozen, GitControl, LeftOut, LeftOutReason, Plan, Privilege,
    Refusal, Selection, Step,
};
use super::references;
use super::refusal::refusal;
use crate::changes::{ChangeOptions, Renames, Search, change_set};
use crate::progress::{Phase, Progress};
use crate::view::View;

/// Makes the plan. Touches nothing. Conflicts and refusals are in the plan, not errors.
pub fn plan(
    view: &View<'_>,
    selection: &Selection,
    resolutions: &Resolutions,
    progress: &mut dyn Progress,
) -> Result<Plan, PromoteError> {
    let options = ChangeOptions {
        renames: Renames::Split,
        search: Search::Whole,
        ..ChangeOptions::default()
    };
    let changes = change_set(view, &options, progress)?.changes;
    let changes: BTreeMap<_, _> = changes
        .into_iter()
        .map(|change| (change.path.clone(), change))
        .collect();
    let cannot_read = |source| PromoteError::Io {
        operation: "read",
        path: view.source.path().to_owned(),
        source,
    };
    let mut planner = Planner {
        view,
        selection,
        resolutions,
        changes: &changes,
        examiner: Examiner::new(view).map_err(cannot_read)?,
        steps: BTreeMap::new(),
        conflicts: BTreeMap::new(),
        refused: BTreeMap::new(),
        left_out: BTreeMap::new(),
    };
    progress.begin(Phase::Comparing, u64::try_from(changes.len()).ok());
    for change in changes.values() {
        if selection.holds(&change.path) {
            planner.consider(change)?;
        }
        progress.advance(1);
    }
    planner.bring_parents()?;
    planner.keep_references().map_err(cannot_read)?;
    planner.keep_directories_in_use();
    planner.hand_over_directories();
    progress.finish();
    Ok(planner.finish())
}

impl Selection {
    fn holds(&self, path: &RelPath) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|wanted| path.starts_with(wanted))
    }
}

struct Planner<'p> {
    view: &'p View<'p>,
    selection: &'p Selection,
    resolutions: &'p Resolutions,
    changes: &'p BTreeMap<RelPath, Change>,
    examiner: Examiner<'p>,
    steps: BTreeMap<RelPath, Step>,
    conflicts: BTreeMap<RelPath, Conflict>,
    refused: BTreeMap<RelPath, String>,
    left_out: BTreeMap<RelPath, LeftOutReason>,
}

/// Both sides of a path.
#[derive(Clone, Copy)]
struct Sides {
    ours: Option<Fingerprint>,
    theirs: Option<Fingerprint>,
}

impl Planner<'_> {
    fn consider(&mut self, change: &Change) -> Result<(), PromoteError> {
        let cannot_read = |source| PromoteError::Io {
            operation: "compare",
            path: change.path.under(self.view.source.path()),
            source,
        };
        let sides = Sides {
            ours: self
                .view
                .workspace()
                .stat(&change.path)
                .map_err(cannot_read)?,
            theirs: self.examiner.theirs(&change.path).map_err(cannot_read)?,
        };
        if let Some(reason) = self.leave_out(change, &sides) {
            self.left_out.insert(change.path.clone(), reason);
            return Ok(());
        }
        self.decide(change, sides).map_err(cannot_read)
    }

    fn leave_out(&self, change: &Change, sides: &Sides) -> Option<LeftOutReason> {
        let kind = sides.ours.map(|ours| ours.entry.kind);
        if self.resolutions.named(&change.path) == Some(Resolution::Skip) {
            Some(LeftOutReason::Skipped)
        } else if change.flags.contains(&Flag::GitControl)
            && self.selection.git_control == GitControl::LeaveOut
        {
            Some(LeftOutReason::GitControl)
        } else if kind == Some(EntryKind::Socket) {
            Some(LeftOutReason::Socket)
        } else {
            None
        }
    }

    fn decide(&mut self, change: &Change, sides: Sides) -> io::Result<()> {
        let path = &change.path;
        if self.stands_below_kept(path) {
            self.steps
                .insert(path.clone(), self.keep_source(change, sides));
            return Ok(());
        }
        let verdict = self
            .examiner
            .verdict(change, sides.ours.as_ref(), sides.theirs.as_ref())?;
        let step = match verdict {
            Verdict::Clean => self.step(change, sides, Verdict::Clean)?,
            Verdict::Same => self.already_there(change, sides),
            Verdict::Conflict(kind) => match self.settle(change, sides, kind)? {
                Some(step) => step,
                None => return Ok(()),
            },
        };
        if let Some(reason) = refusal(self.view, &mut self.examiner, &step)? {
            self.refused.insert(path.clone(), reason);
            return Ok(());
        }
        self.steps.insert(path.clone(), step);
        Ok(())
    }

    /// Was it decided that something above `path` stays as the source has it?
    fn stands_below_kept(&self, path: &RelPath) -> bool {
        let mut above = path.parent();
        while let Some(at) = above {
            if let Some(step) = self.steps.get(&at) {
                let gone = step
                    .before
                    .is_none_or(|entry| entry.kind != EntryKind::Directory);
                return step.action == Action::KeepSource && gone;
            }
            above = at.parent();
        }
        false
    }

    /// Applies the resolution of a conflict; without one it is listed.
    fn settle(
        &mut self,
        change: &Change,
        sides: Sides,
        kind: ConflictKind,
    ) -> io::Result<Option<Step>> {
        let path = &change.path;
        let (ours, theirs) = (sides.ours.as_ref(), sides.theirs.as_ref());
        let mut conflict = Conflict {
            path: path.clone(),
            kind,
            ours: sides.ours.map(|ours| ours.entry),
            theirs: sides.theirs.map(|theirs| theirs.entry),
            mergeable: false,
        };
        match self.resolutions.conflict(path) {
            Some(Resolution::Ours) => {
                return self.step(change, sides, Verdict::Conflict(kind)).map(Some);
            }
            Some(Resolution::Theirs) => return Ok(Some(self.keep_source(change, sides))),
            Some(Resolution::Skip) => {
                self.left_out.insert(path.clone(), LeftOutReason::Skipped);
                return Ok(None);
            }
            Some(Resolution::Merge) => match self.examiner.merged(path, ours, theirs)? {
                Some((bytes, mode)) => return Ok(Some(self.merge(change, sides, bytes, mode))),
                None => conflict.kind = ConflictKind::CannotMerge,
            },
            None => conflict.mergeable = self.examiner.merged(path, ours, theirs)?.is_some(),
        }
        self.conflicts.insert(path.clone(), conflict);
        Ok(None)
    }

    fn blank(&self, change: &Change, sides: Sides, action: Action) -> Step {
        Step {
            path: change.path.clone(),
            action,
            before: sides.theirs.map(|theirs| theirs.entry),
            after: sides.ours.map(|ours| ours.entry),
            flags: change.flags.clone(),
            stripped: Vec::new(),
            splits_hard_link: false,
            frozen: Frozen {
                ours: sides.ours,
                theirs: sides.theirs,
                below: Vec::new(),
                content: Content::Workspace,
                afterwards: Afterwards::Absorb,
            },
        }
    }

    fn keep_source(&self, change: &Change, sides: Sides) -> Step {
        let mut step = self.blank(change, sides, Action::KeepSource);
        let both_directories = is_directory(step.before) && is_directory(step.after);
        step.after = step.before;
        step.frozen.afterwards = match both_directories {
            true => Afterwards::TakeAttributes,
            false => Afterwards::TakeSource,
        };
        step
    }

    fn already_there(&self, change: &Change, sides: Sides) -> Step {
        self.blank(change, sides, Action::AlreadyThere)
    }

    fn merge(&self, change: &Change, sides: Sides, bytes: Vec<u8>, mode: u32) -> Step {
        let mut step = self.blank(change, sides, Action::Merge);
        if let Some(after) = &mut step.after {
            after.mode = mode;
            after.size = bytes.len() as u64;
        }
        step.splits_hard_link = splits(&step);
        step.frozen.content = Content::Bytes(bytes);
        step.frozen.afterwards = Afterwards::TakeSource;
        step
    }

    /// The step that brings what the sandbox has.
    fn step(&mut self, change: &Change, sides: Sides, verdict: Verdict) -> io::Result<Step> {
        let path = &change.path;
        let mut step = self.blank(change, sides, Action::Create);
        step.action = action(change, &sides, verdict);
        if let Some(after) = &mut step.after {
            strip_set_id(after, &mut step.stripped);
            if after.kind == EntryKind::File
                && change.flags.contains(&Flag::Privilege)
                && self
                    .view
                    .workspace()
                    .xattrs(path)?
                    .contains_key(&b"security.capability"[..])
            {
                step.stripped.push(Privilege::Capabilities);
            }
        }
        if !step.stripped.is_empty() {
            step.frozen.afterwards = Afterwards::TakeSource;
        }
        if let Some(bytes) = self.selection.contents.get(path)
            && let Some(after) = &mut step.after
        {
            after.size = bytes.len() as u64;
            step.frozen.content = Content::Bytes(bytes.clone());
            step.frozen.afterwards = Afterwards::Keep;
        }
        step.splits_hard_link = splits(&step);
        if is_directory(step.before) && step.action != Action::Attributes {
            self.take_along(&mut step)?;
        }
        Ok(step)
    }

    /// A directory of the source goes with everything in it; what the sandbox has not seen there is
    /// a conflict.
    fn take_along(&mut self, step: &mut Step) -> io::Result<()> {
        let below = match self.examiner.below(&step.path)? {
            Descent::Below(below) => below,
            Descent::Mounted(at) => {
                self.refused
                    .insert(at, "another filesystem is mounted there".into());
                return Ok(());
            }
        };
        for entry in &below {
            let path = step.path.join_path(&entry.path);
            if !self.changes.contains_key(&path) {
                self.check_unlisted(&path, &entry.fingerprint)?;
            }
        }
        step.frozen.below = below;
        Ok(())
    }

    /// Something below a removed directory that no change speaks of.
    fn check_unlisted(&mut self, path: &RelPath, theirs: &Fingerprint) -> io::Result<()> {
        let before = self.view.base.get(path).map(|base| base.entry);
        let change = Change {
            path: path.clone(),
            kind: sandbox_model::ChangeKind::Deleted,
            before: match before {
                Some(entry) => entry.map(|entry| entry.entry),
                None => Some(theirs.entry),
            },
            after: None,
            xattrs_changed: false,
            flags: Vec::new(),
        };
        let kind = match self.examiner.verdict(&change, None, Some(theirs))? {
            Verdict::Conflict(ConflictKind::BothCreated | ConflictKind::Uncertain) => {
                ConflictKind::NewBelow
            }
            Verdict::Conflict(kind) => kind,
            Verdict::Clean | Verdict::Same => return Ok(()),
        };
        match self.resolutions.conflict(path) {
            Some(Resolution::Ours) => {}
            Some(Resolution::Theirs | Resolution::Skip) => {
                self.left_out.insert(path.clone(), LeftOutReason::Skipped);
            }
            Some(Resolution::Merge) | None => {
                let theirs = Some(theirs.entry);
                self.conflicts.insert(
                    path.clone(),
                    Conflict {
                        path: path.clone(),
                        kind,
                        ours: None,
                        theirs,
                        mergeable: false,
                    },
                );
            }
        }
        Ok(())
    }

    /// What is promoted into a directory that the source does not have brings the directory.
    fn bring_parents(&mut self) -> Result<(), PromoteError> {
        let arriving: Vec<_> = self
            .steps
            .values()
            .filter(|step| step.frozen.ours.is_some() && step.action != Action::KeepSource)
            .map(|step| step.path.clone())
            .collect();
        let mut missing = BTreeSet::new();
        for path in arriving {
            let mut above = path.parent();
            while let Some(at) = above {
                if let Some(change) = self.changes.get(&at)
                    && is_directory(change.after)
                    && !is_directory(change.before)
                    && !self.steps.contains_key(&at)
                    && !self.conflicts.contains_key(&at)
                    && !self.refused.contains_key(&at)
                {
                    missing.insert(at.clone());
                }
                above = at.parent();
            }
        }
        for path in missing {
            self.left_out.remove(&path);
            let change = &self.changes[&path];
            let cannot_read = |source| PromoteError::Io {
                operation: "compare",
                path: path.under(self.view.source.path()),
                source,
            };
            let sides = Sides {
                ours: self.view.workspace().stat(&path).map_err(cannot_read)?,
                theirs: self.examiner.theirs(&path).map_err(cannot_read)?,
            };
            self.decide(change, sides).map_err(cannot_read)?;
        }
        Ok(())
    }

    /// References that the sandbox holds elsewhere stay, if that is not promoted with them.
    fn keep_references(&mut self) -> io::Result<()> {
        if self.selection.git_control == GitControl::Apply {
            return Ok(());
        }
        for path in references::lost(self.view, &self.steps)? {
            self.steps.remove(&path);
            self.left_out.insert(path, LeftOutReason::GitControl);
        }
        Ok(())
    }

    /// A directory that something left out still stands in is not removed.
    fn keep_directories_in_use(&mut self) {
        let kept: Vec<_> = self
            .steps
            .values()
            .filter(|step| step.action == Action::KeepSource && step.before.is_some())
            .map(|step| step.path.clone())
            .chain(self.left_out.keys().cloned())
            .collect();
        for path in kept {
            let mut above = path.parent();
            while let Some(at) = above {
                if self
                    .steps
                    .get(&at)
                    .is_some_and(|step| is_directory(step.before) && !is_directory(step.after))
                {
                    self.steps.remove(&at);
                    self.left_out.insert(at.clone(), LeftOutReason::NotEmpty);
                }
                above = at.parent();
            }
        }
    }

    /// A new directory that is promoted with all that is in it is the source's from then on.
    fn hand_over_directories(&mut self) {
        let kept: BTreeSet<_> = self
            .changes
            .keys()
            .filter(|path| {
                self.steps
                    .get(*path)
                    .is_none_or(|step| step.frozen.afterwards == Afterwards::Keep)
            })
            .cloned()
            .collect();
        for step in self.steps.values_mut() {
            let whole = !kept
                .range::<RelPath, _>(&step.path..)
                .take_while(|path| path.as_bytes().starts_with(step.path.as_bytes()))
                .any(|path| path.starts_with(&step.path));
            if is_directory(step.after) && step.moves_a_directory() && whole {
                step.frozen.afterwards = Afterwards::TakeSource;
            }
        }
    }

    fn finish(self) -> Plan {
        let movers: BTreeSet<_> = self
            .steps
            .values()
            .filter(|step| step.moves_a_directory())
            .map(|step| step.path.clone())
            .collect();
        let mut parents = BTreeMap::new();
        for step in self
            .steps
            .values()
            .filter(|step| !is_below(&step.path, &movers))
        {
            let mut above = step.path.parent().or_else(|| Some(RelPath::root()));
            while let Some(at) = above {
                if let Some(found) = self.examiner.directories.get(&at) {
                    parents.insert(at.clone(), *found);
                }
                above = at.parent();
            }
        }
        Plan {
            git_control: self.selection.git_control,
            sandbox: self.view.sandbox.name().clone(),
            source: self.view.source.path().to_owned(),
            steps: self.steps.into_values().collect(),
            conflicts: self.conflicts.into_values().collect(),
            refused: self
                .refused
                .into_iter()
                .map(|(path, reason)| Refusal { path, reason })
                .collect(),
            left_out: self
                .left_out
                .into_iter()
                .map(|(path, reason)| LeftOut { path, reason })
                .collect(),
            parents,
        }
    }
}

fn action(change: &Change, sides: &Sides, verdict: Verdict) -> Action {
    use sandbox_model::ChangeKind;
    let kind = |side: Option<Fingerprint>| side.map(|side| side.entry.kind);
    match (kind(sides.theirs), kind(sides.ours)) {
        (_, None) if kind(sides.theirs) == Some(EntryKind::Directory) => Action::DeleteDirectory,
        (_, None) => Action::Delete,
        (None, Some(EntryKind::Directory)) => Action::MakeDirectory,
        (None, Some(_)) => Action::Create,
        (Some(EntryKind::Directory), Some(EntryKind::Directory)) => Action::Attributes,
        (Some(EntryKind::File), Some(EntryKind::File))
            if verdict == Verdict::Clean
                && matches!(change.kind, ChangeKind::Mode)
                && sides.theirs.is_some_and(|theirs| theirs.nlink == 1) =>
        {
            Action::Attributes
        }
        (Some(_), Some(_)) => Action::Replace,
    }
}

fn strip_set_id(after: &mut Entry, stripped: &mut Vec<Privilege>) {
    if after.kind != EntryKind::File {
        return;
    }
    for (bit, privilege) in [
        (0o4000, Privilege::SetUserId),
        (0o2000, Privilege::SetGroupId),
    ] {
        if after.mode & bit != 0 {
            stripped.push(privilege);
        }
    }
    after.mode &= !0o6000;
}

fn splits(step: &Step) -> bool {
    step.after.is_some()
        && matches!(step.action, Action::Replace | Action::Merge)
        && step
            .frozen
            .theirs
            .is_some_and(|theirs| theirs.entry.kind != EntryKind::Directory && theirs.nlink > 1)
}

fn is_directory(entry: Option<Entry>) -> bool {
    entry.is_some_and(|entry| entry.kind == EntryKind::Directory)
}

fn is_below(path: &RelPath, movers: &BTreeSet<RelPath>) -> bool {
    std::iter::successors(path.parent(), RelPath::parent).any(|above| movers.contains(&above))
}
