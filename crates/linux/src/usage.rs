//! What processes have used.

use std::io;
use std::time::Duration;

use crate::clone::Child;

/// What a process and those it waited for have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of processors.
    pub cpu: Duration,
    /// The most memory that one of them had at once, in bytes.
    pub peak_memory: u64,
    /// Bytes from disks.
    pub read: u64,
    /// Bytes to disks.
    pub written: u64,
}

/// How many bytes [`Usage::encode`] takes.
pub const ENCODED: usize = 32;

/// What the children that this process has waited for, and theirs, have used.
pub fn of_children() -> io::Result<Usage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for a rusage, which is all the kernel writes.
    let result = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every field is a number, and the kernel has filled them.
    Ok(Usage::from_kernel(unsafe { usage.assume_init() }))
}

/// Waits until `child` has ended, and says what it and those it waited for have used.
pub fn of_ended(child: &Child) -> io::Result<Usage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let pid = child.pid.as_raw_nonzero().get();
    loop {
        // SAFETY: a null status is allowed, and `usage` is a valid place for a rusage.
        let result =
            unsafe { libc::wait4(pid, std::ptr::null_mut(), libc::__WALL, usage.as_mut_ptr()) };
        if result >= 0 {
            // SAFETY: as above.
            return Ok(Usage::from_kernel(unsafe { usage.assume_init() }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

impl Usage {
    fn from_kernel(usage: libc::rusage) -> Usage {
        let unsigned = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
        let time = |time: libc::timeval| {
            Duration::from_secs(unsigned(time.tv_sec))
                + Duration::from_micros(unsigned(time.tv_usec))
        };
        // Blocks here are of 512 bytes, whatever the filesystem's are.
        const BLOCK: u64 = 512;
        Usage {
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
            peak_memory: unsigned(usage.ru_maxrss) * 1024,
            read: unsigned(usage.ru_inblock) * BLOCK,
            written: unsigned(usage.ru_oublock) * BLOCK,
        }
    }

    /// As bytes, for a message.
    pub fn encode(self) -> [u8; ENCODED] {
        let micros = u64::try_from(self.cpu.as_micros()).unwrap_or(u64::MAX);
        let mut bytes = [0; ENCODED];
        let numbers = [micros, self.peak_memory, self.read, self.written];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// From such bytes; nothing used where they are too few.
    pub fn decode(bytes: &[u8]) -> Usage {
        let mut numbers = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes));
        let mut next = || numbers.next().unwrap_or(0);
        Usage {
            cpu: Duration::from_micros(next()),
            peak_memory: next(),
            read: next(),
            written: next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clone::{Namespaces, Parent, clone};

    #[test]
    fn what_a_child_used_is_known_when_it_was_waited_for() {
        let before = of_children().unwrap();
        let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
            let busy = (0..30_000_000u64).fold(0u64, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
            i32::from(std::hint::black_box(busy) == 1)
        })
        .unwrap();
        child.wait().unwrap();
        let after = of_children().unwrap();
        assert!(after.cpu > before.cpu);
        assert!(after.peak_memory > 0);
    }

    #[test]
    fn a_message_carries_it_whole() {
        let usage = Usage {
            cpu: Duration::from_micros(1_234_567),
            peak_memory: 1 << 40,
            read: 512,
            written: 3,
        };
        assert_eq!(Usage::decode(&usage.encode()), usage);
        assert_eq!(Usage::decode(&[1, 2, 3]), Usage::default());
    }
}
