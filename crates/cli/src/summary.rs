//! What changed, in words: the flags that deserve a second look, and refused connections.

use sandbox_isolation::network::Refused;
use sandbox_model::{ChangeSet, Flag};

use crate::narration::{self, Paint};

/// `1 change`, `5 changes`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Why a path deserves a second look.
pub(crate) const fn flag_words(flag: Flag) -> &'static str {
    match flag {
        Flag::GitControl => "steers git, or makes or breaks a repository",
        Flag::RunsOnHost => "runs on this machine",
        Flag::Executable => "new executable",
        Flag::Privilege => "set-id bits and capabilities are removed",
        Flag::Unpromotable => "cannot be promoted",
        Flag::OutwardSymlink => "points out of the source",
    }
}

/// Says which changes deserve a second look.
pub(crate) fn say_flags(changes: &ChangeSet) {
    const SHOWN: usize = 20;
    let paint = Paint::stderr();
    let flagged: Vec<_> = changes
        .changes
        .iter()
        .filter(|change| !change.flags.is_empty())
        .collect();
    for change in flagged.iter().take(SHOWN) {
        let words: Vec<_> = change.flags.iter().map(|flag| flag_words(*flag)).collect();
        narration::say(format_args!(
            "{} {}: {}",
            paint.caution("look twice:"),
            change.path,
            words.join(", ")
        ));
    }
    if flagged.len() > SHOWN {
        narration::say(format_args!(
            "… and {} more to look at twice",
            flagged.len() - SHOWN
        ));
    }
}

/// Says which connections were refused.
pub(crate) fn say_refused(refused: &[Refused]) {
    let paint = Paint::stderr();
    for connection in refused {
        let times = match connection.count {
            1 => String::new(),
            count => format!(" ({count} times)"),
        };
        narration::say(format_args!(
            "{} {}: {}{times}",
            paint.caution("refused:"),
            crate::report::plain(&connection.target),
            crate::report::plain(&connection.reason)
        ));
    }
}
