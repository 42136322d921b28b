//! An execution from its start to its end.

use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use sandbox_isolation::keeper::{Inner, Keeper, Kills, Progress};
use sandbox_isolation::{LaunchError, Status};
use sandbox_linux::message;
use sandbox_linux::usage::Usage;
use sandbox_model::execution::{ExecutionResult, Metrics};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::execution::{Ending, Happening, Outcome, Request, Stream};
use crate::exhaustion::Exhaustion;
use crate::language::Start;
use crate::output::Printed;
use crate::streams::{Ours, Said};

/// How long what was printed may take to arrive after everything that prints is gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long what a handler started may go on when it has returned: threads, timers, functions for the end.
const AFTER_RETURN: Duration = Duration::from_secs(2);

/// How long it may take to clear away what was filled up.
const CLEARING: Duration = Duration::from_secs(5);

/// What is printed when something goes on for longer.
const LEFT_RUNNING: &str =
    "The handler returned, and what it left running was ended: it has 2 seconds to end by itself";

/// How often it is told that an execution goes on.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);

/// The exit status of an execution that did not end by itself.
pub(crate) const KILLED: i32 = -1;

/// A program that was started, and our ends of its streams.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) inner: Inner,
    pub(crate) ours: Ours,
}

impl Running {
    /// Ends it. Nobody waits for that.
    pub(crate) fn discard(self) {
        self.inner.kill();
        retire(self.inner);
    }
}

/// What an execution is measured by.
#[derive(Debug)]
pub(crate) struct Course<'e> {
    pub(crate) keeper: &'e Keeper,
    pub(crate) request: &'e Request,
    pub(crate) begin: Instant,
    /// Who was killed before.
    pub(crate) kills: Kills,
    pub(crate) cancelled: &'e Notify,
    pub(crate) printed: &'e Printed,
}

/// How a program ended.
enum End {
    Itself(Status, Usage),
    Failed(LaunchError),
    Killed(Ending),
}

impl Course<'_> {
    /// Tells `running` what it is to know, hears what it says, and ends it when its time is over. What it
    /// printed is not in the outcome.
    pub(crate) async fn see_through(&self, running: Running, start: Start) -> Outcome {
        let Running { inner, ours } = running;
        let Ours {
            mut input,
            output,
            errors,
            channel,
        } = ours;
        let returned = Returned::default();
        let (end, usage, duration) = {
            // A program that does not want what it is told closes its end; that is its affair.
            let telling = async {
                // Closed when nobody reads it any more: a program that writes on would wait for ever.
                let mut channel = channel;
                if let Some(message) = &start.message {
                    channel.send(message).await?;
                }
                loop {
                    match channel.receive().await {
                        Some(Said::Progress(text)) => {
                            *self.printed.progress.borrow_mut() = Some(text)
                        }
                        Some(Said::Result(text)) => {
                            returned.set(text);
                            return Ok(());
                        }
                        None => return Ok::<_, io::Error>(()),
                    }
                }
            };
            let feeding = async {
                let _ = input.write_all(&start.input).await;
                drop(input);
            };
            let talk = async {
                let _ = tokio::join!(
                    telling,
                    feeding,
                    self.printed.read(Stream::Stdout, output),
                    self.printed.read(Stream::Stderr, errors),
                );
            };
            tokio::pin!(talk);
            let mut heard_all = false;
            let end = self.end_of(&inner, &returned, async {
                (&mut talk).await;
                heard_all = true;
            });
            let end = end.await;
            let duration = self.begin.elapsed();
            let usage = match &end {
                End::Itself(_, usage) => {
                    let gone = retire(inner);
                    // What it filled up counts against the next one until it is gone.
                    if self.killed_for().is_some() {
                        let _ = tokio::time::timeout(CLEARING, gone).await;
                    }
                    *usage
                }
                End::Failed(_) | End::Killed(_) => inner.end().unwrap_or_default(),
            };
            if !heard_all {
                let _ = tokio::time::timeout(LAST_WORDS, &mut talk).await;
            }
            (end, usage, duration)
        };
        let result = ExecutionResult {
            exit_code: KILLED,
            execution_time: duration.as_secs_f64(),
            metrics: metrics(duration, usage),
            ..ExecutionResult::default()
        };
        self.outcome(end, result, returned.value.take())
    }

    /// Waits until everything of `inner` has ended, or must; `talk` goes on meanwhile. When its handler has
    /// returned, it must soon.
    async fn end_of(
        &self,
        inner: &Inner,
        returned: &Returned,
        talk: impl Future<Output = ()>,
    ) -> End {
        let limit = Duration::from_secs(self.request.timeout_seconds.into());
        let deadline = tokio::time::sleep_until(self.begin + limit);
        let ended = self.report(inner);
        tokio::pin!(talk, deadline, ended);
        let mut talks = true;
        loop {
            tokio::select! {
                biased;
                end = &mut ended => return end,
                () = self.cancelled.notified() => return End::Killed(Ending::Cancelled),
                () = &mut deadline => return End::Killed(Ending::TimedOut),
                () = returned.told.notified() => {
                    let soon = Instant::now() + AFTER_RETURN;
                    let soon = soon.min(deadline.deadline());
                    deadline.as_mut().reset(soon);
                }
                () = &mut talk, if talks => talks = false,
            }
        }
    }

    /// The last report of `inner`.
    async fn report(&self, inner: &Inner) -> End {
        let Ok(reports) = Reports::of(inner) else {
            return End::Killed(Ending::Crashed);
        };
        loop {
            match reports.next(self.keeper, inner).await {
                Progress::Started { .. } => {}
                Progress::Ended(status, usage) => return End::Itself(status, usage),
                Progress::Failed(error) => return End::Failed(error),
                Progress::Gone => return End::Killed(Ending::Crashed),
            }
        }
    }

    fn outcome(&self, end: End, mut result: ExecutionResult, answer: Option<String>) -> Outcome {
        let (ending, error) = match end {
            End::Itself(status, _) => {
                result.exit_code = exit_code(status);
                result.return_value = answer;
                match result.exit_code {
                    0 => (Ending::Finished, None),
                    exit_code => {
                        let words = self.printed.last_words(Stream::Stderr);
                        let told = || Exhaustion::of_code(exit_code, &words);
                        (
                            Ending::Finished,
                            blame(&mut result, self.killed_for().or_else(told)),
                        )
                    }
                }
            }
            End::Failed(error) => failed_to_start(&mut result, &error),
            // What it was for is done.
            End::Killed(Ending::TimedOut) if answer.is_some() => {
                result.exit_code = 0;
                result.return_value = answer;
                self.printed.add_line(Stream::Stderr, LEFT_RUNNING);
                (Ending::Finished, None)
            }
            End::Killed(Ending::TimedOut) => {
                let limit = self.request.timeout_seconds;
                let text = format!("Execution timeout after {limit} seconds");
                (Ending::TimedOut, Some(text))
            }
            End::Killed(Ending::Cancelled) => {
                (Ending::Cancelled, Some("it was cancelled".to_owned()))
            }
            End::Killed(ending) => match blame(&mut result, self.killed_for()) {
                // The next one would fill it up as well.
                Some(error) if result.cause.is_some() => (Ending::Finished, Some(error)),
                error => {
                    let outside = || "it was killed from outside".to_owned();
                    (ending, Some(error.unwrap_or_else(outside)))
                }
            },
        };
        Outcome {
            execution_id: self.request.execution_id.clone(),
            ending,
            result,
            error,
            artifacts: Vec::new(),
        }
    }
}

impl Course<'_> {
    /// For what something in the session was killed meanwhile.
    fn killed_for(&self) -> Option<Exhaustion> {
        Exhaustion::between(self.kills, self.keeper.kills())
    }
}

/// Says in `result` what it failed for; why, in words.
fn blame(result: &mut ExecutionResult, exhaustion: Option<Exhaustion>) -> Option<String> {
    result.cause = exhaustion.and_then(Exhaustion::cause);
    exhaustion.map(|exhaustion| exhaustion.text().to_owned())
}

/// How one ended that could not be started. What is for want of something is the session's affair: it is no use to run
/// it again before that has changed.
fn failed_to_start(result: &mut ExecutionResult, error: &LaunchError) -> (Ending, Option<String>) {
    match blame(result, Exhaustion::of_launch(error)) {
        Some(error) => (Ending::Finished, Some(error)),
        None => (Ending::Crashed, Some(error.to_string())),
    }
}

/// What a handler returned, as soon as it did.
#[derive(Debug, Default)]
struct Returned {
    value: RefCell<Option<String>>,
    told: Notify,
}

impl Returned {
    fn set(&self, value: String) {
        self.value.replace(Some(value));
        self.told.notify_one();
    }
}

/// What is heard of a program that was started.
#[derive(Debug)]
pub(crate) struct Reports {
    control: Receiver,
}

impl Reports {
    /// Those of `inner`.
    pub(crate) fn of(inner: &Inner) -> io::Result<Reports> {
        let control = watch(inner.control())?;
        Ok(Reports { control })
    }

    /// The next report of `inner`. May be given up and asked again without missing anything.
    pub(crate) async fn next(&self, keeper: &Keeper, inner: &Inner) -> Progress {
        let waits = || match message::waiting(inner.control()) {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        };
        // There may be several reports, and their arrival is told once.
        while self.control.try_io(waits).is_err() {
            if self.control.readable().await.is_err() {
                return Progress::Gone;
            }
        }
        keeper.progress(inner).unwrap_or(Progress::Gone)
    }
}

/// Tells what goes on with the program that prints `printed`, and what it prints where that is wanted.
/// Never ends by itself, and may be dropped at any time: nothing is told twice, and what was not told is
/// [told later](tell_rest).
pub(crate) async fn follow(
    request: &Request,
    printed: &Printed,
    tell: &impl AsyncFn(Happening),
) -> std::convert::Infallible {
    let first = Instant::now() + HEARTBEAT;
    let mut heartbeat = tokio::time::interval_at(first, HEARTBEAT);
    heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = heartbeat.tick() => {
                let progress = printed.progress.borrow().clone();
                tell(Happening::Heartbeat { progress }).await;
            }
            () = printed.more.notified(), if request.stream => tell_rest(printed, tell).await,
        }
    }
}

/// Tells what was printed and not yet told.
pub(crate) async fn tell_rest(printed: &Printed, tell: &impl AsyncFn(Happening)) {
    while let Some((stream, bytes)) = printed.untold() {
        let length = bytes.len();
        tell(Happening::Output { stream, bytes }).await;
        printed.told(stream, length);
    }
}

/// What was printed, in the outcome it belongs to.
pub(crate) fn complete(outcome: &mut Outcome, printed: &Printed) {
    let result = &mut outcome.result;
    (result.stdout, result.stdout_truncated) = printed.take_text(Stream::Stdout);
    (result.stderr, result.stderr_truncated) = printed.take_text(Stream::Stderr);
    if let (Ending::TimedOut, Some(error)) = (outcome.ending, &outcome.error) {
        append(&mut result.stderr, error);
    }
}

/// A duplicate that the runtime watches. It is no pipe, but nothing is asked of it except whether there
/// is something to read.
fn watch(descriptor: BorrowedFd<'_>) -> io::Result<Receiver> {
    Receiver::from_owned_fd_unchecked(descriptor.try_clone_to_owned()?)
}

/// Waits for the kernel to clean up behind it, whether anybody waits for that or not.
pub(crate) fn retire(inner: Inner) -> JoinHandle<()> {
    let gone = watch(inner.pidfd());
    tokio::task::spawn_local(async move {
        if let Ok(gone) = gone {
            let _ = gone.readable().await;
        }
        drop(inner);
    })
}

/// The outcome of one that could not even be tried.
pub(crate) fn unstarted(request: &Request, begin: Instant, error: &LaunchError) -> Outcome {
    let duration = begin.elapsed();
    let mut result = ExecutionResult {
        exit_code: KILLED,
        execution_time: duration.as_secs_f64(),
        metrics: metrics(duration, Usage::default()),
        ..ExecutionResult::default()
    };
    let (ending, error) = failed_to_start(&mut result, error);
    Outcome {
        execution_id: request.execution_id.clone(),
        ending,
        result,
        error,
        artifacts: Vec::new(),
    }
}

pub(crate) fn exit_code(status: Status) -> i32 {
    match status {
        Status::Exited(code) => code,
        // As shells have it.
        Status::Signalled(signal) => 128 + signal,
    }
}

fn append(stderr: &mut String, line: &str) {
    if !stderr.is_empty() && !stderr.ends_with('\n') {
        stderr.push('\n');
    }
    stderr.push_str(line);
    stderr.push('\n');
}

fn metrics(duration: Duration, usage: Usage) -> Metrics {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    Metrics {
        duration_ms: milliseconds(duration),
        cpu_time_ms: milliseconds(usage.cpu),
        peak_memory_mb: usage.peak_memory as f64 / f64::from(1 << 20),
        io_read_bytes: usage.read,
        io_write_bytes: usage.written,
    }
}
