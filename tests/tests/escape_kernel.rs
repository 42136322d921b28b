//! Attempts on the kernel itself: new namespaces by every route, calls that widen its surface,
//! other ABIs, and the files by which root steers the machine.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox_tests::{Attempt, Fixture, User, as_both, finish, unmount};

fn boxed(user: User) -> Fixture {
    let fixture = Fixture::new(user);
    fixture.create(&[]);
    fixture
}

const CORE_PATTERN: &str = "/proc/sys/kernel/core_pattern";

/// The machine's setting, put back however the test ends.
struct KeptPattern(String);

impl Drop for KeptPattern {
    fn drop(&mut self) {
        fs::write(CORE_PATTERN, self.0.trim_end()).expect("the pattern is put back");
    }
}

/// A hierarchy of version 1, without controllers, that goes with the test.
struct Hierarchy {
    directory: tempfile::TempDir,
}

impl Hierarchy {
    fn mount() -> Hierarchy {
        let directory = tempfile::tempdir().unwrap();
        let name = format!("none,name=sandbox-test-{}", std::process::id());
        let mut mount = Command::new("mount");
        mount.args(["-t", "cgroup", "-o", &name, "none"]);
        finish(mount.arg(directory.path())).succeeded();
        Hierarchy { directory }
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        unmount(self.directory.path()).succeeded();
    }
}

/// Fails inside; outside it works for root at least, or for both.
fn refused_call(user: User, call: &str, needs_root: bool) {
    let fixture = boxed(user);
    if user == User::Root || !needs_root {
        fixture.control(&["call", call]).must_work();
    }
    fixture.inside(&["call", call]).must_fail();
}

as_both! {
    /// A user namespace gives every capability over what is in it: the door to most kernel holes
    /// of the last years (CVE-2022-0185, CVE-2022-0492, CVE-2023-0386, CVE-2024-1086).
    fn user_namespaces_cannot_be_nested_by_any_route(user) {
        let fixture = boxed(user);
        for kind in ["user", "both"] {
            fixture.only_outside(&["unshare", kind]);
            fixture.only_outside(&["clone", kind]);
            fixture.only_outside(&["clone3", kind]);
        }
        for kind in ["mount", "pid", "network", "cgroup"] {
            fixture.inside(&["unshare", kind]).must_fail();
            fixture.inside(&["clone", kind]).must_fail();
            fixture.inside(&["clone3", kind]).must_fail();
        }
        for namespace in ["user", "mnt", "pid", "net", "cgroup", "ipc", "uts"] {
            for owner in ["self", "1"] {
                let path = format!("/proc/{owner}/ns/{namespace}");
                fixture.inside(&["setns", &path, "none"]).must_fail();
            }
        }
    }

    /// A filter cannot look into clone3's structure, so it must say "no such call", by which the
    /// C library falls back to clone.
    fn clone3_is_no_such_call(user) {
        let fixture = boxed(user);
        fixture.control(&["clone3", "none"]).must_work();
        match fixture.inside(&["clone3", "none"]) {
            Attempt::Refused(errno, _) => assert_eq!(errno, libc::ENOSYS),
            other => panic!("{other:?}"),
        }
        fixture.run("sh -c 'sh -c true & wait'; python3 -c 'import threading; \
                     threading.Thread(target=print, args=(1,)).start()'").succeeded();
    }

    /// A 64-bit program may enter by the 32-bit gate, or with x32's numbers.
    #[cfg(target_arch = "x86_64")]
    fn other_call_abis_are_closed(user) {
        let fixture = boxed(user);
        for call in ["getpid", "unshare-user", "clone-user", "keyctl"] {
            fixture.only_outside(&["i386", call]);
        }
        for call in ["getpid", "unshare-user"] {
            fixture.inside(&["x32", call]).must_fail();
        }
    }

    fn keyrings_are_closed(user) {
        for call in ["keyctl", "add_key", "request_key"] {
            refused_call(user, call, false);
        }
    }

    fn bpf_is_closed(user) { refused_call(user, "bpf", false); }

    fn perf_is_closed(user) { refused_call(user, "perf_event_open", false); }

    fn userfaultfd_is_closed(user) { refused_call(user, "userfaultfd", false); }

    fn io_uring_is_closed(user) {
        for call in ["io_uring_setup", "io_uring_enter", "io_uring_register"] {
            refused_call(user, call, false);
        }
    }

    fn calls_that_run_the_machine_are_closed(user) {
        let fixture = boxed(user);
        for call in ["acct", "swapon", "swapoff", "reboot", "syslog", "sethostname", "fanotify_init"] {
            if user == User::Root {
                fixture.control(&["call", call]).must_work();
            }
            fixture.inside(&["call", call]).must_fail();
        }
        for call in ["init_module", "finit_module", "delete_module", "kexec_load"] {
            fixture.inside(&["call", call]).must_fail();
        }
    }

    /// core_pattern runs a program as root outside at the next crash; the others steer as much.
    fn the_kernels_settings_cannot_be_written(user) {
        let fixture = boxed(user);
        let _kept = KeptPattern(fs::read_to_string(CORE_PATTERN).unwrap());
        for file in [
            CORE_PATTERN,
            "/proc/sys/kernel/modprobe",
            "/proc/sys/kernel/hotplug",
            "/proc/sys/kernel/panic",
            "/proc/sys/kernel/hostname",
            "/proc/sys/vm/drop_caches",
            "/proc/sys/vm/overcommit_memory",
            "/proc/sys/fs/binfmt_misc/register",
            "/proc/sys/fs/suid_dumpable",
            "/proc/sys/net/ipv4/ip_forward",
            "/proc/sysrq-trigger",
            "/proc/irq/default_smp_affinity",
            "/proc/1/oom_score_adj",
            "/sys/kernel/uevent_helper",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "/sys/power/state",
        ] {
            fixture.inside(&["write", file]).must_fail();
        }
        if user == User::Root {
            fixture.control(&["write", CORE_PATTERN]).must_work();
        }
    }

    fn the_kernels_secrets_cannot_be_read(user) {
        let fixture = boxed(user);
        let files = ["/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/dev/vda", "/dev/sda"];
        for file in files {
            fixture.inside(&["read", file]).must_fail();
        }
        // Reading /proc/kmsg would wait for the kernel to speak.
        let readable = |file: &&str| matches!(fixture.control(&["read", file]), Attempt::Done(_));
        if user == User::Root {
            let control = ["/proc/kcore", "/dev/kmsg", "/dev/vda", "/dev/sda"];
            assert!(control.iter().any(readable), "nothing to hide on this machine");
        }
    }

    /// CVE-2022-0492: release_agent runs a program as root outside when a group empties.
    fn a_release_agent_cannot_be_set(user) {
        let fixture = boxed(user);
        // One of our own: where control groups are version 2 there is none that could be attacked.
        let own = Hierarchy::mount();
        let usual = ["memory", "cpu", "pids", "freezer", "systemd", "rdma", "devices"];
        let usual = usual.map(|hierarchy| Path::new("/sys/fs/cgroup").join(hierarchy));
        for hierarchy in usual.iter().map(PathBuf::as_path).chain([own.directory.path()]) {
            let agent = hierarchy.join("release_agent");
            fixture.inside(&["write", agent.to_str().unwrap()]).must_fail();
        }
        let agent = own.directory.path().join("release_agent");
        assert!(fs::exists(&agent).unwrap(), "the control: there is one to be set");
        let source = fixture.source();
        fixture.inside(&["mount-type", "cgroup", source.to_str().unwrap()]).must_fail();
        // Nor may a process leave its group, and so its limits.
        for hierarchy in ["memory", "pids", "cpu", "freezer", "unified"] {
            for file in ["tasks", "cgroup.procs"] {
                let path = format!("/sys/fs/cgroup/{hierarchy}/{file}");
                fixture.inside(&["write", &path]).must_fail();
            }
        }
    }

    fn no_capability_is_left(user) {
        let fixture = boxed(user);
        let status = fixture.run("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status").succeeded();
        for line in status.out().lines() {
            let (name, value) = line.split_once(':').unwrap();
            match name {
                "NoNewPrivs" => assert_eq!(value.trim(), "1", "{status}"),
                "Seccomp" => assert_eq!(value.trim(), "2", "{status}"),
                _ => assert_eq!(value.trim(), "0000000000000000", "{status}"),
            }
        }
        assert_eq!(status.out().lines().count(), 7, "{status}");
    }

    /// A setuid program must not give back what was taken.
    fn setuid_programs_give_nothing(user) {
        let fixture = boxed(user);
        let outcome = fixture.run("id -u; su -c 'id -u' root </dev/null; grep CapEff /proc/self/status");
        let first = outcome.out().lines().next().unwrap_or_default().to_owned();
        assert_eq!(first, user.ids().0.to_string(), "{outcome}");
        if user == User::Tester {
            assert!(!outcome.out().lines().skip(1).any(|line| line == "0"), "{outcome}");
        }
    }

    fn a_sandbox_within_a_sandbox_is_refused_with_a_reason(user) {
        let fixture = boxed(user);
        let inner = format!(
            "cd {}; SANDBOX_ROOT=$PWD/inner {} try --discard -- true",
            fixture.source().display(),
            fixture.binary().display()
        );
        let outcome = fixture.run(&inner);
        assert!((1..=6).contains(&outcome.code()), "{outcome}");
        assert!(outcome.err().contains("error: "), "{outcome}");
    }
}
