//! `make bench`: measures the `sandbox` binary against its peers and holds it to its bars.
//!
//! Every comparison is interleaved (ours, peer, ours, peer, …) within one run, warm, and reported
//! as medians and their ratio. The exit status is 1 when a bar is missed. Loop images and tmpfs
//! are mounted for it, so it runs as root, best in a mount namespace of its own; with
//! `--user NAME` everything that is measured runs as that user.
#![forbid(unsafe_code)]
// This is the report itself.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod client;
mod measure;
mod options;
mod processes;
mod report;
mod server;
mod stage;
mod timing;
mod tree;

use std::process::ExitCode;

use options::{Options, Request};
use report::{Report, Row};
use stage::{Stage, StageError};

/// A named measurement, as `--only` takes it.
type Measurement = (&'static str, fn(&mut Stage) -> Result<Vec<Row>, StageError>);

const MEASUREMENTS: [Measurement; 13] = [
    ("launch", measure::launch::rows),
    ("create", measure::create::rows),
    ("diff", measure::diff::rows),
    ("copy", measure::copy::rows),
    ("promote", measure::promote::rows),
    ("inside", measure::inside::rows),
    ("memory", measure::memory::rows),
    ("sessions", measure::sessions::rows),
    ("executions", measure::executions::rows),
    ("timeouts", measure::timeouts::rows),
    ("transfer", measure::transfer::rows),
    ("stored", measure::stored::rows),
    ("scale", measure::scale::rows),
];

fn main() -> ExitCode {
    match Options::parse(std::env::args_os().skip(1)) {
        Ok(Request::Bench(options)) => bench(&options),
        Ok(Request::Timer { rounds, command }) => timing::print_rounds(rounds, &command),
        Err(message) => {
            eprintln!("error: {message}\n{}", options::USAGE);
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> ExitCode {
    match measure_all(options) {
        Ok(report) => {
            println!("\n{report}");
            for row in report.missed() {
                println!("missed: {}", row.what());
            }
            if report.missed().next().is_some() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(next) = cause {
                eprintln!("  caused by: {next}");
                cause = next.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn measure_all(options: &Options) -> Result<Report, StageError> {
    let mut stage = Stage::set(options)?;
    println!("{}", stage.description()?);
    let mut report = Report::default();
    for (name, rows) in MEASUREMENTS {
        if options.wants(name) {
            eprintln!("measuring: {name}");
            report.add(rows(&mut stage)?);
        }
    }
    Ok(report)
}
