//! `sandbox file`

mod get;
mod landing;
mod list;
mod put;
mod remove;

use crate::client::ServerOptions;
use crate::ending::Ending;
use crate::report::Problem;

/// Put files into a session's workspace, and get them out
///
/// A PATH is relative to the workspace, which code knows as /workspace; /workspace/PATH means the same.
///
/// Examples:
///   sandbox file put sess_0123456789abcdef data.csv
///   sandbox file get sess_0123456789abcdef out/plot.png
///   sandbox file list sess_0123456789abcdef out
///   sandbox file archive sess_0123456789abcdef | tar -t
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    server: ServerOptions,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
#[cfg_attr(test, derive(PartialEq))]
enum Verb {
    Put(put::Args),
    Get(get::Args),
    #[command(visible_alias = "ls")]
    List(list::Args),
    #[command(visible_alias = "rm")]
    Remove(remove::Args),
    Archive(get::ArchiveArgs),
}

pub(crate) fn file(args: &Args) -> Result<Ending, Problem> {
    let client = args.server.connect()?;
    match &args.verb {
        Verb::Put(args) => put::put(&client, args),
        Verb::Get(args) => get::get(&client, args),
        Verb::List(args) => list::list(&client, args),
        Verb::Remove(args) => remove::remove(&client, args),
        Verb::Archive(args) => get::archive(&client, args),
    }
}
