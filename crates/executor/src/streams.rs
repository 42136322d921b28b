//! The pipes of an execution, and its channel: the way by which its program gets the request and gives
//! its result.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

/// The longest result that is taken. The programs of the languages say so before they send a longer one.
const LONGEST: usize = 1 << 20;

/// The longest word on its progress that is taken.
const LONGEST_PROGRESS: usize = 4 << 10;

/// What a program says on its channel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// How far it is, as JSON text.
    Progress(String),
    /// What its handler returned, as JSON text.
    Result(String),
}

/// Our ends.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) input: Sender,
    pub(crate) output: Receiver,
    pub(crate) errors: Receiver,
    pub(crate) channel: Channel,
}

/// The program's ends.
#[derive(Debug)]
pub(crate) struct Theirs {
    input: OwnedFd,
    output: OwnedFd,
    errors: OwnedFd,
    channel: OwnedFd,
}

/// Our end of the channel: messages with their length before them. What the program sends begins with a
/// letter that says what it is.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
}

/// A set of both.
pub(crate) fn make() -> io::Result<(Ours, Theirs)> {
    let ours_only = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let from = || -> io::Result<(Receiver, OwnedFd)> {
        let (ours, theirs) = rustix::pipe::pipe_with(ours_only)?;
        blocking(&theirs)?;
        Ok((Receiver::from_owned_fd(ours)?, theirs))
    };
    let ((output, to_output), (errors, to_errors)) = (from()?, from()?);
    let (input, to_input) = rustix::pipe::pipe_with(ours_only)?;
    blocking(&input)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = AddressFamily::UNIX;
    let (ours, theirs) = rustix::net::socketpair(family, SocketType::STREAM, flags, None)?;
    blocking(&theirs)?;
    let stream = UnixStream::from_std(ours.into())?;
    Ok((
        Ours {
            input: Sender::from_owned_fd(to_input)?,
            output,
            errors,
            channel: Channel { stream },
        },
        Theirs {
            input,
            output: to_output,
            errors: to_errors,
            channel: theirs,
        },
    ))
}

/// Programs expect to wait.
fn blocking(theirs: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(theirs, false)?)
}

impl Theirs {
    /// In the order in which a program gets them.
    pub(crate) fn all(&self) -> [BorrowedFd<'_>; 4] {
        [&self.input, &self.output, &self.errors, &self.channel].map(AsFd::as_fd)
    }
}

impl Channel {
    /// Sends one message.
    pub(crate) async fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let length = u32::try_from(message.len()).map_err(io::Error::other)?;
        // At once: whoever waits for it is woken once.
        let whole = [&length.to_be_bytes(), message].concat();
        self.stream.write_all(&whole).await
    }

    /// What the program says next; nothing when it closed its end, or sent nonsense.
    pub(crate) async fn receive(&mut self) -> Option<Said> {
        loop {
            let length = usize::try_from(self.stream.read_u32().await.ok()?).ok()?;
            if length > 1 + LONGEST {
                return None;
            }
            let mut message = vec![0; length];
            self.stream.read_exact(&mut message).await.ok()?;
            let message = String::from_utf8(message).ok()?;
            let (what, text) = message.split_at_checked(1)?;
            match what {
                _ if !is_json(text) => return None,
                // Nobody needs to know it so exactly.
                "p" if text.len() > LONGEST_PROGRESS => {}
                "p" => return Some(Said::Progress(text.to_owned())),
                "r" => return Some(Said::Result(text.to_owned())),
                _ => return None,
            }
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
