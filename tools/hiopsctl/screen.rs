// SPDX-License-Identifier: GPL-2.0
//! What `stat` shows: a table of disks, one of controllers, and what was learnt. And how a screen
//! is drawn over the last one.

use crate::rates::Rates;
use crate::show::{each, nanoseconds, share};
use crate::table::Table;

/// Drawn over what was there: the cursor goes home, each line's rest and all below is erased. Lines
/// are cut at the edge while it is drawn, and only then, so that whoever ends the program at any
/// other time finds the terminal as it was.
pub(crate) fn frame(text: &str) -> String {
    let mut frame = String::from("\x1b[?7l\x1b[H");
    for line in text.lines() {
        frame.push_str(line);
        frame.push_str("\x1b[K\n");
    }
    frame.push_str("\x1b[J\x1b[?7h");
    frame
}

/// The screen as text.
pub(crate) fn text(rates: &Rates) -> String {
    format!("{}\n{}{}", disks(rates), controllers(rates), learnt(rates))
}

fn disks(rates: &Rates) -> String {
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
    table.text()
}

fn controllers(rates: &Rates) -> String {
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
    table.text()
}

fn learnt(rates: &Rates) -> String {
    let mut text = String::new();
    for controller in &rates.controllers {
        let [takes, queues] = controller.learned.lines();
        if !takes.is_empty() {
            let name = &controller.controller;
            text.push_str(&format!("\n{name} has learnt: {takes}\n"));
        }
        if !queues.is_empty() {
            text.push_str(&format!("  {queues}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_leaves_the_terminal_as_it_was() {
        assert_eq!(
            frame("a\nb\n"),
            "\x1b[?7l\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J\x1b[?7h"
        );
    }
}
