//! Server-sent events.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use crate::http::Content;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its number, where it has one.
    pub id: Option<String>,
    /// What it is called.
    pub name: String,
    /// What it says.
    pub data: Value,
}

/// Events, as they come.
#[derive(Debug)]
pub struct Events {
    reader: BufReader<Content>,
}

impl Events {
    pub(crate) fn new(body: Content) -> Events {
        Events {
            reader: BufReader::new(body),
        }
    }

    /// Waits for the next event of that name, and passes over others.
    #[track_caller]
    pub fn until(&mut self, name: &str) -> Event {
        let mut passed = Vec::new();
        for event in self.by_ref() {
            if event.name == name {
                return event;
            }
            passed.push(event);
        }
        panic!("no event {name}; there were {passed:?}")
    }

    /// Waits for the session to have this status.
    #[track_caller]
    pub fn until_status(&mut self, status: &str) -> Event {
        loop {
            let event = self.until("status");
            if event.data["detail"]["status"] == status {
                return event;
            }
        }
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let (mut id, mut name, mut data) = (None, String::new(), String::new());
        loop {
            let mut line = String::new();
            let length = self.reader.read_line(&mut line).expect("an event");
            if length == 0 {
                return None;
            }
            match line.trim_end().split_once(':') {
                Some(("id", value)) => id = Some(value.trim().to_owned()),
                Some(("event", value)) => value.trim().clone_into(&mut name),
                Some(("data", value)) => data.push_str(value.trim()),
                // A comment keeps the connection open.
                Some(_) => {}
                None if data.is_empty() => {}
                None => {
                    let data = serde_json::from_str(&data).expect("JSON in an event");
                    return Some(Event { id, name, data });
                }
            }
        }
    }
}
