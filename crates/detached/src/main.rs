//! `sandbox-executor`: the executor as a program of its own, for sessions that run where the server is not.
//!
//! It is one static file that is put into a container, and two processes when it runs. The *executor* is
//! the library of that name: it runs code behind walls, forks, and so has one thread and knows no secret. The
//! *door* is the process that was started: it answers HTTP for whoever brings the session's token, and tells
//! the control plane what becomes of the code. They are joined by the same line that a server has to its
//! local sessions, and either ends with the other.
//!
//! What it promises: a result that was had is told until the control plane has it or refuses it, also when
//! the control plane, this program or both are killed meanwhile; never a second one of the same execution;
//! and code that is run sees neither the token nor what is kept here. Walls that cannot be had are refused at
//! the start, with the reason: they are never silently weaker than what was asked for.
#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod content;
mod control_plane;
mod courier;
mod door;
mod ending;
mod executions;
mod files;
mod journal;
mod lifetime;
mod raise;
mod random;
mod report;
mod request;
mod routes;
mod spool;
mod start;
mod state;
mod token;

use std::io::Write;
use std::process::ExitCode;

use arguments::Wish;

/// As in the `sandbox` binary: musl's own asks the kernel for every few pages and gives them back as soon.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Wish::Run(arguments)) => arguments,
        Ok(Wish::Help) => return say(arguments::HELP),
        Ok(Wish::Version) => {
            return say(concat!(
                "sandbox-executor ",
                env!("CARGO_PKG_VERSION"),
                "\n"
            ));
        }
        Err(error) => return ending::tell(&error),
    };
    match start::start(*arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ending::tell(&error),
    }
}

fn say(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
