//! Reaching other processes: tracing, reading, stealing descriptors, signalling.

use crate::files::println_now;
use crate::{Attempt, checked, refused};

pub fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    Some(match (name, arguments) {
        ("trace", [pid]) => trace(number(pid)),
        ("read-memory", [pid]) => memory(libc::SYS_process_vm_readv, number(pid)),
        ("write-memory", [pid]) => memory(libc::SYS_process_vm_writev, number(pid)),
        ("steal-descriptor", [pid, descriptor]) => steal(number(pid), number(descriptor)),
        ("signal", [pid, sent]) => signal(number(pid), number(sent)),
        ("renice", [pid]) => renice(number(pid)),
        ("limit", [pid]) => limit(number(pid)),
        ("compare", [pid]) => compare(number(pid)),
        ("wait-here", []) => wait_here(),
        _ => return None,
    })
}

fn number(text: &str) -> i32 {
    text.parse().expect("a number")
}

fn trace(pid: i32) -> Attempt {
    // SAFETY: seizing takes no address; the tracee is not stopped by it.
    checked("ptrace", unsafe {
        libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0)
    })?;
    Ok(String::from("traced"))
}

/// One byte at an address that nobody maps: the right to look is checked before the address, so a
/// bad address is success.
fn memory(call: libc::c_long, pid: i32) -> Attempt {
    let mut byte = 0_u8;
    let local = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(8),
        iov_len: 1,
    };
    // SAFETY: the local vector is one byte we own; the remote one is only an address to the kernel.
    let result = unsafe {
        libc::syscall(
            call,
            pid,
            &raw const local,
            1_u64,
            &raw const remote,
            1_u64,
            0_u64,
        )
    };
    match checked("process_vm", result) {
        Err(refusal) if refusal.errno != libc::EFAULT => Err(refusal),
        _ => Ok(String::from("allowed")),
    }
}

fn steal(pid: i32, descriptor: i32) -> Attempt {
    // SAFETY: integers only.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let handle = checked("pidfd_open", handle)?;
    // SAFETY: integers only.
    let stolen = unsafe { libc::syscall(libc::SYS_pidfd_getfd, handle, descriptor, 0) };
    let stolen = checked("pidfd_getfd", stolen)?;
    let link = std::fs::read_link(format!("/proc/self/fd/{stolen}"));
    Ok(format!(
        "stole {}",
        link.map(|l| l.display().to_string()).unwrap_or_default()
    ))
}

fn signal(pid: i32, signal: i32) -> Attempt {
    // SAFETY: integers only.
    if unsafe { libc::kill(pid, signal) } != 0 {
        return Err(refused("kill"));
    }
    Ok(String::from("signalled"))
}

fn renice(pid: i32) -> Attempt {
    let id = u32::try_from(pid).expect("a pid");
    // SAFETY: integers only.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, id, 19) };
    checked("setpriority", i64::from(result))?;
    Ok(String::from("slowed"))
}

fn limit(pid: i32) -> Attempt {
    let mut current = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: reading another's limit into a structure we own.
    let result =
        unsafe { libc::prlimit64(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut current) };
    checked("prlimit", i64::from(result))?;
    Ok(format!("{} files", current.rlim_cur))
}

fn compare(pid: i32) -> Attempt {
    const KCMP_FILES: i32 = 2;
    // SAFETY: integers only.
    let own = unsafe { libc::getpid() };
    // SAFETY: integers only.
    let result = unsafe { libc::syscall(libc::SYS_kcmp, own, pid, KCMP_FILES, 0, 0) };
    checked("kcmp", result)?;
    Ok(String::from("compared"))
}

/// A victim: says its pid and waits for its standard input to close.
fn wait_here() -> Attempt {
    use std::io::Read as _;
    println_now(&format!("waiting {}", std::process::id()));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(String::from("unharmed"))
}
