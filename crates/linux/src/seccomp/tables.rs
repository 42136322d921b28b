//! Which calls are refused, and how.

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Allow,
    /// It fails with this error.
    Fail(i32),
    /// It fails with EPERM if any of these bits is set in this argument.
    FailOnBits(u8, u32),
    /// `ioctl`: not the requests that put words into a terminal's mouth.
    Ioctl,
    /// `socket`: unix, internet, and netlink's routing tables.
    Socket,
    /// `socketpair`: unix.
    SocketPair,
}

#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xc000_00b7;

/// The last call that was known when these tables were written: `file_setattr`, kernel 6.17.
const LAST_KNOWN: u32 = 469;

/// Any new namespace, as `clone` has it: the lowest byte is the exit signal there.
const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// CLONE_NEWTIME, which only `unshare` and `clone3` take.
const NEW_TIME_NAMESPACE: u32 = 0x80;

const REFUSED: &[libc::c_long] = &[
    // Mounts and roots. setns(fd, 0) takes any namespace, so its flags say nothing.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    // Keys are not namespaced.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Large, young or privileged parts of the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // The clock is everyone's.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];

/// Not known to every libc on every architecture.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: libc::c_long = libc::SYS_kexec_file_load;
#[cfg(target_arch = "aarch64")]
const KEXEC_FILE_LOAD: libc::c_long = 294;

/// Kernel 6.15.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// Calls with their verdicts, sorted; those between are allowed.
pub(super) fn verdicts() -> Vec<(u32, Verdict)> {
    let mut verdicts: Vec<(u32, Verdict)> = REFUSED
        .iter()
        .map(|call| (*call as u32, Verdict::Fail(libc::EPERM)))
        .collect();
    verdicts.extend([
        (
            libc::SYS_clone as u32,
            Verdict::FailOnBits(0, NEW_NAMESPACES),
        ),
        (
            libc::SYS_unshare as u32,
            Verdict::FailOnBits(0, NEW_NAMESPACES | NEW_TIME_NAMESPACE),
        ),
        // Its flags are behind a pointer; callers fall back to clone.
        (libc::SYS_clone3 as u32, Verdict::Fail(libc::ENOSYS)),
        (libc::SYS_ioctl as u32, Verdict::Ioctl),
        (libc::SYS_socket as u32, Verdict::Socket),
        (libc::SYS_socketpair as u32, Verdict::SocketPair),
        // Everything from here on, x32's calls (0x40000000 and up) included.
        (LAST_KNOWN + 1, Verdict::Fail(libc::ENOSYS)),
    ]);
    verdicts.sort_by_key(|(call, _)| *call);
    verdicts
}
