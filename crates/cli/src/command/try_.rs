//! `sandbox try`

use std::ffi::OsString;

use sandbox_model::BackendChoice;

use crate::ending::Ending;
use crate::isolation_options::IsolationOptions;
use crate::report::Problem;

/// Run a command on a copy of the current directory, look, then decide
///
/// The command runs in a new sandbox of the current directory. Then what changed is shown, and one key
/// decides: [p]romote applies it, [k]eep leaves the sandbox for later, [d]iff shows all of it,
/// [x] discards it. Without a terminal and without a flag the sandbox is kept. When nothing
/// changed, it is discarded without a question.
///
/// The exit status is the command's own, or 5 when --promote meets a conflict.
///
/// Examples:
///   sandbox try -- make risky-thing
///   sandbox try --discard -- ./install.sh --prefix=/usr/local
///   sandbox try --promote -- cargo fix
///   sandbox try --isolated-network 'npm ci && npm test'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(
    verbatim_doc_comment,
    override_usage = "sandbox try [OPTIONS] [--] <CMD>..."
)]
pub(crate) struct Args {
    /// The command and its arguments; one argument is given to `sh -c`
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub(crate) command: Vec<OsString>,

    /// Apply the changes when the command succeeds; keep the sandbox when it fails
    #[arg(long, conflicts_with_all = ["keep", "discard"])]
    pub(crate) promote: bool,

    /// Keep the sandbox
    #[arg(long, conflicts_with = "discard")]
    pub(crate) keep: bool,

    /// Throw the sandbox away
    #[arg(long)]
    pub(crate) discard: bool,

    /// How to copy: auto, btrfs, overlay or copy
    #[arg(long, visible_alias = "copy", value_name = "BACKEND")]
    pub(crate) backend: Option<BackendChoice>,

    /// Sandbox '/', the home directory or the sandbox root itself, too; with --promote, do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) isolation: IsolationOptions,
}

pub(crate) fn try_(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
