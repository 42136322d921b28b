//! `sandbox serve`

use std::net::SocketAddr;
use std::path::PathBuf;

use sandbox_linux::identity::Ids;
use sandbox_server::{Secret, Served, Settings};

use crate::ending::Ending;
use crate::narration;
use crate::report::{Problem, Refusal};
use crate::surroundings;

/// Serve sessions over HTTP
///
/// Sessions, executions, templates and files behind an API on this machine's own kernel: no daemon, no
/// images, no root. Everything it keeps is in its data directory, the admin's API key in admin.key there.
///
/// Examples:
///   sandbox serve
///   sandbox serve --bind 127.0.0.1:9000 --data /srv/sandbox
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    bind: SocketAddr,

    /// Where to keep what is kept
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The database: sqlite:, postgres: or mysql: URL
    #[arg(long, value_name = "URL")]
    database: Option<String>,

    /// Where objects are: file:DIR or s3:BUCKET
    #[arg(long, value_name = "URL")]
    objects: Option<String>,
}

/// Whom sessions belong to on the host when the server is root: nobody else.
const NOBODY_ELSE: Ids = Ids {
    user: 59_999,
    group: 59_999,
};

pub(crate) fn serve(args: &Args) -> Result<Ending, Problem> {
    let is_root = rustix::process::geteuid().is_root();
    let data = match (&args.data, is_root) {
        (Some(data), _) => surroundings::absolute(data)?,
        (None, true) => PathBuf::from("/var/lib/sandbox"),
        (None, false) => surroundings::home()?.join(".local/share/daedalos/server"),
    };
    let database = match &args.database {
        Some(url) => url.clone(),
        None => format!("sqlite:{}", data.join("records.db").display()),
    };
    let objects = match &args.objects {
        Some(url) => url.parse(),
        None => format!("file:{}", data.join("objects").display()).parse(),
    };
    let objects = objects.map_err(|error| Refusal::new(format!("--objects: {error}")))?;
    let node = "local"
        .parse()
        .unwrap_or_else(|_| unreachable!("a valid identifier"));
    let settings = Settings {
        bind: args.bind,
        data,
        database: Secret(database),
        pool: Default::default(),
        objects,
        s3: Default::default(),
        api_key: None,
        internal_token: None,
        user: is_root.then_some(NOBODY_ELSE),
        allowed_origins: Vec::new(),
        requests_per_second: 1000,
        log_level: "info".to_owned(),
        control: sandbox_server::ControlSettings::new(node),
    };
    sandbox_server::serve(settings, told)?;
    Ok(Ending::DONE)
}

fn told(served: &Served) {
    let address = served.address;
    narration::say(format_args!("listening on http://{address}"));
    if let Some(file) = &served.key_file {
        let file = file.display();
        narration::say(format_args!("the admin's key is in {file}"));
        narration::say(format_args!(
            "try: curl -H \"Authorization: Bearer $(cat {file})\" http://{address}/api/v1/templates"
        ));
    }
}
