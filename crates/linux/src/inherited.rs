//! Descriptors that whoever started this process left open for it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::io::FdFlags;

/// Takes the descriptor of that number over: it is closed with what is given back, and by exec.
///
/// For descriptors that the process was started with and that are named to it by number. Each may be taken
/// once, and before anything is opened: a number that was not left open could be somebody else's later.
pub fn take(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl with these arguments takes two numbers and touches no memory.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and by the contract above nobody in this process owns it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
    Ok(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::IntoRawFd;

    #[test]
    fn what_was_left_open_is_taken_over_and_closed_by_exec() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        let number = OwnedFd::from(reader).into_raw_fd();
        rustix::io::fcntl_setfd(
            // SAFETY: it was given up just now and is not closed before it is taken.
            unsafe { std::os::fd::BorrowedFd::borrow_raw(number) },
            FdFlags::empty(),
        )
        .unwrap();
        let taken = take(number).unwrap();
        assert_eq!(rustix::io::fcntl_getfd(&taken).unwrap(), FdFlags::CLOEXEC);
        let mut text = String::new();
        std::fs::File::from(taken)
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "");
    }

    #[test]
    fn a_number_that_nobody_left_open_is_refused() {
        assert_eq!(take(1 << 20).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
