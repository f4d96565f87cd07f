// SPDX-License-Identifier: GPL-2.0
//! How long a disk's requests take, while somebody wants to know: histograms by what a request asks
//! for ([`Kind`]) and by the context that ends it ([`Row`]), counted by each CPU for itself, like
//! all that is counted of a disk. What the buckets are is [`engine::latency`]'s to say.
//!
//! A request's time begins as blk-mq hands it to hiops, before it may wait for a tag, and ends as
//! hiops gives it back, with all that was tried again in between. It is read from the CPU's own
//! counter: the block layer's clocks run for some configurations of the kernel and switches of the
//! disk only, and are read once for many requests. Where that counter is not the same on all CPUs
//! it is the kernel's clock (`Switches::LATENCY_BY_CLOCK`).
//!
//! What was handed over while nothing was measured has an old stamp of some other request, or none:
//! older than the moment since which it is measured, and so not counted.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use engine::latency::{end_ns, PerStamp, BUCKETS, PROBE};
use engine::{Context, Switches};
use hal::Error;
use kernel::bindings;
use kernel::prelude::*;

use crate::platform::{now_ns, stamp, stamps_to_ns, PerCpu};
use crate::shims_safe::hiops_stamps_agree;

/// What a request asks for: a number below [`KINDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(usize);

impl Kind {
    /// Data of the disk.
    pub(crate) const READ: Self = Self(0);
    /// To write data.
    pub(crate) const WRITE: Self = Self(1);
    /// Flushes, discards and the like.
    pub(crate) const OTHER: Self = Self(2);

    /// That of an operation of the block layer's.
    #[inline(always)]
    pub(crate) fn of(op: u8) -> Self {
        Self(usize::from(op).min(Self::OTHER.0))
    }
}

const _: () = assert!(bindings::req_op_REQ_OP_READ == 0 && bindings::req_op_REQ_OP_WRITE == 1);

/// The row of the context that ends a request: its number, or [`Row::NAP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row(usize);

impl Row {
    /// A thread passed by, while the one that waits for the request looked for it after a nap.
    pub(crate) const NAP: Self = Self(5);

    /// That of a context.
    #[inline(always)]
    pub(crate) fn of(by: Context) -> Self {
        Self(by as usize)
    }
}

const KINDS: usize = 3;
const ROWS: usize = 6;
/// Cells of a row: the buckets, and the sum.
const CELLS: usize = BUCKETS + 1;

const _: () = assert!(Context::Sweep as usize + 1 == Row::NAP.0);

/// Where the cells of a kind in a row begin.
#[inline(always)]
fn begin_of(kind: Kind, row: Row) -> usize {
    let row = row.0.wrapping_mul(const { KINDS * CELLS });
    row.wrapping_add(kind.0.wrapping_mul(CELLS))
}

/// A moment, as the switches of a disk say that its requests are measured.
#[inline(always)]
pub(crate) fn now(switches: Switches) -> u64 {
    match switches.by_clock() {
        false => stamp(),
        true => now_ns(),
    }
}

/// The histograms of a disk, which are there once they were asked for.
///
/// # Invariants
/// Null, or a table from `KBox::into_raw` that the drop frees.
pub(crate) struct Latency(AtomicPtr<Table>);

/// Those that are there.
pub(crate) struct Table {
    /// [`CELLS`] for each kind in each row: see [`begin_of`].
    cells: PerCpu<{ KINDS * ROWS * CELLS }>,
    /// What it is measured by, [`Switches::LATENCY_BY_CLOCK`] or none: that stays.
    clock: u8,
    scale: PerStamp,
    /// Since when it is measured.
    since: AtomicU64,
}

impl Table {
    /// One with nothing in it. Sleeps.
    fn new() -> Result<Self, Error> {
        let by_counter = hiops_stamps_agree();
        Ok(Self {
            cells: PerCpu::new()?,
            clock: match by_counter {
                true => 0,
                false => Switches::LATENCY_BY_CLOCK,
            },
            scale: match by_counter {
                true => PerStamp::new(stamps_to_ns(PROBE)),
                false => PerStamp::NS,
            },
            since: AtomicU64::new(0),
        })
    }

    /// Begins to count what ends now.
    #[inline(always)]
    pub(crate) fn over(&self, switches: Switches) -> Over<'_> {
        let now = now(switches);
        let most = now.wrapping_sub(self.since.load(Ordering::Relaxed));
        let table = self;
        Over { table, now, most }
    }

    /// The sum of all CPUs, of the rows that are told as one.
    fn cell(&self, kind: Kind, rows: &[Row], at: usize) -> u64 {
        let cell = |row: &Row| self.cells.sum(begin_of(kind, *row).wrapping_add(at));
        rows.iter().map(cell).fold(0, u64::wrapping_add)
    }

    fn ns(&self, stamps: u64) -> u64 {
        match self.clock {
            0 => stamps_to_ns(stamps),
            _ => stamps,
        }
    }
}

/// A moment at which requests end.
pub(crate) struct Over<'a> {
    table: &'a Table,
    now: u64,
    /// How long one has taken at most that began while it was measured.
    most: u64,
}

impl Over<'_> {
    /// Counts a request that began at `start`.
    #[inline(always)]
    pub(crate) fn count(&self, kind: Kind, row: Row, start: u64) {
        // What began before, or after now by a CPU whose counter is ahead, takes too long.
        let took = self.now.wrapping_sub(start);
        if took > self.most {
            return;
        }
        let (cells, begin) = (&self.table.cells, begin_of(kind, row));
        // A row of a kind has the buckets, and the sum.
        cells.add(begin.wrapping_add(self.table.scale.bucket(took)), 1);
        cells.add(begin.wrapping_add(BUCKETS), took);
    }
}

impl Latency {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// The histograms, if it was ever measured.
    #[inline(always)]
    pub(crate) fn table(&self) -> Option<&Table> {
        // SAFETY: null, or by the invariant.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// It is measured from now on: the switches that say so. Sleeps.
    pub(crate) fn begin(&self) -> Result<u8, Error> {
        if self.table().is_none() {
            self.make()?;
        }
        let table = self.table().ok_or(Error::NoMemory)?;
        // Before anybody sees the switches.
        (table.since).store(now(Switches(table.clock)), Ordering::Release);
        Ok(Switches::LATENCY | table.clock)
    }

    fn make(&self) -> Result<(), Error> {
        let mut table = KBox::new(Table::new()?, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        let (none, set, fail) = (null_mut(), Ordering::AcqRel, Ordering::Acquire);
        if (self.0.compare_exchange(none, &raw mut *table, set, fail)).is_ok() {
            // It is the disk's; where another was quicker, that one's is.
            let _ = KBox::into_raw(table);
        }
        Ok(())
    }

    /// How many requests of `kind` have ended in each of [`CONTEXTS`], that took as long as
    /// `bucket` says.
    pub(crate) fn counts(&self, kind: Kind, bucket: usize) -> [u64; CONTEXTS.len()] {
        let count = |(_, rows)| (self.table()).map_or(0, |table| table.cell(kind, rows, bucket));
        CONTEXTS.map(count)
    }

    /// For how many nanoseconds they took, all together.
    pub(crate) fn sums_ns(&self, kind: Kind) -> [u64; CONTEXTS.len()] {
        let sum = |(_, rows)| {
            let table = self.table();
            table.map_or(0, |table| table.ns(table.cell(kind, rows, BUCKETS)))
        };
        CONTEXTS.map(sum)
    }

    /// Those of `kind` begin at zero again.
    pub(crate) fn reset(&self, kind: Kind) {
        if let Some(table) = self.table() {
            for row in (0..ROWS).map(Row) {
                let begin = begin_of(kind, row);
                table.cells.reset(begin..begin.wrapping_add(CELLS));
            }
        }
    }

    /// All of them.
    pub(crate) fn reset_all(&self) {
        [Kind::READ, Kind::WRITE, Kind::OTHER].map(|kind| self.reset(kind));
    }
}

impl Drop for Latency {
    fn drop(&mut self) {
        let table = *self.0.get_mut();
        if !table.is_null() {
            // SAFETY: by the invariant; nobody measures any more.
            drop(unsafe { KBox::from_raw(table) });
        }
    }
}

/// The contexts by the names that they are shown under, and what counts as each: what no thread
/// came for would have been the interrupt's, as in `stats`.
pub(crate) const CONTEXTS: [(&str, &[Row]); 5] = [
    (
        "irq",
        &[Row(Context::Irq as usize), Row(Context::Sweep as usize)],
    ),
    ("lazy", &[Row(Context::Lazy as usize)]),
    ("coop", &[Row(Context::Coop as usize)]),
    ("poll", &[Row(Context::Poll as usize)]),
    ("nap", &[Row::NAP]),
];

/// The buckets with where each ends, in nanoseconds.
pub(crate) fn buckets() -> impl Iterator<Item = (usize, Option<u64>)> {
    (0..BUCKETS).map(|bucket| (bucket, end_ns(bucket)))
}
