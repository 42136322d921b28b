//! `sandbox template update`

use sandbox_model::TemplateId;
use serde::Serialize;

use super::view::SecurityContext;
use crate::client::{Client, Request};
use crate::command::resources::Resources;
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, Refusal};

/// Change a template
///
/// What is not given stays. Sessions that were made from it stay as they are.
///
/// Examples:
///   sandbox template update mine --memory 1Gi
///   sandbox template update mine --package numpy --package pandas
///   sandbox template update mine --inactive
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The template
    #[arg(value_name = "TEMPLATE")]
    template: TemplateId,

    /// What people call it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// 'host', a directory of the server's with an unpacked root, or an image reference
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// What must be there when a session starts, instead of what was named before; again for more
    #[arg(long = "package", value_name = "PACKAGE")]
    packages: Vec<String>,

    /// Nothing must be there when a session starts
    #[arg(long, conflicts_with = "packages")]
    no_packages: bool,

    /// As whom its code runs; only 1000:1000 is allowed
    #[arg(long, value_name = "UID:GID")]
    user: Option<String>,

    /// Ask for privileges; servers refuse that
    #[arg(long)]
    privileged: bool,

    /// Let sessions be made from it
    #[arg(long)]
    active: bool,

    /// Let no more sessions be made from it
    #[arg(long, conflicts_with = "active")]
    inactive: bool,

    /// Print JSON: the template, as the API has it
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: Resources,
}

/// What is sent.
#[derive(Debug, Default, Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_resources: Option<&'a Resources>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pre_installed_packages: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    security_context: Option<SecurityContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_active: Option<bool>,
}

pub(super) fn update(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let id = args.template.as_str();
    let Some(body) = args.body() else {
        return Err(
            Refusal::new(format!("nothing of template {id} is to change"))
                .hint("see `sandbox template update --help` for what can")
                .into(),
        );
    };
    let answer = client.send(&Request::put(&["templates", id]).json(&body))?;
    match args.json {
        true => output::print_line(answer.json()?)?,
        false => narration::say(format_args!("Updated template {id}.")),
    }
    Ok(Ending::DONE)
}

impl Args {
    /// What is to change; `None` when that is nothing.
    fn body(&self) -> Option<Body<'_>> {
        let is_context_given = self.user.is_some() || self.privileged;
        let body = Body {
            name: self.name.as_deref(),
            image: self.image.as_deref(),
            default_resources: (!self.resources.is_empty()).then_some(&self.resources),
            pre_installed_packages: (self.no_packages || !self.packages.is_empty())
                .then_some(&self.packages),
            security_context: is_context_given.then(|| SecurityContext {
                user: self.user.clone(),
                privileged: self.privileged,
            }),
            is_active: match (self.active, self.inactive) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
        };
        let is_given = body.name.is_some()
            || body.image.is_some()
            || body.default_resources.is_some()
            || body.pre_installed_packages.is_some()
            || body.security_context.is_some()
            || body.is_active.is_some();
        is_given.then_some(body)
    }
}
