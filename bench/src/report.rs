//! What was measured, beside its bar.

use std::fmt;
use std::time::Duration;

/// One line of the table.
pub struct Row {
    what: String,
    ours: String,
    peer: String,
    ratio: String,
    bar: String,
    met: Option<bool>,
}

/// The table.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Row {
    /// Ours against a peer, at most `bar` times as long.
    pub fn ratio(what: &str, ours: Duration, peer: (&str, Duration), bar: f64) -> Row {
        let ratio = ours.as_secs_f64() / peer.1.as_secs_f64();
        Row {
            what: what.to_owned(),
            ours: milliseconds(ours),
            peer: format!("{} {}", peer.0, milliseconds(peer.1)),
            ratio: format!("{ratio:.2}"),
            bar: format!("≤ {bar} ×"),
            met: Some(ratio <= bar),
        }
    }

    /// A time that must not be exceeded, whatever the machine.
    pub fn at_most(what: &str, ours: Duration, bar: Duration) -> Row {
        Row {
            what: what.to_owned(),
            ours: milliseconds(ours),
            peer: String::new(),
            ratio: String::new(),
            bar: format!("≤ {}", milliseconds(bar)),
            met: Some(ours <= bar),
        }
    }

    /// So many a second, at least.
    pub fn rate(what: &str, ours: f64, bar: f64) -> Row {
        Row {
            what: what.to_owned(),
            ours: format!("{ours:.0} / s"),
            peer: String::new(),
            ratio: String::new(),
            bar: format!("≥ {bar} / s"),
            met: Some(ours >= bar),
        }
    }

    /// A number that must not be exceeded.
    pub fn count(what: &str, ours: f64, bar: f64) -> Row {
        Row {
            what: what.to_owned(),
            ours: format!("{ours:.2}"),
            peer: String::new(),
            ratio: String::new(),
            bar: format!("≤ {bar}"),
            met: Some(ours <= bar),
        }
    }

    /// Memory that must not be exceeded, in KiB, beside what a peer takes, if there is one.
    pub fn memory(what: &str, ours: u64, peer: Option<(&str, u64)>, bar: u64) -> Row {
        let peer = peer.map(|(name, size)| format!("{name} {size} KiB"));
        Row {
            what: what.to_owned(),
            ours: format!("{ours} KiB"),
            peer: peer.unwrap_or_default(),
            ratio: String::new(),
            bar: format!("≤ {bar} KiB"),
            met: Some(ours <= bar),
        }
    }

    /// The same comparison told without a bar: worth knowing, held to nothing.
    pub fn for_information(mut self) -> Row {
        self.bar = "–".to_owned();
        self.met = None;
        self
    }

    /// What was measured.
    pub fn what(&self) -> &str {
        &self.what
    }

    fn cells(&self) -> [&str; 6] {
        let verdict = match self.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        [
            &self.what,
            &self.ours,
            &self.peer,
            &self.ratio,
            &self.bar,
            verdict,
        ]
    }
}

impl Report {
    /// Adds the rows of a measurement.
    pub fn add(&mut self, rows: Vec<Row>) {
        self.rows.extend(rows);
    }

    /// The rows whose bar was missed.
    pub fn missed(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.met == Some(false))
    }
}

const HEADINGS: [&str; 6] = ["what", "sandbox", "peer", "ratio", "bar", ""];

/// A Markdown table, aligned so that it reads well in a terminal too.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut widths = HEADINGS.map(|heading| heading.chars().count());
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row.cells()) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let rule = widths.map(|width| "-".repeat(width));
        write_cells(f, HEADINGS, widths)?;
        write_cells(f, rule.each_ref().map(String::as_str), widths)?;
        for row in &self.rows {
            write_cells(f, row.cells(), widths)?;
        }
        Ok(())
    }
}

fn write_cells(f: &mut fmt::Formatter<'_>, cells: [&str; 6], widths: [usize; 6]) -> fmt::Result {
    for (cell, width) in cells.into_iter().zip(widths) {
        write!(f, "| {cell:width$} ")?;
    }
    writeln!(f, "|")
}

fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    if milliseconds < 100.0 {
        format!("{milliseconds:.2} ms")
    } else {
        format!("{milliseconds:.0} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_row_over_its_bar_is_reported_as_missed() {
        let mut report = Report::default();
        report.add(vec![
            Row::ratio("fast", 7 * MS, ("peer", 10 * MS), 0.8),
            Row::ratio("slow", 9 * MS, ("peer", 10 * MS), 0.8),
            Row::ratio("told", 9 * MS, ("peer", 10 * MS), 0.8).for_information(),
            Row::at_most("late", 16 * MS, 15 * MS),
            Row::rate("few", 199.0, 200.0),
            Row::rate("enough", 200.0, 200.0),
            Row::count("many", 3.01, 3.0),
            Row::memory("large", 5, None, 4),
        ]);
        let missed: Vec<_> = report.missed().map(Row::what).collect();
        assert_eq!(missed, ["slow", "late", "few", "many", "large"]);
    }
}
