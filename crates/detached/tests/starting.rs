//! When an executor does not start, and what it says then.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod stage;

use std::net::SocketAddr;
use std::process::Command;

use sandbox_api_tests::User;
use serde_json::json;
use stage::{ControlPlane, Executor, Options, TOKEN, id};

fn nobody() -> SocketAddr {
    ([127, 0, 0, 1], 1).into()
}

/// It must fail with this status and say all of this.
#[track_caller]
fn refused((code, said): (Option<i32>, String), status: i32, words: &[&str]) {
    assert_eq!(code, Some(status), "{said}");
    assert!(
        said.contains("error: ") && said.contains("hint: "),
        "{said}"
    );
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(
        !said.contains(TOKEN) && !said.contains("panicked"),
        "{said}"
    );
}

#[test]
fn arguments_that_cannot_be_followed_are_named() {
    let failed =
        |arguments: &[&str]| Executor::made(Options::told(nobody()).with(arguments)).fail();
    refused(failed(&["--nonsense", "1"]), 1, &["--nonsense", "--help"]);
    refused(failed(&["--control", "https://one"]), 1, &["TLS"]);
    refused(
        failed(&["--isolation", "landlock"]),
        1,
        &["network", "--network container"],
    );
    refused(failed(&["--user", "1000:1000"]), 1, &["--user is for root"]);
    refused(failed(&["--token-fd", "77"]), 1, &["descriptor 77"]);
}

#[test]
fn a_token_that_is_none_is_refused() {
    let mut options = Options::told(nobody());
    options.token = "two words".to_owned();
    refused(
        Executor::made(options.clone()).fail(),
        1,
        &["holds no token"],
    );
    options.token = String::new();
    refused(Executor::made(options).fail(), 1, &["it is empty"]);
}

#[test]
fn the_state_is_never_where_code_could_read_it() {
    let executor = Executor::made(Options::told(nobody()));
    let inside = executor.workspace().join("state");
    let mut command = executor.command();
    command.arg("--state").arg(&inside);
    refused(
        executor.fail_as(command),
        1,
        &["code could read", "--state"],
    );
    let mut command = executor.command();
    command
        .arg("--state")
        .arg("/usr/share/sandbox-executor-test");
    command.args(["--isolation", "landlock", "--network", "container"]);
    refused(executor.fail_as(command), 3, &["the state directory"]);
    let root = Executor::made(Options::told(nobody()).by(User::Root));
    let mut command = root.command();
    let state = "/usr/share/sandbox-executor-test";
    command.args([
        "--state",
        state,
        "--isolation",
        "landlock",
        "--network",
        "container",
    ]);
    let failed = root.fail_as(command);
    let _ = std::fs::remove_dir_all(state);
    refused(failed, 1, &["code could read", "--state"]);
}

#[test]
fn a_workspace_that_is_not_there_or_not_its_own_is_refused() {
    let executor = Executor::made(Options::told(nobody()));
    let mut command = executor.command();
    command.args(["--workspace", "/nowhere"]);
    refused(executor.fail_as(command), 1, &["the workspace /nowhere"]);
    User::Root.own(&executor.workspace());
    refused(executor.fail(), 3, &["the workspace"]);
}

#[test]
fn two_do_not_share_a_state() {
    let control_plane = ControlPlane::start();
    let executor = Options::told(control_plane.address).start();
    refused(
        executor.fail(),
        1,
        &["another sandbox-executor uses", "--state"],
    );
    executor.call("GET", "/health").send().json(200);
}

/// In a root that is not the whole tree of mounts the kernel makes no user namespaces.
fn without_namespaces(executor: &Executor) -> Command {
    let root = executor.base().join("root");
    std::fs::create_dir(&root).unwrap();
    let (uid, gid) = User::Tester.ids();
    let script = format!(
        "mount --rbind / {root} && exec chroot --userspec={uid}:{gid} --groups= {root} \"$@\"",
        root = root.display(),
    );
    executor.command_after(&["unshare", "-m", "sh", "-c", &script, "sh"])
}

#[test]
fn walls_that_cannot_be_had_are_refused_with_the_reason_and_the_fix() {
    let control_plane = ControlPlane::start();
    let executor = Executor::made(Options::told(control_plane.address).by(User::Root));
    for name in ["workspace", "state"] {
        User::Tester.own(&executor.base().join(name));
    }
    let failed = executor.fail_as(without_namespaces(&executor));
    refused(
        failed,
        3,
        &[
            "cannot isolate code by namespaces",
            "user namespaces",
            "--isolation landlock",
        ],
    );
    // Whoever waits for the container hears of it.
    let exited = control_plane.until("container_exited", |_| true).body;
    assert_eq!(
        (&exited["exit_code"], &exited["exit_reason"]),
        (&json!(3), &json!("error"))
    );
}

#[test]
fn where_there_are_no_namespaces_the_weaker_wall_holds() {
    let control_plane = ControlPlane::start();
    let options = Options::told(control_plane.address).by(User::Root);
    let mut executor =
        Executor::made(options.with(&["--isolation", "landlock", "--network", "container"]));
    for name in ["workspace", "state"] {
        User::Tester.own(&executor.base().join(name));
    }
    let command = without_namespaces(&executor);
    executor.start_as(command);
    let refused = "cat /proc/[0-9]*/environ 2>/dev/null | grep -a SECRET; unshare -U true 2>/dev/null || echo none";
    executor.execute(&id(1), "shell", refused).json(202);
    assert_eq!(control_plane.result(&id(1))["stdout"], "none\n");
}

#[test]
fn help_tells_every_option_and_the_version_is_told() {
    let binary = env!("CARGO_BIN_EXE_sandbox-executor");
    let help = Command::new(binary).arg("--help").output().unwrap();
    assert!(help.status.success() && help.stderr.is_empty());
    let help = String::from_utf8(help.stdout).unwrap();
    for option in [
        "--session",
        "--control",
        "--token-fd",
        "--isolation",
        "--grace",
    ] {
        assert!(help.contains(option), "{option}");
    }
    let version = Command::new(binary).arg("--version").output().unwrap();
    assert!(
        String::from_utf8(version.stdout)
            .unwrap()
            .starts_with("sandbox-executor 0.")
    );
}
