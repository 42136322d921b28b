//! `--publish`: a port of the host's loopback that leads to a server inside.
//!
//! A socket belongs for ever to the network namespace it was made in. So for each connection the
//! sandbox's init is asked for a fresh one of its own, which we connect to its loopback from here.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use rustix::event::PollFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use sandbox_model::PublishedPort;

use super::error::NetworkError;
use super::forward::loopback;
use super::relay::Joint;
use super::socket::{connect, reset_on_close};
use super::stop::{Stop, locked};

/// Ports of the host's loopback that listen for a gate. Bound before the command starts, so that a
/// port that is taken is told before anything has run.
#[derive(Debug, Default)]
pub struct Published {
    pub(super) bound: Vec<(PublishedPort, OwnedFd)>,
    /// Held by another run of the same sandbox, which serves them as well as we would.
    pub(super) awaited: Vec<PublishedPort>,
}

impl Published {
    /// Listens on the host's side of `ports`. A run that has `joined` another of the same sandbox
    /// finds them held by it, and takes them over when it ends.
    pub fn bind(ports: &[PublishedPort], joined: bool) -> Result<Published, NetworkError> {
        let mut published = Published::default();
        for port in ports {
            match listen(port.host) {
                Ok(listener) => published.bound.push((*port, listener)),
                Err(NetworkError::Taken(_)) if joined => published.awaited.push(*port),
                Err(error) => return Err(error),
            }
        }
        Ok(published)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bound.is_empty() && self.awaited.is_empty()
    }
}

/// Listens on the host's 127.0.0.1.
pub(super) fn listen(port: u16) -> Result<OwnedFd, NetworkError> {
    match TcpListener::bind(("127.0.0.1", port)) {
        Ok(listener) => Ok(listener.into()),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::AddrInUse => NetworkError::Taken(port),
            io::ErrorKind::PermissionDenied => NetworkError::Privileged(port),
            _ => NetworkError::Publish {
                port,
                source: error,
            },
        }),
    }
}

/// Where fresh sockets of the sandbox's namespace come from.
#[derive(Debug)]
pub(super) struct Sockets {
    channel: Mutex<OwnedFd>,
}

impl Sockets {
    pub(super) fn over(channel: OwnedFd) -> Sockets {
        Sockets {
            channel: Mutex::new(channel),
        }
    }

    /// A socket of the namespace, of `address`'s family, connected to it.
    fn dial(&self, stop: &Stop, address: SocketAddr) -> io::Result<OwnedFd> {
        let socket = self.fresh(stop, if address.is_ipv4() { b'4' } else { b'6' })?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        connect(stop, &socket, address)?;
        Ok(socket)
    }

    /// Asks, and waits as long as the init sleeps: a paused sandbox answers when it is resumed, as
    /// a paused server would. One asks at a time; when the gate closes, each in turn hears of it.
    fn fresh(&self, stop: &Stop, family: u8) -> io::Result<OwnedFd> {
        let channel = locked(&self.channel);
        send(&*channel, &[family], SendFlags::NOSIGNAL)?;
        loop {
            stop.poll([Some((&*channel, PollFlags::IN))], None)?;
            let (answered, socket) = answer(&channel)?;
            // One socket of a family is as good as another: what answers a question that was given
            // up on serves the next.
            if answered == family {
                return socket.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into());
            }
        }
    }
}

/// One answer of the init: which family it was asked for, and a socket of it if there was one.
fn answer(channel: &OwnedFd) -> io::Result<(u8, Option<OwnedFd>)> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffers = [IoSliceMut::new(&mut byte)];
    let message = recvmsg(channel, &mut buffers, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let socket = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((byte[0], socket))
}

/// Opens the other side of a connection made on the host.
pub(super) fn open(stop: &Stop, sockets: &Sockets, client: &OwnedFd, inside: u16) -> Option<Joint> {
    let [v4, v6] = loopback(inside);
    let dialled = sockets.dial(stop, v4).or_else(|_| sockets.dial(stop, v6));
    let dialled = dialled.inspect_err(|_| reset_on_close(client));
    dialled.ok().map(Joint::plain)
}
