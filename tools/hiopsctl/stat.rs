// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl stat`: two looks and what came between, once or again and again.

use crate::cli::StatOptions;
use crate::failure::Failure;
use crate::machine::{served_disk, served_names};
use crate::out::{json, Out};
use crate::rates::Rates;
use crate::root::Root;
use crate::sample::Sample;
use crate::screen::{terminal_size, text, Screen};
use std::time::{Duration, Instant};

/// Runs it.
pub(crate) fn run(root: &Root, out: &Out, options: &StatOptions) -> Result<(), Failure> {
    let disks = options.disks.iter().map(|named| served_disk(root, named));
    let disks: Vec<String> = disks.collect::<Result<_, _>>()?;
    if served_names(root).is_empty() {
        let way_out = "hiopsctl list shows what there is, hiopsctl bind ADDRESS hands it over";
        return Err(Failure::new("hiops serves no disk", way_out));
    }
    let endless = options.watch && options.count.is_none();
    let mut left = options.count.unwrap_or(1);
    let again = options.watch || options.count.is_some();
    let interval = Duration::from_secs_f64(options.interval);
    let mut before = Sample::take(root)?;
    let mut due = before.at;
    let mut screen = Screen::default();
    while endless || left > 0 {
        due = sleep_until(due, interval);
        let now = Sample::take(root)?;
        let rates = Rates::between(&before, &now, &disks);
        out.print(&if out.is_json() {
            format!("{}\n", json(&rates)?)
        } else if again && out.is_screen() {
            screen.frame(&rates)
        } else if again {
            format!("{}\n", text(&rates, None))
        } else {
            text(&rates, out.is_screen().then(|| terminal_size().0))
        })?;
        before = now;
        left = left.saturating_sub(1);
    }
    Ok(())
}

/// Sleeps until `interval` after `due`; when that is. What a look takes does not add up, and what
/// was missed while the program was stopped is not made up for.
fn sleep_until(due: Instant, interval: Duration) -> Instant {
    let now = Instant::now();
    let due = match due.checked_add(interval) {
        Some(due) if due > now => due,
        _ => now,
    };
    std::thread::sleep(due.saturating_duration_since(now));
    due
}
