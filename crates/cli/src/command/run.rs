//! `sandbox run`

use std::ffi::{OsStr, OsString};

use sandbox_model::Operation;

use crate::ending::Ending;
use crate::isolation_options::IsolationOptions;
use crate::report::{Problem, Refusal};
use crate::surroundings;
use crate::workload::{self, Workload};

/// Run a command in a sandbox
///
/// One argument is given to `sh -c`; several are run as they are. Everything after NAME belongs to the
/// command. Its exit status, signals, stdin, stdout and stderr pass through untouched; 127 means
/// that it was not found, 126 that it could not be run.
///
/// It starts in the directory you are in, when that is inside the source, else at its top.
///
/// Examples:
///   sandbox run risky cargo test
///   sandbox run risky 'make clean && make'
///   sandbox run --isolated-network risky npm test
///   sandbox run --memory 1G --pids 100 risky ./suspicious
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(
    verbatim_doc_comment,
    override_usage = "sandbox run [OPTIONS] <NAME> [--] <CMD>..."
)]
pub(crate) struct Args {
    /// The sandbox, then the command and its arguments
    // One list, so that a flag right after NAME is the command's already.
    #[arg(value_name = "NAME> <CMD", trailing_var_arg = true, required = true)]
    pub(crate) words: Vec<OsString>,

    #[command(flatten)]
    pub(crate) isolation: IsolationOptions,
}

impl Args {
    /// The sandbox's name, and the command with the shell before it where it is one text.
    fn resolve(&self) -> Result<(&OsStr, Vec<OsString>), Problem> {
        let (name, command) = self.words.split_first().ok_or_else(no_command)?;
        let command = match command {
            [dashes, rest @ ..] if dashes == "--" => rest,
            whole => whole,
        };
        match command {
            [] => Err(no_command().into()),
            command => Ok((name, shell_wrapped(command))),
        }
    }
}

fn no_command() -> Refusal {
    Refusal::new("there is no command to run")
        .hint("usage: sandbox run [OPTIONS] <NAME> [--] <CMD>...")
}

/// A single argument is a line for the shell. One that is nothing but a path means the same to the
/// shell as to exec, and a shell that only starts it costs two processes.
pub(crate) fn shell_wrapped(command: &[OsString]) -> Vec<OsString> {
    match command {
        [path] if is_plain_path(path) => vec![path.clone()],
        [line] => vec!["sh".into(), "-c".into(), line.clone()],
        words => words.to_vec(),
    }
}

/// A path with a slash and no character that means something to a shell.
fn is_plain_path(word: &OsStr) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
    word.as_bytes().contains(&b'/') && word.as_bytes().iter().all(plain)
}

pub(crate) fn run(args: &Args) -> Result<Ending, Problem> {
    let (name, command) = args.resolve()?;
    let sandbox = surroundings::sandbox(&name.to_string_lossy())?;
    let settings = args.isolation.over(&sandbox.meta.settings);
    let workload = Workload::plain(command, settings);
    let done = workload::perform(&sandbox, &workload, Operation::Run)?;
    Ok(done.ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(words: &[&str]) -> Option<(String, Vec<String>)> {
        let words = words.iter().map(OsString::from).collect();
        let args = Args {
            words,
            isolation: IsolationOptions::default(),
        };
        let (name, command) = args.resolve().ok()?;
        let text = |word: &OsStr| word.to_string_lossy().into_owned();
        Some((text(name), command.iter().map(|word| text(word)).collect()))
    }

    #[test]
    fn one_argument_is_a_shell_line_and_several_are_a_command() {
        let (_, command) = resolved(&["n", "make && make test"]).unwrap();
        assert_eq!(command, ["sh", "-c", "make && make test"]);
        let (_, command) = resolved(&["n", "./make"]).unwrap();
        assert_eq!(command, ["./make"], "a path needs no shell");
        for line in ["make", "./a b", "./a;b", "/bin/$x", "~/a", "./a*", "A=/b c"] {
            let (_, command) = resolved(&["n", line]).unwrap();
            assert_eq!(command, ["sh", "-c", line]);
        }
        let (_, command) = resolved(&["n", "ls", "-l"]).unwrap();
        assert_eq!(command, ["ls", "-l"]);
    }

    #[test]
    fn one_pair_of_dashes_is_ours_and_the_next_the_commands() {
        let (name, command) = resolved(&["n", "--", "a", "--"]).unwrap();
        assert_eq!(
            (name.as_str(), command),
            ("n", vec!["a".into(), "--".into()])
        );
        assert_eq!(resolved(&["n"]), None);
        assert_eq!(resolved(&["n", "--"]), None);
    }
}
