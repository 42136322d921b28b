//! `sandbox template`

mod create;
mod list;
mod seed;
mod update;
mod view;

use sandbox_model::TemplateId;
use serde::Serialize;

use crate::client::{Client, Request, ServerOptions};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::Problem;
use view::Template;

/// Make, look at and change what sessions are made from
///
/// Examples:
///   sandbox template list
///   sandbox template create mine --image host --package numpy --memory 1Gi
///   sandbox template update mine --inactive
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    server: ServerOptions,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
#[cfg_attr(test, derive(PartialEq))]
enum Verb {
    Create(Box<create::Args>),
    #[command(visible_alias = "ls")]
    List(list::Args),
    Get(GetArgs),
    Update(Box<update::Args>),
    #[command(visible_alias = "rm")]
    Delete(DeleteArgs),
    Seed(seed::Args),
}

/// Show everything about a template
///
/// Examples:
///   sandbox template get python-basic
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct GetArgs {
    /// The template
    #[arg(value_name = "TEMPLATE")]
    template: TemplateId,

    /// Print JSON: the template, as the API has it
    #[arg(long)]
    json: bool,
}

/// Delete a template that no live session uses
///
/// One that is in use is taken out of service with `sandbox template update TEMPLATE --inactive`.
///
/// Examples:
///   sandbox template delete mine
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct DeleteArgs {
    /// The template
    #[arg(value_name = "TEMPLATE")]
    template: TemplateId,

    /// Print JSON: {"id"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn template(args: &Args) -> Result<Ending, Problem> {
    let client = args.server.connect()?;
    match &args.verb {
        Verb::Create(args) => create::create(&client, args),
        Verb::List(args) => list::list(&client, args),
        Verb::Get(args) => get(&client, args),
        Verb::Update(args) => update::update(&client, args),
        Verb::Delete(args) => delete(&client, args),
        Verb::Seed(args) => seed::seed(&client, args),
    }
}

fn get(client: &Client, args: &GetArgs) -> Result<Ending, Problem> {
    let answer = client.send(&Request::get(&["templates", args.template.as_str()]))?;
    match args.json {
        true => output::print_line(answer.json()?)?,
        false => output::print_fields(&answer.read::<Template>()?.fields())?,
    }
    Ok(Ending::DONE)
}

fn delete(client: &Client, args: &DeleteArgs) -> Result<Ending, Problem> {
    #[derive(Serialize)]
    struct Deleted<'a> {
        id: &'a str,
    }
    let id = args.template.as_str();
    client.send(&Request::delete(&["templates", id]))?;
    match args.json {
        true => output::print_json(&Deleted { id })?,
        false => narration::say(format_args!("Deleted template {id}.")),
    }
    Ok(Ending::DONE)
}
