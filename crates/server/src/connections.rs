//! The connections of a server: how many there are, and how long one may be silent.
//!
//! Each has a descriptor, and whoever opens one need not have a key. So there are only so many: those who come
//! then wait in the kernel's own queue until one is closed. And one on which nothing is asked is closed, so that
//! nobody keeps another out by saying nothing, or by saying it slowly. What is asked is the router's affair, and
//! how slowly a body may come is [`crate::pace`]'s.

mod heads;

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use sandbox_runtime::descriptors;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep};
use tower::Service as _;

use heads::{Failure, Watched};

/// How long a head may take to be sent, and how long one may wait before it sends the next.
const SILENCE: Duration = Duration::from_secs(30);

/// How long whoever speaks HTTP/2 may take to say that they are still there.
const ECHO: Duration = Duration::from_secs(10);

/// How long is waited when the system has no descriptor for a new connection.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is told that there are no more connections.
const TELLING: Duration = Duration::from_secs(60);

/// Of how many descriptors one may be a connection: sessions need some, too.
const SHARE: u64 = 2;

/// How many connections there may be, where so many are wanted.
pub(crate) fn most(wanted: usize) -> usize {
    let fit = fitting(wanted, descriptors::allowed());
    if fit < wanted {
        tracing::info!("at most {fit} connections at a time: there are descriptors for no more");
    }
    fit
}

fn fitting(wanted: usize, descriptors: u64) -> usize {
    let fit = usize::try_from(descriptors / SHARE).unwrap_or(usize::MAX);
    wanted.min(fit).max(1)
}

/// Answers on `listener` by `router`, on at most so many connections at a time, until `ending`. Then nothing new is
/// taken, what is being asked is answered, and connections on which nothing is are closed.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    most: usize,
    ending: impl Future<Output = ()>,
) {
    let mut entrance = Entrance::new(listener, most);
    let protocol = Arc::new(protocol());
    let (end, _) = watch::channel(());
    let mut ending = pin!(ending);
    loop {
        let (line, peer) = tokio::select! {
            () = ending.as_mut() => break,
            next = entrance.next() => next,
        };
        let connection = Connection {
            protocol: protocol.clone(),
            router: router.clone(),
            peer,
            end: end.subscribe(),
        };
        tokio::spawn(connection.attend(line));
    }
    drop(entrance);
    end.send_replace(());
    end.closed().await;
}

/// What is spoken, and with which patience.
fn protocol() -> Builder<TokioExecutor> {
    let mut protocol = Builder::new(TokioExecutor::new());
    protocol
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(SILENCE)
        .keep_alive_timeout(ECHO);
    protocol
}

/// Where connections come in.
struct Entrance {
    listener: TcpListener,
    places: Arc<Semaphore>,
    most: usize,
    told: Option<Instant>,
}

impl Entrance {
    fn new(listener: TcpListener, most: usize) -> Entrance {
        Entrance {
            listener,
            places: Arc::new(Semaphore::new(most)),
            most,
            told: None,
        }
    }

    /// The next connection, as soon as there is a place for it, and from where it comes.
    async fn next(&mut self) -> (Placed, SocketAddr) {
        let place = self.place().await;
        let mut is_told = false;
        loop {
            let error = match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let place = Placed {
                        stream,
                        _place: place,
                    };
                    return (place, peer);
                }
                // It was gone before its turn.
                Err(error) if is_the_peers(&error) => continue,
                Err(error) => error,
            };
            // Descriptors, most likely: they come back as others are closed.
            if !is_told {
                tracing::warn!(%error, "cannot take a connection; trying again");
                is_told = true;
            }
            sleep(PAUSE).await;
        }
    }

    async fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Some(place);
        }
        if self.told.is_none_or(|told| told.elapsed() >= TELLING) {
            let most = self.most;
            tracing::warn!("there are {most} connections: others wait until one is closed");
            self.told = Some(Instant::now());
        }
        // Never closed, so that there always is one.
        self.places.clone().acquire_owned().await.ok()
    }
}

fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// A connection that was taken.
struct Connection {
    protocol: Arc<Builder<TokioExecutor>>,
    router: Router,
    peer: SocketAddr,
    end: watch::Receiver<()>,
}

/// What was asked on a connection.
#[derive(Debug, Default)]
struct Asked {
    /// Was anything, since somebody last looked?
    lately: AtomicBool,
    /// By HTTP/2?
    in_streams: AtomicBool,
}

impl Connection {
    /// Answers what is asked on it, until it is closed or has left HTTP.
    async fn attend(mut self, line: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let asked = Arc::new(Asked::default());
        let (router, peer, noted) = (self.router, self.peer, asked.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            noted.note(request.version());
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().call(request)
        });
        let line = Watched::new(line);
        let connection = self
            .protocol
            .serve_connection_with_upgrades(TokioIo::new(line.clone()), service);
        let failure = {
            let (mut connection, mut silence) = (pin!(connection), pin!(sleep(SILENCE)));
            let (mut is_watched, mut is_ending) = (true, false);
            loop {
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => break match ended {
                        Ok(()) => Failure::Other,
                        Err(error) => Failure::of(&*error),
                    },
                    () = silence.as_mut(), if is_watched => match asked.lately() {
                        // Until it is known what is spoken, nobody else looks at how long that takes.
                        Lately::Never => break Failure::Late,
                        // From its first head on, the protocol does.
                        Lately::InTurn => is_watched = false,
                        Lately::InStreams => silence.as_mut().reset(Instant::now() + SILENCE),
                        // What it still waits for, it gets.
                        Lately::Nothing => {
                            is_watched = false;
                            connection.as_mut().graceful_shutdown();
                        }
                    },
                    _ = self.end.changed(), if !is_ending => {
                        is_ending = true;
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
        };
        line.finish(failure).await;
    }
}

/// How a connection was used of late.
enum Lately {
    /// Nothing was ever asked on it.
    Never,
    /// By HTTP/1, one request after the other.
    InTurn,
    /// By HTTP/2.
    InStreams,
    /// By HTTP/2, and not of late.
    Nothing,
}

impl Asked {
    fn note(&self, version: Version) {
        self.lately.store(true, Ordering::Relaxed);
        if version == Version::HTTP_2 {
            self.in_streams.store(true, Ordering::Relaxed);
        }
    }

    /// Since this was last asked.
    fn lately(&self) -> Lately {
        let lately = self.lately.swap(false, Ordering::Relaxed);
        match (lately, self.in_streams.load(Ordering::Relaxed)) {
            (true, true) => Lately::InStreams,
            (true, false) => Lately::InTurn,
            (false, true) => Lately::Nothing,
            (false, false) => Lately::Never,
        }
    }
}

/// A connection with its place among those that there may be, which it has also when it left HTTP.
struct Placed {
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Placed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
