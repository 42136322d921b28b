//! Repairing what interrupted promotes left, before anything else is done, and saying so.
//!
//! With nothing to repair, a source costs one failed `open`, and a root one look into each source's
//! directory of pre-images. A repair that fails is told and passed over here: a command that only looks
//! must not be kept from it, and one that changes the source tries again and stops.

use std::path::Path;

use sandbox_workspace::Root;
use sandbox_workspace::promote::{self, PromoteError, Recovered, RecoveredSource, Recovery};

use crate::command::create::shown;
use crate::narration;

/// Repairs one source.
pub(crate) fn source(root: &Root, source: &Path) {
    match promote::recover(root, source) {
        Ok(None) => {}
        Ok(Some(recovered)) => say(source, &recovered),
        Err(error) => warn(source, &error),
    }
}

/// Repairs one source, also one that came back after another directory had stood in its place.
pub(crate) fn source_thoroughly(root: &Root, source: &Path) {
    match promote::recover_thoroughly(root, source) {
        Ok(None) => {}
        Ok(Some(recovered)) => say(source, &recovered),
        Err(error) => warn(source, &error),
    }
}

/// Repairs every source of the root.
pub(crate) fn root(root: &Root) {
    match promote::recover_all(root) {
        Ok(all) => {
            for RecoveredSource { source, result } in all {
                match result {
                    Ok(recovered) => say(&source, &recovered),
                    Err(error) => warn(&source, &error),
                }
            }
        }
        Err(error) => narration::warn(format_args!(
            "cannot look for interrupted promotes: {error}"
        )),
    }
}

fn warn(source: &Path, error: &PromoteError) {
    narration::warn(format_args!(
        "an interrupted promote to {} cannot be repaired: {}",
        shown(source),
        crate::report::plain(&error.to_string())
    ));
}

fn say(source: &Path, recovered: &Recovered) {
    let source = shown(source);
    let kept = recovered.kept.as_deref().map(shown).unwrap_or_default();
    match recovered.outcome {
        Recovery::RolledBack => narration::say(format_args!(
            "An interrupted promote to {source} was taken back."
        )),
        Recovery::Finished => narration::say(format_args!(
            "An interrupted promote to {source} was finished."
        )),
        Recovery::SetAside => narration::warn(format_args!(
            "an interrupted promote to {source} was set aside: another directory stands there now. \
             What it replaced is in {kept} until `sandbox gc`; if the first directory comes back, \
             `sandbox list` repairs it"
        )),
        Recovery::SourceMissing => narration::warn(format_args!(
            "an interrupted promote to {source} waits: that directory is missing. It is repaired when \
             the directory is back; `sandbox gc` gives it up"
        )),
    }
    for path in &recovered.left {
        narration::warn(format_args!(
            "{path} was edited meanwhile and left as it is"
        ));
    }
    if !recovered.left.is_empty() && recovered.kept.is_some() {
        narration::say(format_args!("What stood there before is in {kept}."));
    }
}
