//! Somebody who has code run and files kept, one after the other, and remembers what was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Value, json};

use super::Load;
use crate::{Call, Server, eventually};

/// One of them. Whatever it asks for has a number.
#[derive(Debug)]
pub struct Client {
    /// Where its code runs.
    pub session: String,
    /// What was answered to each execution that was.
    ran: BTreeMap<usize, Value>,
    /// The same, of those that were answered as lost.
    lost: BTreeMap<usize, Value>,
    /// Files that were taken.
    kept: BTreeSet<usize>,
    /// The executions that were not answered.
    open: Vec<usize>,
    next: usize,
}

impl Client {
    #[track_caller]
    pub(super) fn new(server: &Server) -> Client {
        Client {
            session: server.session(),
            ran: BTreeMap::new(),
            lost: BTreeMap::new(),
            kept: BTreeSet::new(),
            open: Vec::new(),
            next: 0,
        }
    }

    /// How many executions were answered as lost.
    pub fn lost(&self) -> usize {
        self.lost.len()
    }

    /// The executions that were answered, by their identifiers.
    pub(super) fn executions(&self) -> impl Iterator<Item = &str> {
        let answers = self.ran.values().chain(self.lost.values());
        answers.map(|answer| answer["execution_id"].as_str().expect("its id"))
    }

    /// Asks until there is nobody who answers, or it is over.
    pub(super) fn go_on(&mut self, server: &Server, load: &Load) {
        while !load.is_over() {
            let number = self.next;
            self.next += 1;
            self.open.push(number);
            let begin = Instant::now();
            let Ok(answer) = self.execution(server, number).try_send() else {
                return;
            };
            if answer.status == 200 {
                let answer = answer.json(200);
                let is_lost = answer["status"] == "crashed";
                let answers = if is_lost {
                    &mut self.lost
                } else {
                    &mut self.ran
                };
                answers.insert(number, answer);
                self.open.retain(|open| *open != number);
                load.count();
            } else {
                load.note(Some(&self.session), answer, begin);
            }
            let begin = Instant::now();
            let Ok(answer) = self.upload(server, number).try_send() else {
                return;
            };
            if answer.status == 200 {
                self.kept.insert(number);
                load.count();
            } else {
                load.note(Some(&self.session), answer, begin);
            }
        }
    }

    fn execution(&self, server: &Server, number: usize) -> Call {
        let path = format!("/sessions/{}/execute?wait=true", self.session);
        let code = format!("echo {number} >> log; echo {number}");
        let fields = json!({ "language": "shell", "code": code, "timeout": 60 });
        let call = server.posting(&path, &fields);
        call.header("Idempotency-Key", format!("run-{number}"))
    }

    fn upload(&self, server: &Server, number: usize) -> Call {
        let target = format!("/api/v1/sessions/{}/files/upload", self.session);
        let call = server.call("POST", &target);
        let path = format!("file-{number}");
        call.form(Some(&path), "file", content(number).as_bytes())
    }

    /// Everything that was answered is there, and everything else is told; nothing ran twice. Only in `victims` may
    /// something have been answered as lost.
    pub(super) fn check(&self, server: &Server, victims: &[String]) {
        let Client { session, lost, .. } = self;
        let found = server.get(&format!("/sessions/{session}")).json(200);
        assert_eq!(found["status"], "running", "{found:#}");
        assert!(lost.is_empty() || victims.contains(session), "{lost:#?}");
        self.check_answered(server);
        let succeeded = self.check_open(server);
        for number in &self.kept {
            let found = server.get(&format!("/sessions/{session}/files/file-{number}"));
            assert_eq!(found.expect(200).text(), content(*number));
        }
        self.check_list(server);
        self.check_log(server, self.ran.keys().chain(&succeeded));
    }

    /// What was answered stands, however it is asked for.
    fn check_answered(&self, server: &Server) {
        for (number, answer) in self.ran.iter().chain(&self.lost) {
            match self.lost.contains_key(number) {
                true => must_be_explained(answer),
                false => assert_eq!(answer["status"], "success", "{answer:#}"),
            }
            let execution = answer["execution_id"].as_str().expect("its id");
            let found = server.get(&format!("/executions/{execution}/result"));
            assert_eq!(found.json(200), *answer);
            let again = self.execution(server, *number).send();
            assert_eq!(again.json(200), *answer);
        }
    }

    /// What was not answered was done, or was not, or broke off: whichever it is, it is told and not done again. Gives
    /// those that were done.
    fn check_open(&self, server: &Server) -> Vec<usize> {
        let mut succeeded = Vec::new();
        for number in &self.open {
            let again = eventually("an answer to what was left open", || {
                let answer = self.execution(server, *number).send();
                (answer.status != 409).then_some(answer)
            });
            let again = again.json(200);
            if again["status"] == "success" {
                succeeded.push(*number);
            } else {
                assert_eq!(again["status"], "crashed", "{again:#}");
                must_be_explained(&again);
            }
        }
        succeeded
    }

    /// Every execution completed, or crashed for a reason.
    fn check_list(&self, server: &Server) {
        let list = |status: &str| {
            let path = format!("/sessions/{}/executions?status={status}", self.session);
            server.get(&path).json(200)
        };
        for status in ["pending", "running", "failed", "timeout", "cancelled"] {
            let page = list(status);
            assert_eq!(page["total"], 0, "{page:#}");
        }
        let crashed = list("crashed");
        let crashed = crashed["executions"].as_array().expect("a page");
        crashed.iter().for_each(must_be_explained);
    }

    /// Each that succeeded has left its line, and none has left two.
    fn check_log<'n>(&self, server: &Server, succeeded: impl Iterator<Item = &'n usize>) {
        let text = server.shell(&self.session, "cat log 2>/dev/null; true");
        let lines: Vec<_> = text.lines().collect();
        let unique: BTreeSet<_> = lines.iter().copied().collect();
        assert_eq!(lines.len(), unique.len(), "twice: {lines:?}");
        for number in succeeded {
            let line = number.to_string();
            assert!(unique.contains(line.as_str()), "{number}: {lines:?}");
        }
    }
}

fn content(number: usize) -> String {
    format!("the content of {number}")
}

#[track_caller]
fn must_be_explained(crashed: &Value) {
    let error = crashed["error"].as_str().unwrap_or_default();
    assert!(!error.is_empty(), "{crashed:#}");
}
