//! A source and a sandbox of it for the tests of this crate, with real overlays.

use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use sandbox_linux::trial::{self, OverlayTrial, TrialError};
use sandbox_model::{
    BackendKind, ChangeKind, ChangeSet, OverlayXattr, RelPath, Settings, WorkspaceMount,
};

use crate::changes::{ChangeOptions, change_set};
use crate::meta::{self, Meta};
use crate::progress::Silent;
use crate::{Root, Sandbox, View, base};

/// A source with a sandbox over it.
pub(crate) struct Fixture {
    _dir: tempfile::TempDir,
    pub(crate) sandbox: Sandbox,
}

impl Fixture {
    /// A sandbox of a source that `fill` makes.
    pub(crate) fn overlay(xattr: OverlayXattr, fill: impl FnOnce(&Path)) -> Fixture {
        Fixture::with_root(xattr, fill, |dir| dir.join("root"))
    }

    /// The same, with the sandbox root where `root` says.
    pub(crate) fn with_root(
        xattr: OverlayXattr,
        fill: impl FnOnce(&Path),
        root: impl FnOnce(&Path) -> PathBuf,
    ) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        std::fs::create_dir(&source).unwrap();
        fill(&source);
        let root = Root::open(&root(dir.path())).unwrap();
        let sandbox_dir = root.path().join("box");
        for part in ["upper", "workdir"] {
            std::fs::create_dir_all(sandbox_dir.join(part)).unwrap();
        }
        let meta = Meta {
            version: meta::VERSION,
            name: "box".parse().unwrap(),
            source: source.clone(),
            created: jiff::Timestamp::now(),
            created_coarse: meta::coarse_now(),
            source_root: crate::tree::Dir::open(&source)
                .unwrap()
                .stat_self()
                .unwrap(),
            source_fs: meta::filesystem_type(&source).unwrap(),
            backend: BackendKind::Overlay,
            xattr: Some(xattr),
            forked_from: None,
            settings: Settings::default(),
        };
        Fixture {
            _dir: dir,
            sandbox: Sandbox {
                root,
                dir: sandbox_dir,
                meta,
            },
        }
    }

    /// A sandbox over a snapshot of its source, as a btrfs one is.
    pub(crate) fn frozen(fill: impl FnOnce(&Path)) -> Fixture {
        let mut fixture = Fixture::overlay(OverlayXattr::User, fill);
        let mut cp = std::process::Command::new("cp");
        let copied = cp
            .arg("-a")
            .arg(fixture.source())
            .arg(fixture.sandbox.dir.join("base"));
        assert!(copied.status().unwrap().success());
        fixture.sandbox.meta.backend = BackendKind::Btrfs;
        fixture
    }

    /// A sandbox that is a copy of its source.
    pub(crate) fn copied(fill: impl FnOnce(&Path)) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        std::fs::create_dir(&source).unwrap();
        fill(&source);
        let request = crate::root::CreateRequest {
            name: None,
            source,
            backend: sandbox_model::BackendChoice::Only(BackendKind::Copy),
            settings: Settings::default(),
        };
        let root = Root::open(&dir.path().join("root")).unwrap();
        let sandbox = root.create(&request, &mut Silent).unwrap();
        Fixture { _dir: dir, sandbox }
    }

    pub(crate) fn source(&self) -> &Path {
        self.sandbox.source()
    }

    /// Does something in the mounted workspace, without recording bases.
    pub(crate) fn inside(&self, act: impl FnOnce(&Path) -> io::Result<()>) {
        self.try_inside(act).unwrap();
    }

    pub(crate) fn try_inside(
        &self,
        act: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), TrialError> {
        match self.sandbox.mount() {
            WorkspaceMount::Bind { dir } => act(&dir).map_err(TrialError::Use),
            WorkspaceMount::Overlay {
                lower,
                upper,
                work,
                xattr,
            } => {
                let overlay = OverlayTrial {
                    lower: &lower,
                    upper: &upper,
                    work: &work,
                    xattr,
                };
                trial::overlay(&overlay, |mount| {
                    act(&PathBuf::from(format!(
                        "/proc/self/fd/{}",
                        mount.as_raw_fd()
                    )))
                })
            }
        }
    }

    /// A run from its mark to its record.
    pub(crate) fn run(&self, act: impl FnOnce(&Path) -> io::Result<()>) {
        next_tick();
        let began = base::run_began(&self.sandbox).unwrap();
        self.inside(act);
        base::record(&self.sandbox, began).unwrap();
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::open(&self.sandbox).unwrap()
    }

    pub(crate) fn changes(&self) -> ChangeSet {
        self.changes_with(&ChangeOptions::default())
    }

    pub(crate) fn changes_with(&self, options: &ChangeOptions) -> ChangeSet {
        change_set(&self.view(), options, &mut Silent).unwrap()
    }

    /// The changes as `--files` shows them.
    pub(crate) fn listed(&self) -> Vec<String> {
        listed(&self.changes())
    }
}

/// A letter and a path each.
pub(crate) fn listed(changes: &ChangeSet) -> Vec<String> {
    let line = |change: &sandbox_model::Change| match &change.kind {
        ChangeKind::Renamed { from, similarity } => {
            format!("R{similarity} {from} {}", change.path)
        }
        kind => format!("{} {}", kind.letter(), change.path),
    };
    changes.changes.iter().map(line).collect()
}

/// Waits until what happened so far lies before the coarse clock's present.
pub(crate) fn next_tick() {
    let now = meta::coarse_now();
    while meta::coarse_now() == now {
        std::thread::yield_now();
    }
}

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

/// Writes a file, and the directories above it.
pub(crate) fn write(root: &Path, name: &str, contents: impl AsRef<[u8]>) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, contents).unwrap();
}
