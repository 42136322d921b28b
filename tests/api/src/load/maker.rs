//! Somebody who makes sessions and ends them, and remembers what was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Value, json};

use super::Load;
use crate::{Call, Server, eventually, id_of};

/// One of them. Each session that it asks for has a number.
#[derive(Debug)]
pub(super) struct Maker {
    /// Whose its sessions are, so that they can be told from others.
    name: String,
    /// The sessions that were answered.
    made: BTreeMap<usize, String>,
    /// Those of them that were answered to have ended.
    ended: BTreeSet<String>,
    /// What was not answered.
    open: Vec<usize>,
}

impl Maker {
    pub(super) fn new(number: usize) -> Maker {
        Maker {
            name: format!("maker-{number}"),
            made: BTreeMap::new(),
            ended: BTreeSet::new(),
            open: Vec::new(),
        }
    }

    /// Asks until there is nobody who answers, or it is over.
    pub(super) fn go_on(&mut self, server: &Server, load: &Load) {
        for number in 0.. {
            if load.is_over() {
                return;
            }
            let begin = Instant::now();
            let Ok(answer) = self.making(server, number).try_send() else {
                self.open.push(number);
                return;
            };
            if answer.status != 201 {
                self.open.push(number);
                load.note(None, answer, begin);
                continue;
            }
            let session = id_of(&answer.json(201));
            self.made.insert(number, session.clone());
            load.count();
            let begin = Instant::now();
            let ending = server.call("DELETE", &format!("/api/v1/sessions/{session}"));
            let Ok(answer) = ending.try_send() else {
                return;
            };
            if answer.status == 200 {
                self.ended.insert(session);
            } else {
                load.note(Some(&session), answer, begin);
            }
        }
    }

    fn making(&self, server: &Server, number: usize) -> Call {
        let Maker { name, .. } = self;
        let fields = json!({ "template_id": "python-basic", "agent_id": name });
        let call = server.posting("/sessions", &fields);
        call.header("Idempotency-Key", format!("{name}-{number}"))
    }

    /// What was made is there, and what was ended is over. What was left open is there once, however often it is asked
    /// for, and nothing is beside it or half made.
    pub(super) fn check(&self, server: &Server) {
        for (number, session) in &self.made {
            assert_eq!(self.asked_again(server, *number), *session);
            let found = server.get(&format!("/sessions/{session}")).json(200);
            // Nobody knows of one whose end was not answered.
            let is_open = !self.ended.contains(session) && found["status"] == "running";
            assert!(is_open || found["status"] == "terminated", "{found:#}");
        }
        let mut known: BTreeSet<_> = self.made.values().cloned().collect();
        for number in &self.open {
            let session = self.asked_again(server, *number);
            assert_eq!(self.asked_again(server, *number), session);
            assert_eq!(server.shell(&session, "echo well"), "well");
            assert!(known.insert(session.clone()), "{session} was made for two");
        }
        let running = self.list(server, "running");
        let running = running["sessions"].as_array().expect("a page");
        for session in running {
            assert!(known.contains(&id_of(session)), "nobody's: {session:#}");
        }
        let creating = self.list(server, "creating");
        assert_eq!(creating["total"], 0, "{creating:#}");
    }

    fn asked_again(&self, server: &Server, number: usize) -> String {
        eventually("an answer to what was asked before", || {
            let answer = self.making(server, number).send();
            (answer.status != 409).then(|| id_of(&answer.json(201)))
        })
    }

    fn list(&self, server: &Server, status: &str) -> Value {
        let Maker { name, .. } = self;
        let path = format!("/sessions?agent_id={name}&status={status}&limit=200");
        server.get(&path).json(200)
    }
}
