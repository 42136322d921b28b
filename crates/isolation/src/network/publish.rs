//! `--publish`: a port of the host's loopback that leads to a server inside.
//!
//! A socket belongs for ever to the network namespace it was made in. So for each connection the
//! sandbox's init is asked for a fresh one of its own, which we connect to its loopback from here.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use thiserror::Error;

use super::forward::loopback;
use super::relay::{Flow, Until, relay};
use super::socket::{connect, reset_on_close};
use super::stop::{Stop, locked};

/// How long the init may take to hand out a socket.
const HAND_OUT_TIME: Duration = Duration::from_secs(10);

/// Why a port cannot be published.
#[derive(Debug, Error)]
pub(super) enum PublishError {
    #[error("cannot publish port {0}: something on this host listens there already")]
    Taken(u16),
    #[error("cannot publish port {0}: ports below the host's first unprivileged one need root")]
    Privileged(u16),
    #[error("cannot publish port {port}: {reason}")]
    Other { port: u16, reason: String },
}

/// Listens on the host's 127.0.0.1.
pub(super) fn listen(port: u16) -> io::Result<OwnedFd> {
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(|error| {
        let named = match error.kind() {
            io::ErrorKind::AddrInUse => PublishError::Taken(port),
            io::ErrorKind::PermissionDenied => PublishError::Privileged(port),
            _ => PublishError::Other {
                port,
                reason: error.to_string(),
            },
        };
        io::Error::new(error.kind(), named)
    })?;
    Ok(listener.into())
}

/// Where fresh sockets of the sandbox's namespace come from.
#[derive(Debug)]
pub(super) struct Sockets {
    /// Gone after a failure: a late answer must not be taken for the answer to the next question.
    channel: Mutex<Option<OwnedFd>>,
}

impl Sockets {
    pub(super) fn over(channel: OwnedFd) -> Sockets {
        Sockets {
            channel: Mutex::new(Some(channel)),
        }
    }

    /// A socket of the namespace, of `address`'s family, connected to it.
    fn dial(&self, stop: &Stop, address: SocketAddr) -> io::Result<OwnedFd> {
        let socket = self.fresh(stop, if address.is_ipv4() { b'4' } else { b'6' })?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        connect(stop, &socket, address)?;
        Ok(socket)
    }

    /// One question, one answer: the lock is held over both.
    fn fresh(&self, stop: &Stop, family: u8) -> io::Result<OwnedFd> {
        let mut channel = locked(&self.channel);
        let open = channel.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let socket = ask(stop, open, family);
        if socket.is_err() {
            *channel = None;
        }
        socket
    }
}

fn ask(stop: &Stop, channel: &OwnedFd, family: u8) -> io::Result<OwnedFd> {
    send(channel, &[family], SendFlags::NOSIGNAL)?;
    stop.poll(
        [Some((channel, PollFlags::IN))],
        Some(Instant::now() + HAND_OUT_TIME),
    )?;
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        channel,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut received = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received
        .next()
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Serves one connection made on the host.
pub(super) fn serve(stop: &Stop, sockets: &Sockets, client: &OwnedFd, inside: u16) {
    let [v4, v6] = loopback(inside);
    match sockets.dial(stop, v4).or_else(|_| sockets.dial(stop, v6)) {
        Ok(server) => {
            relay(
                stop,
                client,
                &server,
                Flow::starting_with(Vec::new()),
                Until::BothEnd,
            );
        }
        Err(_) => reset_on_close(client),
    }
}
