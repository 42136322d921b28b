//! How the process ends: by a status, or by the signal that ended the command it ran.

use std::process::ExitCode;

use sandbox_isolation::launch::Status;

/// The end of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// An exit status.
    Status(u8),
    /// The same signal that ended the command, so that a calling shell sees what it would have seen
    /// without us.
    Signal(i32),
}

impl Ending {
    /// All went well.
    pub(crate) const DONE: Ending = Ending::Status(0);

    /// As the command ended.
    pub(crate) fn of(status: Status) -> Ending {
        match status {
            Status::Exited(code) => Ending::Status((code & 0xff) as u8),
            Status::Signalled(signal) => Ending::Signal(signal),
        }
    }

    /// The status a shell would show in `$?`.
    pub(crate) fn code(self) -> i32 {
        match self {
            Ending::Status(status) => i32::from(status),
            Ending::Signal(signal) => 128 + signal,
        }
    }

    /// Ends: raises the signal, and where that does not end us, gives the status a shell would show.
    /// Called last of all, when everything is dropped and flushed.
    pub(crate) fn take(self) -> ExitCode {
        if let Ending::Signal(signal) = self {
            raise(signal);
        }
        ExitCode::from(u8::try_from(self.code()).unwrap_or(1))
    }
}

/// Raises `signal` for ourselves. The core, if one is made, is the command's business and was made
/// there, so ours is suppressed.
fn raise(signal: i32) {
    use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    sandbox_linux::signal::default_action(signal);
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_process(getpid(), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_the_status_a_shell_would_show() {
        assert_eq!(Ending::of(Status::Signalled(9)).code(), 137);
        assert_eq!(Ending::of(Status::Exited(300)).code(), 44);
    }
}
