//! Holding a child at the moment it becomes another program.
//!
//! Between the exec and the program's first instruction something can be changed that must hold
//! for the one and not for the other. The kernel's way to stop a process there is tracing.

use std::io;

use rustix::process::Pid;

/// How a held child fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// It has executed the program and stands before its first instruction.
    Exec,
    /// It ended before.
    End,
}

/// Asks the kernel to stop `child` at its next exec. Must be called before it gets there.
pub fn at_exec(child: Pid) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL;
    trace(libc::PTRACE_SEIZE as libc::c_uint, child, options as usize)
}

/// Waits until it stands there. Signals sent to it meanwhile reach it.
pub fn wait(child: Pid) -> io::Result<Reached> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the status, which is all the kernel writes.
        let result = unsafe { libc::waitpid(pid_of(child), &mut status, libc::__WALL) };
        if result < 0 {
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => continue,
                _ => return Err(error),
            }
        }
        if !libc::WIFSTOPPED(status) {
            return Ok(Reached::End);
        }
        match status >> 16 {
            libc::PTRACE_EVENT_EXEC => return Ok(Reached::Exec),
            // A signal on its way to the child: let it through.
            0 => {
                let signal = libc::WSTOPSIG(status) as usize;
                trace(libc::PTRACE_CONT as libc::c_uint, child, signal)?;
            }
            _ => trace(libc::PTRACE_CONT as libc::c_uint, child, 0)?,
        }
    }
}

/// Lets it go.
pub fn release(child: Pid) -> io::Result<()> {
    trace(libc::PTRACE_DETACH as libc::c_uint, child, 0)
}

fn pid_of(child: Pid) -> libc::pid_t {
    child.as_raw_nonzero().get()
}

fn trace(request: libc::c_uint, child: Pid, data: usize) -> io::Result<()> {
    let nowhere = 0usize;
    // SAFETY: none of the requests made here reads or writes memory of ours: address is unused and
    // data is a number.
    let result = unsafe { libc::ptrace(request as _, pid_of(child), nowhere, data) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clone::{Namespaces, Parent, clone};
    use crate::exec::Command;
    use crate::message;

    fn held(program: &'static str) -> (crate::clone::Child, Reached) {
        let (ours, theirs) = message::pair().unwrap();
        let (child, ours) = clone(Namespaces::empty(), Parent::Caller, ours, || {
            message::receive(&theirs, &mut [0]).unwrap();
            let _ = Command::new(&[program.into()], &[]).unwrap().exec();
            9
        })
        .unwrap();
        at_exec(child.pid).unwrap();
        message::send(&ours, b"g", &[]).unwrap();
        let reached = wait(child.pid).unwrap();
        (child, reached)
    }

    #[test]
    fn a_child_stands_before_its_first_instruction_until_it_is_released() {
        let (child, reached) = held("/bin/true");
        assert_eq!(reached, Reached::Exec);
        release(child.pid).unwrap();
        assert_eq!(child.wait().unwrap().exit_status(), Some(0));
    }

    #[test]
    fn a_child_that_never_gets_there_is_told_apart() {
        assert_eq!(held("/nowhere").1, Reached::End);
    }
}
