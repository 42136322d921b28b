//! `sandbox template seed`

use jiff::Timestamp;
use sandbox_model::Template;
use serde::Serialize;

use super::create::Body;
use super::view::SecurityContext;
use crate::client::{Client, Request};
use crate::command::resources::Resources;
use crate::ending::Ending;
use crate::narration;
use crate::output::{self, Output};
use crate::report::Problem;

/// Make the templates that every server starts with, where they are missing
///
/// python-basic, python-datascience and nodejs-basic. A server makes them by itself when it starts; this
/// brings back what was deleted since. Those that are there stay as they are. The identifiers of those
/// that were made are printed on stdout.
///
/// Examples:
///   sandbox template seed
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Print JSON: {"created": [id], "existing": [id]}
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Default, Serialize)]
struct Seeded {
    created: Vec<String>,
    existing: Vec<String>,
}

pub(super) fn seed(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let mut seeded = Seeded::default();
    for template in Template::seeds(Timestamp::now()) {
        let resources = Resources {
            cpu: Some(template.default_resources.cpu.to_string()),
            memory: Some(template.default_resources.memory.to_string()),
            disk: Some(template.default_resources.disk.to_string()),
            max_processes: Some(template.default_resources.max_processes),
        };
        let body = Body {
            id: template.id.as_str(),
            name: &template.name,
            image: &template.image,
            base_image: template.base_image.as_deref(),
            runtime_type: Some(template.runtime.to_string()),
            default_resources: &resources,
            pre_installed_packages: &template.pre_installed_packages,
            security_context: SecurityContext {
                user: Some(template.security_context.user),
                privileged: template.security_context.privileged,
            },
            is_active: template.is_active,
        };
        let id = template.id.to_string();
        match client.send(&Request::post(&["templates"]).json(&body)) {
            Ok(_) => seeded.created.push(id),
            Err(error) if error.is_refusal(409) => seeded.existing.push(id),
            Err(error) => return Err(error.into()),
        }
    }
    if args.json {
        output::print_json(&seeded)?;
        return Ok(Ending::DONE);
    }
    let mut out = Output::open();
    for id in &seeded.created {
        out.line(id)?;
    }
    out.finish()?;
    for id in &seeded.existing {
        narration::say(format_args!("Template {id} is there already."));
    }
    Ok(Ending::DONE)
}
