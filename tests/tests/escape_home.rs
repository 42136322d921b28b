//! Secrets: of the home, of the environment, of other sandboxes. Invisible, by every road.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use sandbox_tests::{Attempt, BOX, Fixture, SECRET, User, as_both, finish};

/// Where people keep what nobody else may read.
const SECRETS: &[&str] = &[
    ".ssh/id_ed25519",
    ".ssh/config",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".config/gcloud/credentials.db",
    ".docker/config.json",
    ".gnupg/secring.gpg",
    ".kube/config",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".bash_history",
    ".password-store/bank.gpg",
    ".mozilla/firefox/cookies.sqlite",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".claude/.credentials.json",
    "documents/taxes.txt",
];

fn with_secrets(user: User) -> Fixture {
    let fixture = Fixture::new(user);
    for secret in SECRETS {
        fixture.write(format!("home/{secret}"), SECRET);
    }
    fixture.write("home/.cargo/config.toml", "[net]\n");
    fixture.write("home/.cache/kept", "cached");
    fixture.write(
        "home/.gitconfig",
        "[user]\nname = Ada\nemail = ada@example.com\n",
    );
    fixture
}

as_both! {
    fn secrets_in_the_home_are_invisible(user) {
        let fixture = with_secrets(user);
        fixture.create(&[]);
        for secret in SECRETS {
            let path = fixture.home().join(secret);
            let path = path.to_str().unwrap();
            assert!(fixture.control(&["read", path]).must_work().contains(SECRET));
            fixture.inside(&["read", path]).must_fail();
        }
        let found = fixture.run("grep -rl 'secret of the host' \"$HOME\" 2>/dev/null; true");
        assert_eq!(found.out(), "", "grep found secrets");
    }

    fn toolchains_caches_and_git_identity_are_there(user) {
        let fixture = with_secrets(user);
        fixture.create(&[]);
        let seen = fixture.run(
            "cat ~/.cargo/config.toml ~/.cache/kept && git config --global user.name",
        );
        let seen = seen.succeeded().out();
        assert!(seen.contains("[net]") && seen.contains("cached") && seen.contains("Ada"), "{seen}");
    }

    fn what_is_written_to_the_home_stays_in_the_sandbox(user) {
        let fixture = with_secrets(user);
        fixture.create(&[]);
        let before = sandbox_tests::Snapshot::of(&fixture.home());
        fixture
            .run("echo 1 > ~/.profile; echo 2 > ~/.cargo/new; echo 3 > ~/.cache/kept; \
                  mkdir -p ~/.ssh && echo 4 > ~/.ssh/authorized_keys; rm ~/.cargo/config.toml; true")
            .succeeded();
        sandbox_tests::Snapshot::of(&fixture.home()).must_equal(&before, "the home was written to");
        let kept = fixture.run("cat ~/.profile ~/.cargo/new ~/.cache/kept; ls ~/.cargo/config.toml");
        assert_eq!(kept.out(), "1\n2\n3\n", "the home layer is kept between runs: {kept}");
        let changes = fixture.ok(["diff", BOX, "--files"]);
        assert_eq!(changes.out().trim(), "", "the home layer is never promoted: {changes}");
    }

    /// CVE-2021-30465: what is mounted at the next run must not follow a link planted in this one.
    fn links_planted_in_the_home_do_not_move_the_next_runs_mounts(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        fixture
            .run("rm -rf ~/.cargo ~/.npm ~/.cache ~/.gitconfig ~/.local; ln -s /etc ~/.cargo; \
                  ln -s /usr ~/.npm; ln -s / ~/.cache; ln -s /etc/passwd ~/.gitconfig; \
                  ln -s /usr ~/.local; true")
            .succeeded();
        for directory in [".cargo", ".npm", ".cache", ".local/bin"] {
            fixture.write(format!("home/{directory}/planted"), "planted");
        }
        fixture.write("home/.gitconfig", "[user]\nname = planted\n");
        let seen = fixture.run(
            "ls /etc/planted /usr/planted /planted /usr/bin/planted; grep planted /etc/passwd; true",
        );
        assert_eq!(seen.out(), "", "a mount followed a planted link: {seen}");
        // Either the link was not followed, or the run was refused with words.
        let broken = fixture.run("ls /usr/bin/env && grep -c root: /etc/passwd");
        if broken.code() != 0 {
            assert!(broken.err().contains("error: "), "{broken}");
        } else {
            assert!(broken.out().contains("/usr/bin/env"), "{broken}");
        }
    }

    fn links_in_the_home_layer_do_not_lead_the_host_out(user) {
        let fixture = Fixture::new(user);
        fixture.write("home/.cache/kept", "cached");
        fixture.write("home/victim/kept", "as it was");
        fixture.create(&[]);
        let victim = fixture.home().join("victim");
        fixture.run(&format!("ln -s {} ~/.cache/huggingface", victim.display())).succeeded();
        let before = sandbox_tests::Snapshot::of(&victim);
        fixture.run("true").succeeded();
        sandbox_tests::Snapshot::of(&victim).must_equal(&before, "a planted link was followed");
    }

    fn removing_a_cache_does_not_stop_later_runs(user) {
        let fixture = Fixture::new(user);
        fixture.write("home/.cache/huggingface/token", SECRET);
        fixture.create(&[]);
        fixture.run("rm -rf ~/.cache/huggingface").succeeded();
        let seen = fixture.run("cat ~/.cache/huggingface/token; true").succeeded();
        assert!(!seen.out().contains(SECRET), "{seen}");
    }

    fn the_listed_home_is_kept_out_whatever_home_says(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let secret = Planted::in_home_of(user);
        assert!(fixture.control(&["read", secret.path()]).must_work().contains(SECRET));
        let values = ["/tmp", "/nonexistent", "relative", "/", ""];
        for home in values.into_iter().map(Some).chain([None]) {
            let mut command = fixture.command(["run", BOX, "--"]);
            command.arg(fixture.attacker()).args(["read", secret.path()]);
            match home {
                Some(home) => command.env("HOME", home),
                None => command.env_remove("HOME"),
            };
            Attempt::of(&finish(&mut command)).must_fail();
        }
    }

    fn credentials_that_variables_point_to_are_kept_out(user) {
        let fixture = Fixture::new(user);
        let token = fixture.write("host/cargo/credentials.toml", SECRET);
        fixture.write("host/cargo/config.toml", "[net]");
        let hosts = fixture.write("host/config/gh/hosts.yml", SECRET);
        fixture.create(&[]);
        for secret in [token, hosts] {
            let mut command = fixture.command(["run", BOX, "--"]);
            command.arg(fixture.attacker()).arg("read").arg(&secret);
            command.env("CARGO_HOME", fixture.host().join("cargo"));
            command.env("XDG_CONFIG_HOME", fixture.host().join("config"));
            let read = Attempt::of(&finish(&mut command));
            assert_ne!(read, Attempt::Done(SECRET.to_owned()), "{}", secret.display());
        }
        let mut command = fixture.command(["run", BOX, "sh", "-c", "cat $CARGO_HOME/config.toml"]);
        command.env("CARGO_HOME", fixture.host().join("cargo"));
        assert_eq!(finish(&mut command).succeeded().out(), "[net]", "the rest is there");
    }

    fn secrets_in_the_environment_are_dropped(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let hidden = [
            "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN",
            "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DATABASE_PASSWORD", "MY_SECRET", "API_KEY",
            "CARGO_REGISTRY_TOKEN", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO",
            "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DOCKER_HOST", "DISPLAY",
            "WAYLAND_DISPLAY", "XAUTHORITY", "KUBECONFIG", "JWT", "BEARER", "COOKIE", "MONGO_URI",
        ];
        let mut command = fixture.command(["run", BOX, "sh", "-c", "env; cat /proc/1/environ; true"]);
        for name in hidden {
            command.env(name, format!("value-of-{name}"));
        }
        command.env("EDITOR", "vi").env("MONKEY", "banana");
        command.env("HTTPS_PROXY", "http://ada:value-of-pw@proxy").env("HOMEPAGE", "http://a.example");
        let seen = finish(&mut command).succeeded().out();
        for name in hidden {
            assert!(!seen.contains(&format!("value-of-{name}")), "{name} reached the command");
        }
        assert!(!seen.contains("value-of-pw"), "a password in an address reached the command");
        assert!(seen.contains("HOMEPAGE=http://a.example"), "a plain address passes: {seen}");
        assert!(seen.contains("EDITOR=vi"), "ordinary variables pass: {seen}");
        assert!(seen.contains("MONKEY=banana"), "a name that only contains KEY passes: {seen}");
        assert!(seen.contains("IN_SANDBOX=1") && seen.contains("SANDBOX_NAME=box"), "{seen}");
    }

    /// Records outlive the run; what was said for one run's ears must not be in them.
    fn variables_given_by_flag_are_not_kept(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        fixture.ok(["run", "--env", "PASSWORD=word-of-trust", BOX, "sh", "-c", "echo $PASSWORD"]);
        let script = "grep -rl word-of-trust \"$SANDBOX_ROOT\"";
        assert_eq!(fixture.shell(script).out(), "", "a secret was written down");
    }

    fn other_sandboxes_and_the_root_are_unreachable(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        fixture.ok(["create", "other"]);
        fixture.ok(["run", "other", "sh", "-c", "echo \"$1\" > note", "sh", SECRET]);
        let upper = fixture.root().join("other/upper/note");
        assert!(upper.exists(), "the control: it is there on the host");
        let root = fixture.root();
        let root = root.to_str().unwrap();
        match fixture.inside(&["list", root]) {
            Attempt::Done(names) => assert_eq!(names, "", "the sandbox root can be listed"),
            refused => refused.must_fail(),
        }
        for file in ["other/upper/note", "other/meta.json", "box/lock", "box/meta.json", ".history"] {
            fixture.inside(&["read", &format!("{root}/{file}")]).must_fail();
            fixture.inside(&["create", &format!("{root}/{file}")]).must_fail();
        }
        let found = fixture.run(
            "find / -xdev -name note -o -path '*/box/upper' -prune -o -name meta.json 2>/dev/null",
        );
        assert!(!found.out().contains("note"), "{found}");
        assert!(upper.exists());
    }

    /// Ours is the only process that can list it: others on the machine may not enter it, so a
    /// setuid program made inside cannot be run from outside.
    fn the_root_is_closed_to_other_users(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let mode = fs::metadata(fixture.root()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "mode {mode:o}");
    }

    fn a_sandbox_root_below_the_home_is_hidden_too(user) {
        let fixture = Fixture::new(user);
        let mut command = fixture.command(["create", "athome"]);
        command.env_remove("SANDBOX_ROOT");
        finish(&mut command).succeeded();
        let root = fixture.home().join(".local/share/daedalos/sandbox");
        assert!(root.join("athome").is_dir(), "the default root is below the home");
        let list = format!("ls -A {} 2>/dev/null; true", root.display());
        let mut command = fixture.command(["run", "athome", "sh", "-c", &list]);
        command.env_remove("SANDBOX_ROOT");
        assert_eq!(finish(&mut command).succeeded().out(), "");
    }
}

/// A secret outside of the fixture, in a user's real home. Removed when dropped.
struct Planted(tempfile::NamedTempFile);

impl Planted {
    fn in_home_of(user: User) -> Planted {
        let file = tempfile::NamedTempFile::new_in(user.listed_home()).unwrap();
        fs::write(file.path(), SECRET).unwrap();
        user.own(file.path());
        Planted(file)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
}

/// Root inside has root's id but not its powers, so the modes of others' files hold.
#[test]
fn root_inside_cannot_read_private_files_of_others() {
    let fixture = Fixture::new(User::Root);
    fixture.create(&[]);
    let secret = Planted::in_home_of(User::Tester);
    fixture.only_outside(&["read", secret.path()]);
}

/// Users from LDAP and the like are not in the list that a static binary can read.
#[test]
fn an_unlisted_user_needs_a_home_of_their_own() {
    const UNLISTED: u32 = 54_321;
    let fixture = Fixture::new(User::Tester);
    let own = |path: &Path| chown(path, Some(UNLISTED), Some(UNLISTED)).unwrap();
    own(fixture.base());
    own(&fixture.source());
    own(&fixture.home());
    let attempt = |arguments: &[&str], home: Option<&Path>| {
        let mut command = fixture.command(arguments);
        command.uid(UNLISTED).gid(UNLISTED);
        match home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        finish(&mut command)
    };
    let home = fixture.home();
    attempt(&["create", BOX], Some(&home)).succeeded();
    attempt(&["run", BOX, "true"], Some(&home)).succeeded();
    for home in [
        None,
        Some(Path::new("/tmp")),
        Some(Path::new("/nonexistent")),
    ] {
        let refused = attempt(&["run", BOX, "true"], home).failed(1);
        assert!(
            refused.err().contains("home directory is unknown"),
            "{refused}"
        );
    }
}

as_both! {
    fn hidden_paths_are_hidden_and_exposed_ones_seen(user) {
        let fixture = Fixture::new(user);
        let hidden = fixture.write("host/hidden/file", SECRET);
        fixture.write("home/documents/letter", "dear");
        fixture.create(&[]);
        let hidden = hidden.to_str().unwrap();
        let directory = fixture.host().join("hidden");
        let directory = directory.to_str().unwrap();
        fixture.inside(&["read", hidden]).must_work();
        fixture.inside_with(&["--hide", directory], &["read", hidden]).must_fail();
        // A single file is covered by an empty one.
        let covered = fixture.inside_with(&["--hide", hidden], &["read", hidden]);
        assert_ne!(covered, Attempt::Done(SECRET.to_owned()));
        let letter = fixture.home().join("documents/letter");
        let letter = letter.to_str().unwrap();
        let documents = fixture.home().join("documents");
        let documents = documents.to_str().unwrap();
        fixture.inside(&["read", letter]).must_fail();
        fixture.inside_with(&["--expose", documents], &["read", letter]).must_work();
        fixture.inside_with(&["--expose", documents], &["write", letter]).must_fail();
        assert_eq!(fs::read_to_string(letter).unwrap(), "dear");
        let writable = format!("{documents}:rw");
        fixture.inside_with(&["--expose", &writable], &["write", letter]).must_work();
        assert!(fs::read_to_string(letter).unwrap().starts_with("0wned"));
    }

    fn what_create_hides_in_the_workspace_stays_hidden(user) {
        for backend in ["copy", "overlay"] {
            let fixture = Fixture::new(user);
            fixture.write("source/conf/deep/secret", SECRET);
            fixture.write("source/conf/plain", "plain");
            fixture.create(&["--backend", backend, "--hide", "conf/deep/secret"]);
            fixture
                .run("mv conf moved; mv conf/deep conf/moved; mv conf/deep/secret x; cp -r conf copied; \
                      ln conf/deep/secret linked; rm -rf conf; true")
                .succeeded();
            let found = fixture.run("grep -r 'secret of the host' . ; true");
            assert_eq!(found.out(), "", "{backend}: {found}");
            let work = fixture.run("echo more >> copied/plain; cat copied/plain").succeeded();
            assert_eq!(work.out(), "plainmore\n", "{backend}: the rest can be worked with");
        }
    }

    fn a_hidden_path_that_is_gone_from_the_copy_is_told(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/conf/secret", SECRET);
        fixture.create(&["--backend", "copy", "--hide", "conf/secret", "--hide", "never-there"]);
        fixture.run("true").succeeded();
        let work = fixture.root().join("box/work");
        fs::rename(work.join("conf"), work.join("moved")).unwrap();
        let refused = fixture.sandbox(["run", BOX, "cat", "moved/secret"]).failed(1);
        assert!(refused.err().contains("cannot hide"), "{refused}");
        // The copy has it, whatever becomes of the source.
        fs::rename(work.join("moved"), work.join("conf")).unwrap();
        fs::remove_file(fixture.source().join("conf/secret")).unwrap();
        let read = fixture.run("cat conf/secret").succeeded();
        assert_eq!(read.out(), "", "{read}");
    }

    fn git_identity_comes_without_credentials(user) {
        let fixture = Fixture::new(user);
        fixture.write(
            "home/.gitconfig",
            "[user]\n\tname = Ada\n[http]\n\textraHeader = Authorization: Basic gate\n\
             [credential]\n\thelper = store\n[http \"https://example.com\"]\n\textraHeader = X: gate\n",
        );
        fixture.create(&[]);
        let seen = fixture.run("git config --global --list; cat ~/.gitconfig").succeeded().out();
        assert!(seen.contains("user.name=Ada"), "{seen}");
        let lower = seen.to_lowercase();
        assert!(!lower.contains("extraheader") && !lower.contains("helper"), "{seen}");
        fixture.write("home/.gitconfig", "[user]\n\tname = Grace\n");
        let seen = fixture.run("git config --global --list").succeeded().out();
        assert_eq!(seen, "user.name=Grace\n", "changes of the file are seen");
    }

    fn temporary_directories_are_fresh(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        for place in ["/tmp", "/dev/shm"] {
            let planted = format!("{place}/sandbox-tests-{}", std::process::id());
            fs::write(&planted, SECRET).unwrap();
            let control = fixture.control(&["read", &planted]);
            let inside = fixture.inside(&["read", &planted]);
            fs::remove_file(&planted).unwrap();
            control.must_work();
            inside.must_fail();
            let made = format!("{place}/sandbox-tests-inside-{}", std::process::id());
            fixture.inside(&["create", &made]).must_work();
            assert!(!std::path::Path::new(&made).exists(), "{made} reached the host");
        }
    }
}
