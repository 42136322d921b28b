//! Finding what a sync would do.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use sandbox_model::{BackendKind, Change, Fingerprint, RelPath};

use super::{SyncAction, SyncError, SyncPlan, SyncStep, is_directory};
use crate::backend::copy::Manifest;
use crate::base::unchanged;
use crate::changes::{ChangeOptions, Renames, change_set};
use crate::layer::{Descent, Hidden, vanished};
use crate::progress::{Phase, Progress};
use crate::promote::examine::{Examiner, Verdict};
use crate::promote::{Conflict, ConflictKind, PromoteError};
use crate::side::Side;
use crate::view::View;

/// What a sync would do, at or below `paths` (everywhere, if there are none). Touches nothing.
pub fn plan(
    view: &View<'_>,
    paths: &[RelPath],
    progress: &mut dyn Progress,
) -> Result<SyncPlan, SyncError> {
    let options = ChangeOptions {
        renames: Renames::Split,
        ..ChangeOptions::default()
    };
    let changes = change_set(view, &options, progress)
        .map_err(PromoteError::from)?
        .changes;
    let changes: BTreeMap<_, _> = changes
        .into_iter()
        .map(|change| (change.path.clone(), change))
        .collect();
    let cannot_read = |path: &RelPath, source| PromoteError::Io {
        operation: "compare",
        path: path.under(view.source.path()),
        source,
    };
    let root = RelPath::root();
    let mut planner = Planner {
        view,
        examiner: Examiner::new(view).map_err(|error| cannot_read(&root, error))?,
        changes: &changes,
        plan: SyncPlan {
            steps: Vec::new(),
            conflicts: Vec::new(),
        },
    };
    let wanted = |path: &RelPath| paths.is_empty() || paths.iter().any(|at| path.starts_with(at));
    progress.begin(Phase::Comparing, u64::try_from(changes.len()).ok());
    for change in changes.values().filter(|change| wanted(&change.path)) {
        planner
            .reconcile(change)
            .map_err(|error| cannot_read(&change.path, error))?;
        progress.advance(1);
    }
    planner
        .bring_up_to_date(&wanted)
        .map_err(|error| cannot_read(&root, error))?;
    progress.finish();
    let mut plan = planner.plan;
    plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(plan)
}

struct Planner<'p> {
    view: &'p View<'p>,
    examiner: Examiner<'p>,
    changes: &'p BTreeMap<RelPath, Change>,
    plan: SyncPlan,
}

impl Planner<'_> {
    /// A path the sandbox changed.
    fn reconcile(&mut self, change: &Change) -> io::Result<()> {
        let path = &change.path;
        let ours = self.view.workspace().stat(path)?;
        let theirs = self.view.source.stat(path)?;
        let verdict = self
            .examiner
            .verdict(change, ours.as_ref(), theirs.as_ref())?;
        let mut step = SyncStep {
            path: path.clone(),
            action: SyncAction::Same,
            sides: [ours, theirs],
            merged: None,
        };
        match verdict {
            Verdict::Clean => {}
            Verdict::Same => self.plan.steps.push(step),
            Verdict::Conflict(kind) => {
                let merged = match kind {
                    // What the sandbox started from is not known, or is elsewhere by now.
                    ConflictKind::Uncertain | ConflictKind::DirectoryMoved => None,
                    _ => self.examiner.merged(path, ours.as_ref(), theirs.as_ref())?,
                };
                if merged.is_some() {
                    step.action = SyncAction::Merge;
                    step.merged = merged;
                    self.plan.steps.push(step);
                } else {
                    self.plan.conflicts.push(Conflict {
                        path: path.clone(),
                        kind,
                        ours: ours.map(|found| found.entry),
                        theirs: theirs.map(|found| found.entry),
                        mergeable: false,
                    });
                }
            }
        }
        Ok(())
    }

    /// Paths the sandbox did not change, where it does not show the source itself.
    fn bring_up_to_date(&mut self, wanted: &dyn Fn(&RelPath) -> bool) -> io::Result<()> {
        let sandbox = self.view.sandbox;
        let manifest = match sandbox.meta.backend {
            BackendKind::Overlay => return Ok(()),
            BackendKind::Btrfs => None,
            BackendKind::Copy => Some(Manifest::load(&sandbox.dir)?),
        };
        let before = |path: &RelPath| match &manifest {
            Some(manifest) => manifest.get(path).map(|entry| entry.source),
            None => self.view.base.get(path).and_then(|base| base.entry),
        };
        let hidden = Hidden::of(sandbox);
        let mut steps = Vec::new();
        let mut open = vec![RelPath::root()];
        while let Some(dir) = open.pop() {
            for path in self.names(&dir)?.into_iter().map(|name| dir.join(&name)) {
                if hidden.hides(&path) {
                    continue;
                }
                let (then, now) = (before(&path), self.view.source.stat(&path)?);
                if self.changes.contains_key(&path) {
                    if is_directory(&now) && is_directory(&self.view.workspace().stat(&path)?) {
                        open.push(path);
                    }
                    continue;
                }
                let (action, descent) = self.update(&path, &then, &now);
                if let Some(action) = action.filter(|_| wanted(&path)) {
                    steps.push(SyncStep {
                        sides: [self.view.workspace().stat(&path)?, now],
                        path: path.clone(),
                        action,
                        merged: None,
                    });
                }
                if descent == Descent::Into {
                    open.push(path);
                }
            }
        }
        self.plan.steps.extend(steps);
        Ok(())
    }

    /// What the sandbox takes of a path it did not change, and whether to look below it.
    fn update(
        &self,
        path: &RelPath,
        then: &Option<Fingerprint>,
        now: &Option<Fingerprint>,
    ) -> (Option<SyncAction>, Descent) {
        let unchanged = match (then, now) {
            (None, None) => true,
            (Some(then), Some(now)) => unchanged(then, now),
            _ => false,
        };
        let take = |action| (Some(action), Descent::Over);
        match (then, now) {
            // Another directory under the same name counts, too: it is what edits are compared with.
            _ if is_directory(then) && is_directory(now) => {
                let action = (!unchanged).then_some(SyncAction::Update);
                (action, Descent::Into)
            }
            _ if unchanged => (None, Descent::Over),
            // What the sandbox changed below stays, and is a conflict by itself.
            _ if is_directory(then) && self.changed_below(path) => (None, Descent::Into),
            (None, _) => take(SyncAction::Create),
            (_, None) => take(SyncAction::Delete),
            _ => take(SyncAction::Update),
        }
    }

    fn changed_below(&self, path: &RelPath) -> bool {
        self.changes
            .range::<RelPath, _>(path..)
            .take_while(|(at, _)| at.as_bytes().starts_with(path.as_bytes()))
            .any(|(at, _)| at.starts_with(path))
    }

    /// What either side has in a directory.
    fn names(&self, dir: &RelPath) -> io::Result<BTreeSet<Vec<u8>>> {
        let mut names = BTreeSet::new();
        for side in [&self.view.source as &dyn Side, self.view.workspace()] {
            match side.list(dir) {
                Err(error) if vanished(&error) || error.kind() == io::ErrorKind::NotFound => {}
                listed => names.extend(listed?),
            }
        }
        Ok(names)
    }
}
