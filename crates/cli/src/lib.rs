//! The `sandbox` command line: arguments in, library calls, text out.
//!
//! One file per command below [`command`], each an `Args` struct whose doc comment is its help and one
//! function. Everything here that reads the environment is in `surroundings`, everything that
//! prints goes through `output` (data, stdout) or `narration` (the rest, stderr), and every error is
//! told by `report`. What a command does to files and processes is the libraries' work.
//!
//! `run` and `try` are the product's latency, so [`main`] tries `quick`, a hand-written parser of
//! their common forms, before it builds the whole argument parser.
#![forbid(unsafe_code)]

mod ages;
mod arguments;
mod bridge;
mod chooser;
mod client;
mod command;
mod config;
mod credentials;
mod ending;
#[cfg(test)]
mod generated;
mod interruption;
mod isolation_options;
mod narration;
mod output;
mod preview;
mod progress;
mod promotion;
mod prompt;
mod quick;
mod quoting;
mod reading;
mod record;
mod refusals;
mod repair;
mod report;
mod serve;
mod shell;
mod status;
mod summary;
mod surroundings;
mod table;
mod undoing;
mod usage;
mod workload;

use std::process::ExitCode;

use ending::Ending;

/// Runs the command line of this process and says how it should end.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let result = match quick::parse(&arguments) {
        Some(command) => command.execute(),
        None => arguments::parse(arguments).and_then(command::Command::execute),
    };
    let ending = result.unwrap_or_else(|problem| Ending::Status(report::tell(&problem)));
    interruption::release();
    ending.take()
}
