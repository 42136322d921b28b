//! The commands: one file each, or one directory where a noun has many verbs.

pub(crate) mod completions;
pub(crate) mod create;
pub(crate) mod diff;
pub(crate) mod discard;
pub(crate) mod doctor;
pub(crate) mod enter;
pub(crate) mod exec;
pub(crate) mod execution;
pub(crate) mod file;
pub(crate) mod fork;
pub(crate) mod gc;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod info;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod node;
pub(crate) mod path;
pub(crate) mod pause;
pub(crate) mod promote;
pub(crate) mod resources;
pub(crate) mod resume;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod snapshot;
pub(crate) mod sync;
pub(crate) mod template;
pub(crate) mod try_;
pub(crate) mod version;

use crate::ending::Ending;
use crate::report::Problem;

/// A command with its arguments.
#[derive(Debug, clap::Subcommand)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) enum Command {
    Create(create::Args),
    Try(try_::Args),
    #[command(visible_alias = "ls")]
    List(list::Args),
    Enter(enter::Args),
    Run(run::Args),
    Exec(Box<exec::Args>),
    Diff(diff::Args),
    Promote(promote::Args),
    #[command(visible_alias = "rm")]
    Discard(discard::Args),
    Sync(sync::Args),
    Fork(fork::Args),
    Snapshot(snapshot::Args),
    Rollback(rollback::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Info(info::Args),
    Path(path::Args),
    History(history::Args),
    Gc(gc::Args),
    Serve(Box<serve::Args>),
    Session(session::Args),
    Execution(execution::Args),
    File(file::Args),
    Template(template::Args),
    Key(key::Args),
    Node(node::Args),
    Health(health::Args),
    Doctor(doctor::Args),
    Version(version::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(name = "__complete-names", hide = true)]
    CompleteNames {
        /// Those of discarded sandboxes that can be restored
        #[arg(long)]
        discarded: bool,
    },
}

impl Command {
    /// Does it.
    pub(crate) fn execute(self) -> Result<Ending, Problem> {
        match self {
            Command::Create(args) => create::create(&args),
            Command::Try(args) => try_::try_(&args),
            Command::List(args) => list::list(&args),
            Command::Enter(args) => enter::enter(&args),
            Command::Run(args) => run::run(&args),
            Command::Exec(args) => exec::exec(&args),
            Command::Diff(args) => diff::diff(&args),
            Command::Promote(args) => promote::promote(&args),
            Command::Discard(args) => discard::discard(&args),
            Command::Sync(args) => sync::sync(&args),
            Command::Fork(args) => fork::fork(&args),
            Command::Snapshot(args) => snapshot::snapshot(&args),
            Command::Rollback(args) => rollback::rollback(&args),
            Command::Pause(args) => pause::pause(&args),
            Command::Resume(args) => resume::resume(&args),
            Command::Info(args) => info::info(&args),
            Command::Path(args) => path::path(&args),
            Command::History(args) => history::history(&args),
            Command::Gc(args) => gc::gc(&args),
            Command::Serve(args) => serve::serve(&args),
            Command::Session(args) => session::session(&args),
            Command::Execution(args) => execution::execution(&args),
            Command::File(args) => file::file(&args),
            Command::Template(args) => template::template(&args),
            Command::Key(args) => key::key(&args),
            Command::Node(args) => node::node(&args),
            Command::Health(args) => health::health(&args),
            Command::Doctor(args) => doctor::doctor(&args),
            Command::Version(args) => version::version(&args),
            Command::Completions(args) => completions::completions(&args),
            Command::Man(args) => man::man(&args),
            Command::CompleteNames { discarded } => completions::names(discarded),
        }
    }
}
