//! How an error that ends the program is told.
//!
//! As the `sandbox` command tells its own: what failed, why, and what to do, on standard error.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use sandbox_model::Failure;

/// Tells `failure` and gives the status to end with.
pub(crate) fn tell(failure: &dyn Failure) -> ExitCode {
    // There is nobody to tell where this fails.
    let _ = std::io::stderr().write_all(render(failure).as_bytes());
    ExitCode::from(failure.class().exit_status())
}

fn render(failure: &dyn Failure) -> String {
    let mut text = format!("error: {}\n", plain(failure));
    let mut cause = failure.source();
    while let Some(error) = cause {
        text.push_str(&format!("  caused by: {}\n", plain(error)));
        cause = error.source();
    }
    if let Some(hint) = failure.hint() {
        text.push_str(&format!("hint: {hint}\n"));
    }
    text
}

/// What is quoted from outside may hold anything.
fn plain(error: &(impl Error + ?Sized)) -> String {
    let escaped = |character: char| match character.is_control() {
        true => character.escape_debug().collect::<String>(),
        false => character.to_string(),
    };
    error.to_string().chars().map(escaped).collect()
}

/// An error with what caused it, in one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = plain(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {}", plain(error));
        cause = error.source();
    }
    text
}
