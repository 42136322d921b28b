//! `sandbox enter`

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use sandbox_isolation::Terminal;
use sandbox_model::Operation;

use crate::command::create::shown;
use crate::ending::Ending;
use crate::isolation_options::IsolationOptions;
use crate::report::Problem;
use crate::shell::{self, Prompt};
use crate::summary;
use crate::surroundings;
use crate::workload::{self, Workload, shown_command};

/// Open an interactive shell in a sandbox
///
/// The shell is SANDBOX_SHELL, `shell` of config.toml, your own SHELL or /bin/sh, the first that exists
/// inside. Its prompt starts with [sandbox:NAME] in bash, zsh and fish. It runs on a terminal of its
/// own and starts in the directory you are in, when that is inside the source.
///
/// The home inside holds toolchains and caches, not your rc files; SANDBOX_NAME tells a program
/// where it is.
///
/// Examples:
///   sandbox enter risky
///   sandbox enter risky -c 'make test; exec bash'
///   SANDBOX_SHELL=/usr/bin/fish sandbox enter risky
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Run this line in the shell instead of an interactive session
    #[arg(long, short, value_name = "LINE", allow_hyphen_values = true)]
    command: Option<OsString>,

    /// Leave the shell's prompt as it is
    #[arg(long)]
    no_prompt: bool,

    #[command(flatten)]
    isolation: IsolationOptions,
}

pub(crate) fn enter(args: &Args) -> Result<Ending, Problem> {
    let sandbox = surroundings::sandbox(&args.name)?;
    let shells = surroundings::shells(&surroundings::config()?);
    let prompt = if args.no_prompt {
        Prompt::Untouched
    } else {
        Prompt::Marked
    };
    let at_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    // Without a terminal the shell reads its commands from stdin, where a prompt would be noise.
    let (terminal, prompt) = match at_terminal {
        true => (Terminal::New, prompt),
        false => (Terminal::Inherit, Prompt::Untouched),
    };
    let entrance = shell::entrance(&shells, prompt, args.command.as_ref());
    let label = match &args.command {
        Some(line) => shown_command(std::slice::from_ref(line)),
        None => shells.first().map(|shell| shown(shell)).unwrap_or_default(),
    };
    let workload = Workload {
        command: entrance.command,
        settings: args.isolation.over(&sandbox.meta.settings),
        terminal,
        label: Some(label),
        variables: entrance.variables,
    };
    let performed = workload::perform(&sandbox, &workload, Operation::Enter)?;
    summary::say_refused(&performed.refused);
    Ok(performed.ending)
}
