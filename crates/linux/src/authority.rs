//! Reading one's own files though their modes forbid it.
//!
//! An ordinary user cannot open a file of mode 000, not even his own, without changing it first;
//! the kernel grants it to a process that holds `CAP_DAC_OVERRIDE` in a user namespace where the
//! file's owner and group are mapped. An [`Authority`] is such a process: it opens what it is asked
//! for, relative to a descriptor it is handed, and passes the descriptor back. It is started at
//! the first need, and ends with its owner: the socket between them closes.
//!
//! It gives no power that `chmod` would not give; it only spares the `chmod`. Deciding what may be
//! opened is the caller's business.

use std::ffi::CStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::fs::{Mode, OFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::{getegid, geteuid};

/// The longest request: a name of `NAME_MAX` bytes, an attribute's name, and the header.
const REQUEST_MAX: usize = 1024;
/// The largest answer: an attribute of the largest size the kernel allows, and the header.
const ANSWER_MAX: usize = 64 * 1024 + 4;

const OPEN: u8 = 1;
const XATTR: u8 = 2;

/// A process with the power of its owner over the modes of his own files.
#[derive(Debug)]
pub struct Authority {
    socket: OwnedFd,
    child: libc::pid_t,
    owner: u32,
}

static SHARED: Mutex<Option<Authority>> = Mutex::new(None);

/// Opens `name` in `dir` with the authority this process shares, started when first needed.
/// `name` is one component and is not followed when it is a symlink.
pub fn open(dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    with_shared(|authority| authority.open(dir, name, flags))
}

/// Reads an extended attribute of an open file with the shared authority.
pub fn xattr(file: BorrowedFd<'_>, attribute: &[u8]) -> io::Result<Vec<u8>> {
    with_shared(|authority| authority.xattr(file, attribute))
}

fn with_shared<T>(ask: impl FnOnce(&Authority) -> io::Result<T>) -> io::Result<T> {
    let mut shared = SHARED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    // A fork of this process must not talk on its parent's socket: answers would be mixed up.
    let ours = shared
        .as_ref()
        .is_some_and(|authority| authority.owner == std::process::id());
    if !ours {
        *shared = Some(Authority::start()?);
    }
    match shared.as_ref() {
        Some(authority) => ask(authority),
        None => Err(io::ErrorKind::NotConnected.into()),
    }
}

impl Authority {
    /// Starts one. Fails where user namespaces are off.
    pub fn start() -> io::Result<Authority> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let uid_map = identity_map(geteuid().as_raw());
        let gid_map = identity_map(getegid().as_raw());
        // No exit signal: the child stays out of the way of a caller's SIGCHLD and `waitpid(-1)`.
        let flags = libc::c_long::from(libc::CLONE_NEWUSER);
        // SAFETY: without CLONE_VM the child has its own copy of memory, and with a null stack it
        // goes on on its copy of this one, as after fork. Locks that other threads held stay
        // locked there forever, so until `_exit` it makes system calls on memory prepared here or
        // on its stack, and neither allocates nor takes a lock: `serve` is written so.
        let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
        match child {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                serve(&theirs, &uid_map, &gid_map);
                // SAFETY: `_exit` has no requirement; it runs no destructor of the copied process.
                unsafe { libc::_exit(0) }
            }
            child => {
                drop(theirs);
                let child = child as libc::pid_t;
                let authority = Authority {
                    socket: ours,
                    child,
                    owner: std::process::id(),
                };
                // Wait until it has closed what it inherited: it must not keep a lock alive.
                authority.answer(None).map(|_| authority)
            }
        }
    }

    /// Opens `name` in `dir`, never following it.
    pub fn open(&self, dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.ask(OPEN, dir, flags.bits(), name, None)?
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The value of `attribute` on an open file.
    pub fn xattr(&self, file: BorrowedFd<'_>, attribute: &[u8]) -> io::Result<Vec<u8>> {
        let mut value = Vec::new();
        self.ask(XATTR, file, 0, attribute, Some(&mut value))?;
        Ok(value)
    }

    fn ask(
        &self,
        operation: u8,
        fd: BorrowedFd<'_>,
        flags: u32,
        name: &[u8],
        data: Option<&mut Vec<u8>>,
    ) -> io::Result<Option<OwnedFd>> {
        if name.is_empty() || name.contains(&0) || name.contains(&b'/') || name == b".." {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if name.len() + 6 > REQUEST_MAX {
            return Err(rustix::io::Errno::NAMETOOLONG.into());
        }
        let mut request = Vec::with_capacity(name.len() + 6);
        request.push(operation);
        request.extend_from_slice(&flags.to_ne_bytes());
        request.extend_from_slice(name);
        request.push(0);
        send(&self.socket, &request, &[], Some(fd))?;
        self.answer(data)
    }

    fn answer(&self, data: Option<&mut Vec<u8>>) -> io::Result<Option<OwnedFd>> {
        let mut buffer = vec![0; ANSWER_MAX];
        let (length, fd) = receive(&self.socket, &mut buffer)?;
        let (errno, rest) = buffer[..length]
            .split_first_chunk::<4>()
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        match i32::from_ne_bytes(*errno) {
            0 => {
                if let Some(data) = data {
                    data.extend_from_slice(rest);
                }
                Ok(fd)
            }
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        if self.owner != std::process::id() {
            return;
        }
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        // SAFETY: a null status pointer is allowed. `__WALL` because the child has no exit signal.
        unsafe { libc::waitpid(self.child, std::ptr::null_mut(), libc::__WALL) };
    }
}

/// `ID ID 1`, the one line an ordinary user may write to his own map.
fn identity_map(id: u32) -> String {
    format!("{id} {id} 1\n")
}

/// The child's whole life. Neither allocates nor locks; see [`Authority::start`].
fn serve(socket: &OwnedFd, uid_map: &str, gid_map: &str) {
    let ready = become_authority(socket, uid_map, gid_map);
    let errno = ready.map_or_else(|error| error.raw_os_error(), |()| 0);
    if send(socket, &errno.to_ne_bytes(), &[], None).is_err() || errno != 0 {
        return;
    }
    let mut request = [0; REQUEST_MAX];
    let mut value = [0; ANSWER_MAX - 4];
    loop {
        let Ok((length, Some(fd))) = receive(socket, &mut request) else {
            return;
        };
        let sent = match perform(&request[..length], &fd, &mut value) {
            Ok(Performed::Opened(opened)) => send(socket, &[0; 4], &[], Some(opened.as_fd())),
            Ok(Performed::Read(length)) => send(socket, &[0; 4], &value[..length], None),
            Err(errno) => send(socket, &errno.raw_os_error().to_ne_bytes(), &[], None),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn become_authority(socket: &OwnedFd, uid_map: &str, gid_map: &str) -> rustix::io::Result<()> {
    let socket = socket.as_raw_fd().unsigned_abs();
    // SAFETY: these descriptors belong to this copy of the process, which never uses them: the
    // code that owned them does not run here. Standard streams go too: a pipe must see its end.
    unsafe {
        if socket > 0 {
            libc::syscall(libc::SYS_close_range, 0, socket - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, socket + 1, u32::MAX, 0);
    }
    for (file, text) in [
        (c"/proc/self/setgroups", "deny"),
        (c"/proc/self/uid_map", uid_map),
        (c"/proc/self/gid_map", gid_map),
    ] {
        let file = rustix::fs::open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&file, text.as_bytes())?;
    }
    Ok(())
}

enum Performed {
    Opened(OwnedFd),
    Read(usize),
}

fn perform(request: &[u8], fd: &OwnedFd, value: &mut [u8]) -> rustix::io::Result<Performed> {
    let invalid = rustix::io::Errno::INVAL;
    let (operation, rest) = request.split_first().ok_or(invalid)?;
    let (flags, name) = rest.split_first_chunk::<4>().ok_or(invalid)?;
    let name = CStr::from_bytes_with_nul(name).map_err(|_| invalid)?;
    match *operation {
        OPEN => {
            let flags = OFlags::from_bits_retain(u32::from_ne_bytes(*flags));
            rustix::fs::openat(fd, name, flags, Mode::empty()).map(Performed::Opened)
        }
        XATTR => rustix::fs::fgetxattr(fd, name, value).map(Performed::Read),
        _ => Err(invalid),
    }
}

fn send(
    socket: &OwnedFd,
    head: &[u8],
    data: &[u8],
    fd: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = fd.map(|fd| [fd]);
    if let Some(fds) = &fds {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let parts = [IoSlice::new(head), IoSlice::new(data)];
    rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)
    })?;
    Ok(())
}

fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> rustix::io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = loop {
        let mut parts = [IoSliceMut::new(buffer)];
        match rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result?,
        }
    };
    let mut fd = None;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = part {
            fd = fds.into_iter().next();
        }
    }
    Ok((message.bytes, fd))
}
