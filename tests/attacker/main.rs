//! One attempt at something a sandbox must prevent.
//!
//! `attacker ATTEMPT ARGUMENT…` makes the attempt with raw system calls and tells how it went in one
//! line: `done DETAIL` (exit 0) or `refused ERRNO DETAIL` (exit 10). Whether that is right is the
//! caller's to judge: each attempt is also made outside, where it must succeed, so that a broken
//! attempt cannot pass for a wall. The last few are no attempts but props: what surrounds a
//! command with an extra descriptor, a terminal, a process group.

use std::io::Write as _;
use std::process::ExitCode;

mod abi;
mod files;
mod namespaces;
mod processes;
mod props;
mod resources;
mod sockets;
mod syscalls;
mod terminal;

/// How an attempt ended: what was reached, or what said no.
type Attempt = Result<String, Refusal>;

/// What said no.
struct Refusal {
    errno: i32,
    at: String,
}

/// The last system call's error, named by what was tried.
fn refused(at: &str) -> Refusal {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Refusal {
        errno,
        at: at.to_owned(),
    }
}

/// The same for the standard library's calls.
fn refused_by(at: &str) -> impl FnOnce(std::io::Error) -> Refusal {
    let at = at.to_owned();
    move |error| Refusal {
        errno: error.raw_os_error().unwrap_or(0),
        at: format!("{at}: {error}"),
    }
}

/// A raw result of a system call: negative is the error in `errno`.
fn checked(at: &str, result: i64) -> Result<i64, Refusal> {
    if result < 0 {
        Err(refused(at))
    } else {
        Ok(result)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((attempt, rest)) = arguments.split_first() else {
        return usage("no attempt named");
    };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let modules = [
        files::attempt,
        sockets::attempt,
        namespaces::attempt,
        processes::attempt,
        syscalls::attempt,
        abi::attempt,
        terminal::attempt,
        resources::attempt,
        props::attempt,
    ];
    for module in modules {
        if let Some(result) = module(attempt, &rest) {
            return tell(result);
        }
    }
    usage(&format!(
        "no attempt named {attempt:?} with {} arguments",
        rest.len()
    ))
}

fn tell(result: Attempt) -> ExitCode {
    let (line, code) = match result {
        Ok(detail) => (format!("done {detail}"), 0),
        Err(refusal) => (format!("refused {} {}", refusal.errno, refusal.at), 10),
    };
    // A closed pipe is the caller's affair: the exit status tells the same.
    let _ = writeln!(std::io::stdout(), "{line}");
    ExitCode::from(code)
}

fn usage(why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "attacker: {why}");
    ExitCode::from(2)
}
