//! `sandbox template create`

use sandbox_model::{RuntimeKind, TemplateId};
use serde::Serialize;

use super::view::SecurityContext;
use crate::client::{Client, Request};
use crate::command::resources::Resources;
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::Problem;

/// Make a template
///
/// Its identifier is printed on stdout.
///
/// Examples:
///   sandbox template create mine
///   sandbox template create science --name 'With numpy' --package numpy --package pandas==2.2
///   sandbox template create alpine --image /srv/images/alpine --base-image alpine:3.20
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Its identifier: letters, digits, '.', '_' and '-', 64 at most
    #[arg(value_name = "TEMPLATE")]
    template: TemplateId,

    /// What people call it; its identifier without it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// 'host', a directory of the server's with an unpacked root, or an image reference
    #[arg(long, value_name = "IMAGE", default_value = "host")]
    image: String,

    /// What the image was built from
    #[arg(long, value_name = "IMAGE")]
    base_image: Option<String>,

    /// What its sessions run on: local, docker or kubernetes [local]
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<RuntimeKind>,

    /// What must be there when a session starts, such as numpy or numpy==2.1; again for more
    #[arg(long = "package", value_name = "PACKAGE")]
    packages: Vec<String>,

    /// As whom its code runs; only 1000:1000 is allowed
    #[arg(long, value_name = "UID:GID")]
    user: Option<String>,

    /// Ask for privileges; servers refuse that
    #[arg(long)]
    privileged: bool,

    /// Let no sessions be made from it yet
    #[arg(long)]
    inactive: bool,

    /// Print JSON: the template, as the API has it
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: Resources,
}

/// What is sent.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) image: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_image: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) runtime_type: Option<String>,
    pub(super) default_resources: &'a Resources,
    pub(super) pre_installed_packages: &'a [String],
    pub(super) security_context: SecurityContext,
    pub(super) is_active: bool,
}

pub(super) fn create(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let id = args.template.as_str();
    let body = Body {
        id,
        name: args.name.as_deref().unwrap_or(id),
        image: &args.image,
        base_image: args.base_image.as_deref(),
        runtime_type: args.runtime.map(|runtime| runtime.to_string()),
        default_resources: &args.resources,
        pre_installed_packages: &args.packages,
        security_context: SecurityContext {
            user: args.user.clone(),
            privileged: args.privileged,
        },
        is_active: !args.inactive,
    };
    let answer = client.send(&Request::post(&["templates"]).json(&body))?;
    if args.json {
        output::print_line(answer.json()?)?;
        return Ok(Ending::DONE);
    }
    output::print_line(id)?;
    narration::say(format_args!("Created template {id}."));
    Ok(Ending::DONE)
}
