//! The control plane behind HTTP.
//!
//! [`serve`] puts everything together: the process that raises sessions, the records, the objects, the
//! control plane, and the routes. What a request may do and what it leads to is `sandbox-control`'s
//! affair; here it is read, its sender recognised, and its answer written.
#![forbid(unsafe_code)]

mod api;
mod authentication;
mod body;
mod client_address;
mod connections;
mod cors;
mod data_directory;
#[cfg(test)]
mod documents;
mod error;
mod exact;
mod forms;
mod forwarding;
mod idempotency;
mod identity;
mod internal;
mod logging;
mod measuring;
mod openapi;
mod pace;
mod paging;
mod perseverance;
mod pipe;
mod preview;
mod query;
mod ranges;
mod rate;
mod reference;
mod request_id;
mod router;
mod secrets;
mod serve;
mod session_users;
mod settings;
mod state;
mod tunnel;

pub use client_address::Network;
pub use error::ERROR_CODES;
pub use identity::kept_node;
pub use logging::is_level as is_log_level;
pub use openapi::{document, document_text};
pub use sandbox_control::Settings as ControlSettings;
pub use sandbox_store::objects::{Addressing, Credentials, Location, Role};
pub use sandbox_store::records::Pool;
pub use serve::{ServeError, Served, check, serve};
pub use settings::{S3, SHORTEST_KEY, Secret, SessionUids, Settings};
