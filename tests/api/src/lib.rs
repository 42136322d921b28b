//! What the tests of the API stand on: a server of their own, and a way to speak to it.
//!
//! The tests start the real `sandbox serve`, as root and as the ordinary user `tester`, on the databases and
//! object stores that it can use, and know of it only what a client can: its answers, its log, the files in its
//! data directory and the processes on the machine. When a test ends the server does, and must leave
//! nothing.

mod client;
mod command_line;
mod contract;
mod events;
pub mod guide;
mod http;
mod leftovers;
pub mod load;
mod patience;
pub mod process;
mod promises;
mod server;
mod socket;
mod storage;

pub use client::{Form, encoded, id_of, is_time, like};
pub use command_line::{beside, pipe, rows, sandbox};
pub use events::{Event, Events};
pub use http::{Answer, Call, Opened};
pub use patience::{eventually, pause};
pub use promises::{Promise, keep_all};
pub use sandbox_tests::User;
pub use server::{Options, Server};
pub use socket::{Socket, escaped};
pub use storage::Storage;
