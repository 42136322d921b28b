//! Speaking to a server's HTTP API.
//!
//! [`ServerOptions`] says which server and with which key, a [`Request`] what is asked, a [`Client`] asks
//! it: it waits where the server says so and asking again is safe, and turns what the server refuses into
//! an error with its words. What is large comes and goes in pieces ([`Stream`], [`Upload`]).
//!
//! The key goes to the server that was named, encrypted or to this machine itself, and nowhere else: no
//! redirect is followed but that of a download, which is asked for without it.
//!
//! Nothing here prints. The runtime is one thread's and starts with the client, so that commands which
//! need no server pay nothing for it.

mod address;
mod connection;
mod error;
mod events;
mod key;
mod listing;
mod options;
mod patience;
mod random;
mod request;
mod stream;
mod upload;

pub(crate) use connection::{Answer, Client};
pub(crate) use error::ClientError;
pub(crate) use events::{Event, Events};
pub(crate) use listing::{Paging, listing};
pub(crate) use options::ServerOptions;
pub(crate) use request::{Request, workspace_path};
pub(crate) use stream::{Interruptions, Next, Stream};
pub(crate) use upload::Upload;
