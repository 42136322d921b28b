//! `sandbox completions`, and the live names it asks for.

use clap::{CommandFactory, ValueEnum};
use clap_complete::{Shell as Generator, generate};
use sandbox_workspace::discard;

use crate::arguments::Arguments;
use crate::ending::Ending;
use crate::output::{self, Output};
use crate::report::Problem;
use crate::surroundings;

/// Print a completion script for your shell
///
/// Commands, flags and the names of your sandboxes are completed.
///
/// Examples:
///   sandbox completions bash > ~/.local/share/bash-completion/completions/sandbox
///   sandbox completions zsh > ~/.zfunc/_sandbox
///   sandbox completions fish > ~/.config/fish/completions/sandbox.fish
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// The shells with a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Commands whose first argument is a sandbox.
const NAMED: &[&str] = &[
    "enter", "run", "exec", "diff", "promote", "discard", "rm", "sync", "fork", "snapshot",
    "rollback", "pause", "resume", "info", "path", "history",
];

pub(crate) fn completions(args: &Args) -> Result<Ending, Problem> {
    output::print_line(script(args.shell).trim_end())?;
    Ok(Ending::DONE)
}

/// Every sandbox's name, or that of every discarded one that can be restored, one per line. Says nothing
/// else: it is run while somebody types.
pub(crate) fn names(discarded: bool) -> Result<Ending, Problem> {
    let mut out = Output::open();
    let known = surroundings::root_unrepaired().and_then(|root| match discarded {
        true => {
            let found = discard::discarded(&root)?.into_iter();
            Ok(found.map(|found| found.meta.name).collect())
        }
        false => Ok(root.names()?),
    });
    if let Ok(mut names) = known {
        names.sort_unstable();
        names.dedup();
        for name in names {
            out.line(name.as_str())?;
        }
    }
    out.finish()?;
    Ok(Ending::DONE)
}

/// The static script, with names completed by asking us.
fn script(shell: Shell) -> String {
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    generate(generator, &mut Arguments::command(), "sandbox", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => bash(&script),
        Shell::Zsh => zsh(&script),
        Shell::Fish => fish(&script),
    }
}

/// Wraps the generated function: right after a command that takes a name, names come first.
fn bash(script: &str) -> String {
    let commands = NAMED.join("|");
    format!(
        r#"{script}
_sandbox_with_names() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}"
    _sandbox "$@"
    case "${{COMP_WORDS[1]}}" in
        {commands})
            if [[ "$current" != -* && ( $COMP_CWORD -eq 2 || "${{COMP_WORDS[1]}}" == @(discard|rm) ) ]]; then
                local which=()
                [[ " ${{COMP_WORDS[*]}} " == *" --undo "* && "${{COMP_WORDS[1]}}" == @(discard|rm) ]] && which=(--discarded)
                COMPREPLY=( $(compgen -W "$(sandbox __complete-names "${{which[@]}}" 2>/dev/null)" -- "$current") )
            fi
            ;;
    esac
}}
complete -F _sandbox_with_names -o nosort -o bashdefault -o default sandbox
"#
    )
}

/// Gives the generated script's NAME arguments an action of their own.
fn zsh(script: &str) -> String {
    let mut lines = Vec::new();
    for line in script.lines() {
        let action = match line.trim_start() {
            line if line.starts_with("'*::words -- ") => Some(":_sandbox_words'"),
            line if line.starts_with("':name -- ") => Some(":_sandbox_names'"),
            line if line.starts_with("'::name -- The sandbox") => Some(":_sandbox_names'"),
            line if line.starts_with("'::name -- Only this") => Some(":_sandbox_names'"),
            line if line.starts_with("'*::names -- ") => Some(":_sandbox_names'"),
            line if line.starts_with("':session -- The session; or a sandbox") => {
                Some(":_sandbox_names'")
            }
            _ => None,
        };
        lines.push(match action {
            Some(action) => line.replace(":_default'", action),
            None => line.to_owned(),
        });
    }
    let names = r#"
_sandbox_names() {
    local -a names which
    [[ ${words[(I)--undo]} -gt 0 && ${words[1]} == (discard|rm) ]] && which=(--discarded)
    names=( ${(f)"$(sandbox __complete-names $which 2>/dev/null)"} )
    _describe -t names sandbox names
}

_sandbox_words() {
    if (( CURRENT == 1 )); then _sandbox_names; else shift words; (( CURRENT-- )); _normal; fi
}
"#;
    let script = lines.join("\n");
    match script.find("_sandbox() {") {
        Some(at) => format!("{}{}\n{}", &script[..at], names.trim_start(), &script[at..]),
        None => script,
    }
}

fn fish(script: &str) -> String {
    let commands = NAMED.join(" ");
    format!(
        r#"{script}
function __sandbox_needs_name
    set -l words (commandline -opc)
    test (count $words) -eq 2; and contains -- $words[2] {commands}
    or begin
        test (count $words) -gt 2; and contains -- $words[2] discard rm
    end
end
function __sandbox_names
    set -l words (commandline -opc)
    if contains -- $words[2] discard rm; and contains -- --undo $words
        sandbox __complete-names --discarded 2>/dev/null
    else
        sandbox __complete-names 2>/dev/null
    end
end
complete -c sandbox -n __sandbox_needs_name -f -a '(__sandbox_names)'
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated;

    #[test]
    fn the_scripts_checked_in_are_current() {
        for (shell, file) in [
            (Shell::Bash, "completions/sandbox.bash"),
            (Shell::Zsh, "completions/sandbox.zsh"),
            (Shell::Fish, "completions/sandbox.fish"),
        ] {
            generated::must_be_current(file, &script(shell));
        }
    }
}
