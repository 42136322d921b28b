//! Non-blocking TCP sockets whose every wait ends at a deadline or when the gate closes.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, sockopt,
};

use super::stop::Stop;

/// How long one address may take to answer.
pub(super) const CONNECT_TIME: Duration = Duration::from_secs(15);

/// How long a refused client may take to read why.
const FAREWELL_TIME: Duration = Duration::from_secs(2);

/// What a read brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// This many bytes were appended.
    Bytes(usize),
    /// The other side will send no more.
    End,
    /// Nothing yet.
    Nothing,
}

/// A connection to `address` from the host.
pub(super) fn dial(stop: &Stop, address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    connect(stop, &socket, address)?;
    Ok(socket)
}

/// Connects a non-blocking socket.
pub(super) fn connect(stop: &Stop, socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    match rustix::net::connect(socket, &address) {
        Ok(()) => return Ok(()),
        Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let deadline = Instant::now() + CONNECT_TIME;
    stop.poll([Some((socket, PollFlags::OUT))], Some(deadline))?;
    Ok(sockopt::socket_error(socket)??)
}

/// Small writes go out at once. What a socket does not do is no reason to give it up.
pub(super) fn without_delay(socket: &OwnedFd) {
    let _ = sockopt::set_tcp_nodelay(socket, true);
}

/// Appends what has arrived, at most `most` bytes.
pub(super) fn receive(socket: &OwnedFd, into: &mut Vec<u8>, most: usize) -> io::Result<Received> {
    into.reserve_exact(most);
    match rustix::net::recv(socket, spare_capacity(into), RecvFlags::empty()) {
        Ok((0, _)) => Ok(Received::End),
        Ok((count, _)) => Ok(Received::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// Sends what fits now. Never raises SIGPIPE, whatever the caller made of that signal.
pub(super) fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
        Ok(count) => Ok(count),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Appends at least one byte; an end is an error here, since more is needed.
pub(super) fn receive_more(
    stop: &Stop,
    socket: &OwnedFd,
    into: &mut Vec<u8>,
    deadline: Instant,
) -> io::Result<()> {
    loop {
        stop.poll([Some((socket, PollFlags::IN))], Some(deadline))?;
        match receive(socket, into, 4096)? {
            Received::Bytes(_) => return Ok(()),
            Received::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            Received::Nothing => {}
        }
    }
}

/// Sends all of it.
pub(super) fn send_all(
    stop: &Stop,
    socket: &OwnedFd,
    mut bytes: &[u8],
    deadline: Instant,
) -> io::Result<()> {
    while !bytes.is_empty() {
        stop.poll([Some((socket, PollFlags::OUT))], Some(deadline))?;
        bytes = &bytes[send(socket, bytes)?..];
    }
    Ok(())
}

/// The last word to a client. A close with unread bytes resets the connection, and the reset could
/// overtake the answer; so we hear the client out, briefly.
pub(super) fn farewell(stop: &Stop, socket: &OwnedFd, answer: &[u8]) {
    let deadline = Instant::now() + FAREWELL_TIME;
    let _ = send_all(stop, socket, answer, deadline);
    let _ = rustix::net::shutdown(socket, Shutdown::Write);
    let mut heard = Vec::new();
    while receive_more(stop, socket, &mut heard, deadline).is_ok() {
        heard.clear();
    }
}

/// Makes the coming close a reset, so that the other side takes it for a failure and not for the
/// end of the data.
pub(super) fn reset_on_close(socket: &OwnedFd) {
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}
