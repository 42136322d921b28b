//! A server that is root, whose sessions belong to the user `tester`.
#![allow(dead_code)] // Each test binary uses its part of it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sandbox_executor::Request;
use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_linux::identity::Ids;
use sandbox_model::execution::Language;
use sandbox_model::id::SessionId;
use sandbox_runtime::{Line, Local, Nursery, SessionSpec, Workspace};

/// Does `body` with a line to a new session.
pub fn with_a_line(body: impl AsyncFn(Local, Line)) {
    let directory = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let state = directory.path().join("state");
    // In a process of its own: a nursery is started by one that has a single thread.
    let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let nursery = Nursery::start(&state, Some(tester())).unwrap();
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let (local, _ends) = Local::new(nursery).unwrap();
                let line = local.raise(spec()).await.unwrap();
                body(local, line).await;
            });
        }));
        i32::from(outcome.is_err())
    })
    .unwrap();
    assert_eq!(child.wait().unwrap().exit_status(), Some(0));
}

/// The session's name.
pub fn id() -> SessionId {
    "sess_aaaaaaaaaaaaaaaa".parse().unwrap()
}

/// What the session is like.
pub fn spec() -> SessionSpec {
    SessionSpec {
        session_id: id(),
        workspace: Workspace::Empty,
        env_vars: BTreeMap::new(),
    }
}

fn tester() -> Ids {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("tester:"));
    let line = line.expect("the user `tester` (useradd tester)");
    let fields: Vec<&str> = line.split(':').collect();
    Ids {
        user: fields[2].parse().unwrap(),
        group: fields[3].parse().unwrap(),
    }
}

/// A request with half a minute's time, of which everything is told.
pub fn request(language: Language, code: &str) -> Request {
    Request {
        execution_id: "exec_20261116_abcdefgh".parse().unwrap(),
        code: code.to_owned(),
        language,
        event: serde_json::json!({}),
        timeout_seconds: 30,
        stream: true,
    }
}
