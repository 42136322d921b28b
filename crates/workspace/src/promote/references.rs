//! Which references a plan would lose by promoting a part of what git did.
//!
//! Git moves references from files of their own into `packed-refs`, and from one table into another. Where
//! only the removal is promoted, they are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use sandbox_model::RelPath;

use super::plan::{Content, Step};
use crate::changes::git::{READ_LIMIT, read};
use crate::side::Side;
use crate::view::View;

/// The steps of a plan that would lose references, and those without which they would not be lost.
pub(super) fn lost(
    view: &View<'_>,
    steps: &BTreeMap<RelPath, Step>,
) -> io::Result<BTreeSet<RelPath>> {
    let mut references = References {
        view,
        steps,
        packed: BTreeMap::new(),
        lost: BTreeSet::new(),
    };
    let touching = |step: &&Step| step.action.touches_the_source();
    for step in steps.values().filter(touching) {
        if step.after.is_some() && step.path.name() == Some(b"tables.list") {
            references.check_list(step)?;
        }
    }
    for step in steps.values().filter(touching) {
        if step.after.is_none() {
            references.check_table(step)?;
            references.check_reference(step)?;
        }
    }
    Ok(references.lost)
}

struct References<'p> {
    view: &'p View<'p>,
    steps: &'p BTreeMap<RelPath, Step>,
    /// Of each `packed-refs`: the references that the sandbox's holds and the source's will not.
    packed: BTreeMap<RelPath, BTreeSet<Vec<u8>>>,
    lost: BTreeSet<RelPath>,
}

impl References<'_> {
    /// The list of tables goes together with each table that it names.
    fn check_list(&mut self, step: &Step) -> io::Result<()> {
        let Some(dir) = step.path.parent().filter(is_reftable) else {
            return Ok(());
        };
        for table in lines(&self.planned(&step.path)?) {
            let Ok(table) = RelPath::new(&table) else {
                continue;
            };
            let table = dir.join_path(&table);
            let arrives = match self.steps.get(&table) {
                Some(step) if step.action.touches_the_source() => step.after.is_some(),
                _ => self.view.source.stat(&table)?.is_some(),
            };
            if !arrives {
                self.lost.insert(step.path.clone());
            }
        }
        Ok(())
    }

    /// A table goes if no list names it any more.
    fn check_table(&mut self, step: &Step) -> io::Result<()> {
        let (Some(dir), Some(name)) = (step.path.parent(), step.path.name()) else {
            return Ok(());
        };
        let list = dir.join(b"tables.list");
        if is_reftable(&dir) && lines(&self.planned(&list)?).contains(name) {
            self.lost.insert(step.path.clone());
        }
        Ok(())
    }

    /// A reference that the sandbox has packed goes if the source has it packed, too.
    fn check_reference(&mut self, step: &Step) -> io::Result<()> {
        let names: Vec<&[u8]> = step.path.components().collect();
        for at in 0..names.len().saturating_sub(1) {
            if names[at] != b"refs" {
                continue;
            }
            let dir = names[..at]
                .iter()
                .fold(RelPath::root(), |dir, name| dir.join(name));
            let unpacked = self.unpacked(&dir.join(b"packed-refs"))?;
            if unpacked.contains(&names[at..].join(&b'/')) {
                self.lost.insert(step.path.clone());
            }
        }
        Ok(())
    }

    fn unpacked(&mut self, at: &RelPath) -> io::Result<&BTreeSet<Vec<u8>>> {
        if !self.packed.contains_key(at) {
            let ours = read(self.view.workspace(), at, READ_LIMIT)?.unwrap_or_default();
            let planned = references(&self.planned(at)?);
            let mut unpacked = references(&ours);
            unpacked.retain(|name| !planned.contains(name));
            self.packed.insert(at.clone(), unpacked);
        }
        Ok(&self.packed[at])
    }

    /// What the source will have at `at`.
    fn planned(&self, at: &RelPath) -> io::Result<Vec<u8>> {
        let side: &dyn Side = match self.steps.get(at) {
            Some(step) if step.action.touches_the_source() && !self.lost.contains(at) => {
                match (&step.frozen.content, step.after) {
                    (_, None) => return Ok(Vec::new()),
                    (Content::Bytes(bytes), _) => return Ok(bytes.clone()),
                    (Content::Workspace, _) => self.view.workspace(),
                }
            }
            _ => &self.view.source,
        };
        Ok(read(side, at, READ_LIMIT)?.unwrap_or_default())
    }
}

fn is_reftable(dir: &RelPath) -> bool {
    dir.name() == Some(b"reftable")
}

fn lines(text: &[u8]) -> BTreeSet<Vec<u8>> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(<[u8]>::to_vec).collect()
}

/// The names in a `packed-refs`.
fn references(text: &[u8]) -> BTreeSet<Vec<u8>> {
    let lines = text.split(|byte| *byte == b'\n');
    let names = lines.filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        Some(line[at + 1..].trim_ascii())
    });
    let names = names.filter(|name| name.starts_with(b"refs/"));
    names.map(<[u8]>::to_vec).collect()
}
