//! Columns of text, aligned.

use crate::narration::Paint;

/// Rows below a heading; every cell is one printable line.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Table {
        Table {
            rows: vec![
                headings
                    .iter()
                    .map(|heading| (*heading).to_owned())
                    .collect(),
            ],
        }
    }

    /// One more row, of as many cells as there are headings.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines, each without trailing blanks.
    pub(crate) fn lines(&self, paint: Paint) -> Vec<String> {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows
                .iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let (heading, body) = self.rows.split_at(1);
        let heading = heading.iter().map(|row| paint.strong(&line(row)));
        heading.chain(body.iter().map(line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_do_not_trail() {
        let mut table = Table::new(&["NAME", "SIZE"]);
        table.row(vec!["calm-otter-42".into(), "1 B".into()]);
        table.row(vec!["x".into(), String::new()]);
        assert_eq!(
            table.lines(Paint::plain()),
            ["NAME           SIZE", "calm-otter-42  1 B", "x"]
        );
    }
}
