//! Two of everything at once, and ten.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;

use sandbox_tests::{BOX, Fixture, Running, Snapshot, User, as_both};

/// What must be alone.
const EXCLUSIVE: &[&[&str]] = &[
    &["promote", BOX, "--yes"],
    &["fork", BOX, "forked"],
    &["snapshot", BOX, "label"],
    &["sync", BOX],
    &["discard", BOX, "-f"],
];

fn busy(user: User, backend: &str, runs: usize) {
    let fixture = Fixture::new(user);
    fixture.write("source/shared", "original\n");
    fixture.create(&["--backend", backend]);
    let mut running: Vec<Running> = (0..runs)
        .map(|number| {
            let script = format!(
                "echo {number} > made-{number}; echo up; read go; echo {number} >> shared; ls"
            );
            fixture.start(["run", BOX, "sh", "-c", &script])
        })
        .collect();
    for run in &mut running {
        run.wait_for("up");
    }
    let before = Snapshot::of(&fixture.source());
    for command in EXCLUSIVE {
        let outcome = fixture.sandbox(*command).failed(1);
        assert!(
            outcome.err().contains("busy") || outcome.err().contains("running"),
            "{outcome}"
        );
    }
    Snapshot::of(&fixture.source()).must_equal(&before, "an exclusive command did something");
    // Reading is for everyone.
    for command in [&["diff", BOX, "--files"][..], &["info", BOX], &["list"]] {
        let outcome = fixture.ok(command);
        assert!(!outcome.out().is_empty(), "{command:?}: {outcome}");
    }
    for run in &mut running {
        run.say("go");
    }
    for run in running {
        let seen = run.end().succeeded().out();
        for number in 0..runs {
            assert!(
                seen.contains(&format!("made-{number}\n")),
                "one view for all: {seen}"
            );
        }
    }
    let changes = fixture.changes();
    for number in 0..runs {
        assert_eq!(
            changes.get(&format!("made-{number}")).map(String::as_str),
            Some("created")
        );
    }
    fixture.ok(["promote", BOX, "--yes"]);
    let shared = std::fs::read_to_string(fixture.source().join("shared")).unwrap();
    let lines: BTreeSet<String> = shared.lines().map(str::to_owned).collect();
    let wanted: BTreeSet<String> = (0..runs)
        .map(|n| n.to_string())
        .chain([String::from("original")])
        .collect();
    assert_eq!(lines, wanted, "appends by all runs are in the one file");
    fixture.ok(["discard", BOX, "-f"]);
}

as_both! {
    fn two_runs_share_one_view_and_keep_others_out(user) {
        busy(user, "overlay", 2);
        busy(user, "copy", 2);
    }

    fn ten_runs_share_one_view_and_keep_others_out(user) {
        busy(user, "overlay", 10);
    }

    /// The first run made the view; when it ends the view must stay for the others, and a third
    /// must still find it rather than mount the layer a second time.
    fn the_view_outlives_the_run_that_made_it(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--backend", "overlay"]);
        let mut first = fixture.start(["run", BOX, "sh", "-c", "echo up; cat"]);
        first.wait_for("up");
        let mut second = fixture.start(["run", BOX, "sh", "-c", "echo up; cat; cat third"]);
        second.wait_for("up");
        first.end().succeeded();
        fixture.run("echo from the third > third").succeeded();
        let outcome = second.end().succeeded();
        assert!(outcome.out().contains("from the third"), "{outcome}");
    }

    fn the_view_outlives_a_killed_first_run(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--backend", "overlay"]);
        let mut first = fixture.start(["run", BOX, "sh", "-c", "echo up; cat"]);
        first.wait_for("up");
        let mut second = fixture.start(["run", BOX, "sh", "-c", "echo up; cat; cat third"]);
        second.wait_for("up");
        first.signal(rustix::process::Signal::KILL);
        first.end();
        fixture.run("echo from the third > third").succeeded();
        assert!(second.is_running(), "the second died with the first");
        let outcome = second.end().succeeded();
        assert!(outcome.out().contains("from the third"), "{outcome}");
    }

    /// Started at the same moment, none may mount on its own.
    fn ten_runs_started_at_once_all_work(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--backend", "overlay"]);
        for round in 0..3 {
            let running: Vec<Running> = (0..10)
                .map(|n| fixture.start(["run", BOX, "sh", "-c", &format!("echo x > r{round}-{n}")]))
                .collect();
            for run in running {
                run.end().succeeded();
            }
        }
        assert_eq!(fixture.changes().len(), 30);
    }

    /// Runs come and go while promote, fork and discard are tried: each either works on a quiet
    /// sandbox or is told that it is busy, and nothing written is lost.
    fn exclusive_commands_between_runs_lose_nothing(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        std::thread::scope(|scope| {
            let runner = scope.spawn(|| {
                for number in 0..15 {
                    let script = format!("echo {number} > file-{number}");
                    let outcome = fixture.run(&script);
                    if outcome.code() != 0 {
                        assert!(outcome.err().contains("busy"), "{outcome}");
                        // It was refused before anything ran: once more, until it is let in.
                        while fixture.run(&script).code() != 0 {}
                    }
                }
            });
            let mut forks = 0;
            while !runner.is_finished() {
                let promoted = fixture.sandbox(["promote", BOX, "--yes"]);
                assert!([0, 1].contains(&promoted.code()), "{promoted}");
                let forked = fixture.sandbox(["fork", BOX, &format!("fork-{forks}")]);
                assert!([0, 1].contains(&forked.code()), "{forked}");
                forks += 1;
            }
        });
        fixture.ok(["promote", BOX, "--yes"]);
        for number in 0..15 {
            let file = fixture.source().join(format!("file-{number}"));
            assert_eq!(std::fs::read_to_string(file).unwrap(), format!("{number}\n"));
        }
    }

    fn of_eight_creates_of_one_name_one_wins(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/file", "x");
        for backend in ["overlay", "copy"] {
            let name = format!("same-{backend}");
            let creating: Vec<Running> =
                (0..8).map(|_| fixture.start(["create", &name, "--backend", backend])).collect();
            let outcomes: Vec<_> = creating.into_iter().map(Running::end).collect();
            let won = outcomes.iter().filter(|outcome| outcome.code() == 0).count();
            assert_eq!(won, 1, "{outcomes:?}");
            for outcome in outcomes.iter().filter(|outcome| outcome.code() != 0) {
                assert_eq!(outcome.code(), 1, "{outcome}");
                assert!(outcome.err().contains("exists"), "{outcome}");
            }
            fixture.ok(["run", &name, "cat", "file"]);
        }
        let left: Vec<_> = std::fs::read_dir(fixture.root()).unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(".new-"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    fn ten_tries_at_once_do_not_meet(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/file", "original\n");
        let trying: Vec<Running> = (0..10)
            .map(|n| fixture.start(["try", "--discard", "--", "sh", "-c", &format!("echo {n} > file; cat file")]))
            .collect();
        for (number, run) in trying.into_iter().enumerate() {
            let outcome = run.end().succeeded();
            assert!(outcome.out().starts_with(&format!("{number}\n")), "{outcome}");
        }
        assert_eq!(std::fs::read_to_string(fixture.source().join("file")).unwrap(), "original\n");
        assert_eq!(fixture.ok(["list", "--json"]).json().as_array().map(Vec::len), Some(0));
    }

    /// Two sandboxes of one source promote at once: both sets of changes arrive whole.
    fn promotes_into_one_source_take_turns(user) {
        let fixture = Fixture::new(user);
        let names: Vec<String> = (0..6).map(|n| format!("box-{n}")).collect();
        for name in &names {
            fixture.ok(["create", name]);
            fixture.ok(["run", name, "sh", "-c", &format!("for i in 1 2 3 4 5; do echo $i > {name}-$i; done")]);
        }
        let promoting: Vec<Running> =
            names.iter().map(|name| fixture.start(["promote", name, "--yes"])).collect();
        let outcomes: Vec<_> = promoting.into_iter().map(Running::end).collect();
        for (outcome, name) in outcomes.iter().zip(&names) {
            // One that found another at work says so, and can be tried again.
            if outcome.code() != 0 {
                assert_eq!(outcome.code(), 1, "{outcome}");
                fixture.ok(["promote", name, "--yes"]);
            }
        }
        for name in &names {
            for number in 1..=5 {
                assert!(fixture.source().join(format!("{name}-{number}")).exists(), "{name}-{number}");
            }
        }
    }

    /// A server inside freezes, keeps its connections waiting, and goes on where it was.
    fn a_live_server_survives_ten_pauses(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut command = fixture.command(["run", BOX, "--"]);
        command.arg(fixture.attacker()).args(["serve-tcp", &address]);
        let mut server = Running::start(&mut command);
        server.wait_for("listening");
        for round in 0..10 {
            fixture.ok(["pause", BOX]);
            let mut waiting = TcpStream::connect(&address).unwrap();
            waiting.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            assert!(waiting.read(&mut [0; 8]).is_err(), "round {round}: it answered while paused");
            if round == 0 {
                let info = fixture.ok(["info", BOX]);
                assert!(info.out().to_lowercase().contains("paused"), "{info}");
            }
            fixture.ok(["resume", BOX]);
            waiting.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut said = String::new();
            waiting.read_to_string(&mut said).unwrap();
            assert_eq!(said, "hello from inside\n", "round {round}");
        }
        fixture.ok(["pause", BOX, "--stop"]);
        server.end();
        fixture.must_be_clean();
    }

    /// A paused sandbox must still die with its CLI.
    fn a_paused_sandbox_dies_with_its_cli(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let mut run = fixture.start(["run", BOX, "sh", "-c", "echo up; cat"]);
        run.wait_for("up");
        fixture.ok(["pause", BOX]);
        run.signal(rustix::process::Signal::KILL);
        run.end();
        fixture.must_be_clean();
        fixture.run("true").succeeded();
    }
}
