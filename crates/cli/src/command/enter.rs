//! `sandbox enter`

use std::ffi::OsString;

use crate::ending::Ending;
use crate::isolation_options::IsolationOptions;
use crate::report::Problem;

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
    todo!("{args:?}")
}
