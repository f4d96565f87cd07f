// SPDX-License-Identifier: GPL-2.0
//! What `stat` shows: a table of disks, one of controllers, and what was learnt. And how a screen
//! is drawn over the last one.

use crate::rates::{ControllerRates, Rates};
use crate::show::{each, lines, nanoseconds, share};
use crate::table::Table;
use std::os::fd::AsFd;

/// So many columns and rows, where a terminal does not say.
const USUAL: (usize, usize) = (80, 24);

/// Lines that belong together, under a headline that each page repeats.
struct Block {
    head: Option<String>,
    lines: Vec<String>,
}

/// What is drawn on a terminal, again and again at the same place: never more than the terminal has
/// rows, so that nothing goes up into what can be scrolled back to, and what was there before stays
/// above it. What does not fit is shown in turn.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// Columns and rows of the last frame, and its lines.
    size: (usize, usize),
    drawn: usize,
    /// The page that comes next, where there are several.
    next: usize,
}

impl Screen {
    /// Text that draws `rates` over the last frame.
    pub(crate) fn frame(&mut self, rates: &Rates) -> String {
        let size = terminal_size();
        self.draw(&blocks(rates, Some(size.0)), size)
    }

    fn draw(&mut self, blocks: &[Block], size: (usize, usize)) -> String {
        // The last line is the cursor's.
        let pages = pages(blocks, size.1.saturating_sub(1).max(2));
        let at = self.next.checked_rem(pages.len()).unwrap_or(0);
        self.next = at.saturating_add(1);
        let mut frame = match (self.drawn, self.size == size) {
            (0, _) => String::new(),
            (_, true) => format!("\r\x1b[{}A", self.drawn),
            // Its lines are no longer where they were.
            (_, false) => "\x1b[H".into(),
        };
        let page = pages.get(at).map(Vec::as_slice).unwrap_or_default();
        for line in page {
            // A line that reached the edge would be two where the terminal is asked to erase.
            frame.extend(line.chars().take(size.0.saturating_sub(1)));
            frame.push_str("\x1b[K\n");
        }
        frame.push_str("\x1b[J");
        (self.size, self.drawn) = (size, page.len());
        frame
    }
}

/// The columns and rows of the terminal that stdout is, as stty tells them.
pub(crate) fn terminal_size() -> (usize, usize) {
    let asked = || {
        let terminal = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
        let mut stty = std::process::Command::new("stty");
        let said = stty.arg("size").stdin(terminal).output().ok()?.stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        let (rows, columns) = said.trim().split_once(' ')?;
        let size: (usize, usize) = (columns.parse().ok()?, rows.parse().ok()?);
        (size.0 > 0 && size.1 > 0).then_some(size)
    };
    asked().unwrap_or(USUAL)
}

/// The blocks in pages of at most `rows` lines: one page, or several, each of which says which one
/// it is.
fn pages(blocks: &[Block], rows: usize) -> Vec<Vec<String>> {
    let whole = lines_of(blocks);
    if whole.len() <= rows {
        return vec![whole];
    }
    let room = rows.saturating_sub(1);
    let (mut pages, mut page) = (Vec::new(), Vec::<String>::new());
    for block in blocks {
        let mut begun = false;
        for line in &block.lines {
            let first = usize::from(block.head.is_some() && !begun);
            let gap = usize::from(!begun && !page.is_empty());
            if page.len().saturating_add(first + gap + 1) > room && !page.is_empty() {
                pages.push(std::mem::take(&mut page));
                begun = false;
            }
            if !begun {
                if !page.is_empty() {
                    page.push(String::new());
                }
                page.extend(block.head.clone());
                begun = true;
            }
            page.push(line.clone());
        }
    }
    pages.push(page);
    let count = pages.len();
    for (at, page) in (1..).zip(&mut pages) {
        page.push(format!("{at} of {count}, in turn; stat DISK shows less"));
    }
    pages
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

fn blocks(rates: &Rates, columns: Option<usize>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for table in [disks(rates), controllers(rates)] {
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

    fn block(lines: usize) -> Block {
        Block {
            head: Some("HEAD".into()),
            lines: (0..lines).map(|at| format!("line {at}")).collect(),
        }
    }

    #[test]
    fn each_frame_takes_the_place_of_the_last_one() {
        let mut screen = Screen::default();
        let one = [block(1)];
        assert_eq!(
            screen.draw(&one, (80, 24)),
            "HEAD\x1b[K\nline 0\x1b[K\n\x1b[J"
        );
        let again = screen.draw(&one, (80, 24));
        assert_eq!(again, "\r\x1b[2AHEAD\x1b[K\nline 0\x1b[K\n\x1b[J");
        // In another window from its top; not a letter over its edge.
        assert_eq!(
            screen.draw(&one, (4, 24)),
            "\x1b[HHEA\x1b[K\nlin\x1b[K\n\x1b[J"
        );
    }

    #[test]
    fn what_does_not_fit_comes_in_turn_and_nothing_is_left_out() {
        let pages = pages(&[block(5), block(4)], 5);
        assert!(pages.iter().all(|page| page.len() <= 5), "{pages:?}");
        assert!(pages.iter().all(|page| page.first().unwrap() == "HEAD"));
        let lines = pages.iter().flatten();
        assert_eq!(lines.filter(|line| line.starts_with("line")).count(), 9);
        let mut screen = Screen::default();
        let drawn: Vec<String> = (0..4).map(|_| screen.draw(&[block(5)], (80, 5))).collect();
        assert!(drawn[0].contains("line 0") && !drawn[0].contains("line 3"));
        assert!(drawn[1].contains("line 3") && drawn[1].contains("2 of 3"));
        assert!(drawn[3].contains("line 0"), "{drawn:?}");
    }

    #[test]
    fn long_lines_are_folded_between_words() {
        assert_eq!(folded("  a bb ccc", Some(7)), ["  a bb", "    ccc"]);
        assert_eq!(folded("  a bb ccc", None), ["  a bb ccc"]);
        assert_eq!(folded("abcdefghij", Some(4)), ["abcdefghij"]);
    }
}
