//! How long pre-images are kept.
//!
//! A promote, its undos and theirs are one family: they go together. An undo may need the stage of
//! what it took back, and what it took back must not look as if it still stood.

use std::collections::BTreeMap;
use std::io;

use super::area::Area;
use super::error::PromoteError;
use super::journal::{Committed, Journal, Kind, Place};
use crate::undo::{KEEP_COUNT, KEEP_DAYS};

/// Deletes what is kept too long, and the rubbish of interrupted deletions.
pub(crate) fn prune(area: &Area) -> Result<(), PromoteError> {
    prune_area(area).map_err(|source| PromoteError::Io {
        operation: "clean up",
        path: area.path.clone(),
        source,
    })
}

fn prune_area(area: &Area) -> io::Result<()> {
    for id in expired(area)? {
        area.delete(&id)?;
    }
    Ok(())
}

/// The transactions that are kept too long, and rubbish, in the order in which they can be deleted.
pub(crate) fn expired(area: &Area) -> io::Result<Vec<String>> {
    let horizon = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * KEEP_DAYS);
    let unfinished = area.unfinished()?;
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut heads: BTreeMap<String, String> = BTreeMap::new();
    let mut expired = Vec::new();
    for id in area
        .ids()?
        .into_iter()
        .filter(|id| !unfinished.iter().any(|pending| pending.id == *id))
    {
        let dir = area.transaction(&id)?;
        let (Ok(Some(journal)), Ok(Some(_))) = (Journal::read(&dir), Committed::read(&dir)) else {
            expired.push(id);
            continue;
        };
        let head = match journal.kind {
            // What it undid is older, so its family is known, unless it is gone.
            Kind::Undo(of) => heads.get(&of).cloned().unwrap_or_else(|| id.clone()),
            Kind::Promote => id.clone(),
        };
        heads.insert(id.clone(), head.clone());
        let family = families.entry(head).or_default();
        family.members.push(id);
        family.latest = family.latest.max(Some(journal.at));
    }
    for name in area.kept()? {
        let found = area.dir.stat(name.as_bytes())?;
        if found.is_some_and(|found| found.ctime.0 < horizon.as_second()) {
            expired.push(name);
        }
    }
    // An undo that is not over finds in this stage what it has to put back.
    let is_needed = |id: &String| {
        let mut stages = unfinished.iter().map(|pending| &pending.stage);
        stages.any(|stage| *stage == Place::Shared(id.clone()))
    };
    let surplus = families.len().saturating_sub(KEEP_COUNT);
    for (index, family) in families.into_values().enumerate() {
        let is_old = family.latest.is_some_and(|latest| latest < horizon);
        if (index < surplus || is_old) && !family.members.iter().any(is_needed) {
            expired.extend(family.members.into_iter().rev());
        }
    }
    Ok(expired)
}

#[derive(Default)]
struct Family {
    members: Vec<String>,
    latest: Option<jiff::Timestamp>,
}
