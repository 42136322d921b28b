//! From the arguments to a door that is open.
//!
//! The order matters. The token's descriptor is taken before anything is opened; the executor is forked while
//! there is one thread; and only then, when no copy of this process's memory will be made any more and
//! nobody may look into it, is the token read.

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use sandbox_model::{Class, Failure};
use thiserror::Error;

use crate::arguments::Arguments;
use crate::lifetime::{self, LifetimeError};
use crate::raise::{self, RaiseError, Raised};
use crate::state::{State, StateError};
use crate::token::{Source, TokenError};

/// Why it does not run, or not any more.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Raise(#[from] RaiseError),
    #[error("cannot keep others from this process's memory")]
    Conceal(#[source] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Lifetime(#[from] LifetimeError),
}

impl Failure for StartError {
    fn class(&self) -> Class {
        match self {
            StartError::Token(error) => error.class(),
            StartError::State(error) => error.class(),
            StartError::Raise(error) => error.class(),
            StartError::Lifetime(error) => error.class(),
            StartError::Conceal(error) | StartError::Runtime(error) => Class::of_io(error),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            StartError::Token(error) => error.hint(),
            StartError::State(error) => error.hint(),
            StartError::Raise(error) => error.hint(),
            StartError::Lifetime(error) => error.hint(),
            StartError::Conceal(_) | StartError::Runtime(_) => None,
        }
    }
}

/// Runs until it is told to end. Where it cannot even begin to, the control plane is told that it ended.
pub(crate) fn start(arguments: Arguments) -> Result<(), StartError> {
    let source = Source::take(arguments.token)?;
    let begun = begin(&arguments);
    conceal().map_err(StartError::Conceal)?;
    let token = source.read()?;
    let runtime = tokio::runtime::Builder::new_current_thread();
    // Files are written and read beside: one that takes long must not silence a heartbeat.
    let runtime = { runtime }.enable_all().max_blocking_threads(16).build();
    let runtime = runtime.map_err(StartError::Runtime)?;
    let set = tokio::task::LocalSet::new();
    let outcome = match begun {
        Ok((state, raised)) => {
            let life = lifetime::live(arguments, &state, raised, token);
            set.block_on(&runtime, life).map_err(StartError::from)
        }
        Err(error) => {
            let status = error.class().exit_status().into();
            set.block_on(&runtime, lifetime::stillborn(&arguments, token, status));
            Err(error)
        }
    };
    // What is still being read or written beside is nobody's any more.
    runtime.shutdown_background();
    outcome
}

/// What needs a single thread.
fn begin(arguments: &Arguments) -> Result<(State, Raised), StartError> {
    let state = State::open(arguments)?;
    let raised = raise::raise(arguments, &state)?;
    Ok((state, raised))
}

/// From here on nobody but root may look into this process, and none of it is ever dumped.
fn conceal() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let nothing = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(setrlimit(Resource::Core, nothing)?)
}
