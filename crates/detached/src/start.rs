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
use crate::raise::{self, RaiseError};
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

/// Runs until it is told to end.
pub(crate) fn start(arguments: Arguments) -> Result<(), StartError> {
    let source = Source::take(arguments.token)?;
    let state = State::open(&arguments)?;
    let raised = raise::raise(&arguments, &state)?;
    conceal().map_err(StartError::Conceal)?;
    let token = source.read()?;
    let runtime = tokio::runtime::Builder::new_current_thread();
    // Files are written and read beside: one that takes long must not silence a heartbeat.
    let runtime = { runtime }.enable_all().max_blocking_threads(4).build();
    let runtime = runtime.map_err(StartError::Runtime)?;
    let life = lifetime::live(arguments, &state, raised, token);
    let outcome = tokio::task::LocalSet::new().block_on(&runtime, life);
    // What is still being read or written beside is nobody's any more.
    runtime.shutdown_background();
    Ok(outcome?)
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
