//! Raising one session: its workspace, its walls, its executor.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use sandbox_executor::{Executor, Files, Link, Settings, serve};
use sandbox_isolation::keeper::{InnerNetwork, Keeper, Kept, Terms, keep_on};
use sandbox_isolation::limits::{Bounds, Ground};
use sandbox_isolation::{Identity, Policy, Root as Filesystem, Terminal};
use sandbox_linux::identity::Ids;
use sandbox_model::runtime::{LimitsEnforced, Walls};
use sandbox_workspace::{Sandbox, base};

use super::Refusal;
use super::reach::Reach;
use super::workspaces;
use crate::image;
use crate::spec::{Image, SessionSpec};

/// Where a session's workspace is inside.
const WORKSPACE: &str = "/workspace";

/// Who code is inside.
const USER: Ids = Ids {
    user: 1000,
    group: 1000,
};

/// A session that is there.
pub(super) struct Raised {
    pub(super) kept: Kept,
    pub(super) limits_enforced: LimitsEnforced,
    pub(super) walls: Walls,
    /// Where what is written in its workspace goes.
    pub(super) layer: PathBuf,
    /// How much of what was there at first may be, though it is more than its limit of disk.
    pub(super) allowed: Option<u64>,
}

/// Raises the session that `spec` describes, in `root`, with its control group on `ground`. `line` is its
/// executor's.
pub(super) fn raise(
    root: &Path,
    ground: &Ground,
    spec: &SessionSpec,
    line: OwnedFd,
) -> Result<Raised, Refusal> {
    let sandbox = workspaces::of(root, spec)?;
    let runs = workspaces::end_orphans(&sandbox)?;
    let lock = sandbox.lock_for_run().map_err(Refusal::because)?;
    base::run_began(&sandbox).map_err(Refusal::because)?;
    let reach = Reach::of(&spec.network)?;
    let system = system(root, &spec.image)?;
    let settings = Settings {
        workspace: PathBuf::from(WORKSPACE),
        env: environment(spec, &reach),
        warm: spec.warm,
        expected: spec.expected,
    };
    let policy = policy(root, &sandbox, &reach, system);
    let body = |keeper, mut passed: Vec<OwnedFd>| match passed.pop() {
        Some(line) => i32::from(attend(keeper, line, settings).is_err()),
        None => 1,
    };
    let bounds = Bounds::on(ground, spec.session_id.as_str(), &spec.limits());
    let limits_enforced = bounds.enforced;
    if let Some(lacking) = limits_enforced.lacks(&spec.promised) {
        return Err(Refusal::unlimited(lacking));
    }
    let terms = Terms {
        bounds,
        network: reach.inner(),
        others: reach.others,
    };
    let kept = keep_on(&policy, &runs, lock.fd.as_fd(), terms, vec![line], body);
    Ok(Raised {
        kept: kept.map_err(Refusal::because)?,
        limits_enforced,
        walls: walls(&reach),
        layer: policy.layer,
        allowed: workspaces::copied(&sandbox),
    })
}

/// What stands between a session and everything else, for people.
fn walls(reach: &Reach) -> Walls {
    Walls {
        between_sessions: "namespaces".to_owned(),
        executor: "PID namespace and mounts".to_owned(),
        between_executions: match reach.inner() {
            InnerNetwork::Own => "fresh namespaces",
            InnerNetwork::Shared => "fresh namespaces, and the network of the session",
        }
        .to_owned(),
        network: reach.describe().to_owned(),
    }
}

/// What is seen inside beside the workspace.
fn system(root: &Path, image: &Image) -> Result<Filesystem, Refusal> {
    let Image::Directory(directory) = image else {
        return Ok(Filesystem::Built);
    };
    Ok(Filesystem::Image(image::resolve(root, directory)?))
}

fn policy(root: &Path, sandbox: &Sandbox, reach: &Reach, system: Filesystem) -> Policy {
    let workspace = sandbox.mount();
    let layer = workspaces::layer_of(sandbox);
    Policy {
        name: sandbox.name().clone(),
        workspace,
        source: PathBuf::from(WORKSPACE),
        cwd: PathBuf::from(WORKSPACE),
        home: None,
        hide: vec![root.to_owned()],
        settings: sandbox_model::Settings {
            network: reach.network.clone(),
            ..sandbox_model::Settings::default()
        },
        env: Vec::new(),
        command: Vec::new(),
        terminal: Terminal::Inherit,
        layer,
        root: system,
        identity: Identity::As(USER),
    }
}

/// What was asked for goes over what there is anyway.
fn environment(spec: &SessionSpec, reach: &Reach) -> Vec<(OsString, OsString)> {
    let asked = &spec.env_vars;
    let network = reach.variables().into_iter();
    let network = network.map(|(name, value)| (name.into(), value.into()));
    let usual = sandbox_executor::environment(Path::new(WORKSPACE))
        .into_iter()
        .chain(network)
        .filter(|(name, _)| !name.to_str().is_some_and(|name| asked.contains_key(name)));
    let asked = asked
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    usual.chain(asked).collect()
}

/// The keeper's life: answering on the line until it is cut.
fn attend(keeper: Keeper, line: OwnedFd, settings: Settings) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let files = Files::open(Path::new(WORKSPACE))?;
        let executor = Executor::new(keeper, settings)?;
        serve(Link::new(line)?, executor, files).await
    })
}
