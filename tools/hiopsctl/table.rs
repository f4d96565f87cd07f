// SPDX-License-Identifier: GPL-2.0
//! Tables of plain text.

/// Rows under a headline, columns as wide as they need to be.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Columns that hold numbers: they end at the same place.
    right: Vec<bool>,
}

impl Table {
    /// A table with `heads`; one that begins with `>` is over numbers.
    pub(crate) fn new(heads: &[&str]) -> Self {
        let right = heads.iter().map(|head| head.starts_with('>')).collect();
        let names = heads.iter().map(|head| head.trim_start_matches('>').into());
        Self {
            rows: vec![names.collect()],
            right,
        }
    }

    /// Adds a row. An empty cell is a `-`.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let dash = |cell: String| if cell.is_empty() { "-".into() } else { cell };
        self.rows.push(cells.into_iter().map(dash).collect());
    }

    /// The text, each line with its end.
    pub(crate) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                if *right {
                    line.push_str(&pad);
                }
                line.push_str(cell);
                if !*right {
                    line.push_str(&pad);
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_and_words_begin_at_one_place() {
        let mut table = Table::new(&["DISK", ">IOPS", "MODE"]);
        table.row(["hiops0n1".into(), "5".into(), "irq".into()]);
        table.row(["µ".into(), "12345".into(), String::new()]);
        assert_eq!(
            table.text(),
            "DISK       IOPS  MODE\nhiops0n1      5  irq\nµ         12345  -\n"
        );
    }
}
