//! The system-call filter.
//!
//! One small program decides by the call's number in a binary tree of ranges, so a call is let
//! through after some seven instructions: the kernel walks the whole program once per call number
//! when the filter is attached, and that walk is what attaching costs. A few calls are then judged
//! by one argument. What is not in the tables is allowed up to the last call known when this was
//! written; later ones do not exist here (`ENOSYS`), so a new way to mount is not let through by
//! age.

use std::io;

mod program;
mod tables;

pub use program::Instruction;

/// The filter for this machine's architecture.
pub fn filter() -> Vec<Instruction> {
    program::assemble(tables::ARCHITECTURE, &tables::verdicts())
}

/// The same for code that has the user of whoever runs it and of others: it cannot change what they may use.
/// The kernel lets everybody do that to their own processes, and whoever may use no time is killed.
pub fn filter_among_equals() -> Vec<Instruction> {
    let mut verdicts = tables::verdicts();
    verdicts.push((
        libc::SYS_prlimit64 as u32,
        tables::Verdict::FailOnBits(0, u32::MAX),
    ));
    verdicts.sort_by_key(|(call, _)| *call);
    program::assemble(tables::ARCHITECTURE, &verdicts)
}

/// The filter for a proxy: internet sockets, threads, memory, clocks, and reading files. Every other call
/// fails; nothing can be executed, written to a file, or sent to a process other than `pid`, which is the proxy's own.
pub fn filter_for_proxy(pid: u32) -> Vec<Instruction> {
    program::assemble_only(tables::ARCHITECTURE, &tables::proxy_verdicts(pid))
}

/// Puts the filter on the calling thread, for good and for everything it starts. Needs
/// no-new-privileges set.
pub fn attach(filter: &[Instruction]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?,
        filter: filter.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    const MODE_FILTER: libc::c_uint = 1;
    // SAFETY: `program` describes `filter`, whose elements are laid out as sock_filter (see
    // `Instruction`); the kernel only reads it.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, MODE_FILTER, 0, &program) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::program::{Call, run};
    use super::*;

    const EPERM: u32 = 0x0005_0000 | libc::EPERM as u32;
    const ENOSYS: u32 = 0x0005_0000 | libc::ENOSYS as u32;
    const EAFNOSUPPORT: u32 = 0x0005_0000 | libc::EAFNOSUPPORT as u32;
    const ALLOW: u32 = 0x7fff_0000;
    const KILL: u32 = 0x8000_0000;

    fn verdict(number: libc::c_long, arguments: &[u64]) -> u32 {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let call = Call {
            number: number as u32,
            architecture: tables::ARCHITECTURE,
            arguments: all,
        };
        run(&filter(), &call).result
    }

    #[test]
    fn ordinary_calls_pass_within_few_instructions() {
        let filter = filter();
        let (mut longest, mut all) = (0, 0);
        for number in 0..470 {
            let call = Call {
                number,
                architecture: tables::ARCHITECTURE,
                arguments: [0; 6],
            };
            let steps = run(&filter, &call).steps;
            longest = longest.max(steps);
            all += steps;
        }
        assert!(all <= 470 * 11, "a call takes {} instructions", all / 470);
        assert!(longest <= 16, "the longest path has {longest} instructions");
        assert!(filter.len() <= 200, "{} instructions", filter.len());
        for number in [
            libc::SYS_read,
            libc::SYS_execve,
            libc::SYS_openat,
            libc::SYS_futex,
        ] {
            assert_eq!(verdict(number, &[]), ALLOW);
        }
    }

    #[test]
    fn mounts_keys_and_kernel_doors_are_closed() {
        for number in [
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_move_mount,
            libc::SYS_open_tree,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_fspick,
            libc::SYS_mount_setattr,
            467,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
            libc::SYS_io_uring_setup,
            libc::SYS_io_uring_enter,
            libc::SYS_io_uring_register,
            libc::SYS_kexec_load,
            libc::SYS_kexec_file_load,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
            libc::SYS_reboot,
            libc::SYS_swapon,
            libc::SYS_swapoff,
            libc::SYS_acct,
            libc::SYS_quotactl,
            443,
            libc::SYS_open_by_handle_at,
            libc::SYS_syslog,
            libc::SYS_settimeofday,
            libc::SYS_clock_settime,
            libc::SYS_adjtimex,
            libc::SYS_clock_adjtime,
            libc::SYS_vhangup,
            libc::SYS_setns,
        ] {
            assert_eq!(verdict(number, &[]), EPERM, "call {number}");
        }
    }

    #[test]
    fn no_call_makes_a_namespace() {
        let new = [
            libc::CLONE_NEWNS,
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWCGROUP,
        ];
        for flag in new {
            let flag = flag as u32 as u64;
            assert_eq!(verdict(libc::SYS_clone, &[flag | 17]), EPERM);
            assert_eq!(verdict(libc::SYS_unshare, &[flag]), EPERM);
            // The upper half is not looked at by the kernel, so it cannot hide the flag.
            assert_eq!(verdict(libc::SYS_unshare, &[flag | 1 << 40]), EPERM);
        }
        assert_eq!(
            verdict(libc::SYS_unshare, &[0x80]),
            EPERM,
            "a time namespace"
        );
        assert_eq!(
            verdict(libc::SYS_unshare, &[libc::CLONE_FILES as u64]),
            ALLOW
        );
        let thread = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND;
        assert_eq!(verdict(libc::SYS_clone, &[thread as u64]), ALLOW);
        assert_eq!(verdict(libc::SYS_clone, &[libc::SIGCHLD as u64]), ALLOW);
        assert_eq!(verdict(libc::SYS_clone3, &[]), ENOSYS);
    }

    #[test]
    fn terminal_injection_is_judged_by_the_low_32_bits() {
        for request in [0x5412u64, 0x541c] {
            assert_eq!(verdict(libc::SYS_ioctl, &[0, request]), EPERM);
            // CVE-2019-10063: the kernel takes an unsigned int and drops the rest.
            assert_eq!(verdict(libc::SYS_ioctl, &[0, request | 1 << 32]), EPERM);
        }
        assert_eq!(verdict(libc::SYS_ioctl, &[0, 0x5401]), ALLOW);
    }

    #[test]
    fn only_the_usual_socket_families_exist() {
        let socket =
            |family: i32, protocol: u64| verdict(libc::SYS_socket, &[family as u64, 1, protocol]);
        for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
            assert_eq!(socket(family, 0), ALLOW);
        }
        assert_eq!(
            socket(libc::AF_NETLINK, 0),
            ALLOW,
            "routing tables may be read"
        );
        assert_eq!(socket(libc::AF_NETLINK, 15), EAFNOSUPPORT);
        for family in [
            libc::AF_PACKET,
            libc::AF_ALG,
            libc::AF_VSOCK,
            libc::AF_KEY,
            44,
            45,
            99,
        ] {
            assert_eq!(socket(family, 0), EAFNOSUPPORT, "family {family}");
        }
        assert_eq!(
            verdict(libc::SYS_socketpair, &[libc::AF_UNIX as u64]),
            ALLOW
        );
        assert_eq!(
            verdict(libc::SYS_socketpair, &[libc::AF_TIPC as u64]),
            EAFNOSUPPORT
        );
    }

    #[test]
    fn a_proxy_may_speak_and_read_and_nothing_else() {
        let verdict = |number: libc::c_long, arguments: &[u64]| {
            let mut all = [0; 6];
            all[..arguments.len()].copy_from_slice(arguments);
            let call = Call {
                number: number as u32,
                architecture: tables::ARCHITECTURE,
                arguments: all,
            };
            run(&filter_for_proxy(4711), &call).result
        };
        for number in [
            libc::SYS_read,
            libc::SYS_connect,
            libc::SYS_accept4,
            libc::SYS_ppoll,
            libc::SYS_futex,
            libc::SYS_exit_group,
        ] {
            assert_eq!(verdict(number, &[]), ALLOW, "call {number}");
        }
        for number in [
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_kill,
            libc::SYS_unlinkat,
            libc::SYS_renameat2,
            libc::SYS_mkdirat,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_getfd,
            libc::SYS_openat2,
            libc::SYS_memfd_create,
            libc::SYS_socketpair,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_bpf,
        ] {
            assert_eq!(verdict(number, &[]), EPERM, "call {number}");
        }
        let open = |flags: i32| verdict(libc::SYS_openat, &[0, 0, flags as u64]);
        assert_eq!(open(libc::O_RDONLY | libc::O_CLOEXEC), ALLOW);
        for flags in [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC] {
            assert_eq!(open(flags), EPERM);
        }
        let socket = |family: i32| verdict(libc::SYS_socket, &[family as u64, 1, 0]);
        assert_eq!(
            (socket(libc::AF_INET), socket(libc::AF_INET6)),
            (ALLOW, ALLOW)
        );
        assert_eq!(socket(libc::AF_UNIX), EAFNOSUPPORT);
        assert_eq!(verdict(libc::SYS_prlimit64, &[0]), ALLOW);
        assert_eq!(verdict(libc::SYS_prlimit64, &[1]), EPERM);
        assert_eq!(verdict(libc::SYS_tgkill, &[4711, 4712, 6]), ALLOW);
        assert_eq!(verdict(libc::SYS_tgkill, &[4710, 4710, 9]), EPERM);
        assert_eq!(verdict(libc::SYS_clone3, &[]), ENOSYS);
        assert_eq!(verdict(470, &[]), ENOSYS);
    }

    #[test]
    fn among_equals_nobody_limits_another() {
        let verdict = |pid: u64| {
            let call = Call {
                number: libc::SYS_prlimit64 as u32,
                architecture: tables::ARCHITECTURE,
                arguments: [pid, 0, 0, 0, 0, 0],
            };
            run(&filter_among_equals(), &call).result
        };
        assert_eq!((verdict(0), verdict(1)), (ALLOW, EPERM));
        assert_eq!(super::tests::verdict(libc::SYS_prlimit64, &[1]), ALLOW);
        assert_eq!(super::tests::verdict(libc::SYS_prlimit64, &[0]), ALLOW);
    }

    #[test]
    fn other_abis_and_unknown_calls_are_refused() {
        assert_eq!(verdict(470, &[]), ENOSYS);
        assert_eq!(verdict(100_000, &[]), ENOSYS);
        assert_eq!(verdict(0x4000_0000, &[]), ENOSYS, "x32");
        assert_eq!(verdict(0x4000_0000 + 165, &[]), ENOSYS, "x32's mount");
        let other = Call {
            number: 11,
            architecture: 0x4000_0003,
            arguments: [0; 6],
        };
        assert_eq!(run(&filter(), &other).result, KILL, "a 32-bit call");
    }

    #[test]
    fn the_kernel_takes_the_filter_and_obeys_it() {
        rustix::thread::set_no_new_privs(true).unwrap();
        attach(&filter()).unwrap();
        // SAFETY: unshare touches no memory; the filter refuses it.
        let result = unsafe { libc::unshare(libc::CLONE_NEWUSER) };
        assert_eq!(result, -1);
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EPERM));
    }
}
