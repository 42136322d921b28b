//! The control plane: sessions, executions, templates and files, whichever door asks for them.
//!
//! [`Control`] is what a door holds. It decides what may be done, has the runtime do it, and writes down
//! what was done; how a request arrives and how its answer looks is the door's affair. Every change goes
//! through a state machine of `sandbox-model`, names the version it was made from, and leaves an audit
//! record.
#![forbid(unsafe_code)]

mod activity;
mod audit;
mod callback;
mod caller;
mod clock;
mod control;
mod error;
mod events;
mod execution;
mod file;
mod keeping;
mod keys;
mod live;
mod lost;
mod measure;
mod node;
mod outcome;
mod packages;
mod pool;
mod port;
pub mod random;
mod reaper;
mod recovery;
mod repetition;
mod session;
mod settings;
mod silence;
#[cfg(test)]
mod stage;
mod template;
mod tenure;
mod terminal;
mod underway;

pub use callback::{Exit, News, Ready};
pub use caller::{Caller, Repeatable};
pub use control::Control;
pub use error::{ControlError, Kind, chain};
pub use events::Watch;
pub use execution::{Finished, NewExecution, Output, Submitted};
pub use file::{Archived, MOST_BYTES, Opened, Upload, unwritable};
pub use keys::{Made, hash, new_secret};
pub use node::Elsewhere;
pub use pool::PoolChoice;
pub use port::{Connection, Held, PortError};
pub use repetition::Turn;
pub use session::{Asked, NewSession, Source, check_agent_id};
pub use settings::Settings;
pub use template::{Patch, TemplateParts};
pub use terminal::{NewTerminal, Over, Size, Terminal};
