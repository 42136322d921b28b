//! A throwaway session with an executor in it, made by the ordinary user `tester`.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rustix::process::{DumpableBehavior, Gid, Uid};
use sandbox_executor::{Executor, Outcome, Request, Settings};
use sandbox_isolation::keeper::{InnerNetwork, keep};
use sandbox_isolation::{Identity, Policy, Root, Runs, Status, Terminal};
use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_linux::identity::Ids;
use sandbox_model::execution::Language;
use sandbox_model::{OverlayXattr, WorkspaceMount};
use serde_json::{Value, json};

/// Does `body` in a session.
pub fn in_session(body: impl AsyncFn(&Executor<'_>)) {
    assert!(
        rustix::process::geteuid().is_root(),
        "these tests start as root"
    );
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path();
    std::fs::set_permissions(state, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (uid, gid) = tester();
    for name in ["source", "upper", "workdir", "runs"] {
        std::fs::create_dir(state.join(name)).unwrap();
        std::os::unix::fs::chown(state.join(name), Some(uid), Some(gid)).unwrap();
    }
    // In a process of its own: a keeper is made by one that has a single thread.
    let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
        become_ordinary(uid, gid);
        let outcome = catch_unwind(AssertUnwindSafe(|| kept(state, &body)));
        i32::from(outcome.is_err())
    })
    .unwrap();
    assert_eq!(child.wait().unwrap().exit_status(), Some(0));
}

fn kept(state: &Path, body: &impl AsyncFn(&Executor<'_>)) {
    let lock = File::open(state).unwrap();
    let runs = Runs::open(&state.join("runs"));
    let kept = keep(
        &policy(state),
        &runs,
        lock.as_fd(),
        InnerNetwork::Own,
        |keeper| {
            let settings = Settings {
                workspace: PathBuf::from("/workspace"),
                env: vec![
                    ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                    ("HOME".into(), "/workspace".into()),
                    ("LANG".into(), "C.UTF-8".into()),
                ],
            };
            let work = async {
                let executor = Executor::new(keeper, settings);
                body(&executor).await;
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                tokio::task::LocalSet::new().block_on(&runtime, work);
            }));
            i32::from(outcome.is_err())
        },
    );
    assert_eq!(kept.unwrap().wait().unwrap(), Status::Exited(0));
}

fn policy(state: &Path) -> Policy {
    Policy {
        name: "session".parse().unwrap(),
        workspace: WorkspaceMount::Overlay {
            lower: state.join("source"),
            upper: state.join("upper"),
            work: state.join("workdir"),
            xattr: OverlayXattr::User,
        },
        source: "/workspace".into(),
        cwd: "/workspace".into(),
        home: None,
        hide: vec![state.to_owned()],
        settings: sandbox_model::Settings::default(),
        env: Vec::new(),
        command: Vec::new(),
        terminal: Terminal::Inherit,
        layer: state.join("upper"),
        root: Root::Built,
        identity: Identity::As(Ids {
            user: 1000,
            group: 1000,
        }),
    }
}

fn tester() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("tester:"));
    let line = line.expect("the user `tester` (useradd tester)");
    let fields: Vec<&str> = line.split(':').collect();
    (fields[2].parse().unwrap(), fields[3].parse().unwrap())
}

fn become_ordinary(uid: u32, gid: u32) {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    rustix::thread::set_thread_groups(&[]).unwrap();
    rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
    rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
    // Changing the user takes /proc/self away; a program started by that user has it.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
}

/// A request with half a minute's time.
pub fn request(language: Language, code: &str) -> Request {
    Request {
        execution_id: "exec_20261116_abcdefgh".parse().unwrap(),
        code: code.to_owned(),
        language,
        event: json!({}),
        timeout_seconds: 30,
    }
}

/// Runs `code`.
pub async fn run(executor: &Executor<'_>, language: Language, code: &str) -> Outcome {
    executor.execute(&request(language, code)).await
}

/// What a handler returned.
pub fn returned(outcome: &Outcome) -> Value {
    let text = outcome.result.return_value.as_ref();
    let text = text.unwrap_or_else(|| panic!("nothing was returned: {outcome:?}"));
    serde_json::from_str(text).unwrap()
}
