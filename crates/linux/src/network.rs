//! Loopback, and listeners on it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

/// Brings up `lo` in the caller's network namespace.
pub fn loopback_up() -> io::Result<()> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    // SAFETY: an ifreq is plain data; all zeroes is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an ifreq, which `request` is.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A TCP socket of the caller's network namespace. `version` is 4 or 6.
pub fn tcp_socket(version: IpVersion) -> io::Result<OwnedFd> {
    let family = match version {
        IpVersion::V4 => AddressFamily::INET,
        IpVersion::V6 => AddressFamily::INET6,
    };
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

/// Which internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// 127.0.0.1's.
    V4,
    /// ::1's.
    V6,
}

/// A TCP socket that listens at `address`. Several may, one per run that joined the namespace.
pub fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let version = if address.is_ipv4() {
        IpVersion::V4
    } else {
        IpVersion::V6
    };
    let socket = tcp_socket(version)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}
