//! An asker's end of the line to an executor.
//!
//! Many ask at once; every answer finds whoever asked for it. When the line is cut, everyone who still
//! waits is told so.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use sandbox_executor::protocol::{Answer, Ask, Question, Refusal, Reply};
use sandbox_executor::{Happening, Link, Opening, Outcome, Request};
use thiserror::Error;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Why there is no answer, or not the one that was asked for.
#[derive(Debug, Error)]
pub enum LineError {
    /// The executor says no.
    #[error("{}", .0.reason)]
    Refused(Refusal),
    /// It is gone.
    #[error("the session's executor is gone")]
    Cut,
    /// It says nothing, though it should.
    #[error("nothing was heard of the session's executor for {} seconds", .0.as_secs())]
    Silent(std::time::Duration),
    /// It answers something else.
    #[error("the session's executor does not answer to what it was asked")]
    Nonsense,
    /// It cannot be asked.
    #[error("cannot reach the session's executor")]
    Unreachable(#[source] io::Error),
}

type Answered = (Result<Answer, Refusal>, Option<OwnedFd>);

/// The line. Clones are the same line; it is cut when the last of them is gone.
#[derive(Debug, Clone)]
pub struct Line {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    link: Arc<Link>,
    waiting: Arc<Waiting>,
    /// Ends with the line.
    reader: tokio::task::AbortHandle,
}

/// Who waits for which answer.
#[derive(Debug, Default)]
struct Waiting {
    askers: Mutex<Askers>,
    /// The line was cut.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Askers {
    next: u64,
    cut: bool,
    waiting: BTreeMap<u64, UnboundedSender<Answered>>,
}

impl Line {
    /// The line whose end `socket` is. In a runtime.
    pub fn new(socket: OwnedFd) -> io::Result<Line> {
        let link = Arc::new(Link::new(socket)?);
        let waiting = Arc::<Waiting>::default();
        let reader = tokio::spawn(read(link.clone(), waiting.clone())).abort_handle();
        let shared = Shared {
            link,
            waiting,
            reader,
        };
        Ok(Line {
            shared: Arc::new(shared),
        })
    }

    /// Asks something that is answered once.
    pub async fn ask(&self, ask: Ask) -> Result<(Answer, Option<OwnedFd>), LineError> {
        next(&mut self.put(ask).await?).await
    }

    /// Has something run. Returns when the executor has begun it.
    pub async fn begin(&self, request: Request) -> Result<Course, LineError> {
        let mut answers = self.put(Ask::Execute(request)).await?;
        match next(&mut answers).await? {
            (Answer::Begun, _) => Ok(Course {
                answers,
                over: false,
                _line: self.clone(),
            }),
            _ => Err(LineError::Nonsense),
        }
    }

    /// Has something run, and waits for what becomes of it. `begun` is called when the executor has it.
    pub async fn execute(
        &self,
        request: Request,
        begun: impl FnOnce() + Send,
    ) -> Result<Outcome, LineError> {
        let course = self.begin(request).await?;
        begun();
        course.outcome().await
    }

    /// Has a program started on a terminal. Returns when it runs, with our end of that.
    pub async fn open_terminal(&self, opening: Opening) -> Result<(Terminal, OwnedFd), LineError> {
        let (number, answers) = self.shared.waiting.expect().ok_or(LineError::Cut)?;
        // From here on it is hung up, whoever gives up waiting when.
        let mut terminal = Terminal {
            line: self.clone(),
            number,
            answers,
            over: false,
        };
        self.send(number, Ask::Terminal(opening)).await?;
        match next(&mut terminal.answers).await? {
            (Answer::Terminal, Some(end)) => Ok((terminal, end)),
            _ => Err(LineError::Nonsense),
        }
    }

    /// Waits until the executor is gone.
    pub async fn cut(&self) {
        let waiting = &self.shared.waiting;
        loop {
            let ended = waiting.ended.notified();
            if waiting.lock().cut {
                return;
            }
            ended.await;
        }
    }

    /// Is the executor known to be gone?
    pub fn is_cut(&self) -> bool {
        self.shared.waiting.lock().cut
    }

    async fn put(&self, ask: Ask) -> Result<UnboundedReceiver<Answered>, LineError> {
        let (number, answers) = self.shared.waiting.expect().ok_or(LineError::Cut)?;
        self.send(number, ask).await?;
        Ok(answers)
    }

    async fn send(&self, number: u64, ask: Ask) -> Result<(), LineError> {
        let question = Question { number, ask };
        let sent = self.shared.link.send(&question, &[]).await;
        sent.map_err(|error| {
            match error.kind() {
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                    self.shared.waiting.cut();
                }
                _ => self.shared.waiting.forget(number),
            }
            LineError::Unreachable(error)
        })
    }
}

/// An execution that was begun, as its asker sees it. It goes on when this is dropped.
#[derive(Debug)]
pub struct Course {
    answers: UnboundedReceiver<Answered>,
    over: bool,
    /// It is not cut while somebody waits for this.
    _line: Line,
}

impl Course {
    /// What happens next; nothing after the outcome or an error. What is not asked for waits, and there
    /// cannot be much of it: what an executor keeps of the output, and heartbeats. May be given up and
    /// asked again without missing anything.
    pub async fn next(&mut self) -> Option<Result<Happening, LineError>> {
        if self.over {
            return None;
        }
        let happening = match next(&mut self.answers).await {
            Ok((Answer::Happening(happening), _)) => Ok(happening),
            Ok(_) => Err(LineError::Nonsense),
            Err(error) => Err(error),
        };
        self.over = matches!(happening, Ok(Happening::Outcome(_)) | Err(_));
        Some(happening)
    }

    /// Waits for what becomes of it, whatever happens before.
    pub async fn outcome(mut self) -> Result<Outcome, LineError> {
        while let Some(happening) = self.next().await {
            if let Happening::Outcome(outcome) = happening? {
                return Ok(*outcome);
            }
        }
        // It was taken by `next`.
        Err(LineError::Nonsense)
    }
}

/// A program on a terminal, as its asker sees it. It ends, with everything that it started, when this is
/// dropped.
#[derive(Debug)]
pub struct Terminal {
    line: Line,
    number: u64,
    answers: UnboundedReceiver<Answered>,
    over: bool,
}

impl Terminal {
    /// Waits until it has ended by itself: its exit status.
    pub async fn ended(&mut self) -> Result<i32, LineError> {
        let ended = match next(&mut self.answers).await {
            Ok((Answer::TerminalEnded(status), _)) => Ok(status),
            Ok(_) => Err(LineError::Nonsense),
            Err(error) => Err(error),
        };
        self.over = matches!(ended, Ok(_) | Err(LineError::Cut));
        ended
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let (line, number) = (self.line.clone(), self.number);
        // Where there is no runtime any more, there is no executor for long.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // One that is gone has ended everything.
                let _ = line.ask(Ask::Hang(number)).await;
            });
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn next(
    answers: &mut UnboundedReceiver<Answered>,
) -> Result<(Answer, Option<OwnedFd>), LineError> {
    match answers.recv().await {
        Some((Ok(answer), file)) => Ok((answer, file)),
        Some((Err(refusal), _)) => Err(LineError::Refused(refusal)),
        None => Err(LineError::Cut),
    }
}

/// Hands answers out until the line is cut.
async fn read(link: Arc<Link>, waiting: Arc<Waiting>) {
    while let Ok(Some((reply, mut descriptors))) = link.receive::<Reply>().await {
        let Reply { number, answer } = reply;
        waiting.answer(number, (answer, descriptors.pop()));
    }
    waiting.cut();
}

impl Waiting {
    fn lock(&self) -> std::sync::MutexGuard<'_, Askers> {
        // Nothing that is done under it can panic half-way.
        self.askers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self) -> Option<(u64, UnboundedReceiver<Answered>)> {
        let mut askers = self.lock();
        if askers.cut {
            return None;
        }
        askers.next += 1;
        let number = askers.next;
        let (sender, receiver) = unbounded_channel();
        askers.waiting.insert(number, sender);
        Some((number, receiver))
    }

    fn answer(&self, number: u64, answered: Answered) {
        let mut askers = self.lock();
        let is_last = answered.0.as_ref().map_or(true, Answer::is_last);
        if let Some(asker) = askers.waiting.get(&number) {
            // Who no longer waits does not want to know.
            let _ = asker.send(answered);
        }
        if is_last {
            askers.waiting.remove(&number);
        }
    }

    fn forget(&self, number: u64) {
        self.lock().waiting.remove(&number);
    }

    fn cut(&self) {
        let mut askers = self.lock();
        askers.cut = true;
        askers.waiting.clear();
        drop(askers);
        self.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox_executor::link;
    use std::time::Duration;

    #[tokio::test]
    async fn a_line_is_cut_when_the_other_end_is_gone_and_not_before() {
        let (ours, theirs) = link::pair().expect("a line");
        let line = Line::new(ours).expect("our end");
        let executor = Link::new(theirs).expect("their end");
        let answering = async {
            let (question, _) = executor.receive::<Question>().await.unwrap().unwrap();
            let reply = Reply {
                number: question.number,
                answer: Ok(Answer::Done),
            };
            executor.send(&reply, &[]).await.unwrap();
        };
        let (answer, ()) = tokio::join!(line.ask(Ask::Ping), answering);
        assert_eq!(answer.unwrap().0, Answer::Done);
        // However long that is: nothing has happened to it.
        let early = tokio::time::timeout(Duration::from_millis(50), line.cut()).await;
        assert!(early.is_err());
        assert!(!line.is_cut());
        drop(executor);
        line.cut().await;
        line.cut().await;
        assert!(line.is_cut());
        assert!(matches!(line.ask(Ask::Ping).await, Err(LineError::Cut)));
    }
}
