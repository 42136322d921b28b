//! A server that was just started, with sessions that belong to the ordinary user `tester`.
#![allow(dead_code)] // Each test binary uses its part of it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use sandbox_executor::{Outcome, Request};
use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_linux::identity::{Ids, become_user};
use sandbox_model::execution::Language;
use sandbox_model::id::SessionId;
use sandbox_model::resources::{Cpu, Quantity, Resources};
use sandbox_model::runtime::LimitsEnforced;
use sandbox_model::session::SessionNetwork;
use sandbox_runtime::{
    Ended, Image, Line, Local, Nursery, SessionSpec, UserRange, Users, Workspace,
};
use tokio::sync::mpsc::UnboundedReceiver;

pub type Ends = UnboundedReceiver<Ended>;

pub fn tester() -> Ids {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("tester:"));
    let line = line.expect("the user `tester` (useradd tester)");
    let fields: Vec<&str> = line.split(':').collect();
    Ids {
        user: fields[2].parse().unwrap(),
        group: fields[3].parse().unwrap(),
    }
}

/// Does `body` as a server that was just started, with its state in a directory.
pub fn served(body: impl AsyncFn(&Path, Local, Ends)) {
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let state = directory.path().join("state");
    assert_eq!(serve(&state, &body), Some(0));
}

/// Does `body` with a line to a new session, `a`.
pub fn with_a_line(body: impl AsyncFn(Local, Line)) {
    served(async |_, local, _ends| {
        let raised = local.raise(spec('a')).await.unwrap();
        body(local, raised.line).await;
    });
}

/// The same, for a server that is an ordinary user's.
pub fn served_by_tester(body: impl AsyncFn(&Path, Local, Ends)) {
    let directory = tempfile::tempdir().unwrap();
    let tester = tester();
    std::os::unix::fs::chown(directory.path(), Some(tester.user), Some(tester.group)).unwrap();
    let state = directory.path().join("state");
    let status = process(|| {
        become_user(tester).unwrap();
        live(&state, None, &body);
    });
    assert_eq!(status, Some(0));
}

/// The users of sessions of a server that is root. Tests that run at the same time have others.
pub fn users() -> Users {
    Users {
        user: tester(),
        each: Some(UserRange {
            first: 1_700_000_000 + std::process::id() % 100_000 * 1000,
            count: 1000,
        }),
    }
}

/// One life of a server: its exit status.
pub fn serve(state: &Path, body: &impl AsyncFn(&Path, Local, Ends)) -> Option<i32> {
    let users = users();
    process(|| live(state, Some(users), body))
}

/// A life of a server in this process, which must have a single thread.
pub fn live(state: &Path, users: Option<Users>, body: &impl AsyncFn(&Path, Local, Ends)) {
    let nursery = Nursery::start(state, users).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (local, ends) = Local::new(nursery).unwrap();
        body(state, local, ends).await;
    });
}

/// Does `body` in a process of its own: its exit status.
pub fn process(body: impl FnOnce()) -> Option<i32> {
    let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
        i32::from(catch_unwind(AssertUnwindSafe(body)).is_err())
    })
    .unwrap();
    child.wait().unwrap().exit_status()
}

pub fn id(letter: char) -> SessionId {
    let letters: String = std::iter::repeat_n(letter, 16).collect();
    format!("sess_{letters}").parse().unwrap()
}

pub fn spec(letter: char) -> SessionSpec {
    SessionSpec {
        session_id: id(letter),
        workspace: Workspace::Empty,
        image: Image::Host,
        env_vars: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
        resources: Resources {
            cpu: Cpu(1000),
            memory: Quantity(512 << 20),
            disk: Quantity(1 << 30),
            max_processes: 64,
        },
        promised: LimitsEnforced::default(),
        network: SessionNetwork::default(),
        warm: None,
        expected: None,
    }
}

pub fn request(language: Language, code: &str) -> Request {
    Request {
        execution_id: "exec_20261116_abcdefgh".parse().unwrap(),
        code: code.to_owned(),
        language,
        event: serde_json::json!({}),
        timeout_seconds: 30,
        stream: false,
    }
}

/// A request of which everything is told as it comes.
pub fn streamed(language: Language, code: &str) -> Request {
    Request {
        stream: true,
        ..request(language, code)
    }
}

pub async fn shell(line: &Line, code: &str) -> Outcome {
    let outcome = line.execute(request(Language::Shell, code), || {}).await;
    outcome.unwrap()
}

pub async fn printed(line: &Line, code: &str) -> String {
    let outcome = shell(line, code).await;
    assert_eq!(outcome.result.exit_code, 0, "{outcome:?}");
    outcome.result.stdout.trim_end().to_owned()
}

/// The children of process `parent`.
pub fn children(parent: u32) -> Vec<u32> {
    let wanted = format!("PPid:\t{parent}\n");
    let pids = std::fs::read_dir("/proc").unwrap();
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains(&wanted)
    };
    pids.filter(is_child).collect()
}

/// The process that starts the supervisor again when it ends: the server's only child.
pub fn watcher() -> u32 {
    only_child(std::process::id())
}

/// The supervisor of this server.
pub fn nursery() -> u32 {
    only_child(watcher())
}

fn only_child(parent: u32) -> u32 {
    let children = children(parent);
    assert_eq!(children.len(), 1, "{children:?}");
    children[0]
}

/// Sends a signal to a process of the test's own.
pub fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}
