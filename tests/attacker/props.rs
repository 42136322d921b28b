//! What surrounds a victim or a caller: an extra descriptor, a terminal, a process group.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::files::println_now;
use crate::{Attempt, checked, refused, refused_by};

pub fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    Some(match (name, arguments) {
        ("with-descriptor", [path, "--", command @ ..]) => with_descriptor(path, command),
        ("on-terminal", ["--", command @ ..]) => on_terminal(command),
        ("leading-a-group", ["--", command @ ..]) => leading_a_group(command),
        _ => return None,
    })
}

fn become_command(command: &[&str]) -> Attempt {
    let error = Command::new(command[0]).args(&command[1..]).exec();
    Err(refused_by("exec")(error))
}

/// Runs the command with `path` open at descriptors that nobody marked close-on-exec.
fn with_descriptor(path: &str, command: &[&str]) -> Attempt {
    let path = std::ffi::CString::new(path).expect("no zero byte");
    // SAFETY: a zero-terminated string; the descriptor is leaked on purpose.
    let opened = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY) };
    checked("open", i64::from(opened))?;
    for copy in [7, 63, 200] {
        // SAFETY: integers only; dup2 leaves close-on-exec off.
        checked("dup2", i64::from(unsafe { libc::dup2(opened, copy) }))?;
    }
    become_command(command)
}

/// Makes standard input the controlling terminal of a session of its own, then runs the command.
fn on_terminal(command: &[&str]) -> Attempt {
    // SAFETY: integers only.
    if unsafe { libc::setsid() } < 0 {
        return Err(refused("setsid"));
    }
    // SAFETY: integers only.
    let result = unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) };
    checked("TIOCSCTTY", i64::from(result))?;
    become_command(command)
}

/// Leads a process group, runs the command in it, and tells that it is still there afterwards.
fn leading_a_group(command: &[&str]) -> Attempt {
    // SAFETY: integers only.
    checked("setpgid", i64::from(unsafe { libc::setpgid(0, 0) }))?;
    let status = Command::new(command[0])
        .args(&command[1..])
        .status()
        .map_err(refused_by("start the command"))?;
    println_now(&format!("the command ended: {status}"));
    Ok(String::from("survived"))
}
