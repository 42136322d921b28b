//! Where a server keeps its data.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::account::Account;

/// A new directory of `account`'s that nobody else may look into.
pub fn private(account: Account) -> TempDir {
    let directory = tempfile::Builder::new()
        .prefix("sandbox-test-server-")
        .tempdir()
        .expect("a temporary directory");
    account.own(directory.path());
    directory
}

/// Runs the program that makes a new server's data.
#[track_caller]
pub fn fill(account: Account, command: &mut Command) {
    command.current_dir("/").stdin(Stdio::null());
    let output = account.apply(command).output();
    let said = match output {
        Ok(output) if output.status.success() => return,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    panic!("cannot make a new server's data: {command:?}\n{said}");
}
