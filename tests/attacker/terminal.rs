//! Putting words into the caller's mouth: pushing input back into its terminal.

use crate::{Attempt, checked};

pub fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    Some(match (name, arguments) {
        ("push-input", [high]) => push_input(high_bits(high)),
        ("paste-selection", [high]) => paste_selection(high_bits(high)),
        ("is-terminal", []) => is_terminal(),
        _ => return None,
    })
}

/// The kernel looks at the low 32 bits of a request; a filter may look at all 64.
fn high_bits(text: &str) -> u64 {
    text.parse::<u64>().expect("a number") << 32
}

fn push_input(high: u64) -> Attempt {
    for byte in b"0wned\n" {
        let request = high | libc::TIOCSTI;
        // SAFETY: the request reads one byte at the pointer.
        let result =
            unsafe { libc::syscall(libc::SYS_ioctl, 0, request, std::ptr::from_ref(byte)) };
        checked("TIOCSTI", result)?;
    }
    Ok(String::from("pushed"))
}

/// TIOCLINUX subcode 3 pastes the console's selection as input. On a terminal that is no console
/// the kernel says ENOTTY, which means that no filter stood before it.
fn paste_selection(high: u64) -> Attempt {
    const TIOCLINUX: u64 = 0x541c;
    let subcode = [3_u8; 8];
    // SAFETY: the request reads a byte, and for some subcodes a few more, at the pointer.
    let result = unsafe { libc::syscall(libc::SYS_ioctl, 0, high | TIOCLINUX, subcode.as_ptr()) };
    match checked("TIOCLINUX", result) {
        Err(refusal) if refusal.errno == libc::ENOTTY || refusal.errno == libc::EINVAL => {
            Ok(String::from("the kernel considered it"))
        }
        Err(refusal) => Err(refusal),
        Ok(_) => Ok(String::from("pasted")),
    }
}

fn is_terminal() -> Attempt {
    use std::io::IsTerminal as _;
    Ok(format!("{}", std::io::stdin().is_terminal()))
}
