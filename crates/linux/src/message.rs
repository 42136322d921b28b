//! Messages with descriptors between the launcher and the sandbox's init.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// The most descriptors one message carries; the kernel's own limit is 253.
pub const MOST_DESCRIPTORS: usize = 128;

/// Room for the descriptors' header and numbers, as `cmsg_space!` would compute it.
const ANCILLARY: usize = rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS));

/// A connected pair that keeps message boundaries and is closed by exec.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        kind,
        flags,
        None,
    )?)
}

/// Sends one message.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); ANCILLARY];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let flags = SendFlags::NOSIGNAL;
    let mut send = || rustix::net::sendmsg(&socket, &[IoSlice::new(bytes)], &mut ancillary, flags);
    match send() {
        // Longer than most are: the socket has to be told that there is one.
        Err(rustix::io::Errno::MSGSIZE) => {
            rustix::net::sockopt::set_socket_send_buffer_size(&socket, bytes.len())?;
            send()?;
        }
        outcome => {
            outcome?;
        }
    }
    Ok(())
}

/// Receives one message into `bytes`: how long it is (0 when the other end is gone) and what came
/// with it.
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); ANCILLARY];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let buffers = &mut [IoSliceMut::new(bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(&socket, buffers, &mut ancillary, flags) {
            Ok(message) => break message.bytes,
            Err(rustix::io::Errno::INTR) => {}
            // The peer died with our message unread.
            Err(rustix::io::Errno::CONNRESET) => break 0,
            Err(error) => return Err(error.into()),
        }
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok((length, descriptors))
}

/// Is the other end gone? Consumes nothing.
pub fn abandoned(socket: impl AsFd) -> bool {
    let mut byte = [0u8];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(rustix::net::recv(socket, &mut byte, flags), Ok((_, 0)))
}

/// Is there a message, or the end of them? Consumes nothing.
pub fn waiting(socket: impl AsFd) -> bool {
    let mut byte = [0u8];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    rustix::net::recv(socket, &mut byte, flags) != Err(rustix::io::Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_message_or_the_end_is_seen_to_wait() {
        let (ours, theirs) = pair().unwrap();
        assert!(!waiting(&theirs) && !abandoned(&theirs));
        send(&ours, b"here", &[]).unwrap();
        assert!(waiting(&theirs) && !abandoned(&theirs));
        receive(&theirs, &mut [0; 16]).unwrap();
        assert!(!waiting(&theirs));
        drop(ours);
        assert!(waiting(&theirs) && abandoned(&theirs));
    }

    #[test]
    fn a_descriptor_arrives_usable() {
        let (ours, theirs) = pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(&ours, b"here", &[writer.as_fd()]).unwrap();
        drop(writer);
        let mut bytes = [0; 16];
        let (length, mut descriptors) = receive(&theirs, &mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"here");
        let mut writer = std::fs::File::from(descriptors.pop().unwrap());
        writer.write_all(b"through").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }

    #[test]
    fn a_message_may_be_longer_than_most() {
        let (ours, theirs) = pair().unwrap();
        let long = vec![7; 300 << 10];
        send(&ours, &long, &[ours.as_fd()]).unwrap();
        let mut bytes = vec![0; long.len() + 1];
        let (length, descriptors) = receive(&theirs, &mut bytes).unwrap();
        assert!(bytes[..length] == long);
        assert_eq!(descriptors.len(), 1);
    }

    #[test]
    fn a_lost_peer_is_noticed_and_reads_as_the_end() {
        let (ours, theirs) = pair().unwrap();
        assert!(!abandoned(&ours));
        drop(theirs);
        assert!(abandoned(&ours));
        assert_eq!(receive(&ours, &mut [0; 4]).unwrap().0, 0);
    }
}
