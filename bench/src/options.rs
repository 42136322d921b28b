//! The arguments.

use std::ffi::OsString;
use std::path::PathBuf;

/// How it is called.
pub const USAGE: &str = "\
usage: sandbox-bench --sandbox PATH [--user NAME] [--only launch,create,diff,copy,promote,inside,memory,
                                                          sessions,executions,timeouts,transfer,stored,scale]
       sandbox-bench timer ROUNDS COMMAND…   (prints what each round took, in nanoseconds)";

/// What to do.
pub enum Request {
    /// Measure.
    Bench(Options),
    /// Time a command from within wherever this process runs.
    Timer {
        /// How often.
        rounds: usize,
        /// What.
        command: Vec<OsString>,
    },
}

/// What to measure, as whom.
pub struct Options {
    /// The binary.
    pub sandbox: PathBuf,
    /// As whom; root unless named.
    pub user: Option<String>,
    only: Vec<String>,
}

impl Options {
    /// Reads the arguments after the program's name.
    pub fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Request, String> {
        let mut sandbox = None;
        let mut user = None;
        let mut only = Vec::new();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or(format!("{} needs a value", argument.display()))
            };
            match argument.to_str() {
                Some("timer") => {
                    let rounds = value()?.to_str().and_then(|text| text.parse().ok());
                    return Ok(Request::Timer {
                        rounds: rounds.ok_or("timer needs a number of rounds")?,
                        command: arguments.collect(),
                    });
                }
                Some("--sandbox") => sandbox = Some(PathBuf::from(value()?)),
                Some("--user") => user = Some(text(value()?)?),
                Some("--only") => only.extend(text(value()?)?.split(',').map(str::to_owned)),
                _ => return Err(format!("unknown argument {}", argument.display())),
            }
        }
        Ok(Request::Bench(Options {
            sandbox: sandbox.ok_or("--sandbox is missing")?,
            user,
            only,
        }))
    }

    /// Was the measurement `name` asked for? All are unless some were named.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }
}

fn text(value: OsString) -> Result<String, String> {
    value
        .into_string()
        .map_err(|value| format!("not text: {}", value.display()))
}
