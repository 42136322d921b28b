//! `sandbox serve`

use sandbox_server::Served;

use crate::ending::Ending;
use crate::narration;
use crate::report::Problem;
use crate::serve::flags::Flags;
use crate::serve::{self, Surroundings};
use crate::surroundings;

/// Serve sessions over HTTP
///
/// Sessions, executions, templates and files behind an API on this machine's own kernel: no daemon, no
/// images, no root. Everything it keeps is in its data directory, the admin's API key in admin.key there.
///
/// Flags go over environment variables, these over the file that --config names. Secrets have no flag:
/// SANDBOX_API_KEY, INTERNAL_API_TOKEN, DATABASE_URL and AWS's own are read from the environment, or from
/// the file that the same name with _FILE at its end names.
///
/// Examples:
///   sandbox serve
///   sandbox serve --bind 127.0.0.1:9000 --data /srv/sandbox
///   DATABASE_URL_FILE=/run/secrets/database sandbox serve --objects s3:my-bucket
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,

    /// Tell what would be used and where each of it comes from, and start nothing
    #[arg(long)]
    check: bool,

    /// With --check, print JSON: {"settings": [{"setting", "value", "origin", "from"}], "warnings"}
    #[arg(long, requires = "check")]
    json: bool,
}

pub(crate) fn serve(args: &Args) -> Result<Ending, Problem> {
    let resolved = serve::settle(&args.flags, around())?;
    for warning in &resolved.warnings {
        narration::warn(format_args!("{warning}"));
    }
    if args.check {
        return serve::check::check(&resolved, args.json);
    }
    sandbox_server::serve(resolved.settings, told)?;
    Ok(Ending::DONE)
}

fn around() -> Surroundings<'static> {
    let name = rustix::system::uname();
    Surroundings {
        variable: &surroundings::variable,
        home: surroundings::home(),
        is_root: rustix::process::geteuid().is_root(),
        hostname: name.nodename().to_string_lossy().into_owned(),
    }
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
