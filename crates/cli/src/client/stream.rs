//! What comes in pieces.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::{Cause, ClientError};

/// An answer that is read as it comes.
#[derive(Debug)]
pub(crate) struct Stream<'c> {
    runtime: &'c Runtime,
    response: Response,
    from: String,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A piece of the answer.
    Piece(Bytes),
    /// Its end.
    End,
    /// A signal that would have ended us.
    Signal(i32),
    /// Nothing, for as long as was to be waited.
    Silence,
}

impl<'c> Stream<'c> {
    pub(super) fn new(runtime: &'c Runtime, response: Response, from: String) -> Stream<'c> {
        Stream {
            runtime,
            response,
            from,
        }
    }

    /// Waits for the next piece; `None` at its end.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        let piece = self.runtime.block_on(self.response.chunk());
        piece.map_err(|error| broken(&self.from, &error))
    }

    /// Waits for the next piece, but no longer than that.
    pub(crate) fn next_within(&mut self, patience: Duration) -> Result<Next, ClientError> {
        let piece = self
            .runtime
            .block_on(async { tokio::time::timeout(patience, self.response.chunk()).await });
        match piece {
            Ok(Ok(Some(piece))) => Ok(Next::Piece(piece)),
            Ok(Ok(None)) => Ok(Next::End),
            Ok(Err(error)) => Err(broken(&self.from, &error)),
            Err(_) => Ok(Next::Silence),
        }
    }

    /// Waits for the next piece, or for a signal.
    pub(crate) fn next_or(
        &mut self,
        interruptions: &mut Interruptions,
    ) -> Result<Next, ClientError> {
        let Stream {
            runtime,
            response,
            from,
        } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                signal = interruptions.next() => Ok(Next::Signal(signal)),
                piece = response.chunk() => match piece {
                    Ok(Some(piece)) => Ok(Next::Piece(piece)),
                    Ok(None) => Ok(Next::End),
                    Err(error) => Err(broken(from, &error)),
                },
            }
        })
    }
}

fn broken(from: &str, error: &reqwest::Error) -> ClientError {
    ClientError::Broken {
        server: from.to_owned(),
        source: Cause::of(error),
    }
}

/// The signals by which somebody wants us to end.
#[derive(Debug)]
pub(crate) struct Interruptions {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Interruptions {
    /// From here on they do not end us by themselves.
    pub(super) fn watch() -> io::Result<Interruptions> {
        Ok(Interruptions {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> i32 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hang_up.recv() => SignalKind::hangup(),
        };
        kind.as_raw_value()
    }
}
