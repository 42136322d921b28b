//! Somebody who watches a session, and comes again with the last event it has when a connection ends.

use std::io::{self, BufRead as _, BufReader};
use std::time::Duration;

use super::Load;
use crate::{Event, Opened, Server, eventually};

/// How long nothing may happen before it asks anew. Only to notice soon that it is over.
const SILENCE: Duration = Duration::from_secs(1);

/// One of them.
#[derive(Debug)]
pub(super) struct Watcher {
    session: String,
    seen: Vec<Event>,
}

impl Watcher {
    pub(super) fn of(session: &str) -> Watcher {
        Watcher {
            session: session.to_owned(),
            seen: Vec::new(),
        }
    }

    /// Watches until there is nobody who answers, or it is over.
    pub(super) fn go_on(&mut self, server: &Server, load: &Load) {
        while !load.is_over() {
            let Ok(opened) = self.open(server) else {
                return;
            };
            // Nothing can be told while the database is away.
            if opened.status == 200 {
                self.read(opened);
            }
        }
    }

    /// Asks for what comes after the last one it has.
    fn open(&self, server: &Server) -> io::Result<Opened> {
        let target = format!("/api/v1/sessions/{}/events", self.session);
        let mut call = server.call("GET", &target);
        if let Some(id) = self.seen.last().and_then(|event| event.id.as_deref()) {
            call = call.header("Last-Event-ID", id);
        }
        let stream = call.write()?;
        let same = stream.try_clone()?;
        let opened = Opened::read(stream)?;
        // An answer may take longer to begin.
        same.set_read_timeout(Some(SILENCE))?;
        Ok(opened)
    }

    /// Takes what comes, up to the session's end or the connection's. An event that breaks off was not seen.
    fn read(&mut self, mut opened: Opened) {
        let mut event = Vec::new();
        let lines = BufReader::new(opened.content()).lines();
        for line in lines.map_while(Result::ok) {
            if !line.is_empty() {
                event.push(line);
                continue;
            }
            self.seen.extend(event_of(&std::mem::take(&mut event)));
            if self.has_seen_the_end() {
                return;
            }
        }
    }

    fn has_seen_the_end(&self) -> bool {
        let is_end = |event: &Event| {
            event.name == "status" && event.data["detail"]["status"] == "terminated"
        };
        self.seen.last().is_some_and(is_end)
    }

    /// What was seen is all that there is, each once and in its order, and every one of `executions` is told of once.
    /// For that the session is ended.
    #[track_caller]
    pub(super) fn check<'e>(&mut self, server: &Server, executions: impl Iterator<Item = &'e str>) {
        let Watcher { session, seen } = self;
        assert!(!seen.is_empty(), "nothing was seen of {session}");
        // Some of what is to come has happened, and some has not.
        let resumed = self.open(server).expect("the server answers");
        let ended = server.delete(&format!("/sessions/{}", self.session));
        ended.json(200);
        self.read(resumed);
        self.until_the_end(server);
        let mut all = Watcher::of(&self.session);
        all.until_the_end(server);
        assert_eq!(self.seen, all.seen);
        let number = |event: &Event| -> i64 {
            let id = event.id.as_deref().and_then(|id| id.parse().ok());
            id.expect("a number")
        };
        let grows = |pair: &[Event]| number(&pair[0]) < number(&pair[1]);
        assert!(all.seen.windows(2).all(grows), "{:#?}", all.seen);
        for execution in executions {
            let told = all.seen.iter().filter(|event| {
                event.name == "execution" && event.data["detail"]["execution_id"] == execution
            });
            assert_eq!(told.count(), 1, "{execution}: {:#?}", all.seen);
        }
    }

    #[track_caller]
    fn until_the_end(&mut self, server: &Server) {
        eventually("the session's end is told", || {
            if !self.has_seen_the_end() {
                self.read(self.open(server).expect("the server answers"));
            }
            self.has_seen_the_end().then_some(())
        });
    }
}

/// The event that these lines are; none when they are a comment.
fn event_of(lines: &[String]) -> Option<Event> {
    let value = |name: &str| {
        let mut values = lines.iter().filter_map(|line| line.split_once(": "));
        values.find_map(|(known, value)| (known == name).then_some(value))
    };
    Some(Event {
        id: value("id").map(str::to_owned),
        name: value("event")?.to_owned(),
        data: serde_json::from_str(value("data")?).expect("JSON in an event"),
    })
}
