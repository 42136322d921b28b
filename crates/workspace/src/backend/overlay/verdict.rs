//! Remembering that an overlay works.
//!
//! A trial costs a process and a mount. Its success holds for as long as the machine runs the same
//! kernel, for root or for ordinary users, and for the same two filesystems, so it is kept in the root's `.probe`.

use std::io;
use std::path::Path;

use rustix::process::geteuid;

use crate::meta::replace_file;
use crate::tree::Dir;

const FILE: &str = ".probe";
/// Successes kept; the oldest goes first.
const KEPT: usize = 32;

/// The outcome of `attempt`, from memory where it succeeded before.
pub(super) fn remembered(
    source: &Path,
    state: &Path,
    attempt: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let Ok(key) = key(source, state) else {
        return attempt();
    };
    let known = std::fs::read_to_string(state.join(FILE)).unwrap_or_default();
    if known.lines().any(|line| line == key) {
        return Ok(());
    }
    attempt()?;
    let recent = known.lines().rev().take(KEPT - 1).collect::<Vec<_>>();
    let mut text: String = recent
        .into_iter()
        .rev()
        .map(|line| format!("{line}\n"))
        .collect();
    text.push_str(&key);
    text.push('\n');
    // Only a memory: failing to keep it costs the next one a trial.
    let _ = Dir::open(state).and_then(|dir| replace_file(&dir, FILE, text.as_bytes()));
    Ok(())
}

fn key(source: &Path, state: &Path) -> io::Result<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let release = rustix::system::uname();
    let device = |path: &Path| rustix::fs::stat(path).map(|found| found.st_dev);
    Ok(format!(
        "overlay {:x} {:x} {} {} {}",
        device(source)?,
        device(state)?,
        if geteuid().is_root() { "root" } else { "user" },
        release.release().to_string_lossy(),
        boot.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_is_remembered_and_a_failure_is_not() {
        let state = tempfile::tempdir().unwrap();
        let ask = |answer: Result<(), String>| {
            let mut asked = false;
            let told = remembered(Path::new("/"), state.path(), || {
                asked = true;
                answer
            });
            (told.is_ok(), asked)
        };
        assert_eq!(ask(Err("no".to_owned())), (false, true));
        assert_eq!(ask(Ok(())), (true, true));
        assert_eq!(ask(Err("never asked".to_owned())), (true, false));
    }
}
