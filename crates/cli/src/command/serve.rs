//! `sandbox serve`

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sandbox_server::Served;

use crate::ending::Ending;
use crate::narration;
use crate::quoting::quoted;
use crate::report::Problem;
use crate::serve::flags::Flags;
use crate::serve::{self, Origin, Surroundings, Which};
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
    let key = resolved.origin(Which::ApiKey);
    sandbox_server::serve(resolved.settings, |served| {
        let lines = banner(served, &key);
        narration::say(format_args!("{}", lines.join("\n")));
    })?;
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

/// What whoever started it needs next: where it is, its key, its reference, and a request that works as it is.
fn banner(served: &Served, key: &Origin) -> Vec<String> {
    let at = nearby(served.address);
    let (kept, header) = match (&served.key_file, key) {
        (Some(file), _) => {
            let file = file.display().to_string();
            let read = format!("$(cat {})", quoted(&file));
            (file, read)
        }
        (None, Origin::Environment(name)) if name.ends_with("_FILE") => (
            format!("in the file of {name}"),
            format!("$(cat \"${name}\")"),
        ),
        (None, Origin::Environment(name)) => (format!("that of {name}"), format!("${name}")),
        (None, origin) => (format!("that of {origin}"), "$SANDBOX_API_KEY".to_owned()),
    };
    vec![
        format!("listening on http://{}", served.address),
        format!("  admin's key  {kept}"),
        format!("  reference    http://{at}/api/v1/docs"),
        "  try it, in another terminal:".to_owned(),
        format!("    curl -s http://{at}/api/v1/sessions -H \"Authorization: Bearer {header}\" \\"),
        "      -H 'Content-Type: application/json' -d '{\"template_id\": \"python-basic\"}'"
            .to_owned(),
    ]
}

/// Where to ask from this machine: one that listens everywhere listens on the loopback, too.
fn nearby(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn served(address: &str, file: Option<&str>) -> Served {
        Served {
            address: address.parse().unwrap(),
            key_file: file.map(PathBuf::from),
        }
    }

    #[test]
    fn a_server_says_where_it_is_and_how_to_begin() {
        let served = served("127.0.0.1:8000", Some("/srv/data/admin.key"));
        let lines = banner(&served, &Origin::Default);
        let expected = [
            "listening on http://127.0.0.1:8000",
            "  admin's key  /srv/data/admin.key",
            "  reference    http://127.0.0.1:8000/api/v1/docs",
            "  try it, in another terminal:",
            "    curl -s http://127.0.0.1:8000/api/v1/sessions -H \"Authorization: Bearer $(cat /srv/data/admin.key)\" \\",
            "      -H 'Content-Type: application/json' -d '{\"template_id\": \"python-basic\"}'",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn one_that_listens_everywhere_is_asked_on_the_loopback() {
        for (address, at) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.7:80", "10.0.0.7:80"),
        ] {
            assert_eq!(nearby(address.parse().unwrap()).to_string(), at);
        }
    }

    #[test]
    fn a_key_that_was_given_is_not_shown() {
        let variable = Origin::Environment("SANDBOX_API_KEY".to_owned());
        let lines = banner(&served("127.0.0.1:1", None), &variable).join("\n");
        assert!(lines.contains("that of SANDBOX_API_KEY"), "{lines}");
        assert!(lines.contains("Bearer $SANDBOX_API_KEY\""), "{lines}");
        let file = Origin::Environment("SANDBOX_API_KEY_FILE".to_owned());
        let lines = banner(&served("127.0.0.1:1", None), &file).join("\n");
        assert!(
            lines.contains("$(cat \"$SANDBOX_API_KEY_FILE\")"),
            "{lines}"
        );
    }
}
