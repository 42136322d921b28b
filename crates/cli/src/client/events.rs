//! Server-sent events out of the bytes they come in.

use std::mem;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its number, where it has one.
    pub(crate) id: Option<String>,
    /// What it is called.
    pub(crate) name: String,
    /// What it says.
    pub(crate) data: Vec<u8>,
}

/// Reads events; the bytes may be cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
}

impl Events {
    /// Takes more bytes, and gives the events that they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut complete = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let mut line = mem::take(&mut self.line);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            complete.extend(self.take(&line));
            // The room serves the next line.
            line.clear();
            self.line = line;
        }
        self.line.extend_from_slice(rest);
        complete
    }

    /// Takes a line; an empty one ends an event.
    fn take(&mut self, line: &[u8]) -> Option<Event> {
        if line.is_empty() {
            let event = mem::take(&mut self.event);
            return mem::take(&mut self.has_data).then_some(event);
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"id" => self.event.id = Some(text()),
            b"event" => self.event.name = text(),
            b"data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
            }
            // A comment keeps the connection open; what else there may be is not for us.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b": a comment\n\nid: 7\nevent: status\ndata: {\"a\":\ndata: 1}\n\r\nevent:none\n\nretry: 3\ndata:x\r\n\r\ndata: cut";

    fn expected() -> Vec<Event> {
        let event = |id: Option<&str>, name: &str, data: &str| Event {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            data: data.into(),
        };
        vec![
            event(Some("7"), "status", "{\"a\":\n1}"),
            event(None, "", "x"),
        ]
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        assert_eq!(Events::default().feed(TEXT), expected());
        for size in 1..TEXT.len() {
            let mut events = Events::default();
            let pieces = TEXT.chunks(size);
            let found: Vec<Event> = pieces.flat_map(|piece| events.feed(piece)).collect();
            assert_eq!(found, expected(), "in pieces of {size}");
        }
    }
}
