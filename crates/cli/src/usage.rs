//! Wrong arguments, told like every other error: one line, a hint, exit status 1.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::narration::Paint;
use crate::output::print_line;
use crate::report::{Problem, Refusal};

/// What to do with an answer of the argument parser that is no command: help and versions are
/// printed and are no failure, everything else is a usage error.
pub(crate) fn translate(error: &clap::Error, command: Option<&str>) -> Problem {
    match error.kind() {
        // A noun without a verb: as without anything at all, we say what could be done.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion => {
            let text = match Paint::stdout().is_on() {
                true => error.render().ansi().to_string(),
                false => error.render().to_string(),
            };
            match print_line(text.trim_end()) {
                Ok(()) => Problem::Told(0),
                Err(problem) => problem,
            }
        }
        _ => refusal(error, command).into(),
    }
}

/// The parser's paragraphs, made one line and one hint.
fn refusal(error: &clap::Error, command: Option<&str>) -> Refusal {
    let text = error.render().to_string();
    let mut message = Vec::new();
    let mut tips = Vec::new();
    for line in text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:"))
    {
        match line.strip_prefix("tip: ") {
            // True, and never what was meant.
            Some(tip) if tip.starts_with("to pass ") => {}
            Some(tip) => tips.push(tip.to_owned()),
            None if line.is_empty() || line.starts_with("For more information") => {}
            None => message.push(line.strip_prefix("error: ").unwrap_or(line).to_owned()),
        }
    }
    let hint = match tips.is_empty() {
        false => tips.join("; "),
        true => match usage_line(error) {
            Some(usage) => format!("usage: {usage}"),
            None => match command {
                Some(command) => format!("see `sandbox {command} --help`"),
                None => "see `sandbox --help`".to_owned(),
            },
        },
    };
    Refusal::new(message.join(" ")).hint(hint)
}

fn usage_line(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::Usage)? {
        ContextValue::StyledStr(usage) => {
            let usage = usage.to_string();
            let line = usage
                .trim()
                .trim_start_matches("Usage:")
                .lines()
                .next()?
                .trim();
            Some(line.to_owned())
        }
        _ => None,
    }
}
