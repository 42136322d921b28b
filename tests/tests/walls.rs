//! When the host cannot give the walls: refuse with the reason and the fix, never go on with less.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;

use rustix::pty::OpenptFlags;
use sandbox_tests::{BOX, Fixture, SECRET, User, as_both, finish, need};

/// A user namespace counts the namespaces below it: with a limit of one, and that one used up by
/// ourselves, no further one can be made. What a hardened host looks like, without hardening it.
const WITHOUT_NAMESPACES: &str = "echo 1 > /proc/sys/user/max_user_namespaces && \
     exec unshare --user --map-user=1001 --map-group=1001 \"$@\"";

#[test]
fn without_user_namespaces_it_refuses_and_shows_the_fix() {
    let fixture = Fixture::new(User::Tester);
    fixture.create(&["--backend", "copy"]);
    let attempt = |command: &[&str]| {
        let mut outer = fixture.outside(need("unshare"));
        outer
            .args([
                "--user",
                "--map-root-user",
                "sh",
                "-c",
                WITHOUT_NAMESPACES,
                "sh",
            ])
            .args(command);
        finish(&mut outer)
    };
    let control = attempt(&["unshare", "--user", "true"]);
    assert_ne!(
        control.code(),
        0,
        "the control: a namespace can still be made"
    );
    let binary = fixture.binary();
    let binary = binary.to_str().unwrap();
    let outcome = attempt(&[binary, "run", BOX, "sh", "-c", "echo started"]);
    assert!((1..=3).contains(&outcome.code()), "{outcome}");
    assert!(
        !outcome.out().contains("started"),
        "it ran without its walls: {outcome}"
    );
    assert!(
        outcome.err().contains("namespace") && outcome.err().contains("hint: "),
        "{outcome}"
    );
    let doctor = attempt(&[binary, "doctor"]);
    assert!(doctor.out().contains("namespace"), "{doctor}");
}

/// Root of a container is not root: what it may not do it must find out by trying.
#[test]
fn as_root_of_a_user_namespace_it_works_or_refuses() {
    let fixture = Fixture::new(User::Tester);
    fixture.write("source/file", "original\n");
    let script = format!(
        "{binary} create contained && {binary} run contained sh -c 'echo changed > file; cat file'",
        binary = fixture.binary().display()
    );
    let mut command = fixture.outside(need("unshare"));
    let outcome = finish(command.args(["--user", "--map-root-user", "sh", "-c", &script]));
    if outcome.code() != 0 {
        assert!(outcome.err().contains("error: "), "{outcome}");
        assert!(!outcome.err().contains("panicked"), "{outcome}");
    } else {
        assert!(outcome.out().ends_with("changed\n"), "{outcome}");
    }
    assert_eq!(
        fs::read_to_string(fixture.source().join("file")).unwrap(),
        "original\n"
    );
}

as_both! {
    /// The weaker wall, asked for by name, still keeps the files.
    fn landlock_alone_keeps_the_host_and_the_secrets(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/file", "original\n");
        let secret = fixture.write("home/.ssh/id_ed25519", SECRET);
        let host = fixture.write("host/file", "as it was");
        fixture.create(&["--backend", "copy"]);
        // There is no mount: the workspace is where its files are, and the command starts there.
        let attempt = |words: &[&str]| {
            let mut command = fixture.command(["run", "--isolation", "landlock", BOX, "./attacker"]);
            sandbox_tests::Attempt::of(&finish(command.args(words)))
        };
        let probe = fixture.sandbox(["run", "--isolation", "landlock", BOX, "sh", "-c", "echo changed > file"]);
        if probe.code() != 0 {
            // A wall that cannot be had for this workspace is refused with words.
            assert!((1..=3).contains(&probe.code()), "{probe}");
            assert!(probe.err().contains("error: "), "{probe}");
            return;
        }
        attempt(&["write", host.to_str().unwrap()]).must_fail();
        attempt(&["read", secret.to_str().unwrap()]).must_fail();
        attempt(&["unshare", "user"]).must_fail();
        attempt(&["call", "keyctl"]).must_fail();
        let root = fixture.root();
        attempt(&["create", root.join("x").to_str().unwrap()]).must_fail();
        let (_server, name) = {
            let name = sandbox_tests::abstract_name(&format!("weak-{user:?}"));
            (sandbox_tests::Answering::at_abstract(&name), name)
        };
        attempt(&["connect-abstract", &name]).must_fail();
        assert_eq!(fs::read_to_string(host).unwrap(), "as it was");
        assert_eq!(fs::read_to_string(fixture.source().join("file")).unwrap(), "original\n");
    }

    fn landlock_alone_shuts_the_terminals_of_others(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--backend", "copy"]);
        let attempt = |words: &[&str]| {
            let mut command = fixture.command(["run", "--isolation", "landlock", BOX, "./attacker"]);
            finish(command.args(words))
        };
        if user == User::Root {
            let refused = attempt(&["read", "/etc/hostname"]).failed(3);
            assert!(refused.err().contains("would be root"), "{refused}");
            return;
        }
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let terminal = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let terminal = terminal.to_str().unwrap();
        user.own(std::path::Path::new(terminal));
        fixture.control(&["write", terminal]).must_work();
        sandbox_tests::Attempt::of(&attempt(&["write", terminal])).must_fail();
        sandbox_tests::Attempt::of(&attempt(&["list", "/dev"])).must_fail();
        sandbox_tests::Attempt::of(&attempt(&["write", "/dev/null"])).must_work();
    }

    fn doctor_tells_what_this_host_offers(user) {
        let fixture = Fixture::new(user);
        let outcome = fixture.sandbox(["doctor"]);
        for word in ["namespace", "overlay", "seccomp", "Landlock", "memory"] {
            assert!(outcome.out().to_lowercase().contains(&word.to_lowercase()), "{word}: {outcome}");
        }
        let json = fixture.sandbox(["doctor", "--json"]).json();
        assert!(json.to_string().contains("works"), "{json}");
    }

    /// The tests' machines have overlays, and the doctor must find what `create` uses.
    fn doctor_finds_the_overlay_that_create_uses(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/file", "original\n");
        fixture.create(&["--backend", "overlay"]);
        let findings = fixture.sandbox(["doctor", "--json"]).json();
        let overlays: Vec<_> = findings.as_array().unwrap().iter()
            .filter(|finding| finding["feature"].as_str().unwrap().starts_with("overlay"))
            .collect();
        assert!(!overlays.is_empty(), "{findings}");
        for overlay in overlays {
            assert_eq!(overlay["works"], true, "{overlay}");
        }
    }
}
