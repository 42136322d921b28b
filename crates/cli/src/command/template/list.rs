//! `sandbox template list`

use super::view::Template;
use crate::client::{Client, Paging, Request, listing};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, plain};
use crate::table::Table;

/// List templates, newest first
///
/// Examples:
///   sandbox template list
///   sandbox template list --include-inactive --json
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Those that sessions cannot be made from, too
    #[arg(long)]
    include_inactive: bool,

    #[command(flatten)]
    paging: Paging,

    /// Print JSON: {"templates": [template], "total", "next_cursor"}
    #[arg(long)]
    json: bool,
}

pub(super) fn list(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let inactive = args.include_inactive.then_some(true);
    let request = Request::get(&["templates"]).query("include_inactive", inactive);
    let found = listing(client, &request, "templates", &args.paging)?;
    if args.json {
        output::print_line(found.into_json()?)?;
        return Ok(Ending::DONE);
    }
    let templates: Vec<Template> = found.read()?;
    if templates.is_empty() {
        narration::say(format_args!(
            "No templates. Make the usual ones with: sandbox template seed"
        ));
        return Ok(Ending::DONE);
    }
    let headings = [
        "TEMPLATE", "NAME", "IMAGE", "RUNTIME", "CPU", "MEMORY", "DISK", "ACTIVE",
    ];
    let mut table = Table::new(&headings);
    for template in &templates {
        let resources = &template.default_resources;
        let cell = |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_owned(), plain);
        table.row(vec![
            plain(&template.id),
            plain(&template.name),
            plain(&template.image),
            plain(&template.runtime_type),
            cell(&resources.cpu),
            cell(&resources.memory),
            cell(&resources.disk),
            template.active().to_owned(),
        ]);
    }
    output::print_table(&table)?;
    if let Some(rest) = found.rest() {
        narration::say(format_args!("{rest}"));
    }
    Ok(Ending::DONE)
}
