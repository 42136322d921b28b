//! The process that raises sessions.
//!
//! A server has threads, and a process with threads must not fork; so before it has any, it forks this
//! one, which never does. It makes workspaces and sandboxes, keeps what it raised until it ends, and says
//! when that is. Everything it does, it does as the user whom sessions belong to on the host. It ends
//! with the server, and all sessions with it; their workspaces stay.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::epoll;
use rustix::process::{Pid, Signal};
use sandbox_isolation::Status;
use sandbox_isolation::accountant::Accountant;
use sandbox_isolation::keeper::Kept;
use sandbox_isolation::limits::{self, Ground};
use sandbox_linux::clone::{Child, Namespaces, Parent, clone, close_others, leave};
use sandbox_linux::identity::{self, Ids};
use sandbox_linux::message;
use sandbox_model::id::SessionId;
use sandbox_model::runtime::{LimitsEnforced, Walls};
use serde::{Deserialize, Serialize};

use crate::spec::SessionSpec;

mod raise;
mod reach;

/// Pieces of control groups are called this and the nursery's pid, so that leftovers can be told.
const GROUND: &str = "sandbox-nursery-";

/// The longest message; a session's environment is the longest part of one.
const LONGEST: usize = 128 << 10;

/// What the nursery is told, under a number of the teller's choosing.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: u64,
    pub(crate) what: What,
}

/// What it is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// Nothing; but say so.
    Ping,
    /// Raise this session. The executor's end of its line comes along.
    Raise(SessionSpec),
    /// End this one. Its workspace stays.
    End(SessionId),
    /// End this one, and remove its workspace.
    Discard(SessionId),
}

/// What it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Notice {
    /// It is there, and can enforce these limits.
    Ready(LimitsEnforced),
    /// What was ordered under this number is done, or could not be for this reason.
    Done(u64, Result<Done, String>),
    /// A session ended that nobody ended here, with this status.
    Ended(SessionId, i32),
}

/// What there is to say of something done.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Done {
    /// Nothing.
    Plain,
    /// A session was raised, and has these.
    Raised(LimitsEnforced, Walls),
}

/// The nursery, as the server sees it.
#[derive(Debug)]
pub struct Nursery {
    pub(crate) socket: OwnedFd,
    pub(crate) enforceable: LimitsEnforced,
    process: Child,
}

impl Nursery {
    /// Starts it, with its state in `root`, which is made where it is missing. As real root, it becomes
    /// `user`, and gives `root` to it. Must be called while the process has a single thread.
    pub fn start(root: &Path, user: Option<Ids>) -> io::Result<Nursery> {
        let (ours, theirs) = message::pair()?;
        let root = root.to_owned();
        std::fs::create_dir_all(&root)?;
        if let Some(user) = user {
            std::os::unix::fs::chown(&root, Some(user.user), Some(user.group))?;
        }
        Ground::sweep(GROUND);
        let (process, socket) = clone(Namespaces::empty(), Parent::Caller, ours, || {
            let run = || -> io::Result<()> {
                close_others(&[theirs.as_fd()])?;
                let mut ground = Ground::take(&ground_of(rustix::process::getpid()), user);
                ground.enter();
                if let Some(user) = user {
                    identity::become_user(user)?;
                }
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                if message::abandoned(&theirs) {
                    leave(1);
                }
                At::new(root, theirs, ground)?.work()
            };
            i32::from(run().is_err())
        })?;
        let mut nursery = Nursery {
            socket,
            enforceable: LimitsEnforced::default(),
            process,
        };
        let mut bytes = [0; 1 << 10];
        let (length, _) = message::receive(&nursery.socket, &mut bytes)?;
        match serde_json::from_slice(&bytes[..length]) {
            Ok(Notice::Ready(enforceable)) => nursery.enforceable = enforceable,
            _ => {
                return Err(io::Error::other(
                    "the process that raises sessions does not start",
                ));
            }
        }
        Ok(nursery)
    }
}

fn ground_of(nursery: Pid) -> String {
    format!("{GROUND}{}", nursery.as_raw_nonzero())
}

impl Drop for Nursery {
    fn drop(&mut self) {
        self.process.kill();
        let _ = self.process.wait();
        // Every session ends with it, but each in its own time.
        Ground::give_up(&ground_of(self.process.pid));
    }
}

/// The nursery at work.
struct At {
    root: PathBuf,
    socket: OwnedFd,
    epoll: OwnedFd,
    ground: Ground,
    accountant: Accountant,
    kept: BTreeMap<SessionId, Kept>,
    /// Whose end is told under which number. No number is used twice: an end may be told when the
    /// session is another already.
    watched: BTreeMap<u64, SessionId>,
    next: u64,
}

/// What epoll says of the socket.
const SOCKET: u64 = u64::MAX;

impl At {
    fn new(root: PathBuf, socket: OwnedFd, ground: Ground) -> io::Result<At> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(SOCKET);
        epoll::add(&epoll, &socket, data, epoll::EventFlags::IN)?;
        Ok(At {
            root,
            socket,
            epoll,
            ground,
            accountant: Accountant::start()?,
            kept: BTreeMap::new(),
            watched: BTreeMap::new(),
            next: 0,
        })
    }

    /// Until the server is gone.
    fn work(mut self) -> io::Result<()> {
        self.say(&Notice::Ready(limits::enforceable(&self.ground)))?;
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, room, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let epoll::Event { data, .. } = *event;
                match data.u64() {
                    SOCKET => match self.next()? {
                        Some((order, line)) => self.obey(order, line)?,
                        None => return Ok(()),
                    },
                    ended => self.note_end(ended)?,
                }
            }
        }
    }

    fn next(&self) -> io::Result<Option<(Order, Option<OwnedFd>)>> {
        let mut bytes = vec![0; LONGEST];
        let (length, mut descriptors) = message::receive(&self.socket, &mut bytes)?;
        if length == 0 {
            return Ok(None);
        }
        Ok(Some((
            serde_json::from_slice(&bytes[..length])?,
            descriptors.pop(),
        )))
    }

    fn obey(&mut self, order: Order, line: Option<OwnedFd>) -> io::Result<()> {
        let done = match order.what {
            What::Ping => Ok(Done::Plain),
            What::Raise(spec) => self.raise(&spec, line),
            What::End(id) => {
                self.end(&id);
                Ok(Done::Plain)
            }
            What::Discard(id) => {
                self.end(&id);
                raise::discard(&self.root, &id).map(|()| Done::Plain)
            }
        };
        self.say(&Notice::Done(order.number, done))
    }

    fn raise(&mut self, spec: &SessionSpec, line: Option<OwnedFd>) -> Result<Done, String> {
        let line = line.ok_or("no line came with the order")?;
        let id = spec.session_id.clone();
        if self.kept.contains_key(&id) {
            return Err("it is raised already".to_owned());
        }
        let raise::Raised {
            kept,
            limits_enforced,
            walls,
            layer,
        } = raise::raise(&self.root, &self.ground, spec, line)?;
        let watched = self.accountant.watch(&kept, layer, spec.resources.disk.0);
        watched.map_err(|error| format!("cannot watch its disk space: {error}"))?;
        self.next += 1;
        let key = self.next;
        let data = epoll::EventData::new_u64(key);
        epoll::add(&self.epoll, kept.pidfd(), data, epoll::EventFlags::IN)
            .map_err(|error| error.to_string())?;
        self.watched.insert(key, id.clone());
        self.kept.insert(id, kept);
        Ok(Done::Raised(limits_enforced, walls))
    }

    fn end(&mut self, id: &SessionId) {
        self.watched.retain(|_, watched| watched != id);
        drop(self.kept.remove(id));
    }

    fn note_end(&mut self, key: u64) -> io::Result<()> {
        let Some(id) = self.watched.remove(&key) else {
            return Ok(());
        };
        let Some(kept) = self.kept.remove(&id) else {
            return Ok(());
        };
        let status = match kept.wait()? {
            Status::Exited(code) => code,
            Status::Signalled(signal) => 128 + signal,
        };
        self.say(&Notice::Ended(id, status))
    }

    fn say(&self, notice: &Notice) -> io::Result<()> {
        message::send(&self.socket, &serde_json::to_vec(notice)?, &[])
    }
}
