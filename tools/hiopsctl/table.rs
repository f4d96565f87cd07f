// SPDX-License-Identifier: GPL-2.0
//! Tables of text: for a pipe as plain lines, whose form is one that scripts may rely on; for a
//! terminal, where long cells are folded.

use crate::root::natural;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

/// A column whose cells are folded is not made narrower than that.
const NARROWEST: u16 = 12;

/// Rows under a headline, columns as wide as they need to be.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Columns that hold numbers: they end at the same place.
    right: Vec<bool>,
    /// Columns that say what a row is about: each part of a table has them.
    names: Vec<usize>,
    /// Columns that hold lists or words, which may be folded.
    folded: Vec<usize>,
}

impl Table {
    /// A table with `heads`; one that begins with `>` is over numbers.
    pub(crate) fn new(heads: &[&str]) -> Self {
        let right = heads.iter().map(|head| head.starts_with('>')).collect();
        let names = heads.iter().map(|head| head.trim_start_matches('>').into());
        Self {
            rows: vec![names.collect()],
            right,
            names: vec![0],
            folded: Vec::new(),
        }
    }

    /// The same, each row known by the columns `names`, and long cells of the columns `folded` in
    /// several lines on a terminal.
    pub(crate) fn for_terminal(mut self, names: &[usize], folded: &[usize]) -> Self {
        (self.names, self.folded) = (names.to_vec(), folded.to_vec());
        self
    }

    /// The headline's cells.
    pub(crate) fn heads(&self) -> &[String] {
        self.rows.first().map(Vec::as_slice).unwrap_or_default()
    }

    /// The rows below it, in the order in which they were added.
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        self.rows.get(1..).unwrap_or_default()
    }

    /// Whether column `at` holds numbers.
    pub(crate) fn is_numbers(&self, at: usize) -> bool {
        self.right.get(at).copied().unwrap_or(false)
    }

    /// Sorts the rows by column `at`; rows without a value come last, equal ones stay in order.
    pub(crate) fn sort(&mut self, at: usize, descending: bool) {
        let numbers = self.is_numbers(at);
        let Some((_, rows)) = self.rows.split_first_mut() else {
            return;
        };
        rows.sort_by(|one, other| {
            let cell = |row: &Vec<String>| row.get(at).filter(|cell| *cell != "-").cloned();
            let (Some(one), Some(other)) = (cell(one), cell(other)) else {
                return cell(one).is_none().cmp(&cell(other).is_none());
            };
            let order = match numbers {
                true => number(&one).total_cmp(&number(&other)),
                false => natural(&one, &other),
            };
            if descending {
                order.reverse()
            } else {
                order
            }
        });
    }

    /// Adds a row. An empty cell is a `-`.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let dash = |cell: String| if cell.is_empty() { "-".into() } else { cell };
        self.rows.push(cells.into_iter().map(dash).collect());
    }

    /// Its lines, headline first, in parts that are narrower than so many columns, if that is said:
    /// each begins with the columns that name the row.
    pub(crate) fn parts(&self, columns: Option<usize>) -> Vec<Vec<String>> {
        let widths = self.widths();
        let most = columns.unwrap_or(usize::MAX);
        let whole: usize = widths.iter().map(|own| own.saturating_add(2)).sum();
        if whole < most {
            return vec![self.text().lines().map(str::to_string).collect()];
        }
        let own = |at: &usize| widths.get(*at).map_or(0, |own| own.saturating_add(2));
        let name = self.names.iter().map(own).sum::<usize>().saturating_sub(2);
        let begun = || self.names.clone();
        let (mut parts, mut part, mut width) = (Vec::new(), begun(), name);
        for (at, own) in widths.iter().enumerate() {
            if self.names.contains(&at) {
                continue;
            }
            let own = own.saturating_add(2);
            if width.saturating_add(own) >= most && part.len() > self.names.len() {
                parts.push(std::mem::replace(&mut part, begun()));
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

    /// The text for a terminal of so many columns: as it is if it fits; else with cells that are
    /// folded, where they may be; else in parts.
    pub(crate) fn fitted(&self, columns: usize) -> String {
        let widths = self.widths();
        let is_folded = |at: &usize| self.folded.contains(at);
        let own = |(at, width): (usize, &usize)| match is_folded(&at) {
            true => (*width).min(usize::from(NARROWEST)).saturating_add(2),
            false => width.saturating_add(2),
        };
        let least: usize = widths.iter().enumerate().map(own).sum();
        let most = widths
            .iter()
            .map(|width| width.saturating_add(2))
            .sum::<usize>();
        if most <= columns || self.folded.is_empty() || least > columns {
            let parts = self.parts(Some(columns));
            let parts = parts.into_iter().map(crate::show::lines);
            return parts.collect::<Vec<_>>().join("\n");
        }
        let mut table = comfy_table::Table::new();
        table
            .load_preset(comfy_table::presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(columns.try_into().unwrap_or(u16::MAX))
            .set_header(self.heads().to_vec())
            .add_rows(self.rows().to_vec());
        for (at, width) in widths.iter().enumerate() {
            let Some(column) = table.column_mut(at) else {
                continue;
            };
            // As in a pipe: two blanks between columns, none at the beginning.
            column.set_padding((0, 2));
            if self.is_numbers(at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            column.set_constraint(match is_folded(&at) {
                true => ColumnConstraint::LowerBoundary(Width::Fixed(NARROWEST)),
                false => {
                    let width = width.saturating_add(2).try_into().unwrap_or(u16::MAX);
                    ColumnConstraint::Absolute(Width::Fixed(width))
                }
            });
        }
        crate::show::lines(table.trim_fmt().lines())
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

/// What a cell that people read says, as a number: with its unit, if it has one.
fn number(cell: &str) -> f64 {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    let end = cell.find(|c| !is_part(c)).unwrap_or(cell.len());
    let (digits, unit) = cell.split_at(end);
    let scale = match unit.trim() {
        "us" | "kB" => 1e3,
        "ms" | "MB" => 1e6,
        "s" | "GB" => 1e9,
        "TB" => 1e12,
        _ => 1.0,
    };
    digits.parse::<f64>().unwrap_or(0.0) * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_what_cells_mean() {
        let sorted = |head: &str, cells: &[&str], descending| {
            let mut table = Table::new(&[head]);
            cells.iter().for_each(|cell| table.row([cell.to_string()]));
            table.sort(0, descending);
            table.rows().concat().join(" ")
        };
        let names = ["hiops10n1", "hiops2n1", "hiops2n10", "hiops2n2", "a"];
        let ordered = "a hiops2n1 hiops2n2 hiops2n10 hiops10n1";
        assert_eq!(sorted("DISK", &names, false), ordered);
        let times = ["2.0 ms", "", "900 ns", "1.0 s", "3.0 us"];
        assert_eq!(sorted(">MAX", &times, true), "1.0 s 2.0 ms 3.0 us 900 ns -");
        assert_eq!(
            sorted(">MAX", &times, false),
            "900 ns 3.0 us 2.0 ms 1.0 s -"
        );
        assert_eq!(sorted(">IRQ", &["9%", "100%", "47%"], true), "100% 47% 9%");
    }

    #[test]
    fn a_terminal_folds_long_cells_and_a_pipe_does_not() {
        let mut table = Table::new(&["DISK", ">SIZE", "IN USE BY"]).for_terminal(&[0], &[2]);
        let users = "/srv (ext4 on hiops0n1p1), /data (xfs on hiops0n1p2)";
        table.row(["hiops0n1".into(), "512.1 GB".into(), users.into()]);
        let plain = format!("DISK          SIZE  IN USE BY\nhiops0n1  512.1 GB  {users}\n");
        assert_eq!((table.text(), table.fitted(80)), (plain.clone(), plain));
        assert_eq!(
            table.fitted(50),
            "DISK          SIZE  IN USE BY\n\
             hiops0n1  512.1 GB  /srv (ext4 on hiops0n1p1),\n\
             \x20                   /data (xfs on hiops0n1p2)\n"
        );
        // Not even that has room: in parts, each with the disk's name.
        assert_eq!(
            table.fitted(24),
            format!(
                "DISK          SIZE\nhiops0n1  512.1 GB\n\n\
                 DISK      IN USE BY\nhiops0n1  {users}\n"
            )
        );
    }

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
