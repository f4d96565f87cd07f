// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl stat`: two looks and what came between, once or again and again.

use crate::cli::StatOptions;
use crate::failure::Failure;
use crate::machine::{served_disk, served_names};
use crate::out::{json, Out};
use crate::rates::Rates;
use crate::root::Root;
use crate::sample::Sample;
use crate::screen::text;
use crate::terminal::{self, Terminal, Woken};
use crate::view::{Ask, View};
use ratatui::crossterm::event::Event;
use signal_hook::consts::SIGINT;
use std::time::{Duration, Instant};

/// Runs it.
pub(crate) fn run(root: &Root, out: &Out, options: &StatOptions) -> Result<(), Failure> {
    let disks = options.disks.iter().map(|named| served_disk(root, named));
    let disks: Vec<String> = disks.collect::<Result<_, _>>()?;
    if served_names(root).is_empty() {
        let way_out = "hiopsctl list shows what there is, hiopsctl bind ADDRESS hands it over";
        return Err(Failure::new("hiops serves no disk", way_out));
    }
    if options.latency {
        return crate::latencies::stat(root, out, options, &disks);
    }
    let look = Look {
        root,
        disks,
        interval: Duration::from_secs_f64(options.interval),
    };
    let again = options.watch || options.count.is_some();
    let most = match again {
        true => options.count,
        false => Some(1),
    };
    if again && out.is_screen() && terminal::can_draw() {
        // Without a terminal to read keys from there are lines.
        if let Ok(terminal) = Terminal::enter() {
            return watch(out, &look, terminal, options);
        }
    }
    let mut before = Sample::take(root)?;
    let mut due = before.at;
    let mut looks = 0;
    while most.is_none_or(|most| looks < most) {
        due = look.next(due);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = Sample::take(root)?;
        let rates = Rates::between(&before, &now, &look.disks);
        out.print(&if out.is_json() {
            format!("{}\n", json(&rates)?)
        } else if again {
            format!("{}\n", text(&rates, None))
        } else {
            text(&rates, out.is_screen().then(|| terminal::size().0))
        })?;
        before = now;
        looks = looks.saturating_add(1);
    }
    Ok(())
}

/// When the look after the one at `due` is due. What a look takes does not add up, and what was
/// missed while the program was stopped is not made up for.
pub(crate) fn next_look(due: Instant, interval: Duration) -> Instant {
    let now = Instant::now();
    match due.checked_add(interval) {
        Some(due) if due > now => due,
        _ => now,
    }
}

/// What is looked at, and when.
struct Look<'a> {
    root: &'a Root,
    disks: Vec<String>,
    interval: Duration,
}

impl Look<'_> {
    fn next(&self, due: Instant) -> Instant {
        next_look(due, self.interval)
    }
}

/// Looks again and again, on the alternate screen; what was seen last stays where it was counted
/// how often.
fn watch(
    out: &Out,
    look: &Look<'_>,
    mut terminal: Terminal,
    options: &StatOptions,
) -> Result<(), Failure> {
    let failed = |error| Failure::io("the terminal", &error);
    let mut view = View::new(options.interval);
    let mut before = Sample::take(look.root)?;
    let mut due = look.next(before.at);
    let mut left = options.count;
    let signal = loop {
        terminal
            .draw(|frame| view.draw(frame.buffer_mut()))
            .map_err(failed)?;
        if left == Some(0) {
            break None;
        }
        match terminal.wait(due).map_err(failed)? {
            Woken::Due => {
                let now = Sample::take(look.root)?;
                view.show(Rates::between(&before, &now, &look.disks));
                (before, due) = (now, look.next(due));
                left = left.map(|left| left.saturating_sub(1));
            }
            Woken::Event(Event::Key(key)) => match view.press(key) {
                Ask::Nothing => {}
                Ask::Quit => return Ok(()),
                Ask::Interrupt => break Some(SIGINT),
            },
            // Another size: the next frame has it.
            Woken::Event(_) => {}
            Woken::Signal(signal) => break Some(signal),
        }
    };
    drop(terminal);
    match (signal, view.rates()) {
        (Some(signal), _) => terminal::die_of(signal),
        (None, Some(rates)) => out.print(&text(rates, Some(terminal::size().0)))?,
        (None, None) => {}
    }
    Ok(())
}
