//! The whole argument parser, for everything `quick` leaves to it.

use std::ffi::OsString;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser};

use crate::command::Command;
use crate::narration::Paint;
use crate::report::Problem;
use crate::usage;

/// Try anything on a copy, keep what you like
///
/// A sandbox is a private copy-on-write view of a directory. What runs in it is isolated from the rest
/// of the machine and sees its own copy at the directory's own path. Look at what changed, then
/// apply all of it, some of it, or nothing.
///
/// Examples:
///   sandbox try -- make risky-thing      run on a copy, look, then decide
///   sandbox create risky-refactor        a named sandbox of the current directory
///   sandbox enter risky-refactor         a shell in it
///   sandbox diff risky-refactor          what changed
///   sandbox promote risky-refactor       apply it to the source
///   sandbox discard risky-refactor       throw it away
///
/// Exit statuses:
///   0  done, or declined at a prompt     4  source not found
///   1  general and usage errors          5  promote conflict
///   2  sandbox not found                 6  disk or size limit exhausted
///   3  permission denied
///   run, enter and try return the command's own status.
///
/// Environment:
///   SANDBOX_ROOT      where sandboxes are kept ($HOME/.local/share/daedalos/sandbox)
///   SANDBOX_BACKEND   the backend of new sandboxes
///   SANDBOX_SHELL     the shell of `enter`
///   NO_COLOR          no colours
#[derive(Debug, Parser)]
#[command(name = "sandbox", bin_name = "sandbox", version, verbatim_doc_comment)]
#[command(disable_help_subcommand = false, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Parses the arguments after the program's name.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Command, Problem> {
    // Without anything to do we say what could be done, as success: nothing went wrong.
    let arguments = match arguments.is_empty() {
        true => vec![OsString::from("--help")],
        false => arguments,
    };
    let colour = match Paint::stdout().is_on() {
        true => ColorChoice::Always,
        false => ColorChoice::Never,
    };
    let program = std::iter::once(OsString::from("sandbox"));
    let mut parser = Arguments::command().color(colour);
    let first = arguments.first().and_then(|word| word.to_str());
    let command = first
        .filter(|word| parser.find_subcommand(word).is_some())
        .map(str::to_owned);
    parser
        .try_get_matches_from_mut(program.chain(arguments))
        .and_then(|matches| Arguments::from_arg_matches(&matches))
        .map(|arguments| arguments.command)
        .map_err(|error| usage::translate(&error, command.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated;

    #[test]
    fn the_argument_definitions_are_consistent() {
        Arguments::command().debug_assert();
    }

    /// Every help text, as `docs/cli.md` shows it.
    fn reference() -> String {
        let mut text = String::from(
            "# Command-line reference\n\nEvery command's `--help`, generated from the program and tested current.\n",
        );
        let mut program = Arguments::command()
            .term_width(100)
            .color(ColorChoice::Never);
        program.build();
        let commands = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let names: Vec<String> = commands
            .map(|command| command.get_name().to_owned())
            .collect();
        text.push_str(&section("sandbox", &program.render_long_help().to_string()));
        for name in names.iter().filter(|name| *name != "help") {
            let command = program.find_subcommand_mut(name).unwrap();
            let help = command.render_long_help().to_string();
            text.push_str(&section(&format!("sandbox {name}"), &help));
        }
        text
    }

    fn section(title: &str, help: &str) -> String {
        let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        format!("\n## {title}\n\n```text\n{}\n```\n", lines.join("\n"))
    }

    #[test]
    fn the_reference_is_current() {
        generated::must_be_current("docs/cli.md", &reference());
    }

    #[test]
    fn every_command_has_examples() {
        let program = Arguments::command();
        for command in program
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let help = command
                .get_long_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.contains("Examples:\n  "), "{}", command.get_name());
        }
    }
}
