//! `sandbox doctor`

use sandbox_isolation::probe::{self, Finding};

use crate::ending::Ending;
use crate::narration::Paint;
use crate::output::{self, Output};
use crate::report::Problem;
use crate::surroundings;

/// Show what this host offers, by trying it
///
/// Every feature is really used once: a user namespace and a mount in it, an overlay, seccomp,
/// Landlock, cgroups. Exit status 1 when something that sandboxes need is missing.
///
/// Examples:
///   sandbox doctor
///   sandbox doctor --json | jq '.[] | select(.works | not)'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print JSON: [{"feature", "works", "detail", "meaning", "fix", "required"}]
    #[arg(long)]
    json: bool,
}

pub(crate) fn doctor(args: &Args) -> Result<Ending, Problem> {
    let root = surroundings::root()?;
    let findings = probe::host(root.path());
    match args.json {
        true => output::print_json(&findings)?,
        false => print(&findings)?,
    }
    let missing = findings
        .iter()
        .any(|finding| finding.required && !finding.works);
    Ok(Ending::Status(u8::from(missing)))
}

fn print(findings: &[Finding]) -> Result<(), Problem> {
    let paint = Paint::stdout();
    let mut out = Output::open();
    for finding in findings {
        let mark = match (finding.works, finding.required) {
            (true, _) => paint.good("ok     "),
            (false, true) => paint.bad("missing"),
            (false, false) => paint.caution("absent "),
        };
        out.line(format!(
            "{mark}  {}: {}",
            paint.strong(finding.feature),
            finding.detail
        ))?;
        out.line(format!("         {}", finding.meaning))?;
        if let Some(fix) = finding.fix.as_ref().filter(|_| !finding.works) {
            out.line(format!("         {} {fix}", paint.hint("fix:")))?;
        }
    }
    Ok(out.finish()?)
}
