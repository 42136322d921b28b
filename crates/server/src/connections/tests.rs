//! Where time is paused it passes as soon as nobody has anything left to do.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Far longer than anything is waited for.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Something at once, something after a day, and something when it is told to: an answer, or the end of what has left
/// HTTP.
fn router(go: &Arc<Notify>) -> Router {
    let told = go.clone();
    let held = move || async move {
        told.notified().await;
        "held"
    };
    let told = go.clone();
    let upgraded = move |request: Request<Body>| async move {
        tokio::spawn(async move {
            let left = hyper::upgrade::on(request).await;
            told.notified().await;
            drop(left);
        });
        let response = Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "word");
        response.body(Body::empty()).expect("a response")
    };
    let late = || async {
        sleep(DAY).await;
        "late"
    };
    let peer = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() };
    Router::new()
        .route("/", get(|| async { "here" }))
        .route("/peer", get(peer))
        .route("/late", get(late))
        .route("/refusal", get(looks_like_a_refusal))
        .route("/held", get(held))
        .route("/upgraded", get(upgraded))
}

const REFUSAL: &str = "HTTP/1.1 431 No\r\ncontent-length: 0\r\n\r\n";

/// A body whose second piece is written like a refusal.
async fn looks_like_a_refusal() -> Response {
    let pieces = futures_util::stream::unfold(0, |number| async move {
        tokio::task::yield_now().await;
        let piece = match number {
            0 => "first",
            1 => REFUSAL,
            _ => return None,
        };
        Some((Ok::<_, std::convert::Infallible>(piece), number + 1))
    });
    let length = "first".len() + REFUSAL.len();
    let response = Response::builder().header(header::CONTENT_LENGTH, length);
    response
        .body(Body::from_stream(pieces))
        .expect("a response")
}

fn ask(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").into_bytes()
}

/// A connection that will be over.
struct Over(JoinHandle<Duration>);

impl Over {
    /// After so long.
    async fn after(self) -> Duration {
        let over = timeout(DAY * 2, self.0).await;
        over.expect("it is closed some time").expect("it ends well")
    }
}

/// A connection in memory, and its end.
fn connection() -> (DuplexStream, Over) {
    let (client, line) = duplex(64 << 10);
    let (end, ended) = watch::channel(());
    let connection = Connection {
        protocol: Arc::new(protocol()),
        router: router(&Arc::default()),
        peer: SocketAddr::from(([192, 0, 2, 7], 7)),
        end: ended,
    };
    let begin = Instant::now();
    let over = tokio::spawn(async move {
        connection.attend(line).await;
        drop(end);
        begin.elapsed()
    });
    (client, Over(over))
}

/// Reads an answer, up to these words.
async fn hear(client: &mut (impl AsyncRead + Unpin), words: &str) -> String {
    let mut heard = String::new();
    while !heard.ends_with(words) {
        let letter = client.read_u8().await;
        heard.push(char::from(
            letter.unwrap_or_else(|error| panic!("{error} after {heard:?}")),
        ));
    }
    heard
}

#[tokio::test(start_paused = true)]
async fn one_that_says_nothing_is_closed() {
    let (client, over) = connection();
    assert_eq!(over.after().await, SILENCE);
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn one_that_says_it_slowly_is_closed() {
    let whole = [
        ask("/"),
        b"POST / HTTP/1.1\r\nHost: here\r\n\r\n".to_vec(),
        PREFACE.to_vec(),
    ];
    for words in whole {
        let (mut client, over) = connection();
        for letter in words {
            // It may be closed by then.
            let _ = client.write_all(&[letter]).await;
            sleep(Duration::from_secs(5)).await;
        }
        let took = over.after().await;
        assert!(took <= SILENCE, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_is_closed_when_nothing_more_is_asked_on_it() {
    let (mut client, over) = connection();
    let used = SILENCE - Duration::from_secs(1);
    for _ in 0..5 {
        client.write_all(&ask("/")).await.unwrap();
        hear(&mut client, "here").await;
        sleep(used).await;
    }
    assert_eq!(over.after().await, used * 4 + SILENCE);
}

#[tokio::test(start_paused = true)]
async fn what_takes_long_to_answer_is_answered() {
    let (mut client, over) = connection();
    client.write_all(&ask("/late")).await.unwrap();
    hear(&mut client, "late").await;
    // It may be used again.
    client.write_all(&ask("/")).await.unwrap();
    hear(&mut client, "here").await;
    assert_eq!(over.after().await, DAY + SILENCE);
}

#[tokio::test(start_paused = true)]
async fn who_asks_is_known_by_their_address() {
    let (mut client, _over) = connection();
    client.write_all(&ask("/peer")).await.unwrap();
    hear(&mut client, "192.0.2.7:7").await;
}

/// What is answered on a connection until it is closed.
async fn all_of(mut client: DuplexStream) -> String {
    let mut heard = String::new();
    client.read_to_string(&mut heard).await.unwrap();
    heard
}

/// The head of an answer, and its body.
fn parts(answer: &str) -> (&str, serde_json::Value) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
    (head, body)
}

#[tokio::test]
async fn a_head_that_cannot_be_read_is_answered_like_any_error() {
    let get =
        |path: &str, headers: &str| format!("GET {path} HTTP/1.1\r\nHost: here\r\n{headers}\r\n");
    let many: String = (0..200)
        .map(|number| format!("x-{number}: 1\r\n"))
        .collect();
    for (head, status) in [
        (get(&format!("/{}", "a".repeat(70_000)), ""), 414),
        (get("/", &format!("x: {}\r\n", "a".repeat(500_000))), 431),
        (get("/", &many), 431),
        (get("/", "no colon\r\n"), 400),
        ("GET / HTTP/3.7\r\n\r\n".to_owned(), 400),
        ("\u{1}\u{2}\u{3}\r\n\r\n".to_owned(), 400),
    ] {
        // Also after one that could be read.
        for before in [Vec::new(), ask("/")] {
            let (mut client, over) = connection();
            if !before.is_empty() {
                client.write_all(&before).await.unwrap();
                hear(&mut client, "here").await;
            }
            let (reading, mut writing) = tokio::io::split(client);
            let sent = head.clone();
            let writer = tokio::spawn(async move {
                // It need not read all of it.
                let _ = writing.write_all(sent.as_bytes()).await;
                let _ = writing.shutdown().await;
            });
            let mut reading = reading;
            let mut answer = String::new();
            reading.read_to_string(&mut answer).await.unwrap();
            let (head, error) = parts(&answer);
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            assert!(head.contains("content-type: application/json"), "{head}");
            let id = error["request_id"].as_str().unwrap();
            assert!(head.contains(&format!("x-request-id: {id}")), "{head}");
            assert_eq!(error["error_code"], "Sandbox.InvalidParameter");
            for field in ["description", "error_detail", "solution"] {
                assert!(!error[field].as_str().unwrap().is_empty(), "{error}");
            }
            writer.await.unwrap();
            over.after().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_stands_still_is_answered_before_it_is_closed() {
    let (mut client, _over) = connection();
    client.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
    let answer = all_of(client).await;
    let (head, error) = parts(&answer);
    assert!(head.starts_with("HTTP/1.1 408 "), "{head}");
    assert_eq!(error["error_code"], "Sandbox.InvalidParameter");
    // Who is only silent is told nothing.
    let (mut client, _over) = connection();
    client.write_all(&ask("/")).await.unwrap();
    let answer = all_of(client).await;
    assert!(answer.ends_with("here"), "{answer}");
    let (client, _over) = connection();
    assert_eq!(all_of(client).await, "");
}

#[tokio::test]
async fn what_only_looks_like_a_refusal_is_passed_on() {
    let (mut client, over) = connection();
    for _ in 0..2 {
        client.write_all(&ask("/refusal")).await.unwrap();
        let heard = hear(&mut client, REFUSAL).await;
        assert_eq!(heard.matches("HTTP/1.1 ").count(), 2, "{heard}");
    }
    drop(client);
    over.after().await;
}

async fn answered(sender: &mut http2::SendRequest<Empty<Bytes>>, path: &str) -> Bytes {
    let request = Request::get(format!("http://here{path}")).body(Empty::new());
    let answer = sender.send_request(request.unwrap()).await.unwrap();
    assert_eq!(answer.version(), Version::HTTP_2);
    answer.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test(start_paused = true)]
async fn streams_are_seen_through_and_then_closed_when_nothing_more_is_asked() {
    let (client, over) = connection();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(client))
        .await
        .unwrap();
    tokio::spawn(connection);
    assert_eq!(answered(&mut sender, "/").await, "here");
    assert_eq!(answered(&mut sender, "/late").await, "late");
    let took = over.after().await;
    assert!((DAY..DAY + SILENCE * 2).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn streams_may_be_used_again_and_again() {
    let (client, over) = connection();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(client))
        .await
        .unwrap();
    tokio::spawn(connection);
    for _ in 0..20 {
        assert_eq!(answered(&mut sender, "/").await, "here");
        sleep(SILENCE / 2).await;
    }
    let took = over.after().await;
    assert!(took < SILENCE * 13, "{took:?}");
}

/// A server with so many places, which ends when it is told to.
struct Served {
    address: SocketAddr,
    /// What holds something up may go on, one at a time.
    go: Arc<Notify>,
    end: Arc<Notify>,
    over: JoinHandle<()>,
}

impl Served {
    async fn start(most: usize) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (go, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (router, ending) = (router(&go), end.clone());
        let over = tokio::spawn(async move {
            serve(listener, router, most, ending.notified()).await;
        });
        Served {
            address,
            go,
            end,
            over,
        }
    }

    /// A connection on which this was said.
    async fn ask(&self, words: &[u8]) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(words).await.unwrap();
        client
    }
}

/// Nothing is heard, however long one listens.
async fn must_wait(client: &mut TcpStream) {
    let heard = timeout(DAY, client.read_u8()).await;
    assert!(heard.is_err(), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn who_comes_when_every_place_is_taken_waits_until_one_is_free() {
    let server = Served::start(2).await;
    let _held = [
        server.ask(&ask("/held")).await,
        server.ask(&ask("/held")).await,
    ];
    let mut waiting = server.ask(&ask("/")).await;
    must_wait(&mut waiting).await;
    server.go.notify_one();
    hear(&mut waiting, "here").await;
}

#[tokio::test(start_paused = true)]
async fn what_has_left_http_keeps_its_place() {
    let server = Served::start(1).await;
    let upgrade =
        "GET /upgraded HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\nUpgrade: word\r\n\r\n";
    let mut left = server.ask(upgrade.as_bytes()).await;
    let answer = hear(&mut left, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    let mut waiting = server.ask(&ask("/")).await;
    must_wait(&mut waiting).await;
    server.go.notify_one();
    hear(&mut waiting, "here").await;
}

#[tokio::test]
async fn at_the_end_what_is_asked_is_answered_and_what_is_idle_closed() {
    let server = Served::start(9).await;
    let (mut idle, mut silent) = (server.ask(&ask("/")).await, server.ask(b"").await);
    hear(&mut idle, "here").await;
    let mut held = server.ask(&ask("/held")).await;
    let mut last = server.ask(&ask("/")).await;
    // Whoever was let in after them was, too.
    hear(&mut last, "here").await;
    server.end.notify_one();
    for closed in [&mut idle, &mut silent, &mut last] {
        assert!(closed.read_u8().await.is_err());
    }
    assert!(TcpStream::connect(server.address).await.is_err());
    assert!(!server.over.is_finished());
    server.go.notify_one();
    hear(&mut held, "held").await;
    server.over.await.unwrap();
}

#[tokio::test]
async fn what_has_left_http_holds_up_no_end() {
    let server = Served::start(9).await;
    let upgrade =
        "GET /upgraded HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\nUpgrade: word\r\n\r\n";
    let mut left = server.ask(upgrade.as_bytes()).await;
    hear(&mut left, "\r\n\r\n").await;
    server.end.notify_one();
    server.over.await.unwrap();
}

#[test]
fn there_are_descriptors_for_more_than_connections() {
    assert_eq!(fitting(10_000, u64::MAX), 10_000);
    assert_eq!(fitting(10_000, 20_000), 10_000);
    assert_eq!(fitting(10_000, 1024), 512);
    assert_eq!(fitting(10, 1024), 10);
    assert_eq!(fitting(10, 1), 1);
}
