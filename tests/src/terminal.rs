//! A terminal for commands that want one.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::process::{PATIENCE, await_exit, readable};

/// Our end of a pseudo-terminal, and what was read from it.
#[derive(Debug)]
pub struct Terminal {
    master: File,
    slave: OwnedFd,
    seen: Vec<u8>,
}

impl Terminal {
    /// A new one, 24 by 80.
    pub fn open() -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a pseudo-terminal");
        grantpt(&master).expect("grantpt");
        unlockpt(&master).expect("unlockpt");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let flags =
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).expect("its slave");
        let size = rustix::termios::Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&slave, size).expect("its size");
        Terminal {
            master: File::from(master),
            slave,
            seen: Vec::new(),
        }
    }

    /// Puts all three streams of `command` on it.
    pub fn attach<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let stream = || Stdio::from(self.slave.try_clone().expect("a descriptor"));
        command.stdin(stream()).stdout(stream()).stderr(stream())
    }

    /// Types.
    pub fn enter(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("type");
    }

    /// Waits for `text` to be shown.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.shown().contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                self.read_some(left),
                "{text:?} was never shown, but: {}",
                self.shown()
            );
        }
    }

    /// Waits for `child` to end, reading so that it never blocks on a full terminal.
    #[track_caller]
    pub fn until_end(&mut self, child: &mut Child) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.shown();
            if let Some(status) = child.try_wait().expect("a child can be waited for") {
                return status;
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                panic!("it did not end; it showed {}", self.shown());
            }
            await_exit(Pid::from_child(child), Duration::from_millis(20));
        }
    }

    /// Everything shown until now; reads what waits.
    pub fn shown(&mut self) -> String {
        while readable(self.master.as_fd(), Duration::ZERO) && self.read_some(Duration::ZERO) {}
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// The same as bytes.
    pub fn bytes(&mut self) -> Vec<u8> {
        let _ = self.shown();
        self.seen.clone()
    }

    /// Input that waits on the terminal and nobody typed: what was pushed there.
    pub fn pending_input(&self) -> String {
        let mut pending = String::new();
        if readable(self.slave.as_fd(), Duration::ZERO) {
            let mut buffer = [0; 256];
            if let Ok(length) = rustix::io::read(&self.slave, &mut buffer) {
                pending.push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        }
        pending
    }

    fn read_some(&mut self, patience: Duration) -> bool {
        if !readable(self.master.as_fd(), patience) {
            return false;
        }
        let mut buffer = [0; 4096];
        match self.master.read(&mut buffer) {
            Ok(length @ 1..) => {
                self.seen.extend(&buffer[..length]);
                true
            }
            _ => false,
        }
    }
}
