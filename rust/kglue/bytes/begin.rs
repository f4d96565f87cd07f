// SPDX-License-Identifier: GPL-2.0
//! An asynchronous read or write begins, and its caller goes on; and it is looked after, as no
//! thread waits for it (`io` says how it ends).
//!
//! The block layer's timer knows nothing of it, nor does a thread look whether it is late, or has
//! to be tried again: the watchdog does, for all of a disk's.

use core::mem::forget;
use engine::Context;
use hal::Command;
use kernel::bindings;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::prelude::*;

use crate::blk::gendisk::GenDisk;
use crate::blk::request::Late;
use crate::bytes::async_io::Kiocb;
use crate::bytes::entered::{DiskRef, Entered};
use crate::bytes::io::Place;
use crate::bytes::memory::{DiskMemory, Lane};
use crate::bytes::transfer::{How, Transfer};
use crate::platform::{now_ms, TICK_MS};
use crate::work::{Run, WatchBytes};

/// Called by C, in a thread that has the disk open, for a read of `count` bytes to the memory that
/// `kiocb` holds: C has that back with any result but `EIOCBQUEUED`. Sleeps, if it may.
#[no_mangle]
extern "C" fn hiops_bytes_begin_read(
    disk: DiskRef<'_>,
    pos: bindings::loff_t,
    count: usize,
    kiocb: Kiocb,
    flags: u32,
) -> isize {
    let Ok(pos) = u64::try_from(pos) else {
        // CAST: an errno.
        return EINVAL.to_errno() as isize;
    };
    match begin(GenDisk::of(disk), pos, count, kiocb, How::of(flags)) {
        Ok(Begun::Read) => EIOCBQUEUED.to_errno() as isize,
        Ok(Begun::AtEnd) => 0,
        // CAST: an errno.
        Err(error) => error.to_errno() as isize,
    }
}

/// What has begun.
enum Begun {
    Read,
    /// Nothing: the disk ends before.
    AtEnd,
}

/// Begins to read `count` bytes from `pos` on, or as many as there are, if that is one command.
/// `E2BIG`: it is more.
fn begin(
    disk: GenDisk<'_>,
    pos: u64,
    count: usize,
    kiocb: Kiocb,
    how: How,
) -> Result<Begun, Error> {
    let mut taken = disk.shared().bytes.take(how.may_wait)?;
    let entered = Entered::new(disk.alive(), how.may_wait)?;
    let transfer = Transfer::new(disk, &mut taken, &entered, how)?;
    let Some(plan) = transfer.geometry().plan(pos, count) else {
        return Ok(Begun::AtEnd);
    };
    // CAST: a `usize` has 64 bits at most.
    let end = pos.saturating_add(plan.len as u64);
    if plan.len < count && transfer.geometry().plan(end, 1).is_some() {
        return Err(E2BIG);
    }
    transfer.begin(plan, kiocb, None, false)?;
    // Given back when the read is over.
    forget(taken);
    Ok(Begun::Read)
}

/// Called by C, in a thread that has the disk open: takes completions that are there.
#[no_mangle]
extern "C" fn hiops_bytes_poll(disk: DiskRef<'_>, lane: u32) {
    // Else nothing is under way that could be looked for.
    let Some(entered) = Entered::beside(disk) else {
        return;
    };
    let disk = GenDisk::of(disk);
    let memory = disk.shared().bytes.memory(&entered);
    // CAST: a `usize` has 32 bits at least.
    if let Some(lane) = memory.and_then(|memory| memory.lanes.get(lane as usize)) {
        lane.queue.get().drain(Context::Poll);
    }
}

impl Run<WatchBytes> for DiskMemory {
    fn run(&self) {
        (self.lanes.iter()).for_each(|lane| lane.shared.wake_all());
        self.watchdog.disarm();
        let Some(entered) = self.disk().and_then(Entered::beside) else {
            // Nothing is under way: that would have entered.
            return;
        };
        let mut is_busy = false;
        for (at, lane) in self.lanes.iter().enumerate() {
            for (number, place) in lane.places.iter().enumerate() {
                try_again(&entered, (at, number), place);
            }
            is_busy |= look(&entered, lane);
        }
        if is_busy {
            self.watchdog.arm();
        }
    }
}

/// Tries an I/O of `place` again, if it has failed and is worth it, and waits for it; it is over
/// then. Sleeps.
fn try_again(entered: &Entered, at: (usize, usize), place: &Place) {
    let Some((command, part, io)) = place.take_failed() else {
        return;
    };
    let how = How {
        may_wait: true,
        polls: false,
    };
    let disk = GenDisk::of(entered.disk());
    let result = match (Transfer::with(disk, entered, at, how), place.retry(&io)) {
        (Ok(transfer), Ok(retry)) => transfer.again(command, part, retry),
        (Ok(transfer), Err(outcome)) => {
            outcome.map_err(|failure| transfer.give_up(failure, Context::Sweep))
        }
        // It was closed meanwhile.
        (Err(error), _) => Err(place.count_failed(error)),
    };
    place.finish(io, result);
}

/// Takes completions for which no interrupt came, and looks for what is late; whether any I/O is
/// under way. Sleeps.
fn look(entered: &Entered, lane: &Lane) -> bool {
    let limit_ms = u64::from(entered.timeout()).saturating_mul(TICK_MS);
    let is_under_way = |place: &Place| place.since_ms().is_some();
    if !lane.places.iter().any(is_under_way) {
        return false;
    }
    lane.queue.get().drain(Context::Sweep);
    for place in &lane.places {
        let Some(since_ms) = place.since_ms() else {
            continue;
        };
        if now_ms().saturating_sub(since_ms) < limit_ms {
            continue;
        }
        place.extend(since_ms);
        let late = LateIo {
            lane,
            place,
            limit_ms,
        };
        lane.queue.get().late(&late);
    }
    true
}

/// An I/O that is late, or was a moment ago.
struct LateIo<'a> {
    lane: &'a Lane,
    place: &'a Place,
    limit_ms: u64,
}

impl Late for LateIo<'_> {
    fn timeout_ms(&self) -> u64 {
        self.limit_ms
    }

    fn is_waiting(&self) -> bool {
        self.place.is_waiting()
    }

    fn command(&self) -> Command {
        self.place.asked(self.lane.shared.unit)
    }

    fn count(&self) {
        self.lane.shared.stats.timeout();
    }
}
