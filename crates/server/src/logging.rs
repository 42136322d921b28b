//! The server's log: one JSON object a line on standard error, or plain lines on a terminal.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Is this a level that can be logged at, such as `info` or `sandbox_control=debug,info`?
pub fn is_level(text: &str) -> bool {
    // A lone word that is no level is taken for a part of the program by the filter's parser.
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match is_word {
        true => text.parse::<tracing::Level>().is_ok() || text.eq_ignore_ascii_case("off"),
        false => EnvFilter::try_new(text).is_ok(),
    }
}

/// Starts logging at `level`, such as `info` or `sandbox_control=debug,info`.
pub(crate) fn start(level: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(with_quiet_parts(level)).map_err(|error| error.to_string())?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = match std::io::stderr().is_terminal() {
        true => logs.compact().try_init(),
        false => logs
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .try_init(),
    };
    // Somebody else in this process logs already: then that is the log.
    drop(started);
    Ok(())
}

/// What libraries tell of every step they take is of interest only to somebody who asks for it by name.
fn with_quiet_parts(level: &str) -> String {
    match level.eq_ignore_ascii_case("info") {
        true => format!("{level},sea_orm_migration=warn"),
        false => level.to_owned(),
    }
}
