//! Finding the binaries under test.

use std::path::{Path, PathBuf};

/// The `sandbox` binary: `SANDBOX_BIN`, or the one cargo built beside this test.
pub fn sandbox_binary() -> PathBuf {
    beside("SANDBOX_BIN", "sandbox")
}

/// The attacker.
pub fn attacker_binary() -> PathBuf {
    beside("ATTACKER_BIN", "attacker")
}

fn beside(variable: &str, name: &str) -> PathBuf {
    let found = std::env::var_os(variable)
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            let test = std::env::current_exe().expect("the test's own path");
            let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
            profile.join(name)
        });
    assert!(
        found.is_file(),
        "no `{name}` at {}: run `cargo build --workspace` first, or set {variable}",
        found.display()
    );
    found
}

/// The full path of a program the test needs. A missing one fails the test: it is not skipped.
pub fn need(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| panic!("this test needs `{program}`; install it"))
}

/// Makes `from` runnable at `to` by everyone, without copying where the filesystem allows.
pub fn place(from: &Path, to: &Path) {
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).expect("copy a binary");
    }
}
