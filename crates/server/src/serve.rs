//! Putting a server together, running it, and taking it down.
//!
//! The order matters. The process that raises sessions is started while there is a single thread; only
//! then comes the runtime with its threads. The address is bound before anything is set right in the
//! records, so that of two servers by mistake one fails first and touches nothing.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox_control::{Control, ControlError, new_secret};
use sandbox_model::{Class, Failure, NodeId};
use sandbox_runtime::{Local, Nursery, descriptors};
use sandbox_store::objects::{Access, SigningKey};
use sandbox_store::{Objects, ObjectsError, Records, StoreError};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::api::health::Checkups;
use crate::authentication::Keys;
use crate::client_address::TrustedProxies;
use crate::connections;
use crate::data_directory;
use crate::forwarding::peers;
use crate::identity::{self, INSTANCE, NODE};
use crate::internal::Tokens;
use crate::logging;
use crate::measuring::Measures;
use crate::rate::Rates;
use crate::router::router;
use crate::secrets;
use crate::session_users;
use crate::settings::{SHORTEST_KEY, Secret, Settings};
use crate::state::App;

/// Why a server does not run.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Its directory cannot be used.
    #[error("cannot use the data directory {}", path.display())]
    Data {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another server uses it.
    #[error("another server uses the data directory {}", .0.display())]
    Taken(PathBuf),
    /// Sessions cannot get to it.
    #[error("user {user}, whom sessions belong to, cannot get through {}", path.display())]
    Closed {
        /// The directory that is closed: it, or one above it.
        path: PathBuf,
        /// To whom.
        user: u32,
    },
    /// What is in it could be somebody else's.
    #[error("others can change what is in the data directory {}", .0.display())]
    Open(PathBuf),
    /// The sessions in it are another node's than the server is to be.
    #[error("the data directory {} is that of node {kept}, not of {asked}", path.display())]
    OtherNode {
        /// Which one.
        path: PathBuf,
        /// Whose it is.
        kept: String,
        /// Who was to have it.
        asked: NodeId,
    },
    /// The user ids for sessions cannot be used.
    #[error("cannot use the user ids {first} to {last} for sessions: {reason}")]
    Users {
        /// The first of them.
        first: u32,
        /// The last.
        last: u32,
        /// Why.
        reason: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// Which one.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Everybody could reach it, and nobody chose its key.
    #[error("{0} can be reached from other machines, and no API key was chosen")]
    Exposed(SocketAddr),
    /// Everybody could reach it, and find its key by trying.
    #[error(
        "{0} can be reached from other machines, and its API key has fewer than {SHORTEST_KEY} characters"
    )]
    Guessable(SocketAddr),
    /// The log cannot be started.
    #[error("the log level is not one: {0}")]
    LogLevel(String),
    /// The process that raises sessions cannot be started.
    #[error("cannot start the process that raises sessions")]
    Nursery(#[source] io::Error),
    /// It ended while the server ran. Only a process without threads can start another one.
    #[error("the process that raises sessions is gone")]
    NurseryLost,
    /// The database cannot be used.
    #[error(transparent)]
    Records(#[from] StoreError),
    /// The objects cannot be used.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// What was left cannot be set right.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// It failed while it ran.
    #[error("the server failed")]
    Run(#[source] io::Error),
}

impl Failure for ServeError {
    fn class(&self) -> Class {
        match self {
            ServeError::Taken(_) | ServeError::Control(ControlError::Held { .. }) => {
                Class::Conflict
            }
            _ => Class::General,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            ServeError::Data { .. } => "choose a directory that is yours with --data",
            ServeError::Taken(_) => {
                "end that server, or choose another directory with --data and another address with --bind"
            }
            ServeError::Closed { path, .. } => {
                let path = path.display();
                return Some(format!(
                    "choose another directory with --data, or open this one with chmod o+x {path}"
                ));
            }
            ServeError::Open(path) => {
                let path = path.display();
                return Some(format!(
                    "choose a directory that is yours with --data, or make this one so: chmod go-w {path}"
                ));
            }
            ServeError::OtherNode { path, kept, .. } => {
                let file = path.join(NODE);
                return Some(format!(
                    "leave --node-id out, or remove {} if the sessions of {kept} may be lost",
                    file.display()
                ));
            }
            ServeError::Users { .. } => {
                "choose others with --session-uids FIRST-LAST, or give all sessions one user with --session-uids shared"
            }
            ServeError::Control(ControlError::Held { .. }) => {
                "end that server, or choose another name with --node-id; one that was killed has it for 30 seconds more"
            }
            ServeError::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "something else listens there: end it, or choose another port with --bind"
            }
            ServeError::Bind { .. } => "choose another address with --bind",
            ServeError::Exposed(_) => {
                "set SANDBOX_API_KEY or SANDBOX_API_KEY_FILE, or bind to 127.0.0.1"
            }
            ServeError::Guessable(_) => {
                "choose a longer one, such as `openssl rand -hex 32` prints, or bind to 127.0.0.1"
            }
            ServeError::NurseryLost => {
                "start the server again: sessions are as they were; what ran in them is lost"
            }
            ServeError::LogLevel(_) => "use error, warn, info, debug or trace",
            ServeError::Records(error) => return error.hint(),
            ServeError::Objects(error) => return error.hint(),
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Served {
    /// Where.
    pub address: SocketAddr,
    /// The file with the admin's key; none when it was given.
    pub key_file: Option<PathBuf>,
}

/// Runs a server until it is told to end by SIGTERM or SIGINT; `listening` is called when it answers.
/// Must be called while the process has a single thread.
pub fn serve(settings: Settings, listening: impl FnOnce(&Served)) -> Result<(), ServeError> {
    check(&settings)?;
    let is_root = settings.session_uids.is_some();
    let anybody = is_root.then(|| settings.user.unwrap_or(session_users::NOBODY_ELSE));
    let lock = data_directory::take(&settings.data, anybody)?;
    let taken = session_users::take(&settings.data, settings.user, settings.session_uids)?;
    if let Some(range) = taken.users.and_then(|users| users.each) {
        data_directory::check_passable(&settings.data, range.supervisor())?;
    }
    let nursery = Nursery::start(&settings.data.join("sessions"), taken.users);
    let nursery = nursery.map_err(ServeError::Nursery)?;
    descriptors::allow_all();
    logging::start(&settings.log_level).map_err(ServeError::LogLevel)?;
    match (&taken.warning, taken.users) {
        (Some(warning), _) => tracing::warn!("{warning}"),
        (None, None) => {
            tracing::info!("{}: only root can give each its own", session_users::SHARED);
        }
        (None, Some(_)) => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let served = runtime
        .map_err(ServeError::Run)?
        .block_on(run(settings, nursery, listening));
    drop((lock, taken));
    served
}

/// What is to be said against these settings before anything is touched. [`serve`] says it, too.
pub fn check(settings: &Settings) -> Result<(), ServeError> {
    Records::check_url(&settings.database.0)?;
    check_node(settings)?;
    session_users::check(settings.user, settings.session_uids)?;
    let bind = settings.bind;
    if bind.ip().is_loopback() {
        return Ok(());
    }
    match &settings.api_key {
        None => Err(ServeError::Exposed(bind)),
        Some(key) if key.is_guessable() => Err(ServeError::Guessable(bind)),
        Some(_) => Ok(()),
    }
}

/// Renamed, a node would leave its sessions behind.
fn check_node(settings: &Settings) -> Result<(), ServeError> {
    let (path, asked) = (&settings.data, &settings.control.node_id);
    let kept = identity::kept_node(path, &settings.database);
    match kept.map_err(|source| unusable(path, NODE, source))? {
        Some(kept) if kept != asked.as_str() => Err(ServeError::OtherNode {
            path: path.clone(),
            kept,
            asked: asked.clone(),
        }),
        _ => Ok(()),
    }
}

async fn run(
    mut settings: Settings,
    nursery: Nursery,
    listening: impl FnOnce(&Served),
) -> Result<(), ServeError> {
    let bind = settings.bind;
    let unbound = |source| ServeError::Bind {
        address: bind,
        source,
    };
    let listener = TcpListener::bind(bind).await.map_err(unbound)?;
    let address = listener.local_addr().map_err(unbound)?;
    if settings.control.endpoint.is_empty() {
        settings.control.endpoint = format!("http://{address}");
    }
    let (app, key_file) = assemble(&settings, nursery).await?;
    let control = app.control.clone();
    // Whoever hears that it listens may end it at once.
    let (last_requests, last_executions, impatience) = (ending(1), ending(1), ending(2));
    listening(&Served { address, key_file });
    tracing::info!(%address, "listening on {address}");
    let router = router(app, &settings.allowed_origins);
    let most = connections::most(settings.max_connections);
    let served = connections::serve(listener, router, most, last_requests);
    let hurried = control.clone();
    tokio::spawn(async move {
        impatience.await;
        hurried.hurry();
    });
    let outcome = tokio::select! {
        () = served => Ok(()),
        () = async {
            last_executions.await;
            control.drain().await;
            // Those who waited for them are told, unless they do not listen.
            tokio::time::sleep(LAST_ANSWERS).await;
        } => Ok(()),
        () = control.runtime_lost() => {
            control.hurry();
            Err(ServeError::NurseryLost)
        }
    };
    control.stop().await;
    outcome
}

/// How long answers may take to be read when there will be no more.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Everything a handler can reach, and where the admin's key was kept if it was made here.
async fn assemble(
    settings: &Settings,
    nursery: Nursery,
) -> Result<(App, Option<PathBuf>), ServeError> {
    let data = &settings.data;
    let (admin, key_file) = match &settings.api_key {
        Some(key) => (key.clone(), None),
        None => (
            kept(data, "admin.key", new_secret)?,
            Some(data.join("admin.key")),
        ),
    };
    let internal = match &settings.internal_token {
        Some(token) => token.clone(),
        None => kept(data, "internal.token", secrets::token)?,
    };
    let links = signing_key(&kept(data, "links.key", secrets::token)?);
    let records = Records::open(&settings.database.0, &settings.pool).await?;
    let s3 = &settings.s3;
    let defaults = Access::with(links.clone());
    let access = Access {
        endpoint: s3.endpoint.clone(),
        region: s3.region.clone().unwrap_or(defaults.region),
        addressing: s3.addressing.unwrap_or(defaults.addressing),
        credentials: s3.credentials.clone(),
        role: s3.role.clone(),
        signing_key: defaults.signing_key,
    };
    let objects = Objects::open(&settings.objects, &access).await?;
    let (local, ended) = Local::new(nursery).map_err(ServeError::Nursery)?;
    let measures = Measures::start();
    let (is_shared, mut control) = (records.is_shared(), settings.control.clone());
    if is_shared {
        control.instance = kept(data, INSTANCE, secrets::token)?.0;
    }
    let control = Control::start(control, records, objects, Arc::new(local), ended).await?;
    if is_shared {
        // Only now: a name that another server has is not this one's to keep.
        kept(data, NODE, || settings.control.node_id.to_string())?;
    }
    let app = App {
        control,
        keys: Arc::new(Keys::new(&admin)),
        rates: Arc::new(Rates::new(settings.requests_per_second)),
        proxies: Arc::new(TrustedProxies(settings.trusted_proxies.clone())),
        measures,
        links,
        peers: peers(),
        tokens: Tokens::new(&internal),
        started: Instant::now(),
        checkups: Checkups::default(),
    };
    Ok((app, key_file))
}

fn kept(data: &Path, file: &str, make: impl FnOnce() -> String) -> Result<Secret, ServeError> {
    secrets::kept(data, file, make).map_err(|source| unusable(data, file, source))
}

fn unusable(data: &Path, file: &str, source: io::Error) -> ServeError {
    ServeError::Data {
        path: data.join(file),
        source,
    }
}

fn signing_key(secret: &Secret) -> SigningKey {
    let digest = ring::digest::digest(&ring::digest::SHA256, secret.0.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    SigningKey::new(&bytes)
}

/// Until the server is told to end for the `times`th time, from the call on.
fn ending(times: usize) -> impl Future<Output = ()> {
    let signals = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    );
    async move {
        let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
            return std::future::pending().await;
        };
        for _ in 0..times {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
    }
}
