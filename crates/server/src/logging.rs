//! The server's log: one JSON object a line on standard error, or plain lines on a terminal.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging at `level`, such as `info` or `sandbox_control=debug,info`.
pub(crate) fn start(level: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(level).map_err(|error| error.to_string())?;
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
