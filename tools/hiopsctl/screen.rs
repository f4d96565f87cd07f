// SPDX-License-Identifier: GPL-2.0
//! What `stat` shows: a table of disks, one of controllers, and what was learnt.

use crate::rates::{ControllerRates, Rates};
use crate::show::{each, lines, nanoseconds, share};
use crate::table::Table;

/// Lines that belong together, under a headline.
struct Block {
    head: Option<String>,
    lines: Vec<String>,
}

/// All lines, an empty one between two blocks.
fn lines_of(blocks: &[Block]) -> Vec<String> {
    let mut lines = Vec::new();
    for block in blocks {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(block.head.clone());
        lines.extend(block.lines.iter().cloned());
    }
    lines
}

/// All as text, in so many columns if that is said.
pub(crate) fn text(rates: &Rates, columns: Option<usize>) -> String {
    lines(lines_of(&blocks(rates, columns)))
}

/// The tables, each with what it is of.
pub(crate) fn tables(rates: &Rates) -> [(&'static str, Table); 2] {
    [("disks", disks(rates)), ("controllers", controllers(rates))]
}

/// What was learnt, in lines of so many columns.
pub(crate) fn learnt_lines(rates: &Rates, columns: usize) -> Vec<String> {
    let blocks = learnt(rates, Some(columns)).into_iter();
    blocks.flat_map(|block| block.lines).collect()
}

fn blocks(rates: &Rates, columns: Option<usize>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (_, table) in tables(rates) {
        for part in table.parts(columns) {
            let mut rows = part.into_iter();
            blocks.push(Block {
                head: rows.next(),
                lines: rows.collect(),
            });
        }
    }
    blocks.extend(learnt(rates, columns));
    blocks
}

fn disks(rates: &Rates) -> Table {
    let mut table = Table::new(&[
        "DISK",
        ">IOPS",
        ">READ MB/s",
        ">WRITE MB/s",
        ">IRQ",
        ">LAZY",
        ">COOP",
        ">POLL",
        ">FIFO",
        ">DEPTH",
        ">NOW",
        ">ERRORS",
    ]);
    for disk in &rates.disks {
        let mut row = vec![
            disk.disk.clone(),
            format!("{:.0}", disk.iops),
            format!("{:.1}", disk.read_bytes_per_second / 1e6),
            format!("{:.1}", disk.written_bytes_per_second / 1e6),
        ];
        row.extend(disk.share.0.iter().map(|(_, ratio)| share(*ratio)));
        row.push(share(disk.fifo_per_io));
        row.push(format!("{:.1}", disk.depth));
        row.push(disk.inflight.all().to_string());
        row.push(disk.counters.get("errors").to_string());
        table.row(row);
    }
    table
}

fn controllers(rates: &Rates) -> Table {
    let mut table = Table::new(&[
        "CONTROLLER",
        "DRIVER",
        "STRATEGY",
        "MODE",
        ">IRQS/IO",
        ">BELLS/IO",
        ">IRQS/s",
        ">TICKS/s",
        ">MAX IRQ",
        ">MAX TICK",
    ]);
    for controller in &rates.controllers {
        table.row([
            controller.controller.clone(),
            controller.driver.clone(),
            controller.strategy.clone(),
            controller.mode.clone(),
            each(controller.interrupts_per_io),
            each(controller.doorbell_writes_per_io),
            format!("{:.0}", controller.interrupts_per_second),
            format!("{:.0}", controller.ticks_per_second),
            nanoseconds(controller.max_irq_ns),
            nanoseconds(controller.max_tick_ns),
        ]);
    }
    table
}

fn learnt(rates: &Rates, columns: Option<usize>) -> Vec<Block> {
    let block = |controller: &ControllerRates| {
        let [takes, queues] = controller.learned.lines();
        let mut text = Vec::new();
        if !takes.is_empty() {
            text.push(format!("{} has learnt: {takes}", controller.controller));
        }
        if !queues.is_empty() {
            text.push(format!("  {queues}"));
        }
        let lines = text.iter().flat_map(|line| folded(line, columns)).collect();
        Block { head: None, lines }
    };
    let blocks = rates.controllers.iter().map(block);
    blocks.filter(|block| !block.lines.is_empty()).collect()
}

/// A line in pieces that are shorter than so many columns.
fn folded(line: &str, columns: Option<usize>) -> Vec<String> {
    let Some(columns) = columns else {
        return vec![line.to_string()];
    };
    let indent = line.chars().take_while(|c| *c == ' ').collect::<String>();
    let (mut pieces, mut piece, mut is_begun) = (Vec::new(), indent, false);
    for word in line.split_whitespace() {
        let length = piece.chars().count().saturating_add(word.chars().count());
        if is_begun && length.saturating_add(2) > columns {
            pieces.push(std::mem::replace(&mut piece, "    ".into()));
        } else if is_begun {
            piece.push(' ');
        }
        piece.push_str(word);
        is_begun = true;
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded_between_words() {
        assert_eq!(folded("  a bb ccc", Some(7)), ["  a bb", "    ccc"]);
        assert_eq!(folded("  a bb ccc", None), ["  a bb ccc"]);
        assert_eq!(folded("abcdefghij", Some(4)), ["abcdefghij"]);
    }
}
