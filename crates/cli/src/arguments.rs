//! The whole argument parser, for everything `quick` leaves to it.

use std::ffi::{OsStr, OsString};

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser};
use sandbox_model::SessionId;

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
/// The same as a service: `sandbox serve` has sessions behind an HTTP API, and `session`, `exec`,
/// `execution`, `file`, `template`, `key`, `node` and `health` speak to it.
///
/// Exit statuses:
///   0  done, or declined at a prompt     4  source not found
///   1  general and usage errors          5  conflict, of a promote or with a session's state
///   2  sandbox or session not found      6  disk, size or other limit exhausted
///   3  permission denied
///   run, exec, enter and try return the command's own status.
///
/// Environment:
///   SANDBOX_ROOT      where sandboxes are kept ($HOME/.local/share/daedalos/sandbox)
///   SANDBOX_BACKEND   the backend of new sandboxes
///   SANDBOX_SHELL     the shell of `enter`
///   SANDBOX_SERVER    the server of `session`, `exec`, `file`, … (http://127.0.0.1:8000)
///   SANDBOX_API_KEY   the key for it; SANDBOX_API_KEY_FILE names a file with it
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
    let arguments = with_addressee(arguments, &parser);
    let command = command_of(&arguments, &parser);
    parser
        .try_get_matches_from_mut(program.chain(arguments))
        .and_then(|matches| Arguments::from_arg_matches(&matches))
        .map(|arguments| arguments.command)
        .map_err(|error| usage::translate(&error, command.as_deref()))
}

/// The command that was meant, with its verb where it has one: `session get`.
fn command_of(arguments: &[OsString], parser: &clap::Command) -> Option<String> {
    let mut meant = Vec::new();
    let mut known = parser;
    for word in arguments.iter().map_while(|word| word.to_str()) {
        match known.find_subcommand(word) {
            Some(found) => known = found,
            None => break,
        }
        meant.push(word);
    }
    (!meant.is_empty()).then(|| meant.join(" "))
}

/// `exec` is `run`, unless what it names is a session, or nothing.
fn with_addressee(mut arguments: Vec<OsString>, parser: &clap::Command) -> Vec<OsString> {
    if arguments.first().is_some_and(|word| word == "exec")
        && addressee(&arguments[1..], parser).is_some_and(|word| !names_session(word))
    {
        arguments[0] = "run".into();
    }
    arguments
}

/// Is this the identifier of a server's session?
pub(crate) fn names_session(word: &OsStr) -> bool {
    // Asked on the path of `run`: most names are told by their first letters.
    let text = word.to_str().filter(|text| text.starts_with("sess_"));
    text.is_some_and(|text| text.parse::<SessionId>().is_ok())
}

/// The first of `words` that is neither an option of `run` or `exec`, nor the value of one.
fn addressee<'a>(words: &'a [OsString], parser: &clap::Command) -> Option<&'a OsString> {
    let commands = ["run", "exec"].map(|name| parser.find_subcommand(name));
    let takes_value = |option: &str| {
        let is_it = |argument: &&clap::Arg| match option.strip_prefix("--") {
            Some(long) => argument.get_long() == Some(long),
            None => argument
                .get_short()
                .is_some_and(|short| option[1..] == short.to_string()),
        };
        let mut known = commands
            .iter()
            .flatten()
            .flat_map(|command| command.get_arguments());
        known
            .find(is_it)
            .is_some_and(|argument| argument.get_action().takes_values())
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => return words.next(),
            Some(option) if option.len() > 1 && option.starts_with('-') => {
                if takes_value(option) {
                    words.next();
                }
            }
            _ => return Some(word),
        }
    }
    None
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
        describe(&mut program, "sandbox", &mut text);
        text
    }

    /// Adds the help of a command and of everything below it.
    fn describe(command: &mut clap::Command, name: &str, text: &mut String) {
        text.push_str(&section(name, &command.render_long_help().to_string()));
        for below in command.get_subcommands_mut() {
            let is_own = !below.is_hide_set() && below.get_name() != "help";
            if is_own {
                let name = format!("{name} {}", below.get_name());
                describe(below, &name, text);
            }
        }
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
        must_have_examples(&Arguments::command(), "sandbox");
    }

    fn must_have_examples(command: &clap::Command, name: &str) {
        let help = command.get_long_about().map(ToString::to_string);
        let help = help.unwrap_or_default();
        assert!(help.contains("Examples:\n  "), "{name}");
        for below in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            must_have_examples(below, &format!("{name} {}", below.get_name()));
        }
    }

    #[test]
    fn exec_is_for_a_session_only_when_one_is_named_first() {
        let parser = Arguments::command();
        let first = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            with_addressee(words, &parser)[0].clone()
        };
        let id = "sess_0123456789abcdef";
        for line in [
            format!("exec {id} x"),
            format!("exec --language python {id} x"),
            format!("exec -l python --json {id} x"),
            format!("exec --language=python {id} x"),
            format!("exec --server http://h --retry {id} x"),
            format!("exec -- {id} x"),
            format!("exec --memory 1G {id} x"),
            "exec --help".to_owned(),
            "exec".to_owned(),
        ] {
            assert_eq!(first(&line), "exec", "{line}");
        }
        for line in [
            "exec box x".to_owned(),
            format!("exec box {id}"),
            format!("exec --memory 1G box {id}"),
            format!("exec -e A=1 box {id}"),
            format!("exec --json box {id}"),
            format!("exec -- box {id}"),
            format!("exec --language {id} box x"),
            "exec sess_0123456789abcde x".to_owned(),
            "exec - x".to_owned(),
        ] {
            assert_eq!(first(&line), "run", "{line}");
        }
        assert_eq!(first(&format!("run {id} x")), "run");
    }
}
