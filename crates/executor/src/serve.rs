//! Answering what is asked on a line, until it is cut.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Mutex, Semaphore};

use crate::archive::Archive;
use crate::execution::{Happening, Request};
use crate::executor::Executor;
use crate::files::Files;
use crate::link::Link;
use crate::protocol::{Answer, Ask, Question, Refusal, RefusalKind, Reply};
use crate::terminal::{Opening, Place};
use crate::{listing, removal};

/// Whoever answers.
struct Desk {
    link: Link,
    executor: Executor,
    files: RefCell<Files>,
    removing: Mutex<()>,
    archiving: Arc<Semaphore>,
}

/// How long whoever asked has the processors for writing down what became of an execution, before the next
/// one is made ready.
const AFTERWARDS: Duration = Duration::from_millis(2);

/// How long an interpreter that nobody asked for waits for code.
const EXPECTED: Duration = Duration::from_secs(2);

/// How many archives are written at once: each holds many descriptors.
const MOST_ARCHIVES: usize = 4;

type Answered = Result<(Answer, Option<OwnedFd>), Refusal>;

/// All that is wanted of a question that cannot be read. What else is in it is skipped, however deep it is.
#[derive(Deserialize)]
struct Numbered {
    number: u64,
}

/// Answers on `link` by `executor` and `files`. Ends when the other end is gone. On a local set.
pub async fn serve(link: Link, executor: Executor, files: Files) -> io::Result<()> {
    let desk = Rc::new(Desk {
        link,
        executor,
        files: RefCell::new(files),
        removing: Mutex::default(),
        archiving: Arc::new(Semaphore::new(MOST_ARCHIVES)),
    });
    let expecting = desk.clone();
    tokio::task::spawn_local(async move {
        tokio::time::sleep(EXPECTED).await;
        expecting.executor.expect_no_longer();
    });
    while let Some((text, _)) = desk.link.receive_text().await? {
        let Question { number, ask } = match serde_json::from_slice(&text) {
            Ok(question) => question,
            Err(error) => {
                desk.refuse(&text, &error).await?;
                continue;
            }
        };
        let desk = desk.clone();
        match ask {
            Ask::Execute(request) => {
                // Whoever hears that it was begun can have it ended.
                desk.executor.expect(&request.execution_id);
                desk.reply(number, Ok((Answer::Begun, None))).await?;
                tokio::task::spawn_local(desk.clone().execute(number, request));
            }
            Ask::Terminal(opening) => match desk.executor.expect_terminal(number) {
                Ok(place) => {
                    tokio::task::spawn_local(desk.clone().terminal(number, opening, place));
                }
                Err(error) => desk.reply(number, Err(error.into())).await?,
            },
            ask if takes_time(&ask) => {
                tokio::task::spawn_local(async move {
                    let answered = desk.answer(ask).await;
                    // As with an execution.
                    let _ = desk.reply(number, answered).await;
                });
            }
            ask => {
                let answered = desk.answer(ask).await;
                desk.reply(number, answered).await?;
            }
        }
    }
    Ok(())
}

/// Is it answered when others may have been meanwhile?
fn takes_time(ask: &Ask) -> bool {
    matches!(ask, Ask::List { .. } | Ask::RemoveAll(_) | Ask::Connect(_))
}

impl Desk {
    async fn execute(self: Rc<Desk>, number: u64, request: Request) {
        let tell = async |happening| {
            let answer = Answer::Happening(happening);
            // When nobody is left to hear it, the line's end is seen by whoever listens there.
            let _ = self.reply(number, Ok((answer, None))).await;
        };
        let outcome = self.executor.execute_telling(&request, &tell).await;
        tell(Happening::Outcome(Box::new(outcome))).await;
        tokio::time::sleep(AFTERWARDS).await;
        self.executor.look_ahead(request.language);
    }

    async fn terminal(self: Rc<Desk>, number: u64, opening: Opening, place: Place) {
        let answered = match self.executor.open_terminal(&opening, &place).await {
            Ok((on_terminal, end)) => {
                let opened = self.reply(number, Ok((Answer::Terminal, Some(end)))).await;
                let status = match opened {
                    Ok(()) => {
                        self.executor
                            .see_terminal_through(on_terminal, &place)
                            .await
                    }
                    Err(_) => return,
                };
                Ok((Answer::TerminalEnded(status), None))
            }
            Err(refusal) => Err(refusal),
        };
        // Before it is told: whoever hears it may open another.
        drop(place);
        let _ = self.reply(number, answered).await;
    }

    async fn answer(&self, ask: Ask) -> Answered {
        let done = (Answer::Done, None);
        Ok(match ask {
            Ask::Ping => done,
            Ask::Foresee(language) => {
                self.executor.look_ahead(language);
                done
            }
            // Answered elsewhere, more than once.
            Ask::Execute(_) => (Answer::Begun, None),
            Ask::Terminal(_) => (Answer::Terminal, None),
            Ask::Hang(number) => {
                self.executor.hang_up(number);
                done
            }
            Ask::Connect(port) => {
                let connection = self.executor.connect(port).await?;
                (Answer::Connected, Some(connection))
            }
            Ask::Cancel(id) => (Answer::Cancelled(self.executor.cancel(&id)), None),
            Ask::Configure { env } => {
                self.executor.configure(&env)?;
                done
            }
            Ask::Read(path) => {
                let (file, size) = self.files.borrow().read(&path)?;
                (Answer::File(size), Some(file))
            }
            Ask::Write(path) => {
                let (file, upload) = self.files.borrow_mut().begin(&path)?;
                (Answer::Upload(upload), Some(file))
            }
            Ask::Begin => {
                let (file, upload) = self.files.borrow_mut().begin_anywhere()?;
                (Answer::Upload(upload), Some(file))
            }
            Ask::Commit(upload) => {
                let birth = self.files.borrow_mut().commit(upload)?;
                self.executor.disown(birth);
                done
            }
            Ask::CommitAt { upload, path } => {
                let birth = self.files.borrow_mut().commit_at(upload, &path)?;
                self.executor.disown(birth);
                done
            }
            Ask::Abandon(upload) => {
                self.files.borrow_mut().abandon(upload);
                done
            }
            Ask::List { path, after, limit } => {
                let directory = self.files.borrow().directory(&path)?;
                let page = listing::list(directory, after.as_deref(), limit).await?;
                (Answer::Entries(page), None)
            }
            Ask::Archive(path) => {
                let turn = self.archiving.clone().try_acquire_owned();
                let busy = |_| io::Error::from(io::ErrorKind::ResourceBusy);
                let turn = turn.map_err(busy)?;
                let directory = self.files.borrow().directory(&path)?;
                let (archive, from) = Archive::of(directory)?;
                tokio::task::spawn_local(async move {
                    archive.write().await;
                    drop(turn);
                });
                (Answer::Archive, Some(from))
            }
            Ask::Remove(path) => {
                self.files.borrow().remove(&path)?;
                done
            }
            Ask::RemoveAll(path) => {
                // One at a time: each holds many descriptors.
                let _turn = self.removing.lock().await;
                let (directory, name) = self.files.borrow().place(&path)?;
                removal::remove_all(directory, name).await?;
                done
            }
        })
    }

    /// Says that something cannot be read, where it tells who asked it. That is no reason to end: others wait
    /// for what runs here.
    async fn refuse(&self, text: &[u8], error: &serde_json::Error) -> io::Result<()> {
        let Ok(Numbered { number }) = serde_json::from_slice(text) else {
            return Ok(());
        };
        let refusal = Refusal {
            kind: RefusalKind::Failed,
            reason: format!("the session's executor cannot read what it was asked: {error}"),
        };
        self.reply(number, Err(refusal)).await
    }

    async fn reply(&self, number: u64, answered: Answered) -> io::Result<()> {
        let (answer, file) = match answered {
            Ok((answer, file)) => (Ok(answer), file),
            Err(refusal) => (Err(refusal), None),
        };
        let descriptors: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        let reply = Reply { number, answer };
        match self.link.send(&reply, &descriptors).await {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                // There is no room for it, here or on the way. Whoever waits is to hear at least that.
                let answer = Err(Refusal::from(error));
                self.link.send(&Reply { number, answer }, &[]).await
            }
            outcome => outcome,
        }
    }
}
