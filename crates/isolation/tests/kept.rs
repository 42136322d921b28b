//! A sandbox that is kept open, and what is started in it one after the other and at once.
#![allow(clippy::unwrap_used)]

mod place;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use place::{Place, Who, everyone};
use rustix::pipe::PipeFlags;
use sandbox_isolation::keeper::{Inner, InnerNetwork, Keeper, Progress, Ready, keep};
use sandbox_isolation::{Identity, LaunchError, Order, Policy, Root, Status};
use sandbox_linux::identity::Ids;
use sandbox_linux::terminal::Size;

const NOBODY: Ids = Ids {
    user: 1000,
    group: 1000,
};

/// Keeps a sandbox by `policy` and does `body` in it.
fn kept(place: &Place, policy: &Policy, body: impl Fn(&Keeper)) {
    let lock = File::open(&place.state).unwrap();
    let kept = keep(
        policy,
        &place.runs(),
        lock.as_fd(),
        InnerNetwork::Own,
        Vec::new(),
        |keeper, _| i32::from(catch_unwind(AssertUnwindSafe(|| body(&keeper))).is_err()),
    );
    assert_eq!(kept.unwrap().wait().unwrap(), Status::Exited(0));
}

/// The policy of a session: a workspace at a path that the host does not have.
fn session(place: &Place) -> Policy {
    Policy {
        source: "/workspace".into(),
        cwd: "/workspace".into(),
        home: None,
        root: Root::Built,
        identity: match place.who {
            Who::Root => Identity::Own,
            Who::Ordinary => Identity::As(NOBODY),
        },
        ..place.policy("")
    }
}

fn order(script: &str) -> Order {
    Order {
        command: ["bash", "-c", script].map(Into::into).to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/workspace".into(),
        extra: Some("RESULT".into()),
    }
}

/// One that runs.
struct Execution {
    inner: Inner,
    output: File,
    result: File,
}

fn start(ready: Ready, order: &Order) -> Execution {
    let null = OwnedFd::from(File::open("/dev/null").unwrap());
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    let ((output, to_output), (result, to_result)) = (pipe(), pipe());
    let streams = [&null, &to_output, &to_output, &to_result].map(AsFd::as_fd);
    Execution {
        inner: ready.start(order, &streams).unwrap(),
        output: output.into(),
        result: result.into(),
    }
}

/// How it ended, what it printed, what it put into its result.
fn finish(keeper: &Keeper, mut execution: Execution) -> (Status, String, String) {
    match keeper.progress(&execution.inner).unwrap() {
        Progress::Started { .. } => {}
        other => panic!("{other:?}"),
    }
    let (mut output, mut result) = (String::new(), String::new());
    execution.output.read_to_string(&mut output).unwrap();
    execution.result.read_to_string(&mut result).unwrap();
    match keeper.progress(&execution.inner).unwrap() {
        Progress::Ended(status, usage) => {
            assert!(usage.peak_memory > 0);
            (status, output, result)
        }
        other => panic!("{other:?}"),
    }
}

fn run(keeper: &Keeper, script: &str) -> (Status, String, String) {
    finish(keeper, start(keeper.prepare().unwrap(), &order(script)))
}

/// What a script printed that ended well.
fn printed(keeper: &Keeper, script: &str) -> String {
    let (status, output, _) = run(keeper, script);
    assert_eq!(status, Status::Exited(0), "{output}");
    output.trim_end().to_owned()
}

#[test]
fn executions_share_the_workspace_and_nothing_else() {
    everyone(|place| {
        kept(place, &session(place), |keeper| {
            let places = "/run /tmp /var/tmp /dev/shm";
            let script = format!("echo kept > kept; for d in {places}; do echo > $d/x; done");
            printed(keeper, &format!("{script}; sleep 1000 & disown"));
            assert_eq!(printed(keeper, "cat kept file"), "kept\noriginal");
            assert_eq!(
                printed(keeper, &format!("ls -A {places} | grep x; true")),
                ""
            );
            // Itself, the init, and those of this pipeline.
            assert_eq!(printed(keeper, "pgrep -c sleep; true"), "0");
        });
        assert_eq!(place.written("kept").as_deref(), Some("kept\n"));
    });
}

#[test]
fn the_root_has_the_system_and_nothing_of_the_machines_people() {
    everyone(|place| {
        kept(place, &session(place), |keeper| {
            let tops = printed(keeper, "ls /");
            let expected = [
                "bin",
                "dev",
                "etc",
                "gnu",
                "lib",
                "lib32",
                "lib64",
                "libx32",
                "nix",
                "opt",
                "proc",
                "run",
                "sbin",
                "tmp",
                "usr",
                "var",
                "workspace",
            ];
            for name in tops.lines() {
                assert!(expected.contains(&name), "{name}");
            }
            for there in ["usr", "etc", "proc", "dev", "tmp", "workspace"] {
                assert!(tops.lines().any(|name| name == there), "{tops}");
            }
            for path in ["/x", "/usr/x", "/etc/x", "/dev/x", "/proc/x"] {
                let (status, ..) = run(keeper, &format!("echo > {path}"));
                assert_ne!(status, Status::Exited(0), "{path}");
            }
            assert_eq!(printed(keeper, "python3 -c 'print(6 * 7)'"), "42");
        });
    });
}

#[test]
fn code_is_somebody_without_power() {
    everyone(|place| {
        kept(place, &session(place), |keeper| {
            if place.who == Who::Ordinary {
                assert_eq!(printed(keeper, "id -u; id -g"), "1000\n1000");
            }
            let status = printed(
                keeper,
                "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status",
            );
            for line in ["CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000"] {
                assert!(status.contains(line), "{status}");
            }
            assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"));
            for attempt in [
                "unshare -U true",
                "unshare -m true",
                "mount -t tmpfs x /tmp",
            ] {
                let (status, ..) = run(keeper, attempt);
                assert_ne!(status, Status::Exited(0), "{attempt}");
            }
        });
    });
}

#[test]
fn the_keeper_is_out_of_reach() {
    everyone(|place| {
        kept(place, &session(place), |keeper| {
            // Process 1 is the inner init; its keeper is in another namespace.
            assert_eq!(printed(keeper, "echo /proc/[0-9]*"), "/proc/1 /proc/2");
            let (status, ..) = run(keeper, "kill -9 1; ls /proc/1/fd /proc/1/root/");
            assert_ne!(status, Status::Exited(0));
            let descriptors = printed(keeper, "ls /proc/self/fd | tr '\\n' ' '; echo $RESULT");
            let (open, told) = descriptors.rsplit_once(' ').unwrap();
            // The fifth is the directory that is being listed.
            let open: Vec<&str> = open.split(' ').collect();
            assert_eq!(open.len(), 5, "{descriptors}");
            assert!(open.contains(&told), "{descriptors}");
        });
    });
}

#[test]
fn a_result_has_its_own_way_out() {
    everyone(|place| {
        kept(place, &session(place), |keeper| {
            let script = "echo printed; echo error >&2; echo result >&$RESULT; exit 7";
            let (status, output, result) = run(keeper, script);
            assert_eq!(status, Status::Exited(7));
            assert_eq!(output, "printed\nerror\n");
            assert_eq!(result, "result\n");
        });
    });
}

#[test]
fn many_run_at_once_and_none_holds_anothers_output() {
    everyone(|place| {
        kept(place, &session(place), |keeper| {
            let long = start(keeper.prepare().unwrap(), &order("sleep 1000"));
            let ahead: Vec<Ready> = (0..5).map(|_| keeper.prepare().unwrap()).collect();
            let running: Vec<Execution> = ahead
                .into_iter()
                .enumerate()
                .map(|(number, ready)| start(ready, &order(&format!("echo {number}"))))
                .collect();
            let waiting = keeper.prepare().unwrap();
            for (number, execution) in running.into_iter().enumerate() {
                let (status, output, _) = finish(keeper, execution);
                assert_eq!((status, output), (Status::Exited(0), format!("{number}\n")));
            }
            long.inner.kill();
            assert!(waiting.is_alive());
        });
    });
}

#[test]
fn one_that_is_killed_takes_everything_along() {
    everyone(|place| {
        kept(place, &session(place), |keeper| {
            let script = "trap '' TERM; setsid sleep 1000 & (sleep 1000 &) ; echo on; wait";
            let mut execution = start(keeper.prepare().unwrap(), &order(script));
            let started = keeper.progress(&execution.inner).unwrap();
            assert!(matches!(started, Progress::Started { .. }), "{started:?}");
            let mut on = [0; 3];
            execution.output.read_exact(&mut on).unwrap();
            execution.inner.kill();
            let gone = keeper.progress(&execution.inner).unwrap();
            assert!(matches!(gone, Progress::Gone), "{gone:?}");
            // Its pipe closes only when the last of them is gone.
            execution.output.read_to_string(&mut String::new()).unwrap();
        });
    });
}

#[test]
fn a_command_that_is_not_there_is_told() {
    everyone(|place| {
        kept(place, &session(place), |keeper| {
            let nonsense = Order {
                command: vec!["nonsense".into()],
                ..order("")
            };
            let execution = start(keeper.prepare().unwrap(), &nonsense);
            match keeper.progress(&execution.inner).unwrap() {
                Progress::Failed(LaunchError::Exec { source, command }) => {
                    assert_eq!(command, "nonsense");
                    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
                }
                other => panic!("{other:?}"),
            }
        });
    });
}

#[test]
fn each_has_a_network_of_its_own() {
    everyone(|place| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        kept(place, &session(place), |keeper| {
            let (status, ..) = run(keeper, &format!("exec 9<>/dev/tcp/127.0.0.1/{port}"));
            assert_ne!(status, Status::Exited(0));
            let server = "python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &";
            let ask = "for i in $(seq 200); do exec 9<>/dev/tcp/127.0.0.1/8000 && exit 0; sleep 0.02; done";
            printed(keeper, &format!("{server} {{ {ask}; }} 2>/dev/null"));
        });
    });
}

/// One that runs on a terminal: our end of that.
fn start_on_terminal(keeper: &Keeper, script: &str) -> (Inner, File) {
    let order = Order {
        extra: None,
        ..order(script)
    };
    let size = Size {
        columns: 123,
        rows: 45,
    };
    let ready = keeper.prepare().unwrap();
    let inner = ready.start_on_terminal(&order, size).unwrap();
    match keeper.progress(&inner).unwrap() {
        Progress::Started {
            terminal: Some(terminal),
            ..
        } => (inner, terminal.into()),
        other => panic!("{other:?}"),
    }
}

/// What is shown on a terminal until nobody is left who could show something.
fn shown(mut terminal: File) -> String {
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    // The end is told as an error.
    while let Ok(length @ 1..) = terminal.read(&mut part) {
        shown.extend(&part[..length]);
    }
    String::from_utf8_lossy(&shown).replace("\r\n", "\n")
}

#[test]
fn one_on_a_terminal_is_alone_there_and_in_control() {
    everyone(|place| {
        kept(place, &session(place), |keeper| {
            let script =
                "tty; stty size; ps -o tpgid=,pgid= -p $$ | tr -s ' '; ls -1 /dev/pts; exit 3";
            let (inner, terminal) = start_on_terminal(keeper, script);
            // Its process is the second, and leads whom the terminal speaks to.
            let expected = "/dev/pts/0\n45 123\n 2 2\n0\nptmx\n";
            assert_eq!(shown(terminal), expected);
            match keeper.progress(&inner).unwrap() {
                Progress::Ended(Status::Exited(3), _) => {}
                other => panic!("{other:?}"),
            }
            let (inner, mut terminal) = start_on_terminal(keeper, "echo on; sleep 1000");
            let mut on = [0; 4];
            terminal.read_exact(&mut on).unwrap();
            // Nobody else sees it, whatever they run on.
            assert_eq!(printed(keeper, "ls /dev/pts"), "ptmx");
            let (_other, listed) = start_on_terminal(keeper, "ls -1 /dev/pts");
            assert_eq!(shown(listed), "0\nptmx\n");
            terminal.write_all(b"\x03").unwrap();
            match keeper.progress(&inner).unwrap() {
                Progress::Ended(Status::Signalled(2), _) => {}
                other => panic!("{other:?}"),
            }
        });
    });
}

/// Asks, through a doorway, whoever listens at `port` on the inside.
fn ask(keeper: &Keeper, inner: &Inner, port: u16) -> std::io::Result<String> {
    let doorway = keeper.doorway(inner).unwrap().unwrap();
    let socket = doorway.sockets()?.remove(0);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    rustix::net::connect(&socket, &address)?;
    let mut answer = String::new();
    File::from(socket).read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_doorway_leads_to_one_inner_network_and_no_other() {
    everyone(|place| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let hosts = listener.local_addr().unwrap().port();
        kept(place, &session(place), |keeper| {
            let serve = |word: &str| {
                let code = format!(
                    "import socket; s = socket.create_server(('127.0.0.1', 8000)); print('on', flush=True)\n\
                     while True: c, _ = s.accept(); c.sendall(b'{word}'); c.close()"
                );
                let command = ["python3", "-c", &code].map(Into::into).to_vec();
                let order = Order {
                    command,
                    ..order("")
                };
                let mut execution = start(keeper.prepare().unwrap(), &order);
                execution.output.read_exact(&mut [0; 3]).unwrap();
                execution
            };
            let (one, other) = (serve("one"), serve("other"));
            assert_eq!(ask(keeper, &one.inner, 8000).unwrap(), "one");
            assert_eq!(ask(keeper, &other.inner, 8000).unwrap(), "other");
            let refused = ask(keeper, &one.inner, hosts).unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
            one.inner.kill();
            while !matches!(keeper.progress(&one.inner).unwrap(), Progress::Gone) {}
            assert!(ask(keeper, &one.inner, 8000).is_err());
        });
    });
}

#[test]
fn there_is_no_doorway_to_the_hosts_network() {
    everyone(|place| {
        let lock = File::open(&place.state).unwrap();
        let body = |keeper: Keeper, _| {
            let on_host = start(keeper.prepare().unwrap(), &order("sleep 1000"));
            i32::from(keeper.doorway(&on_host.inner).unwrap().is_some())
        };
        let network = InnerNetwork::Shared;
        let policy = session(place);
        let kept = keep(
            &policy,
            &place.runs(),
            lock.as_fd(),
            network,
            Vec::new(),
            body,
        );
        assert_eq!(kept.unwrap().wait().unwrap(), Status::Exited(0));
    });
}

#[test]
fn it_ends_with_its_maker() {
    everyone(|place| {
        let lock = File::open(&place.state).unwrap();
        let policy = session(place);
        let body = |keeper: Keeper, _| {
            let _running = start(keeper.prepare().unwrap(), &order("echo > on; sleep 1000"));
            let _ = rustix::thread::nanosleep(&rustix::time::Timespec {
                tv_sec: 1000,
                tv_nsec: 0,
            });
            0
        };
        let kept = keep(
            &policy,
            &place.runs(),
            lock.as_fd(),
            InnerNetwork::Own,
            Vec::new(),
            body,
        )
        .unwrap();
        place.await_file("on");
        let second = keep(
            &policy,
            &place.runs(),
            lock.as_fd(),
            InnerNetwork::Own,
            Vec::new(),
            |_, _| 0,
        );
        assert!(
            matches!(second, Err(LaunchError::Joined { .. })),
            "{second:?}"
        );
        let pid = kept.pid();
        assert_eq!(place.runs().live().unwrap().len(), 1);
        drop(kept);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        assert_eq!(place.runs().live().unwrap(), []);
    });
}
