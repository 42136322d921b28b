//! HTTP, for whoever brings the session's token.
//!
//! On one thread. There are only so many connections at once, each has so long to say what it wants, and
//! nothing of a request is read before its token was.

use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use sandbox_executor::protocol::Ask;
use sandbox_model::runtime::Walls;
use sandbox_model::{RequestId, SessionId};
use sandbox_runtime::Line;
use serde::Serialize;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::answer::{self, Refused};
use crate::content::Content;
use crate::courier::Courier;
use crate::executions::{Cancelled, Executions, NotBegun};
use crate::files;
use crate::journal;
use crate::request;
use crate::routes::Route;
use crate::token::Token;

/// How many connections there are at once.
const MOST_CONNECTIONS: usize = 128;

/// How long a request may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the process that runs code may take to say that it is there.
const LIVELINESS: Duration = Duration::from_secs(5);

/// How much of one may be unread.
const LONGEST_HEAD: usize = 64 << 10;

/// Everything that can be asked.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) session: SessionId,
    pub(crate) token: Rc<Token>,
    pub(crate) walls: Walls,
    pub(crate) line: Line,
    pub(crate) executions: Rc<Executions>,
    pub(crate) courier: Rc<Courier>,
}

/// That it is there.
#[derive(Debug, Serialize)]
struct Health<'h> {
    status: &'static str,
    session_id: &'h SessionId,
    isolation: &'h Walls,
    executions_running: usize,
    results_pending: usize,
}

impl Door {
    /// Answers on `listener`, for ever. On a local set.
    pub(crate) async fn serve(self: Rc<Door>, listener: TcpListener) {
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            // Never closed.
            let Ok(turn) = room.clone().acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let door = self.clone();
                    tokio::task::spawn_local(async move {
                        door.attend(stream).await;
                        drop(turn);
                    });
                }
                Err(error) => pause(&error).await,
            }
        }
    }

    /// Answers on one connection, until it is closed.
    async fn attend(self: Rc<Door>, stream: TcpStream) {
        // Answers are small, and somebody waits for each.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| {
            let door = self.clone();
            async move { Ok::<_, Infallible>(door.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(LONGEST_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        // One that breaks is its asker's affair, who sees it.
        let _ = connection.await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Content> {
        let id = request::name(request.headers());
        let answered = match self.token.fits(request.headers()) {
            true => self.follow(request, &id).await,
            false => Err(Refused::unauthorized()),
        };
        let response = answered.unwrap_or_else(|refused| refused.response(&id));
        answer::named(response, &id)
    }

    async fn follow(
        &self,
        request: Request<Incoming>,
        id: &RequestId,
    ) -> Result<Response<Content>, Refused> {
        let route = Route::of(request.method(), request.uri())?;
        let (head, body) = request.into_parts();
        let line = &self.line;
        match route {
            Route::Health => self.health().await,
            Route::Execute => {
                let execution = request::execution(&head.headers, body).await?;
                let accepted =
                    json!({ "execution_id": execution.execution_id, "status": "accepted" });
                let begun = self.executions.begin(execution, id.clone()).await;
                begun.map_err(not_begun)?;
                Ok(answer::json(StatusCode::ACCEPTED, &accepted))
            }
            Route::Cancel(execution) => match self.executions.cancel(&execution).await? {
                Cancelled::Now => {
                    let view = json!({ "execution_id": execution, "status": "cancelling" });
                    Ok(answer::json(StatusCode::ACCEPTED, &view))
                }
                Cancelled::Over => {
                    let detail = format!("{execution} does not run any more");
                    Err(Refused::conflict(detail, "its result is on its way"))
                }
                Cancelled::Unknown => Err(Refused::new(
                    StatusCode::NOT_FOUND,
                    "InvalidExecution",
                    "there is no such execution",
                    format!("{execution} was never begun here"),
                    "look at the identifier",
                )),
            },
            Route::List { path, after, limit } => files::list(line, path, after, limit).await,
            Route::Read(path) => files::read(line, path).await,
            Route::Write(path) => files::write(line, path, body).await,
            Route::Remove(path) => files::remove(line, path).await,
        }
    }

    async fn health(&self) -> Result<Response<Content>, Refused> {
        let ping = tokio::time::timeout(LIVELINESS, self.line.ask(Ask::Ping)).await;
        ping.map_err(|_| Refused::unavailable("the process that runs code does not answer"))??;
        let health = Health {
            status: "healthy",
            session_id: &self.session,
            isolation: &self.walls,
            executions_running: self.executions.running(),
            results_pending: self.courier.pending(),
        };
        Ok(answer::json(StatusCode::OK, &health))
    }
}

fn not_begun(reason: NotBegun) -> Refused {
    match reason {
        NotBegun::Known => Refused::conflict(
            "an execution of this identifier was accepted before",
            "it runs once; wait for its result",
        ),
        NotBegun::Draining => Refused::unavailable("it is about to end, and runs nothing any more"),
        NotBegun::Busy => Refused::unavailable("it runs as many executions as it may"),
        NotBegun::Unkept(error) => {
            Refused::unavailable(format!("an execution cannot be kept: {error}"))
        }
        NotBegun::Line(error) => error.into(),
    }
}

/// Where there are no descriptors left, there will be.
async fn pause(error: &io::Error) {
    journal::warn(format!("a connection cannot be accepted: {error}"), &[]);
    tokio::time::sleep(Duration::from_millis(100)).await;
}
