//! The same kernel by its other doors: the 32-bit call gate and the x32 numbers. A filter that
//! looks at the number alone, or at one architecture alone, is blind to them.

use crate::{Attempt, Refusal};

#[cfg(target_arch = "x86_64")]
pub fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    const NEWUSER: u32 = 0x1000_0000;
    Some(match (name, arguments) {
        ("i386", ["getpid"]) => told(i386(20, 0, 0, 0)),
        ("i386", ["unshare-user"]) => told(i386(310, NEWUSER, 0, 0)),
        ("i386", ["clone-user"]) => told(cloned(i386(120, NEWUSER | 17, 0, 0))),
        ("i386", ["keyctl"]) => told(i386(288, 0, 0xffff_fffd, 0)),
        ("x32", ["getpid"]) => told(x32(39, 0)),
        ("x32", ["unshare-user"]) => told(x32(272, NEWUSER)),
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
pub fn attempt(_name: &str, _arguments: &[&str]) -> Option<Attempt> {
    None
}

fn told(result: i64) -> Attempt {
    if result < 0 {
        let errno = i32::try_from(-result).unwrap_or(0);
        return Err(Refusal {
            errno,
            at: String::from("another ABI"),
        });
    }
    Ok(format!("returned {result}"))
}

/// The child of a clone ends here; the parent goes on with its pid.
fn cloned(result: i64) -> i64 {
    if result == 0 {
        // SAFETY: the child of a fork that has nothing to clean up.
        unsafe { libc::_exit(0) };
    }
    result
}

#[cfg(target_arch = "x86_64")]
fn i386(number: u32, first: u32, second: u32, third: u32) -> i64 {
    let result: u32;
    // SAFETY: the gate takes its arguments in 32-bit registers and touches no memory of ours in
    // the calls made here; rbx, which the compiler keeps to itself, is put back; r8 to r11 are
    // declared lost, as the gate clears them.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {first}",
            "int 0x80",
            "xchg rbx, {first}",
            first = inout(reg) u64::from(first) => _,
            inout("eax") number => result,
            in("ecx") second,
            in("edx") third,
            in("esi") 0,
            in("edi") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    i64::from(result.cast_signed())
}

#[cfg(target_arch = "x86_64")]
fn x32(number: i64, first: u32) -> i64 {
    const X32: i64 = 0x4000_0000;
    let result: i64;
    // SAFETY: a system call with integer arguments; rcx and r11 are declared lost.
    unsafe {
        std::arch::asm!(
            "syscall",
            inout("rax") number | X32 => result,
            in("rdi") u64::from(first),
            in("rsi") 0, in("rdx") 0, in("r10") 0,
            out("rcx") _, out("r11") _,
        );
    }
    result
}
