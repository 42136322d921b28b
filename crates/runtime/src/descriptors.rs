//! How many descriptors a process may have.
//!
//! Whoever hosts sessions has some for each of them, and is usually allowed a thousand until it asks for
//! more. An executor keeps that. Code in a session is allowed far fewer (`sandbox_isolation::limits`).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows this process, and what it starts from now on, as many descriptors as it may be allowed.
pub fn allow_all() {
    let usual = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: usual.maximum,
        maximum: usual.maximum,
    };
    // Where this is refused, there are fewer sessions at a time, and each that does not fit says why.
    let _ = setrlimit(Resource::Nofile, all);
}

/// How many this process may have now.
pub fn allowed() -> u64 {
    let allowed = getrlimit(Resource::Nofile).current;
    allowed.unwrap_or(u64::MAX)
}
