// SPDX-License-Identifier: GPL-2.0
//! The buffers of a disk whose bytes are on, which devices reach: those of each hardware queue by
//! themselves. They are a disk's own: of a device that says that it has read and has not, what is
//! left in a buffer is that disk's.

use bytewise::{Free, SPAN};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use hal::Error;
use kernel::bindings::gendisk;
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::bytes::buffer::Buffer;
use crate::bytes::entered::DiskRef;
use crate::bytes::holes::Holes;
use crate::bytes::io::{BytesQueue, LaneShared, Place};
use crate::bytes::watchdog::Watchdog;
use crate::platform::KernelPlatform;
use crate::work::Pinned;

/// Disks of a controller whose bytes may be on at once.
pub(crate) const MOST_DISKS: u32 = 8;
/// Buffers of a disk, as far as its queues make up for them: 8 MiB.
const BUFFERS: usize = 1024;
/// Buffers of one of many queues.
const LEAST_BUFFERS: usize = 64;

/// How many buffers a disk has on each hardware queue of a controller that may have so many.
pub(crate) fn buffers_of(queues: u16) -> usize {
    let share = BUFFERS.checked_div(usize::from(queues)).unwrap_or(BUFFERS);
    share.clamp(LEAST_BUFFERS, Free::MOST)
}

/// How many commands of bytes may be on such a queue at once, beside the block layer's requests.
pub(crate) fn most_commands(queues: u16) -> usize {
    // CAST: a small constant.
    buffers_of(queues).saturating_mul(MOST_DISKS as usize)
}

/// One of the disks of a controller of which there may be [`MOST_DISKS`].
pub(crate) struct Claim(Arc<AtomicU32>);

impl Claim {
    /// One more of those that `count` counts; `None`: there are as many as may be.
    pub(crate) fn new(count: &Arc<AtomicU32>) -> Option<Self> {
        let claim = |n: u32| (n < MOST_DISKS).then(|| n.wrapping_add(1));
        let claimed = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim);
        claimed.ok().map(|_| Self(count.clone()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The buffers of a disk on one hardware queue.
pub(crate) struct Lane {
    pub(crate) queue: Pinned<dyn BytesQueue>,
    pub(crate) shared: Arc<LaneShared>,
    pub(crate) places: KVec<Place>,
}

impl Lane {
    /// Those of `queue`, with what they have in common. Sleeps.
    pub(crate) fn new(
        queue: Pinned<dyn BytesQueue>,
        platform: &KernelPlatform,
        shared: LaneShared,
    ) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        let shared = Arc::new(shared, GFP_KERNEL).map_err(no_memory)?;
        let count = shared.room.count();
        let mut places = KVec::with_capacity(count, GFP_KERNEL).map_err(no_memory)?;
        for at in 0..count {
            let place = Place::new(Buffer::new(platform)?, at, shared.clone());
            places
                .push(place, GFP_KERNEL)
                .map_err(|_| Error::NoMemory)?;
        }
        Ok(Self {
            queue,
            shared,
            places,
        })
    }
}

/// All buffers of a disk.
///
/// # Invariants
/// `disk` is null, or that of the disk, which is hiops' and there for as long as this.
pub(crate) struct DiskMemory {
    pub(crate) lanes: KVec<Lane>,
    /// The most bytes that one command may move.
    pub(crate) span: u32,
    /// Where reads may have holes.
    pub(crate) holes: Holes,
    pub(crate) watchdog: Arc<Watchdog>,
    disk: AtomicPtr<gendisk>,
    _claim: Claim,
}

impl DiskMemory {
    /// No buffers yet, for commands of up to `span` bytes, with `holes`, looked after by a work
    /// queue with `number` in its name. Sleeps.
    pub(crate) fn new(claim: Claim, span: u32, holes: Holes, number: i32) -> Result<Self, Error> {
        // INVARIANT: null.
        Ok(Self {
            lanes: KVec::new(),
            // CAST: a small constant.
            span: span.min(SPAN as u32),
            holes,
            watchdog: Watchdog::new(number)?,
            disk: AtomicPtr::new(null_mut()),
            _claim: claim,
        })
    }

    /// It is that of `disk`, once, and is looked after from now on.
    ///
    /// # Safety
    /// The disk is one of hiops, and there for as long as this is.
    pub(crate) unsafe fn set_disk(this: &KBox<Self>, disk: *mut gendisk) {
        // INVARIANT: by the caller's promise.
        this.disk.store(disk, Ordering::Release);
        // SAFETY: it stays in its box until the drop, which silences the watchdog first.
        let this = unsafe { Pinned::new(&**this) };
        Watchdog::set_target(this, |memory| &*memory.watchdog);
    }

    /// The disk, once that was said.
    pub(crate) fn disk(&self) -> Option<DiskRef<'_>> {
        let disk = self.disk.load(Ordering::Acquire);
        if disk.is_null() {
            return None;
        }
        // SAFETY: there, by the invariant.
        Some(unsafe { DiskRef::new(disk) })
    }
}

impl Drop for DiskMemory {
    fn drop(&mut self) {
        self.watchdog.quiet();
        // Of the disk's threads, which may wait for a buffer still, and will find no disk.
        (self.lanes.iter()).for_each(|lane| lane.shared.wake_all());
    }
}
