//! What a server has to do while something breaks, and those who hold it to its answers.
//!
//! A crowd has code run, keeps files, makes sessions and watches them, all at once, until it is told to stop or
//! nobody answers. Afterwards what was answered must stand, what was not must be told, and nothing may have been done
//! twice. What breaks, and what may be lost by it, is the test's business.

mod client;
mod maker;
mod watcher;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use client::Client;
use maker::Maker;
use watcher::Watcher;

use crate::{Answer, Server, eventually};

/// How many have code run.
pub const CLIENTS: usize = 16;

/// How many make sessions meanwhile.
pub const MAKERS: usize = 4;

/// How many clients' sessions are watched.
const WATCHERS: usize = 4;

/// How long a request may take while something that it needs is away.
pub const A_FEW_SECONDS: Duration = Duration::from_secs(15);

/// What a crowd has come to.
#[derive(Debug, Default)]
pub struct Load {
    is_over: AtomicBool,
    answered: AtomicUsize,
    odd: Mutex<Vec<Odd>>,
}

/// An answer other than the one hoped for.
#[derive(Debug)]
pub struct Odd {
    /// What was asked about, if it was there already.
    pub session: Option<String>,
    /// The answer.
    pub answer: Answer,
    /// How long it took.
    pub took: Duration,
}

/// Ends a load when it is dropped, whatever else happened.
#[derive(Debug)]
pub struct Ending<'l>(&'l Load);

/// Everybody who asks.
#[derive(Debug)]
pub struct Crowd {
    /// Those who have code run.
    pub clients: Vec<Client>,
    makers: Vec<Maker>,
    /// Each of the session of the client at its place.
    watchers: Vec<Watcher>,
}

impl Load {
    /// Is it time to stop?
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Whoever holds this decides when it is.
    pub fn ending(&self) -> Ending<'_> {
        Ending(self)
    }

    /// Waits until so many were answered as they hoped.
    #[track_caller]
    pub fn until_answered(&self, enough: usize) {
        let is_enough = || self.answered.load(Ordering::SeqCst) >= enough;
        eventually("enough answers", || is_enough().then_some(()));
    }

    /// The same, from now on.
    #[track_caller]
    pub fn until_answered_more(&self, more: usize) {
        self.until_answered(self.answered.load(Ordering::SeqCst) + more);
    }

    /// Notes an answer other than the one hoped for, to what was asked then.
    pub fn note(&self, session: Option<&str>, answer: Answer, begin: Instant) {
        let odd = Odd {
            session: session.map(str::to_owned),
            answer,
            took: begin.elapsed(),
        };
        let all = self.odd.lock();
        all.unwrap_or_else(PoisonError::into_inner).push(odd);
    }

    /// The answers other than those hoped for.
    pub fn odd(self) -> Vec<Odd> {
        let all = self.odd.into_inner();
        all.unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) {
        self.answered.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

impl Crowd {
    /// As many as most tests have.
    #[track_caller]
    pub fn gather(server: &Server) -> Crowd {
        Crowd::of(server, CLIENTS, MAKERS)
    }

    /// So many.
    #[track_caller]
    pub fn of(server: &Server, clients: usize, makers: usize) -> Crowd {
        let clients: Vec<_> = (0..clients).map(|_| Client::new(server)).collect();
        let watched = clients.iter().take(WATCHERS);
        Crowd {
            watchers: watched.map(|client| Watcher::of(&client.session)).collect(),
            makers: (0..makers).map(Maker::new).collect(),
            clients,
        }
    }

    /// Everything that was answered stands, everything else is told, nothing was done twice, and nobody who watched
    /// has missed anything. Afterwards the sessions that were watched are over.
    #[track_caller]
    pub fn check(self, server: &Server) {
        self.check_but_for(server, &[]);
    }

    /// The same, where `victims` are the sessions that lost what they ran.
    #[track_caller]
    pub fn check_but_for(mut self, server: &Server, victims: &[String]) {
        std::thread::scope(|scope| {
            for client in &self.clients {
                scope.spawn(|| client.check(server, victims));
            }
            for maker in &self.makers {
                scope.spawn(|| maker.check(server));
            }
        });
        for (watcher, client) in self.watchers.iter_mut().zip(&self.clients) {
            watcher.check(server, client.executions());
        }
    }
}

/// Lets a crowd work until `enough` was answered, then does `fault`; and stops it when that is done.
#[track_caller]
pub fn under_load(
    server: &Server,
    crowd: &mut Crowd,
    enough: usize,
    fault: impl FnOnce(&Load),
) -> Load {
    let load = Load::default();
    std::thread::scope(|scope| {
        for client in &mut crowd.clients {
            scope.spawn(|| client.go_on(server, &load));
        }
        for maker in &mut crowd.makers {
            scope.spawn(|| maker.go_on(server, &load));
        }
        for watcher in &mut crowd.watchers {
            scope.spawn(|| watcher.go_on(server, &load));
        }
        let _ending = load.ending();
        load.until_answered(enough);
        fault(&load);
    });
    load
}
