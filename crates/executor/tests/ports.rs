//! Connections to servers that code has started.
#![allow(clippy::unwrap_used)]

mod session;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use sandbox_executor::protocol::{Answer, Ask, Question, Refusal, RefusalKind, Reply};
use sandbox_executor::{Link, Opening, Request};
use sandbox_model::execution::Language::Python;
use session::{on_a_line, request};

type Answered = Result<(Answer, Option<OwnedFd>), Refusal>;

async fn put(link: &Link, number: u64, ask: Ask) {
    link.send(&Question { number, ask }, &[]).await.unwrap();
}

/// The answer to the question of this number; answers to others are passed over.
async fn answer_to(link: &Link, number: u64) -> Answered {
    loop {
        let (reply, mut descriptors) = link.receive::<Reply>().await.unwrap().unwrap();
        if reply.number == number {
            return reply.answer.map(|answer| (answer, descriptors.pop()));
        }
    }
}

async fn connect(link: &Link, port: u16) -> Result<File, Refusal> {
    put(link, 77, Ask::Connect(port)).await;
    match answer_to(link, 77).await? {
        (Answer::Connected, Some(socket)) => {
            rustix::io::ioctl_fionbio(&socket, false).unwrap();
            Ok(socket.into())
        }
        other => panic!("{other:?}"),
    }
}

/// Waits until there is a file in the workspace.
async fn until_there(link: &Link, path: &str) {
    loop {
        put(link, 78, Ask::Read(path.into())).await;
        if answer_to(link, 78).await.is_ok() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Code that answers every connection to `address` with `word`, and says so by a file of that name.
fn serving(address: &str, word: &str) -> String {
    let family = match address.contains(':') {
        true => "family=socket.AF_INET6",
        false => "family=socket.AF_INET",
    };
    format!(
        "import socket\ns = socket.create_server(('{address}', 8000), {family})\nopen('{word}', 'w').close()\n\
         while True:\n    c, _ = s.accept()\n    c.sendall(b'{word}' + c.recv(100))\n    c.close()\n"
    )
}

async fn serve(link: &Link, number: u64, address: &str, word: &str) {
    let execution_id = format!("exec_20261116_abcdefg{number}").parse().unwrap();
    let request = Request {
        execution_id,
        timeout_seconds: 600,
        ..request(Python, &serving(address, word))
    };
    put(link, number, Ask::Execute(request)).await;
    until_there(link, word).await;
}

async fn ask(link: &Link, text: &str) -> String {
    let mut connection = connect(link, 8000).await.unwrap();
    connection.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn whoever_listens_inside_is_reached_and_nobody_else() {
    on_a_line(async |link| {
        // On the host, where the executor is.
        let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let hosts = outside.local_addr().unwrap().port();
        let refused = connect(link, 8000).await.unwrap_err();
        assert_eq!(refused.kind, RefusalKind::NotFound);
        let reason = "nothing that runs in the session listens on port 8000";
        assert_eq!(refused.reason, reason);
        serve(link, 1, "127.0.0.1", "four").await;
        assert_eq!(ask(link, "?").await, "four?");
        for port in [0, 1, 8001, hosts] {
            let refused = connect(link, port).await.unwrap_err();
            assert_eq!(refused.kind, RefusalKind::NotFound, "{port}");
        }
        // That of what began last is found first, by either internet.
        serve(link, 2, "::1", "six").await;
        assert_eq!(ask(link, "!").await, "six!");
        put(
            link,
            3,
            Ask::Cancel("exec_20261116_abcdefg2".parse().unwrap()),
        )
        .await;
        answer_to(link, 2).await.unwrap();
        assert_eq!(ask(link, "?").await, "four?");
        put(
            link,
            3,
            Ask::Cancel("exec_20261116_abcdefg1".parse().unwrap()),
        )
        .await;
        answer_to(link, 1).await.unwrap();
        assert!(connect(link, 8000).await.is_err());
        outside.set_nonblocking(true).unwrap();
        assert!(outside.accept().is_err(), "somebody came to the host");
    });
}

#[test]
fn what_listens_on_a_terminal_is_reached_too() {
    on_a_line(async |link| {
        let code = serving("127.0.0.1", "here");
        let opening = Opening {
            command: Some(format!("exec python3 -c \"{code}\"")),
            columns: 80,
            rows: 24,
        };
        put(link, 1, Ask::Terminal(opening)).await;
        let (Answer::Terminal, Some(_end)) = answer_to(link, 1).await.unwrap() else {
            panic!("no terminal");
        };
        until_there(link, "here").await;
        assert_eq!(ask(link, "?").await, "here?");
    });
}

#[test]
fn one_that_takes_no_connection_holds_nobody_up_for_long() {
    on_a_line(async |link| {
        // Its queue is full: more connections are not refused, but not taken either.
        let code = "import socket, time\ns = socket.create_server(('127.0.0.1', 8000), backlog=0)\n\
            held = [socket.create_connection(('127.0.0.1', 8000)) for _ in range(1)]\n\
            open('full', 'w').close()\ntime.sleep(1000)";
        put(link, 1, Ask::Execute(request(Python, code))).await;
        until_there(link, "full").await;
        let refused = connect(link, 8000).await.unwrap_err();
        assert_eq!(refused.kind, RefusalKind::NotFound);
        put(link, 2, Ask::Ping).await;
        assert!(answer_to(link, 2).await.is_ok());
    });
}
