//! The user's terminal joined to the sandbox's own.
//!
//! The shell of `enter` has a terminal of its own, so that nothing inside can push keys into the
//! user's (CVE-2017-5226) or read what is typed there later. Here bytes are carried between the two:
//! ours is raw meanwhile, and is put back whatever happens, a panic included. Changes of its size
//! are taken over by [`Run::ended`].

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{self, OptionalActions, Termios};
use sandbox_isolation::{Ended, Run};

/// Carries bytes both ways until the command ends, then says how.
pub(crate) fn attend(run: &mut Run) -> io::Result<Ended> {
    let Some(master) = run.master.take() else {
        return run.ended();
    };
    if let Ok(size) = termios::tcgetwinsize(stdin()) {
        let _ = termios::tcsetwinsize(&master, size);
    }
    let raw = Raw::enter();
    let (ended_reader, ended) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let keys = master.try_clone()?;
    let typing = thread::spawn(move || carry_keys(&keys, &ended_reader));
    let showing = thread::spawn(move || carry_screen(&master));
    let outcome = run.ended();
    // Everything inside is gone, so the screen's end comes by itself, after the last output.
    let _ = showing.join();
    drop(ended);
    let _ = typing.join();
    drop(raw);
    outcome
}

/// From the user's keys to the sandbox, until the command ended or there are no more keys.
fn carry_keys(master: &OwnedFd, ended: &OwnedFd) {
    let mut buffer = [0; 4096];
    loop {
        let mut watched = [
            PollFd::from_borrowed_fd(stdin(), PollFlags::IN),
            PollFd::new(ended, PollFlags::IN),
        ];
        match poll(&mut watched, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !watched[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        match rustix::io::read(stdin(), &mut buffer) {
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => return,
            Ok(length) => {
                if write_all(master, &buffer[..length]).is_err() {
                    return;
                }
            }
        }
    }
}

/// From the sandbox's screen to the user's, until nobody is left who could write to it (EIO).
fn carry_screen(master: &OwnedFd) {
    let mut buffer = [0; 16 << 10];
    loop {
        match rustix::io::read(master, &mut buffer) {
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => return,
            Ok(length) => {
                // A screen that is gone must not stop what runs inside: the rest is dropped.
                let _ = write_all(stdout(), &buffer[..length]);
            }
        }
    }
}

fn write_all(to: impl AsFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(&to, bytes) {
            Err(Errno::INTR) => {}
            written => bytes = &bytes[written?..],
        }
    }
    Ok(())
}

/// The user's terminal in raw mode, for as long as this lives.
struct Raw {
    before: Termios,
}

impl Raw {
    fn enter() -> Option<Raw> {
        let before = termios::tcgetattr(stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        restore_on_panic(before.clone());
        Some(Raw { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// Release builds abort on a panic without dropping anything.
fn restore_on_panic(before: Termios) {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &before);
        told(panic);
    }));
}
