//! A throwaway sandbox to launch in, as root and as the ordinary user `tester`.
#![allow(dead_code)] // Each test binary uses its part of it.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sandbox_isolation::{
    Ended, Home, Identity, LaunchError, Policy, Root, Run, Runs, Terminal, launch,
};
use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_linux::identity::{Ids, become_user};
use sandbox_model::{OverlayXattr, Settings, WorkspaceMount};

/// Who launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Root,
    Ordinary,
}

/// The source, the state and the home of a sandbox.
pub struct Place {
    pub who: Who,
    pub source: PathBuf,
    pub state: PathBuf,
    pub home: PathBuf,
    _directory: tempfile::TempDir,
}

/// Runs `body` twice, each time in a process of its own: as root, and as an ordinary user.
pub fn everyone(body: impl Fn(&Place)) {
    for who in [Who::Root, Who::Ordinary] {
        only(who, &body);
    }
}

/// Runs `body` as `who`.
pub fn only(who: Who, body: impl Fn(&Place)) {
    assert!(
        rustix::process::geteuid().is_root(),
        "these tests start as root"
    );
    let place = Place::new(who);
    let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
        if who == Who::Ordinary {
            let (user, group) = tester();
            become_user(Ids { user, group }).unwrap();
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&place)));
        i32::from(outcome.is_err())
    })
    .unwrap();
    assert_eq!(child.wait().unwrap().exit_status(), Some(0), "as {who:?}");
}

fn tester() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("tester:"));
    let line = line.expect("the user `tester` (useradd tester)");
    let fields: Vec<&str> = line.split(':').collect();
    (fields[2].parse().unwrap(), fields[3].parse().unwrap())
}

impl Place {
    fn new(who: Who) -> Place {
        let directory = tempfile::tempdir().unwrap();
        let path = &directory.path().to_owned();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, open).unwrap();
        for name in [
            "source",
            "state/upper",
            "state/workdir",
            "state/home",
            "state/runs",
            "home",
        ] {
            std::fs::create_dir_all(path.join(name)).unwrap();
        }
        std::fs::write(path.join("source/file"), "original").unwrap();
        let place = Place {
            who,
            source: path.join("source"),
            state: path.join("state"),
            home: path.join("home"),
            _directory: directory,
        };
        place.own(path);
        place
    }

    /// Gives a tree to whoever launches.
    pub fn own(&self, path: &Path) {
        if self.who == Who::Root {
            return;
        }
        let (uid, gid) = tester();
        std::os::unix::fs::lchown(path, Some(uid), Some(gid)).unwrap();
        if path.is_dir() {
            for entry in std::fs::read_dir(path).unwrap() {
                self.own(&entry.unwrap().path());
            }
        }
    }

    pub fn policy(&self, script: &str) -> Policy {
        let xattr = match self.who {
            Who::Root => OverlayXattr::Trusted,
            Who::Ordinary => OverlayXattr::User,
        };
        let path: OsString = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into();
        Policy {
            name: "trial".parse().unwrap(),
            workspace: WorkspaceMount::Overlay {
                lower: self.source.clone(),
                upper: self.state.join("upper"),
                work: self.state.join("workdir"),
                xattr,
            },
            source: self.source.clone(),
            cwd: self.source.clone(),
            home: Some(Home {
                paths: vec![self.home.clone()],
                layer: self.state.join("home"),
                credentials: Vec::new(),
            }),
            hide: vec![self.state.clone()],
            settings: Settings::default(),
            env: vec![
                ("PATH".into(), path),
                ("HOME".into(), self.home.clone().into()),
                ("STATE".into(), self.state.clone().into()),
            ],
            command: vec!["sh".into(), "-c".into(), script.into()],
            terminal: Terminal::Inherit,
            layer: self.state.join("upper"),
            root: Root::Host,
            identity: Identity::Own,
        }
    }

    pub fn runs(&self) -> Runs {
        Runs::open(&self.state.join("runs"))
    }

    pub fn launch(&self, policy: &Policy) -> Result<Run, LaunchError> {
        let lock = std::fs::File::open(&self.state).unwrap();
        launch(policy, &self.runs(), lock.as_fd())
    }

    pub fn start(&self, script: &str) -> Run {
        self.launch(&self.policy(script)).unwrap()
    }

    pub fn run(&self, script: &str) -> Ended {
        self.start(script).wait().unwrap()
    }

    /// A file of the upper layer.
    pub fn written(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.state.join("upper").join(name)).ok()
    }

    /// Waits until the command has written a file.
    pub fn await_file(&self, name: &str) {
        await_until(name, || self.written(name).is_some());
    }
}

/// Waits for a condition that something else brings about, and of which no event tells.
#[allow(clippy::disallowed_methods)]
pub fn await_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !condition() {
        assert!(
            std::time::Instant::now() < deadline,
            "waited in vain for {what}"
        );
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
