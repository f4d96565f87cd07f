// SPDX-License-Identifier: GPL-2.0
//! The machine itself: tables, DMA memory, time.

use super::{MockBus, MockMapping};
use crate::mock::bus::Block;
use crate::{DmaMem, Error, Platform};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::boxed::Box;
use std::sync::Arc;

/// A machine of ordinary memory. Clones are the same machine.
#[derive(Clone, Debug, Default)]
pub struct MockPlatform {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bus: Arc<MockBus>,
    now_us: AtomicU64,
    /// Allocations that still succeed.
    budget: AtomicUsize,
    /// Bytes of the largest piece of DMA memory.
    largest: AtomicUsize,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            bus: Arc::default(),
            now_us: AtomicU64::new(0),
            budget: AtomicUsize::new(usize::MAX),
            largest: AtomicUsize::new(usize::MAX),
        }
    }
}

impl MockPlatform {
    /// A machine with nothing allocated, at time 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The memory as devices reach it.
    pub fn bus(&self) -> Arc<MockBus> {
        Arc::clone(&self.shared.bus)
    }

    /// Lets `us` microseconds pass.
    pub fn advance(&self, us: u64) {
        self.shared.now_us.fetch_add(us, Ordering::SeqCst);
    }

    /// Lets `n` more allocations succeed, and then none; `usize::MAX`: all.
    pub fn fail_allocations_after(&self, n: usize) {
        self.shared.budget.store(n, Ordering::SeqCst);
    }

    /// From now on no piece of DMA memory is larger than `bytes`.
    pub fn fragment(&self, bytes: usize) {
        self.shared.largest.store(bytes, Ordering::SeqCst);
    }

    /// Maps a copy of `data` for a device, see [`MockMapping::new`].
    pub fn map(&self, data: &[u8], offset: usize, piece: usize) -> MockMapping {
        MockMapping::new(self.bus(), data, offset, piece)
    }

    fn allocate(&self) -> Result<(), Error> {
        let take = |left: usize| match left {
            usize::MAX => Some(left),
            left => left.checked_sub(1),
        };
        (self.shared.budget)
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
            .map(|_| ())
            .map_err(|_| Error::NoMemory)
    }
}

impl Platform for MockPlatform {
    type Table<T: Send + Sync + 'static> = Box<[T]>;
    type Dma = MockDma;

    fn table<T: Send + Sync + 'static>(
        &self,
        len: usize,
        make: impl FnMut(usize) -> T,
    ) -> Result<Box<[T]>, Error> {
        self.allocate()?;
        Ok((0..len).map(make).collect())
    }

    fn dma(&self, bytes: usize) -> Result<MockDma, Error> {
        self.allocate()?;
        if bytes > self.shared.largest.load(Ordering::SeqCst) {
            return Err(Error::NoMemory);
        }
        let block = self.shared.bus.insert(bytes, 0);
        let owner = Owner {
            addr: block.addr,
            bus: self.bus(),
        };
        Ok(MockDma {
            block,
            _owner: Arc::new(owner),
        })
    }

    fn now_us(&self) -> u64 {
        self.shared.now_us.load(Ordering::SeqCst)
    }

    /// Moves the clock, so that a bounded wait ends at once; other threads get their turn.
    fn sleep_us(&self, us: u64) {
        self.advance(us.max(1));
        // A fuzzer has no other threads.
        if !cfg!(fuzzing) {
            std::thread::yield_now();
        }
    }
}

/// Memory shared with a device. Freed, it is gone from the bus: a device that still writes there is
/// a counted fault. Clones are the same memory, which lives as long as any of them.
#[derive(Clone, Debug)]
pub struct MockDma {
    block: Arc<Block>,
    _owner: Arc<Owner>,
}

/// Takes the block off the bus with its last owner.
#[derive(Debug)]
struct Owner {
    addr: u64,
    bus: Arc<MockBus>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.bus.remove(self.addr);
    }
}

impl MockDma {
    /// The word at byte `offset`; an access that [`DmaMem`] forbids fails the test.
    #[track_caller]
    fn word(&self, offset: usize, align: usize) -> &AtomicU32 {
        assert!(offset % align == 0, "misaligned DMA access at {offset:#x}");
        match self.block.words.get(offset / 4) {
            Some(word) => word,
            None => out_of_block(offset, self.block.len()),
        }
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "it fails the test")]
fn out_of_block(offset: usize, len: usize) -> ! {
    panic!("DMA access at {offset:#x} of a block of {len:#x} bytes")
}

// Relaxed, as the contract promises no more: what needs order has a fence, or Miri finds out.
impl DmaMem for MockDma {
    fn bus_addr(&self) -> u64 {
        self.block.addr
    }

    fn len(&self) -> usize {
        self.block.len()
    }

    fn read32(&self, offset: usize) -> u32 {
        self.word(offset, 4).load(Ordering::Relaxed)
    }

    fn write32(&self, offset: usize, value: u32) {
        self.word(offset, 4).store(value, Ordering::Relaxed);
    }

    fn read64(&self, offset: usize) -> u64 {
        let low = self.word(offset, 8).load(Ordering::Relaxed);
        let high = self.word(offset + 4, 4).load(Ordering::Relaxed);
        u64::from(low) | (u64::from(high) << 32)
    }

    fn write64(&self, offset: usize, value: u64) {
        // CAST: the two halves.
        (self.word(offset, 8)).store(value as u32, Ordering::Relaxed);
        (self.word(offset + 4, 4)).store((value >> 32) as u32, Ordering::Relaxed);
    }
}
