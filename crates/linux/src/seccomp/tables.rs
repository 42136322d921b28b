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
    /// It fails with EPERM unless this argument has this value.
    FailUnless(u8, u32),
    /// `ioctl`: not the requests that put words into a terminal's mouth.
    Ioctl,
    /// `socket`: unix, internet, and netlink's routing tables.
    Socket,
    /// `socket`: internet, and netlink's routing tables.
    InternetSocket,
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

/// What a proxy calls, and its C library and its resolver.
const OF_A_PROXY: &[libc::c_long] = &[
    // Descriptors.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_lseek,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    // Files, to look at: openat is judged by its flags.
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    // Sockets.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    // Memory and threads.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_prctl,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    // Who, when and where.
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_gettimeofday,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_getrlimit,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
];

/// Opening for anything but reading.
const WRITING: u32 =
    (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND) as u32;

/// The calls of a proxy with their verdicts, sorted; those between are refused.
pub(super) fn proxy_verdicts(pid: u32) -> Vec<(u32, Verdict)> {
    let allowed = OF_A_PROXY.iter();
    let mut verdicts: Vec<(u32, Verdict)> =
        allowed.map(|call| (*call as u32, Verdict::Allow)).collect();
    verdicts.extend([
        (libc::SYS_openat as u32, Verdict::FailOnBits(2, WRITING)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open as u32, Verdict::FailOnBits(1, WRITING)),
        (libc::SYS_socket as u32, Verdict::InternetSocket),
        (libc::SYS_ioctl as u32, Verdict::Ioctl),
        (libc::SYS_prlimit64 as u32, Verdict::FailOnBits(0, u32::MAX)),
        // A program that aborts does so to itself.
        (libc::SYS_tgkill as u32, Verdict::FailUnless(0, pid)),
        (
            libc::SYS_clone as u32,
            Verdict::FailOnBits(0, NEW_NAMESPACES),
        ),
        (libc::SYS_clone3 as u32, Verdict::Fail(libc::ENOSYS)),
        (LAST_KNOWN + 1, Verdict::Fail(libc::ENOSYS)),
    ]);
    verdicts.sort_by_key(|(call, _)| *call);
    verdicts
}

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
