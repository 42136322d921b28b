//! Answering what is asked on a line, until it is cut.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use crate::execution::{Happening, Request};
use crate::executor::Executor;
use crate::files::Files;
use crate::link::Link;
use crate::protocol::{Answer, Ask, Question, Refusal, Reply};

/// Whoever answers.
struct Desk {
    link: Link,
    executor: Executor,
    files: RefCell<Files>,
}

type Answered = Result<(Answer, Option<OwnedFd>), Refusal>;

/// Answers on `link` by `executor` and `files`. Ends when the other end is gone. On a local set.
pub async fn serve(link: Link, executor: Executor, files: Files) -> io::Result<()> {
    let desk = Rc::new(Desk {
        link,
        executor,
        files: RefCell::new(files),
    });
    while let Some((Question { number, ask }, _)) = desk.link.receive().await? {
        match ask {
            Ask::Execute(request) => {
                // Whoever hears that it was begun can have it ended.
                desk.executor.expect(&request.execution_id);
                desk.reply(number, Ok((Answer::Begun, None))).await?;
                tokio::task::spawn_local(desk.clone().execute(number, request));
            }
            ask => {
                let answered = desk.answer(ask);
                desk.reply(number, answered).await?;
            }
        }
    }
    Ok(())
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
    }

    /// What can be answered at once.
    fn answer(&self, ask: Ask) -> Answered {
        let mut files = self.files.borrow_mut();
        let done = (Answer::Done, None);
        Ok(match ask {
            Ask::Ping => done,
            // Answered elsewhere, more than once.
            Ask::Execute(_) => (Answer::Begun, None),
            Ask::Cancel(id) => (Answer::Cancelled(self.executor.cancel(&id)), None),
            Ask::Configure { env } => {
                self.executor.configure(&env)?;
                done
            }
            Ask::Read(path) => {
                let (file, size) = files.read(&path)?;
                (Answer::File(size), Some(file))
            }
            Ask::Write(path) => {
                let (file, upload) = files.begin(&path)?;
                (Answer::Upload(upload), Some(file))
            }
            Ask::Commit(upload) => {
                self.executor.disown(files.commit(upload)?);
                done
            }
            Ask::Abandon(upload) => {
                files.abandon(upload);
                done
            }
            Ask::List(path) => (Answer::Entries(files.list(&path)?), None),
            Ask::Remove(path) => {
                files.remove(&path)?;
                done
            }
        })
    }

    async fn reply(&self, number: u64, answered: Answered) -> io::Result<()> {
        let (answer, file) = match answered {
            Ok((answer, file)) => (Ok(answer), file),
            Err(refusal) => (Err(refusal), None),
        };
        let descriptors: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        self.link
            .send(&Reply { number, answer }, &descriptors)
            .await
    }
}
