//! Programs on terminals of their own.
#![allow(clippy::unwrap_used)]

mod session;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sandbox_executor::protocol::{Answer, Ask, Question, Refusal, RefusalKind, Reply};
use sandbox_executor::{Happening, Link, Opening};
use sandbox_linux::terminal::{Size, resize};
use sandbox_model::execution::Language::Shell;
use session::{on_a_line, request};

/// How long a terminal may be silent before the test fails.
const PATIENCE: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

type Answered = Result<(Answer, Option<OwnedFd>), Refusal>;

async fn put(link: &Link, number: u64, ask: Ask) {
    link.send(&Question { number, ask }, &[]).await.unwrap();
}

async fn next(link: &Link) -> (u64, Answered) {
    let (reply, mut descriptors) = link.receive::<Reply>().await.unwrap().unwrap();
    let answered = reply.answer.map(|answer| (answer, descriptors.pop()));
    (reply.number, answered)
}

fn opening(command: &str) -> Ask {
    Ask::Terminal(Opening {
        command: Some(command.to_owned()),
        columns: 100,
        rows: 30,
    })
}

/// Opens a terminal; nothing else may be answered meanwhile.
async fn open(link: &Link, number: u64, ask: Ask) -> File {
    put(link, number, ask).await;
    match next(link).await {
        (answered, Ok((Answer::Terminal, Some(end)))) if answered == number => end.into(),
        other => panic!("{other:?}"),
    }
}

async fn ended(link: &Link, number: u64) -> i32 {
    match next(link).await {
        (answered, Ok((Answer::TerminalEnded(status), None))) if answered == number => status,
        other => panic!("{other:?}"),
    }
}

/// Reads until `text` was shown; what was shown after it stays in `shown`.
fn read_until(terminal: &mut File, shown: &mut Vec<u8>, text: &str) {
    let mut part = [0; 4096];
    loop {
        let found = String::from_utf8_lossy(shown).find(text);
        if let Some(place) = found {
            shown.drain(..place + text.len());
            return;
        }
        let mut watched = [PollFd::new(terminal, PollFlags::IN)];
        let some = poll(&mut watched, Some(&PATIENCE)).unwrap() > 0;
        match some.then(|| terminal.read(&mut part)) {
            Some(Ok(length @ 1..)) => shown.extend(&part[..length]),
            other => panic!("{other:?}; it showed {:?}", String::from_utf8_lossy(shown)),
        }
    }
}

/// The same, where nothing else is wanted of it.
fn until(terminal: &mut File, text: &str) {
    read_until(terminal, &mut Vec::new(), text);
}

/// Everything that is shown until nobody is left.
fn shown(mut terminal: File) -> String {
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = terminal.read(&mut part) {
        shown.extend(&part[..length]);
    }
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

#[test]
fn a_command_runs_on_a_terminal_and_its_end_is_told() {
    on_a_line(async |link| {
        let script = "test -t 0 && test -t 1 && test -t 2 && stty size; pwd; echo $TERM $SANDBOX_CHANNEL; \
            ls /proc/self/fd | wc -l; exit 7";
        let terminal = open(link, 3, opening(script)).await;
        assert_eq!(ended(link, 3).await, 7);
        assert_eq!(shown(terminal), "30 100\n/workspace\nxterm-256color\n4\n");
        let terminal = open(link, 4, opening("kill -9 $$")).await;
        assert_eq!(ended(link, 4).await, 128 + 9);
        drop(terminal);
    });
}

#[test]
fn without_a_command_it_is_a_shell_with_job_control() {
    on_a_line(async |link| {
        let shell = Ask::Terminal(Opening {
            command: None,
            columns: 80,
            rows: 24,
        });
        let mut terminal = open(link, 1, shell).await;
        let mut screen = Vec::new();
        let mut say = |text: &str, answers: &[&str]| {
            terminal.write_all(text.as_bytes()).unwrap();
            for answer in answers {
                read_until(&mut terminal, &mut screen, answer);
            }
        };
        // What is answered is told apart from what was typed by what the shell makes of it.
        say("PS1='rea''dy '\n", &["ready "]);
        say("echo $(basename $0)-$((6*7))\n", &["bash-42", "ready "]);
        say("bash -c 'echo on-$((2+3)); exec sleep 1000'\n", &["on-5"]);
        say("\x03", &["ready "]);
        say("echo was-$?\n", &["was-130", "ready "]);
        let job = "bash -c 'trap \"echo on-$((3+4))\" CONT; echo on-$((4+4)); while :; do sleep 0.02; done'";
        say(&format!("{job}\n"), &["on-8"]);
        say("\x1a", &["Stopped", "ready "]);
        say("fg\n", &["on-7"]);
        say("\x03", &["ready "]);
        say("echo was-$?\n", &["was-130", "ready "]);
        say("\x04", &["exit"]);
        // As that of the last command was.
        assert_eq!(ended(link, 1).await, 0);
    });
}

#[test]
fn whoever_is_in_the_foreground_hears_of_a_new_size() {
    on_a_line(async |link| {
        let script = "trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done";
        let mut terminal = open(link, 1, opening(script)).await;
        until(&mut terminal, "30 100");
        let size = Size {
            columns: 211,
            rows: 57,
        };
        resize(&terminal, size).unwrap();
        until(&mut terminal, "57 211");
        put(link, 2, Ask::Hang(1)).await;
        assert!(matches!(next(link).await, (2, Ok((Answer::Done, None)))));
        assert_eq!(ended(link, 1).await, -1);
    });
}

#[test]
fn hanging_up_ends_everything_that_was_started_there() {
    on_a_line(async |link| {
        let script = "trap '' HUP TERM; setsid sleep 1000 & (sleep 1000 &); (nohup sleep 1000 >/dev/null 2>&1 &); \
            echo on; wait";
        let mut terminal = open(link, 1, opening(script)).await;
        until(&mut terminal, "on");
        put(link, 2, Ask::Hang(1)).await;
        assert!(matches!(next(link).await, (2, Ok((Answer::Done, None)))));
        assert_eq!(ended(link, 1).await, -1);
        // The end of what is shown comes when the last of them is gone.
        shown(terminal);
        // One of which nobody knows.
        put(link, 3, Ask::Hang(99)).await;
        assert!(matches!(next(link).await, (3, Ok((Answer::Done, None)))));
    });
}

#[test]
fn one_that_is_hung_up_before_it_began_is_ended_too() {
    on_a_line(async |link| {
        put(link, 1, opening("sleep 1000")).await;
        put(link, 2, Ask::Hang(1)).await;
        let mut last = None;
        let mut heard = 0;
        while last.is_none() || heard < 2 {
            match next(link).await {
                (2, Ok((Answer::Done, None))) => heard += 1,
                (1, Ok((Answer::Terminal, Some(_)))) => {}
                (1, Ok((Answer::TerminalEnded(-1), None)) | Err(_)) => {
                    last = Some(());
                    heard += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn there_are_only_so_many_and_a_place_that_was_given_up_is_free() {
    on_a_line(async |link| {
        let mut open_ones = Vec::new();
        for number in 0..5 {
            open_ones.push(open(link, number, opening("cat")).await);
        }
        put(link, 50, opening("cat")).await;
        match next(link).await {
            (50, Err(refusal)) => {
                assert_eq!(refusal.kind, RefusalKind::Busy);
                assert_eq!(refusal.reason, "it has 5 terminals already");
            }
            other => panic!("{other:?}"),
        }
        open_ones[2].write_all(b"\x04").unwrap();
        assert_eq!(ended(link, 2).await, 0);
        open(link, 51, opening("cat")).await;
    });
}

#[test]
fn executions_and_other_terminals_find_nothing_of_it() {
    on_a_line(async |link| {
        let mut one = open(link, 1, opening("echo on; exec cat")).await;
        until(&mut one, "on");
        let look = "ls /dev/pts; ls /proc | grep -c '^[0-9]*$'; cat /dev/tty </dev/null 2>/dev/null || echo none";
        put(link, 2, Ask::Execute(request(Shell, look))).await;
        assert!(matches!(next(link).await, (2, Ok((Answer::Begun, None)))));
        let (2, Ok((Answer::Happening(Happening::Outcome(outcome)), None))) = next(link).await
        else {
            panic!("no outcome");
        };
        // Its init, itself, and the two of the pipeline.
        assert_eq!(outcome.result.stdout, "ptmx\n4\nnone\n");
        let other = open(link, 3, opening("ls -1 /dev/pts; tty")).await;
        assert_eq!(ended(link, 3).await, 0);
        assert_eq!(shown(other), "0\nptmx\n/dev/pts/0\n");
    });
}

#[test]
fn everything_it_printed_arrives_however_late_it_is_read() {
    on_a_line(async |link| {
        let terminal = open(link, 1, opening("seq 1500")).await;
        // More than anybody keeps: it goes on when it is read.
        let reading = std::thread::spawn(move || shown(terminal));
        assert_eq!(ended(link, 1).await, 0);
        let numbers: String = (1..=1500).map(|number| format!("{number}\n")).collect();
        assert_eq!(reading.join().unwrap(), numbers);
        let terminal = open(link, 2, opening("seq 1000")).await;
        assert_eq!(ended(link, 2).await, 0);
        let numbers: String = (1..=1000).map(|number| format!("{number}\n")).collect();
        assert_eq!(shown(terminal), numbers);
    });
}
