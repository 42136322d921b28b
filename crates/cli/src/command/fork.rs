//! `sandbox fork`

use sandbox_model::SandboxName;

use crate::ending::Ending;
use crate::report::Problem;

/// Make a sandbox of a sandbox
///
/// The new one has the same source and settings and its own copy of the changes; running processes are
/// not copied. With `-n` several are made, named NEW-1, NEW-2 and so on. The names are printed on
/// stdout.
///
/// Examples:
///   sandbox fork risky riskier
///   sandbox fork risky attempt -n 5
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox to fork
    #[arg(value_name = "NAME")]
    name: String,

    /// The new one's name
    #[arg(value_name = "NEW")]
    new: SandboxName,

    /// How many to make
    #[arg(long, short = 'n', value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    number: Option<u32>,

    /// Print JSON: [{"name", "source", "backend"}]
    #[arg(long)]
    json: bool,
}

pub(crate) fn fork(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
