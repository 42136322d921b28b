//! `sandbox man`

use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use crate::arguments::Arguments;
use crate::ending::Ending;
use crate::narration;
use crate::output::Output;
use crate::report::{Problem, Refusal};

/// Print the manual page, or write one for every command
///
/// Examples:
///   sandbox man | man -l -
///   sandbox man ~/.local/share/man/man1
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A directory for sandbox.1, sandbox-create.1 and so on
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn man(args: &Args) -> Result<Ending, Problem> {
    match &args.directory {
        Some(directory) => write_pages(directory)?,
        None => print_page()?,
    }
    Ok(Ending::DONE)
}

fn print_page() -> Result<(), Problem> {
    let mut out = Output::open();
    match clap_mangen::Man::new(Arguments::command()).render(&mut out) {
        Ok(()) => Ok(out.finish()?),
        Err(error) => Err(out.blame(error, "cannot write the manual page")),
    }
}

fn write_pages(directory: &Path) -> Result<(), Problem> {
    let failed = |error: io::Error| {
        Refusal::io(
            format!("cannot write manual pages to {}", directory.display()),
            error,
        )
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let mut pages = 0;
    for (name, page) in pages_of(Arguments::command()).map_err(failed)? {
        std::fs::write(directory.join(name), page).map_err(failed)?;
        pages += 1;
    }
    narration::say(format_args!(
        "Wrote {pages} manual pages to {}.",
        directory.display()
    ));
    Ok(())
}

/// Every page: its file name and its text.
fn pages_of(mut command: clap::Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, "sandbox", &mut pages)?;
    Ok(pages)
}

/// Adds the page of a command, and of everything below it.
fn add_pages(
    command: &clap::Command,
    name: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> io::Result<()> {
    pages.push((format!("{name}.1"), page_of(command.clone())?));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        add_pages(sub, &format!("{name}-{}", sub.get_name()), pages)?;
    }
    Ok(())
}

fn page_of(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command and those below it that are shown.
    fn visible(command: &clap::Command) -> usize {
        let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        1 + below.map(visible).sum::<usize>()
    }

    #[test]
    fn every_command_has_a_page_with_its_examples() {
        let pages = pages_of(Arguments::command()).unwrap();
        assert_eq!(pages.len(), visible(&Arguments::command()));
        for (name, page) in pages {
            let text = String::from_utf8(page).unwrap();
            assert!(text.contains("Examples:"), "{name}");
        }
    }
}
