//! The line between an executor and whoever asks it.
//!
//! A socket that keeps messages apart and carries descriptors with them: files are handed over, not
//! copied through. A message is JSON; one too long for the socket goes in a file in memory, whose
//! descriptor comes first. Both ends wait without a thread.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::MemfdFlags;
use sandbox_linux::message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// The longest message that goes through the socket itself.
const SHORT: usize = 32 << 10;

/// The longest message at all: two streams of a megabyte each and a thousand paths, escaped at worst, and
/// what is around.
const LONG: u64 = 48 << 20;

const INLINE: u8 = b'{';
const APART: u8 = b'@';

/// One end of the line.
#[derive(Debug)]
pub struct Link {
    /// No stream, but nothing is asked of it except whether it is time.
    socket: UnixStream,
}

/// A new line: two ends, of which [`Link::new`] makes links.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    message::pair()
}

impl Link {
    /// This end of the line. In a runtime.
    pub fn new(socket: OwnedFd) -> io::Result<Link> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Link {
            socket: UnixStream::from_std(socket.into())?,
        })
    }

    /// Sends `body`, with `descriptors`.
    pub async fn send<T: Serialize>(
        &self,
        body: &T,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let mut text = Text::default();
        serde_json::to_writer(&mut text, body)?;
        match text.end()? {
            Written::Here(bytes) => self.send_bytes(&bytes, descriptors).await,
            Written::Apart(apart) => {
                let all = [&[apart.as_fd()], descriptors].concat();
                self.send_bytes(&[APART], &all).await
            }
        }
    }

    async fn send_bytes(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            let sent = self.socket.try_io(Interest::WRITABLE, || {
                message::send(&self.socket, bytes, descriptors)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.writable().await?;
                }
                outcome => return outcome,
            }
        }
    }

    /// The next message; none when the other end is gone.
    pub async fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        match self.receive_text().await? {
            Some((text, descriptors)) => Ok(Some((serde_json::from_slice(&text)?, descriptors))),
            None => Ok(None),
        }
    }

    /// The same as it was written, for whoever goes on where it cannot be read.
    pub(crate) async fn receive_text(&self) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        let (message, mut descriptors) = loop {
            match self
                .socket
                .try_io(Interest::READABLE, || take(&self.socket))
            {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.readable().await?;
                }
                outcome => break outcome?,
            }
        };
        match message {
            None => Ok(None),
            Some((INLINE, text)) => Ok(Some((text, descriptors))),
            Some((APART, text)) if text.is_empty() && !descriptors.is_empty() => {
                let text = out_of_memory(descriptors.remove(0))?;
                Ok(Some((text, descriptors)))
            }
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// A message: how it comes, and its text where that is in it.
type Taken = Option<(u8, Vec<u8>)>;

/// The message that is there. Room for it is taken only now: there may be thousands of lines, and most of
/// them are silent.
fn take(socket: &UnixStream) -> io::Result<(Taken, Vec<OwnedFd>)> {
    let mut bytes = [0; 1 + SHORT];
    let (length, descriptors) = message::receive(socket, &mut bytes)?;
    let taken = bytes[..length].split_first();
    Ok((taken.map(|(how, text)| (*how, text.to_vec())), descriptors))
}

/// A message while it is written. What an execution printed can be many times as long in JSON, so a long
/// one is never whole in this process's own memory.
#[derive(Default)]
struct Text {
    short: Vec<u8>,
    apart: Option<BufWriter<File>>,
}

/// A message that was written.
enum Written {
    Here(Vec<u8>),
    Apart(OwnedFd),
}

impl Text {
    fn end(self) -> io::Result<Written> {
        Ok(match self.apart {
            None => Written::Here(self.short),
            Some(apart) => Written::Apart(apart.into_inner()?.into()),
        })
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.apart.is_none() && self.short.len() + bytes.len() <= SHORT {
            if self.short.is_empty() {
                self.short.push(INLINE);
            }
            self.short.extend(bytes);
            return Ok(bytes.len());
        }
        let apart = match &mut self.apart {
            Some(apart) => apart,
            None => {
                let file = rustix::fs::memfd_create("message", MemfdFlags::CLOEXEC)?;
                let apart = self.apart.insert(BufWriter::new(file.into()));
                apart.write_all(self.short.get(1..).unwrap_or_default())?;
                self.short = Vec::new();
                apart
            }
        };
        apart.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn out_of_memory(apart: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = File::from(apart);
    file.rewind()?;
    let mut text = Vec::new();
    file.take(LONG).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_line(body: impl AsyncFnOnce(Link, Link)) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let (one, other) = pair().unwrap();
            body(Link::new(one).unwrap(), Link::new(other).unwrap()).await;
        });
    }

    #[test]
    fn messages_arrive_whole_however_long_with_their_descriptors() {
        on_a_line(async |one, other| {
            for length in [
                0,
                1,
                SHORT - 4,
                SHORT - 3,
                SHORT - 2,
                SHORT,
                SHORT + 1,
                3 << 20,
            ] {
                let text = "x".repeat(length);
                let file = tempfile::tempfile().unwrap();
                (&file).write_all(b"inside").unwrap();
                one.send(&text, &[file.as_fd()]).await.unwrap();
                let received = other.receive::<String>().await.unwrap();
                let (arrived, mut descriptors) = received.unwrap();
                assert_eq!(arrived.len(), length);
                assert_eq!(descriptors.len(), 1);
                let mut file = File::from(descriptors.remove(0));
                file.rewind().unwrap();
                let mut content = String::new();
                file.read_to_string(&mut content).unwrap();
                assert_eq!(content, "inside");
            }
        });
    }

    #[test]
    fn a_full_line_waits_until_it_is_read() {
        on_a_line(async |one, other| {
            let text = "x".repeat(SHORT - 3);
            let sending = async {
                for _ in 0..100 {
                    one.send(&text, &[]).await.unwrap();
                }
            };
            let receiving = async {
                for _ in 0..100 {
                    let received = other.receive::<String>().await.unwrap();
                    assert_eq!(received.unwrap().0, text);
                }
            };
            tokio::join!(sending, receiving);
        });
    }

    #[test]
    fn the_end_of_the_other_is_seen() {
        on_a_line(async |one, other| {
            drop(one);
            assert!(other.receive::<String>().await.unwrap().is_none());
            assert!(other.send(&"x", &[]).await.is_err());
        });
    }
}
