//! `sandbox serve --check`: what would be used, where each of it comes from, and whether it would be refused.

use serde::Serialize;

use super::Resolved;
use super::resolve::Shown;
use crate::ending::Ending;
use crate::narration::Paint;
use crate::output::{self, Output};
use crate::report::Problem;
use crate::table::Table;

/// A setting, as `--json` tells it.
#[derive(Serialize)]
struct Row<'a> {
    setting: &'static str,
    value: &'a str,
    /// flag, environment, file or default.
    origin: &'static str,
    /// Which flag, variable, or line of which file.
    from: String,
}

#[derive(Serialize)]
struct Report<'a> {
    settings: Vec<Row<'a>>,
    warnings: &'a [String],
}

/// Tells it; then fails as the server would before it touches anything.
pub(crate) fn check(resolved: &Resolved, as_json: bool) -> Result<Ending, Problem> {
    match as_json {
        true => output::print_json(&Report {
            settings: resolved.shown.iter().map(row).collect(),
            warnings: &resolved.warnings,
        })?,
        false => print(resolved)?,
    }
    sandbox_server::check(&resolved.settings)?;
    Ok(Ending::DONE)
}

fn row(shown: &Shown) -> Row<'_> {
    Row {
        setting: shown.which.setting().name,
        value: &shown.value,
        origin: shown.origin.kind(),
        from: shown.origin.to_string(),
    }
}

fn print(resolved: &Resolved) -> Result<(), Problem> {
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for row in resolved.shown.iter().map(row) {
        table.row(vec![row.setting.to_owned(), row.value.to_owned(), row.from]);
    }
    let mut out = Output::open();
    for line in table.lines(Paint::stdout()) {
        out.line(line)?;
    }
    Ok(out.finish()?)
}
