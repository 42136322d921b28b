//! Raising the executor: the process that runs code, and the walls around that.
//!
//! It is forked while this process has one thread and knows no secret. Before it answers anything it tries
//! its walls on a program that does not exist: all of them are built, and only the last step, to become that
//! program, fails. Where anything else does, nothing is run at all.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use sandbox_executor::{Executor, Files, Link, Settings, link, serve};
use sandbox_isolation::keeper::{InnerNetwork, Keeper, Kept, Progress, keep, keep_bare};
use sandbox_isolation::{Identity, LaunchError, Order, Policy, Root, Terminal};
use sandbox_linux::identity::Ids;
use sandbox_linux::message;
use sandbox_model::runtime::Walls;
use sandbox_model::{Class, Failure, SandboxName, WorkspaceMount};
use sandbox_runtime::descriptors;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::arguments::{Arguments, Isolation, Network};
use crate::ending::chain;
use crate::state::State;

/// Where code finds its workspace, where it has a root of its own.
const WORKSPACE: &str = "/workspace";

/// Who code is inside, where it has ids of its own.
const USER: Ids = Ids {
    user: 1000,
    group: 1000,
};

/// A program that nobody has.
const NOWHERE: &str = "/nonexistent/sandbox-executor-trial";

/// What to do about walls that cannot be had.
const FIX: &str = "let the container make user namespaces and mount /proc in them (Docker: \
    `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`), or accept the weaker wall \
    with `--isolation landlock --network container`";

/// The executor, as the door sees it. It ends with this value.
#[derive(Debug)]
pub(crate) struct Raised {
    /// The process.
    pub(crate) kept: Kept,
    /// Our end of the line to it.
    pub(crate) line: OwnedFd,
    /// What stands around its code.
    pub(crate) walls: Walls,
}

/// Why there is no executor.
#[derive(Debug, Error)]
pub(crate) enum RaiseError {
    #[error("cannot isolate code by {walls}: {reason}")]
    Walls {
        walls: &'static str,
        reason: String,
        hint: String,
    },
    #[error("cannot start the process that runs code")]
    Start(#[source] io::Error),
}

impl Failure for RaiseError {
    fn class(&self) -> Class {
        match self {
            RaiseError::Walls { .. } => Class::Permission,
            RaiseError::Start(error) => Class::of_io(error),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            RaiseError::Walls { hint, .. } => Some(hint.clone()),
            RaiseError::Start(_) => None,
        }
    }
}

/// What the executor says when it has tried its walls.
#[derive(Debug, Serialize, Deserialize)]
enum Trial {
    /// They hold.
    Held,
    /// They cannot be had.
    Failed { reason: String },
}

/// Raises it. Must be called while the process has a single thread.
pub(crate) fn raise(arguments: &Arguments, state: &State) -> Result<Raised, RaiseError> {
    let (line, theirs) = link::pair().map_err(RaiseError::Start)?;
    let (trial, their_trial) = message::pair().map_err(RaiseError::Start)?;
    // The executor must be allowed more descriptors than its code.
    descriptors::allow_all();
    let settings = settings(&inside(state));
    let body = |keeper, passed: Vec<OwnedFd>| match attend(keeper, passed, settings) {
        Ok(()) => 0,
        Err(_) => 1,
    };
    let policy = policy(arguments, state)?;
    let passed = vec![theirs, their_trial];
    let kept = match &state.scratch {
        Some(scratch) => keep_bare(&policy, &state.runs, scratch, passed, body),
        None => {
            let network = match arguments.network {
                Network::None => InnerNetwork::Own,
                Network::Container => InnerNetwork::Shared,
            };
            // What it holds while it runs; there is nobody else to be kept away by that.
            let held = File::open(&state.directory).map_err(RaiseError::Start)?;
            keep(&policy, &state.runs, held.as_fd(), network, passed, body)
        }
    };
    let kept = kept.map_err(|error| refused(arguments, &error, chain(&error)))?;
    match hear(&trial).map_err(RaiseError::Start)? {
        Trial::Held => Ok(Raised {
            kept,
            line,
            walls: walls(arguments),
        }),
        Trial::Failed { reason } => Err(RaiseError::Walls {
            walls: named(arguments),
            reason,
            hint: FIX.to_owned(),
        }),
    }
}

/// Where code finds its workspace.
fn inside(state: &State) -> PathBuf {
    match &state.scratch {
        Some(_) => state.workspace.clone(),
        None => PathBuf::from(WORKSPACE),
    }
}

fn refused(arguments: &Arguments, error: &LaunchError, reason: String) -> RaiseError {
    let own = error.hint();
    RaiseError::Walls {
        walls: named(arguments),
        reason,
        hint: match arguments.isolation {
            Isolation::Namespaces => FIX.to_owned(),
            Isolation::Landlock => own.unwrap_or_else(|| FIX.to_owned()),
        },
    }
}

fn named(arguments: &Arguments) -> &'static str {
    match arguments.isolation {
        Isolation::Namespaces => "namespaces",
        Isolation::Landlock => "Landlock",
    }
}

fn policy(arguments: &Arguments, state: &State) -> Result<Policy, RaiseError> {
    let name: Result<SandboxName, _> = arguments.session.as_str().parse();
    Ok(Policy {
        name: name.map_err(|error| RaiseError::Start(io::Error::other(error)))?,
        workspace: WorkspaceMount::Bind {
            dir: state.workspace.clone(),
        },
        source: inside(state),
        cwd: inside(state),
        home: None,
        hide: vec![state.directory.clone()],
        settings: sandbox_model::Settings::default(),
        env: Vec::new(),
        command: Vec::new(),
        terminal: Terminal::Inherit,
        layer: state.workspace.clone(),
        root: Root::Built,
        identity: Identity::As(USER),
    })
}

/// Nothing of our own environment: it is whoever's who started us.
fn settings(workspace: &Path) -> Settings {
    Settings {
        workspace: workspace.to_owned(),
        env: sandbox_executor::environment(workspace),
        warm: None,
        expected: None,
    }
}

/// In words, as every session's are told.
fn walls(arguments: &Arguments) -> Walls {
    let network = match arguments.network {
        Network::None => "none: each execution has a loopback of its own",
        Network::Container => "the container's",
    };
    let (sessions, executor, executions) = match arguments.isolation {
        Isolation::Namespaces => (
            "the container, and namespaces",
            "PID namespace and mounts",
            "fresh namespaces",
        ),
        Isolation::Landlock => (
            "the container",
            "Landlock and seccomp, non-dumpable",
            "processes killed, temporary files removed",
        ),
    };
    Walls {
        between_sessions: sessions.to_owned(),
        executor: executor.to_owned(),
        between_executions: executions.to_owned(),
        network: network.to_owned(),
    }
}

/// The executor's life: trying its walls, then answering on the line until it is cut.
fn attend(keeper: Keeper, mut passed: Vec<OwnedFd>, settings: Settings) -> io::Result<()> {
    let (Some(trial), Some(line)) = (passed.pop(), passed.pop()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let outcome = match try_walls(&keeper, &settings.workspace) {
        Ok(()) => Trial::Held,
        Err(reason) => Trial::Failed { reason },
    };
    message::send(&trial, &serde_json::to_vec(&outcome)?, &[])?;
    drop(trial);
    if let Trial::Failed { .. } = outcome {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let files = Files::open(&settings.workspace)?;
        let executor = Executor::new(keeper, settings)?;
        serve(Link::new(line)?, executor, files).await
    })
}

/// Builds all walls once.
fn try_walls(keeper: &Keeper, workspace: &Path) -> Result<(), String> {
    let order = Order {
        command: vec![NOWHERE.into()],
        cwd: workspace.to_owned(),
        ..Order::default()
    };
    let told = |error: LaunchError| chain(&error);
    let inner = keeper.prepare().and_then(|ready| ready.start(&order, &[]));
    let inner = inner.map_err(told)?;
    loop {
        match keeper.progress(&inner).map_err(|error| error.to_string())? {
            Progress::Started { .. } => {}
            Progress::Failed(LaunchError::Exec { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                return Ok(());
            }
            Progress::Failed(error) => return Err(told(error)),
            Progress::Ended(..) | Progress::Gone => {
                return Err("an inner sandbox ended before its command was started".to_owned());
            }
        }
    }
}

/// What it says of its walls.
fn hear(trial: &OwnedFd) -> io::Result<Trial> {
    let mut bytes = vec![0; 16 << 10];
    let (length, _) = message::receive(trial, &mut bytes)?;
    match length {
        0 => Err(io::Error::other("it ended at once")),
        length => Ok(serde_json::from_slice(&bytes[..length])?),
    }
}
