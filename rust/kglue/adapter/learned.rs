// SPDX-License-Identifier: GPL-2.0
//! What the strategies of an adapter's queues have learnt, as text.

use crate::adapter::config::Bus;
use crate::adapter::queue::{HwQueue, Io};
use core::fmt::{self, Write};
use engine::{Costs, Learned, Strategy, Upper};
use hal::Controller;

/// So many queues are told of: a file of sysfs has a page.
const MOST_TOLD: usize = 16;

/// Writes a line for what things take, and for each of the first `queues` that interrupt what its
/// strategy has learnt: by name a `-` for what does not pay, and else for how many nanoseconds more
/// it is done in vain.
pub(super) fn write<'a, C: Controller + 'a, B: Bus + 'a>(
    to: &mut dyn Write,
    queues: impl Iterator<Item = &'a HwQueue<C, B>>,
) -> fmt::Result {
    let queues = queues.filter(|queue| queue.vector.is_some());
    for (at, queue) in queues.take(MOST_TOLD).enumerate() {
        if at == 0 {
            let Costs {
                sleep_ns,
                yield_ns,
                tick_ns,
                ..
            } = queue.io.costs();
            writeln!(
                to,
                "sleep_ns {sleep_ns} yield_ns {yield_ns} tick_ns {tick_ns}"
            )?;
        }
        write_queue::<C, B>(to, at, &queue.io)?;
    }
    Ok(())
}

fn write_queue<C: Controller, B: Bus>(to: &mut dyn Write, at: usize, io: &Io<C, B>) -> fmt::Result {
    let interrupt_ns = io.costs().interrupt_ns;
    let polled = u8::from(engine::View::is_polled(io));
    write!(to, "queue {at} interrupt_ns {interrupt_ns} polled {polled}")?;
    let mut told = Ok(());
    let now_ms = io.upper().now_ms();
    io.strategy()
        .learned(now_ms, &mut |name, Learned { open, credit_ns }| {
            told = told.and_then(|()| match open {
                true => write!(to, " {name} {credit_ns}"),
                false => write!(to, " {name} -"),
            });
        });
    told?;
    writeln!(to)
}
