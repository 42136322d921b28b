//! Which step of a launch failed, small enough to send from the sandbox's init to the launcher.

use std::io;

/// A step that can fail after the clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Mapping the user into the new user namespace.
    Identity,
    /// Tying the init to the launcher's life.
    Lifeline,
    /// Entering a live run's namespaces.
    Join,
    /// Making mount number n.
    Make(usize),
    /// Making the host read-only.
    Seal,
    /// Putting mount number n in place.
    Attach(usize),
    /// The name of the machine inside.
    Hostname,
    /// Bringing up loopback.
    Loopback,
    /// Listening for forwarded port n.
    Listen(usize),
    /// A new terminal.
    Terminal,
    /// Starting the command's process.
    Fork,
    /// The working directory.
    Directory,
    /// Limits that the process puts on itself.
    Limits,
    /// Dropping capabilities.
    Privileges,
    /// Landlock.
    Landlock,
    /// The system-call filter.
    Filter,
    /// Becoming the command.
    Exec,
}

/// A step that failed, and the system's reason.
#[derive(Debug)]
pub struct Failed {
    /// Which.
    pub step: Step,
    /// Why.
    pub error: io::Error,
}

impl Step {
    /// Turns the error of this step into its failure.
    pub fn failed(self) -> impl Fn(io::Error) -> Failed {
        move |error| Failed { step: self, error }
    }

    fn code(self) -> (u8, usize) {
        match self {
            Step::Identity => (0, 0),
            Step::Lifeline => (1, 0),
            Step::Join => (2, 0),
            Step::Make(index) => (3, index),
            Step::Seal => (4, 0),
            Step::Attach(index) => (5, index),
            Step::Hostname => (6, 0),
            Step::Loopback => (7, 0),
            Step::Listen(port) => (8, port),
            Step::Terminal => (9, 0),
            Step::Fork => (10, 0),
            Step::Directory => (11, 0),
            Step::Limits => (12, 0),
            Step::Privileges => (13, 0),
            Step::Landlock => (14, 0),
            Step::Filter => (15, 0),
            Step::Exec => (16, 0),
        }
    }

    fn from_code(code: u8, index: usize) -> Option<Step> {
        Some(match code {
            0 => Step::Identity,
            1 => Step::Lifeline,
            2 => Step::Join,
            3 => Step::Make(index),
            4 => Step::Seal,
            5 => Step::Attach(index),
            6 => Step::Hostname,
            7 => Step::Loopback,
            8 => Step::Listen(index),
            9 => Step::Terminal,
            10 => Step::Fork,
            11 => Step::Directory,
            12 => Step::Limits,
            13 => Step::Privileges,
            14 => Step::Landlock,
            15 => Step::Filter,
            16 => Step::Exec,
            _ => return None,
        })
    }
}

/// The length of an encoded failure.
pub const ENCODED: usize = 9;

impl Failed {
    /// As bytes.
    pub fn encode(&self) -> [u8; ENCODED] {
        let (code, index) = self.step.code();
        let index = u32::try_from(index).unwrap_or(u32::MAX).to_le_bytes();
        let errno = self.error.raw_os_error().unwrap_or(0).to_le_bytes();
        let mut bytes = [0; ENCODED];
        bytes[0] = code;
        bytes[1..5].copy_from_slice(&index);
        bytes[5..].copy_from_slice(&errno);
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Option<Failed> {
        let bytes: &[u8; ENCODED] = bytes.try_into().ok()?;
        let index = u32::from_le_bytes(bytes[1..5].try_into().ok()?) as usize;
        let errno = i32::from_le_bytes(bytes[5..].try_into().ok()?);
        let error = match errno {
            0 => io::Error::other("for an unknown reason"),
            errno => io::Error::from_raw_os_error(errno),
        };
        Some(Failed {
            step: Step::from_code(bytes[0], index)?,
            error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_the_journey() {
        for code in 0..=16 {
            let step = Step::from_code(code, 0).unwrap();
            let failed = Failed {
                step,
                error: io::Error::from_raw_os_error(13),
            };
            let back = Failed::decode(&failed.encode()).unwrap();
            assert_eq!((back.step, back.error.raw_os_error()), (step, Some(13)));
        }
        let failed = Failed {
            step: Step::Attach(7),
            error: io::Error::from_raw_os_error(1),
        };
        assert_eq!(
            Failed::decode(&failed.encode()).unwrap().step,
            Step::Attach(7)
        );
        assert!(Failed::decode(b"short").is_none());
    }
}
