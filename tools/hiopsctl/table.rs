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

    /// Its lines, headline first, in parts that are narrower than so many columns, if that is said:
    /// each begins with the first column, which names the row.
    pub(crate) fn parts(&self, columns: Option<usize>) -> Vec<Vec<String>> {
        let widths = self.widths();
        let most = columns.unwrap_or(usize::MAX);
        let name = widths.first().copied().unwrap_or(0);
        let (mut parts, mut part, mut width) = (Vec::new(), vec![0], name);
        for (at, own) in widths.iter().enumerate().skip(1) {
            let own = own.saturating_add(2);
            if width.saturating_add(own) >= most && part.len() > 1 {
                parts.push(std::mem::replace(&mut part, vec![0]));
                width = name;
            }
            part.push(at);
            width = width.saturating_add(own);
        }
        parts.push(part);
        let lines = |part: Vec<usize>| {
            let text = self.columns(&part, &widths);
            text.lines().map(str::to_string).collect()
        };
        parts.into_iter().map(lines).collect()
    }

    /// The text, each line with its end.
    pub(crate) fn text(&self) -> String {
        let all: Vec<usize> = (0..self.right.len()).collect();
        self.columns(&all, &self.widths())
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.right.len()).map(width).collect()
    }

    /// The text of these columns.
    fn columns(&self, columns: &[usize], widths: &[usize]) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            let cells = columns
                .iter()
                .filter_map(|at| Some((row.get(*at)?, widths.get(*at)?, self.right.get(*at)?)));
            for (cell, width, right) in cells {
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
        assert_eq!(table.parts(None).len(), 1);
        assert_eq!(
            table.parts(Some(20)),
            [
                ["DISK       IOPS", "hiops0n1      5", "µ         12345"],
                ["DISK      MODE", "hiops0n1  irq", "µ         -"]
            ]
        );
    }
}
