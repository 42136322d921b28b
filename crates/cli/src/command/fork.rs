//! `sandbox fork`

use sandbox_model::name::NameError;
use sandbox_model::{Operation, SandboxName};
use sandbox_workspace::checkpoint;
use serde::Serialize;

use crate::command::create::shown;
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::progress::Bar;
use crate::record::recorded;
use crate::report::{Problem, Refusal};
use crate::summary::counted;
use crate::surroundings;

/// Make a sandbox of a sandbox
///
/// The new one has the same source and settings and its own copy of the changes and of the home
/// inside; running processes are not copied. With `-n` several are made, named NEW-1, NEW-2 and so on.
/// The names are printed on stdout.
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

/// What `--json` prints of each.
#[derive(Serialize)]
struct Forked {
    name: SandboxName,
    source: String,
    backend: &'static str,
}

pub(crate) fn fork(args: &Args) -> Result<Ending, Problem> {
    let original = surroundings::sandbox(&args.name)?;
    let names = match args.number {
        None => vec![args.new.clone()],
        Some(number) => numbered(&args.new, number)?,
    };
    let mut forks = Vec::new();
    for name in &names {
        let made = recorded(&original.root, Operation::Fork, |detail| {
            let fork = checkpoint::fork(&original, name, &mut Bar::default())?;
            detail.about(&fork);
            detail.text = format!("of {}", original.name());
            Ok(fork)
        })?;
        if !args.json {
            output::print_line(made.name().as_str())?;
        }
        forks.push(Forked {
            name: made.name().clone(),
            source: shown(made.source()),
            backend: made.meta.backend.as_str(),
        });
    }
    if args.json {
        output::print_json(&forks)?;
    }
    let count = counted(forks.len(), "sandbox", "sandboxes");
    narration::say(format_args!("Forked '{}' into {count}.", original.name()));
    Ok(Ending::DONE)
}

/// `NEW-1`, `NEW-2`, …; each must still be a name.
fn numbered(new: &SandboxName, number: u32) -> Result<Vec<SandboxName>, Problem> {
    let parse = |index: u32| {
        format!("{new}-{index}")
            .parse()
            .map_err(|error: NameError| {
                Refusal::new(format!("cannot number '{new}': {error}"))
                    .hint("choose a shorter name")
            })
    };
    Ok((1..=number).map(parse).collect::<Result<_, _>>()?)
}
