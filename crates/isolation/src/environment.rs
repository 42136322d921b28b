//! Which of the caller's variables reach the sandbox.

use std::ffi::OsString;

use sandbox_model::Settings;

/// The environment inside: `caller`'s, less secrets and sockets, plus what `settings` and `ours`
/// (`SANDBOX_NAME` and its like) set. Pure.
pub fn inside(
    caller: impl IntoIterator<Item = (OsString, OsString)>,
    settings: &Settings,
    ours: &[(&str, OsString)],
) -> Vec<(OsString, OsString)> {
    todo!("{settings:?} {ours:?} {}", caller.into_iter().count())
}
