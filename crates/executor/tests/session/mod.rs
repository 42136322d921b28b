//! A throwaway session with an executor in it, made by the ordinary user `tester`.
#![allow(dead_code)] // Each test binary uses its part of it.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sandbox_executor::protocol::{Answer, Ask, Question, Reply};
use sandbox_executor::{
    Executor, Files, Link, Outcome, Request, Settings, environment, link, serve,
};
use sandbox_isolation::keeper::{InnerNetwork, Keeper, Kept, keep};
use sandbox_isolation::{Identity, Policy, Root, Runs, Status, Terminal};
use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_linux::identity::{Ids, become_user};
use sandbox_model::execution::Language;
use sandbox_model::{OverlayXattr, WorkspaceMount};
use serde_json::{Value, json};

/// Does `body` in a session, as its keeper.
pub fn in_session(body: impl AsyncFn(&Executor)) {
    in_session_of(|_| (), body);
}

/// The same, with a workspace that is a copy of what `fill` makes.
pub fn in_session_of(fill: impl Fn(&Path), body: impl AsyncFn(&Executor)) {
    in_session_with(settings(), fill, body);
}

/// The same, with settings.
pub fn in_session_with(settings: Settings, fill: impl Fn(&Path), body: impl AsyncFn(&Executor)) {
    as_tester(|state| {
        fill(&state.join("source"));
        let kept = kept(state, Vec::new(), |keeper, _| {
            let executor = async || {
                let executor = Executor::new(keeper, settings).unwrap();
                body(&executor).await;
            };
            i32::from(catch_unwind(AssertUnwindSafe(|| on_one_thread(executor()))).is_err())
        });
        assert_eq!(kept.wait().unwrap(), Status::Exited(0));
    });
}

/// Does `body` outside of a session, with a line to its executor.
pub fn on_a_line(body: impl AsyncFn(&Link)) {
    on_a_line_after(|| (), body);
}

/// The same, with an executor that does `last` before it answers.
pub fn on_a_line_after(last: impl Fn(), body: impl AsyncFn(&Link)) {
    as_tester(|state| {
        let (ours, theirs) = link::pair().unwrap();
        let kept = kept(state, vec![theirs], |keeper, mut passed| {
            let serving = async {
                let executor = Executor::new(keeper, settings()).unwrap();
                let files = Files::open(Path::new("/workspace")).unwrap();
                let link = Link::new(passed.remove(0)).unwrap();
                last();
                serve(link, executor, files).await.unwrap();
            };
            on_one_thread(serving);
            0
        });
        on_one_thread(async {
            body(&Link::new(ours).unwrap()).await;
        });
        // The line is cut by now, and that is what it ends by.
        assert_eq!(kept.wait().unwrap(), Status::Exited(0));
    });
}

/// Does `body` as the ordinary user, with a directory for a sandbox.
fn as_tester(body: impl FnOnce(&Path)) {
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
        let (user, group) = (uid, gid);
        become_user(Ids { user, group }).unwrap();
        i32::from(catch_unwind(AssertUnwindSafe(|| body(state))).is_err())
    })
    .unwrap();
    assert_eq!(child.wait().unwrap().exit_status(), Some(0));
}

fn on_one_thread(work: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, work);
}

fn kept(
    state: &Path,
    passed: Vec<OwnedFd>,
    body: impl FnOnce(Keeper, Vec<OwnedFd>) -> i32,
) -> Kept {
    let lock = File::open(state).unwrap();
    let runs = Runs::open(&state.join("runs"));
    keep(
        &policy(state),
        &runs,
        lock.as_fd(),
        InnerNetwork::Own,
        passed,
        body,
    )
    .unwrap()
}

/// What most sessions here are like.
pub fn settings() -> Settings {
    Settings {
        workspace: PathBuf::from("/workspace"),
        env: environment(Path::new("/workspace")),
        warm: None,
        expected: None,
    }
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

/// A request with half a minute's time.
pub fn request(language: Language, code: &str) -> Request {
    Request {
        execution_id: "exec_20261116_abcdefgh".parse().unwrap(),
        code: code.to_owned(),
        language,
        event: json!({}),
        timeout_seconds: 30,
        stream: false,
    }
}

/// Runs `code`.
pub async fn run(executor: &Executor, language: Language, code: &str) -> Outcome {
    executor.execute(&request(language, code)).await
}

/// What a handler returned.
pub fn returned(outcome: &Outcome) -> Value {
    let text = outcome.result.return_value.as_ref();
    let text = text.unwrap_or_else(|| panic!("nothing was returned: {outcome:?}"));
    serde_json::from_str(text).unwrap()
}

/// Puts a file into the workspace. Nobody else may be answered meanwhile.
pub async fn upload(link: &Link, path: &str, content: &[u8]) {
    bring(link, Ask::Write(path.into()), content, Ask::Commit).await;
}

/// The same, saying where it goes when it is whole.
pub async fn upload_path_last(link: &Link, path: &str, content: &[u8]) {
    let path = path.into();
    let commit = |upload| Ask::CommitAt { upload, path };
    bring(link, Ask::Begin, content, commit).await;
}

async fn bring(link: &Link, begin: Ask, content: &[u8], commit: impl FnOnce(u64) -> Ask) {
    let ask = async |ask| {
        link.send(&Question { number: 0, ask }, &[]).await.unwrap();
        let (reply, mut files) = link.receive::<Reply>().await.unwrap().unwrap();
        (reply.answer.unwrap(), files.pop())
    };
    match ask(begin).await {
        (Answer::Upload(number), Some(file)) => {
            File::from(file).write_all(content).unwrap();
            assert_eq!(ask(commit(number)).await.0, Answer::Done);
        }
        other => panic!("{other:?}"),
    }
}
