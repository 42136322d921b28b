//! System calls that widen the kernel's surface. Arguments are such that, outside, the kernel says
//! anything but "not permitted" or "no such call": then that answer inside comes from the wall.

use crate::{Attempt, Refusal, checked};

pub fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    let ("call", [call]) = (name, arguments) else {
        return None;
    };
    let result = raw(call)?;
    Some(match checked(call, result) {
        Err(Refusal { errno, .. }) if errno != libc::EPERM && errno != libc::ENOSYS => {
            Ok(format!("the kernel considered it: errno {errno}"))
        }
        Err(refusal) => Err(refusal),
        Ok(value) => Ok(format!("returned {value}")),
    })
}

/// A structure's worth of zeros, larger than any the calls below read or write.
static ZEROS: [u64; 64] = [0; 64];

fn raw(call: &str) -> Option<i64> {
    const SESSION_KEYRING: i64 = -3;
    const PROCESS_KEYRING: i64 = -2;
    let mut scratch = ZEROS;
    let zeros = scratch.as_mut_ptr();
    let user = c"user".as_ptr();
    let text = c"sandbox-tests".as_ptr();
    // Type software, config page faults, user space only: what an ordinary user may measure.
    let mut event = [0_u64; 16];
    event[0] = 1 | (128 << 32);
    event[1] = 2;
    event[5] = (1 << 5) | (1 << 6);
    let measured = event.as_ptr();
    // SAFETY: pointers are to `scratch` (512 bytes, writable), to `event` (128 bytes, its size in
    // it) or to constant strings, and are valid for each call's structure; calls that could change
    // the machine get arguments that the kernel rejects after its permission check.
    let result = unsafe {
        match call {
            "keyctl" => libc::syscall(libc::SYS_keyctl, 0_i64, SESSION_KEYRING, 0_i64),
            "add_key" => libc::syscall(libc::SYS_add_key, user, text, text, 3_u64, PROCESS_KEYRING),
            "request_key" => libc::syscall(
                libc::SYS_request_key,
                user,
                text,
                std::ptr::null::<u8>(),
                0_i64,
            ),
            "bpf" => libc::syscall(libc::SYS_bpf, 9999_i64, zeros, 16_u64),
            "perf_event_open" => libc::syscall(
                libc::SYS_perf_event_open,
                measured,
                0_i64,
                -1_i64,
                -1_i64,
                0_u64,
            ),
            "userfaultfd" => libc::syscall(libc::SYS_userfaultfd, 1_i64),
            "io_uring_setup" => libc::syscall(libc::SYS_io_uring_setup, 1_u64, zeros),
            "io_uring_enter" => libc::syscall(
                libc::SYS_io_uring_enter,
                -1_i64,
                0_u64,
                0_u64,
                0_u64,
                0_u64,
                0_u64,
            ),
            "io_uring_register" => {
                libc::syscall(libc::SYS_io_uring_register, -1_i64, 0_u64, 0_u64, 0_u64)
            }
            "init_module" => libc::syscall(libc::SYS_init_module, zeros, 0_u64, text),
            "finit_module" => libc::syscall(libc::SYS_finit_module, -1_i64, text, 0_i64),
            "delete_module" => libc::syscall(libc::SYS_delete_module, text, 0_i64),
            "kexec_load" => libc::syscall(libc::SYS_kexec_load, 0_u64, 99_u64, zeros, u64::MAX),
            "acct" => libc::syscall(libc::SYS_acct, c"/no/such/file".as_ptr()),
            "swapon" => libc::syscall(libc::SYS_swapon, c"/no/such/file".as_ptr(), 0_i64),
            "swapoff" => libc::syscall(libc::SYS_swapoff, c"/no/such/file".as_ptr()),
            "reboot" => libc::syscall(libc::SYS_reboot, 1_i64, 2_i64, 3_i64, 0_u64),
            "syslog" => libc::syscall(libc::SYS_syslog, 3_i64, zeros, 16_i64),
            "sethostname" => libc::syscall(libc::SYS_sethostname, text, u64::MAX >> 33),
            "fanotify_init" => libc::syscall(libc::SYS_fanotify_init, 0_u64, 0_u64),
            "mount_setattr" => {
                libc::syscall(libc::SYS_mount_setattr, -1_i64, text, 0_u64, zeros, 32_u64)
            }
            "move_mount" => libc::syscall(libc::SYS_move_mount, -1_i64, text, -1_i64, text, 0_u64),
            _ => return None,
        }
    };
    Some(result)
}
