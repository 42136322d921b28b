//! What the black-box tests stand on: a place to sandbox, the two users, filesystems, a terminal,
//! and the check that nothing is left behind.
//!
//! The tests run the real `sandbox` binary, as root and as the ordinary user `tester`, and look
//! only at what a user could see. They need root (loop mounts, a second user) and fail loudly
//! without it. Nothing here knows the binary's insides but the layout it documents.

mod attempt;
mod binary;
mod filesystem;
mod fixture;
pub mod kernel;
mod leaks;
mod process;
mod server;
mod terminal;
mod tree;
mod user;

pub use attempt::Attempt;
pub use binary::{attacker_binary, need, sandbox_binary};
pub use filesystem::{Filesystem, Mounted, subvolume, unmount};
pub use fixture::{BOX, Fixture};
pub use leaks::{control_groups, marked_processes, mounts_below, wait_until_gone};
pub use process::{Outcome, PATIENCE, Running, await_exit, finish};
pub use server::{Answering, SECRET, abstract_name};
pub use terminal::Terminal;
pub use tree::Snapshot;
pub use user::User;

/// One promise, tested as root and as the ordinary user.
///
/// ```ignore
/// as_both! {
///     /// CVE-0000-0000.
///     fn nothing_gets_out(user) { … }
/// }
/// ```
#[macro_export]
macro_rules! as_both {
    ($($(#[$meta:meta])* fn $promise:ident($user:ident) $body:block)+) => {$(
        $(#[$meta])*
        mod $promise {
            #[allow(unused_imports, reason = "a promise may need nothing of its file")]
            use super::*;

            fn holds_for($user: $crate::User) $body

            #[test]
            fn as_root() {
                holds_for($crate::User::Root);
            }

            #[test]
            fn as_tester() {
                holds_for($crate::User::Tester);
            }
        }
    )+};
}
