//! Attempts to reach the host's files: by what is inherited, by magic links, by handles, by mounts.
//! Every attempt is made by root and by an ordinary user, and first outside, where it must work.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use sandbox_tests::{Attempt, BOX, Fixture, SECRET, Snapshot, as_both, finish};

/// A fixture with a sandbox, and a secret of the host's beside it.
fn boxed(user: sandbox_tests::User) -> (Fixture, String) {
    let fixture = Fixture::new(user);
    let secret = fixture.write("host/secret", SECRET);
    fixture.create(&[]);
    (fixture, secret.to_str().unwrap().to_owned())
}

as_both! {
    /// CVE-2024-21626: a directory of the host's, left open by whoever calls, leads out by "..".
    fn descriptors_of_the_caller_do_not_reach_the_command(user) {
        let (fixture, secret) = boxed(user);
        let attacker = fixture.attacker();
        let host = fixture.host();
        let given = |victim: &[&str]| {
            let mut command = fixture.outside(&attacker);
            command.arg("with-descriptor").arg(&host).arg("--").args(victim);
            Attempt::of(&finish(&mut command))
        };
        let (binary, attacker) = (fixture.binary(), attacker.to_str().unwrap().to_owned());
        let binary = binary.to_str().unwrap();
        assert!(given(&[&attacker, "descriptors"]).must_work().contains("63="));
        assert!(given(&[&attacker, "climb", "63", &secret]).must_work().contains(SECRET));
        let seen = given(&[binary, "run", BOX, "--", &attacker, "descriptors"]).must_work();
        assert_eq!(seen, "", "the command holds descriptors it was never given");
        for descriptor in ["7", "63", "200"] {
            given(&[binary, "run", BOX, "--", &attacker, "climb", descriptor, &secret]).must_fail();
        }
    }

    /// CVE-2024-21626 again: the working directory is a descriptor that nobody closes.
    fn the_callers_working_directory_does_not_lead_to_the_host(user) {
        let (fixture, _) = boxed(user);
        fixture.write("host/kept", "as it was");
        let mut command = fixture.command(["run", BOX, "sh", "-c", "pwd -P; echo 0wned > kept; ls"]);
        command.current_dir(fixture.host());
        let outcome = finish(&mut command);
        assert_eq!(fs::read_to_string(fixture.host().join("kept")).unwrap(), "as it was");
        assert!(!fixture.source().join("kept").exists(), "{outcome}");
        let mut command = fixture.command(["run", BOX, "sh", "-c", "echo new > made-inside; pwd -P"]);
        command.current_dir(fixture.source());
        let outcome = finish(&mut command).succeeded();
        assert_eq!(outcome.out().trim(), fixture.source().to_str().unwrap());
        assert!(!fixture.source().join("made-inside").exists(), "a write by the raw directory");
    }

    /// A file given to be read must not become one to be written: /proc/self/fd/0 opens it anew,
    /// through the mount it was opened on, which is the host's and writable.
    fn a_file_given_as_standard_input_cannot_be_written(user) {
        let (fixture, _) = boxed(user);
        let given = fixture.write("host/given", "as it was");
        let attempt = |mut command: std::process::Command| {
            command.stdin(Stdio::from(fs::File::open(&given).unwrap()));
            Attempt::of(&finish(&mut command))
        };
        let mut outside = fixture.outside(fixture.attacker());
        outside.args(["write-through-descriptor", "0"]);
        attempt(outside).must_work();
        fixture.write("host/given", "as it was");
        let mut inside = fixture.command(["run", BOX, "--"]);
        inside.arg(fixture.attacker()).args(["write-through-descriptor", "0"]);
        attempt(inside).must_fail();
        assert_eq!(fs::read_to_string(&given).unwrap(), "as it was");
    }

    /// What a stream is opened on can be changed through it by its owner, whatever is mounted
    /// inside; and the null device of a machine is root's.
    fn the_null_device_cannot_be_changed_through_a_stream(user) {
        let (fixture, _) = boxed(user);
        let device = fixture.base().join("null");
        let device = device.to_str().unwrap();
        let made = ["make-node", device, "1", "3"];
        finish(std::process::Command::new(sandbox_tests::attacker_binary()).args(made)).succeeded();
        user.own(device.as_ref());
        let mode = || fs::metadata(device).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(device, fs::Permissions::from_mode(0o666)).unwrap();
        let opened = || fs::File::options().read(true).write(true).open(device).unwrap();
        let mut outside = fixture.outside("chmod");
        finish(outside.args(["600", "/proc/self/fd/0"]).stdin(opened())).succeeded();
        assert_eq!(mode(), 0o600, "the control");
        fs::set_permissions(device, fs::Permissions::from_mode(0o666)).unwrap();
        let mut inside = fixture.command(["run", BOX, "chmod", "600", "/proc/self/fd/0"]);
        finish(inside.stdin(opened()));
        assert_eq!(mode(), 0o666, "the mode was changed from inside");
    }

    /// A directory given as standard input is a way out like any other open directory.
    fn a_directory_given_as_standard_input_does_not_lead_out(user) {
        let (fixture, secret) = boxed(user);
        let attempt = |mut command: std::process::Command| {
            command.stdin(Stdio::from(fs::File::open(fixture.host()).unwrap()));
            finish(&mut command)
        };
        let root = fixture.root();
        let other = root.join("victim/upper/planted");
        fixture.ok(["create", "victim"]);
        fixture.ok(["run", "victim", "sh", "-c", "echo planted > planted"]);
        let other = other.to_str().unwrap();
        for reached in [secret.as_str(), other] {
            let mut outside = fixture.outside(fixture.attacker());
            outside.args(["climb", "0", reached]);
            Attempt::of(&attempt(outside)).must_work();
        }
        // What the host shows read-only may be read by any road; the sandbox root may not.
        let mut inside = fixture.command(["run", BOX, "--"]);
        inside.arg(fixture.attacker()).args(["climb", "0", other]);
        let outcome = attempt(inside);
        if outcome.out().contains("done") {
            panic!("another sandbox was reached through standard input: {outcome}");
        }
    }

    /// Magic links of the init: its root, its directory, its descriptors, its memory.
    fn magic_links_of_the_init_lead_nowhere(user) {
        let (fixture, secret) = boxed(user);
        for link in ["root", "cwd"] {
            fixture.control(&["climb", &format!("/proc/self/{link}"), &secret]).must_work();
            let other = fixture.root().join("box/meta.json");
            let path = format!("/proc/1/{link}");
            fixture.inside(&["climb", &path, other.to_str().unwrap()]).must_fail();
            fixture.inside(&["create", &format!("{path}{}/0wned", fixture.host().display())]).must_fail();
        }
        // Their numbers may be known; what they lead to may not.
        for descriptor in 0..12 {
            let link = format!("/proc/1/fd/{descriptor}");
            fixture.inside(&["read", &link]).must_fail();
            fixture.inside(&["climb", &link, &secret]).must_fail();
        }
        fixture.inside(&["write", "/proc/1/mem"]).must_fail();
        fixture.inside(&["read", "/proc/1/environ"]).must_fail();
        assert!(!fixture.host().join("0wned").exists());
    }

    /// A process inside may look through its own links: they must show the sandbox, not the host.
    fn its_own_magic_links_show_the_sandbox(user) {
        let (fixture, _) = boxed(user);
        let host = fixture.host().join("0wned");
        let host = host.to_str().unwrap();
        for link in ["self/root", "self/task/1/root", "thread-self/root"] {
            fixture.inside(&["create", &format!("/proc/{link}{host}")]).must_fail();
        }
        fixture.control(&["create", host]).must_work();
    }

    /// CVE-2014-3519 ("shocker"): a handle opens a file wherever it is.
    fn handles_do_not_open_hidden_files(user) {
        let fixture = Fixture::new(user);
        fixture.write("home/.ssh/id_ed25519", SECRET);
        fixture.create(&[]);
        let key = fixture.home().join(".ssh/id_ed25519");
        if user == sandbox_tests::User::Root {
            fixture.control(&["open-by-handle", key.to_str().unwrap()]).must_work();
        }
        fixture.inside(&["open-by-handle", key.to_str().unwrap()]).must_fail();
        fixture.inside(&["open-by-handle", "/etc/passwd"]).must_fail();
    }

    fn the_host_is_read_only_outside_the_workspace(user) {
        let (fixture, secret) = boxed(user);
        fixture.control(&["write", &secret]).must_work();
        fixture.write("host/secret", SECRET);
        let before = Snapshot::of(&fixture.host());
        fixture.inside(&["write", &secret]).must_fail();
        fixture.inside(&["create", fixture.host().join("new").to_str().unwrap()]).must_fail();
        let tried = fixture.run(&format!(
            "cd {} && {{ rm -rf secret; mv secret x; chmod 777 secret; touch secret; ln secret y; \
             ln -s a b; mkdir d; }}; true",
            fixture.host().display()
        ));
        Snapshot::of(&fixture.host()).must_equal(&before, &tried.to_string());
    }

    fn mounts_cannot_be_made_changed_or_removed(user) {
        let (fixture, _) = boxed(user);
        let host = fixture.host();
        let host = host.to_str().unwrap();
        let source = fixture.source();
        let source = source.to_str().unwrap();
        for attempt in [
            &["mount-tmpfs", source][..],
            &["bind", "/", source],
            &["bind", host, source],
            &["remount-writable", "/"],
            &["remount-writable", "/proc/sys"],
            &["remount-writable", "/usr"],
            &["mount-type", "proc", source],
            &["mount-type", "sysfs", source],
            &["mount-type", "cgroup", source],
            &["mount-type", "cgroup2", source],
            &["mount-type", "devtmpfs", source],
            &["mount-type", "overlay", source],
            &["unmount", source],
            &["unmount", "/proc"],
            &["unmount", "/tmp"],
            &["unmount", fixture.home().to_str().unwrap()],
            &["open-tree", "/"],
            &["fsopen", "tmpfs"],
            &["fsopen", "ext4"],
            &["chroot", source],
            &["pivot", source, source],
            &["call", "mount_setattr"],
            &["call", "move_mount"],
        ] {
            fixture.inside(attempt).must_fail();
        }
        if user == sandbox_tests::User::Root {
            for attempt in [&["open-tree", "/"][..], &["fsopen", "tmpfs"], &["chroot", source]] {
                fixture.control(attempt).must_work();
            }
        }
    }

    fn device_nodes_cannot_be_made_or_opened(user) {
        let (fixture, _) = boxed(user);
        let node = fixture.source().join("node");
        let node = node.to_str().unwrap();
        // 1:1 is /dev/mem, 254:0 a disk here, 10:229 /dev/fuse.
        for (major, minor) in [("1", "1"), ("254", "0"), ("8", "0"), ("10", "229"), ("5", "1")] {
            fixture.inside(&["make-node", node, major, minor]).must_fail();
        }
        let devices = fixture.run("ls /dev").succeeded().out();
        let allowed = [
            "console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm",
            "stderr", "stdin", "stdout", "tty", "urandom", "zero",
        ];
        for device in devices.split_whitespace() {
            assert!(allowed.contains(&device), "/dev/{device} is inside: {devices}");
        }
        for device in ["/dev/kmsg", "/dev/vda", "/dev/mem", "/dev/loop-control", "/dev/kvm"] {
            fixture.inside(&["read", device]).must_fail();
            fixture.inside(&["write", device]).must_fail();
        }
    }
}
