// SPDX-License-Identifier: GPL-2.0
//! The buffers of a disk whose bytes are on, which devices reach: those of each hardware queue by
//! themselves. They are a disk's own: of a device that says that it has read and has not, what is
//! left in a buffer is that disk's.

use bytewise::{Free, SPAN};
use core::sync::atomic::{AtomicU32, Ordering};
use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::blk::hctx::DiskStats;
use crate::bytes::buffer::Buffer;
use crate::bytes::io::{BytesQueue, Place};
use crate::platform::KernelPlatform;
use crate::work::Pinned;

/// Disks of a controller whose bytes may be on at once.
pub(crate) const MOST_DISKS: u32 = 8;
/// How many commands of bytes may be on a hardware queue at once, beside the block layer's
/// requests.
pub(crate) const MOST_COMMANDS: usize = Free::COUNT * MOST_DISKS as usize;

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
    places: KVec<Place>,
}

impl Lane {
    /// Those of `queue`, of the disk in whose `stats` commands are counted. Sleeps.
    pub(crate) fn new(
        queue: Pinned<dyn BytesQueue>,
        platform: &KernelPlatform,
        stats: &Arc<DiskStats>,
    ) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        let mut places = KVec::with_capacity(Free::COUNT, GFP_KERNEL).map_err(no_memory)?;
        for _ in 0..Free::COUNT {
            let place = Place::new(Buffer::new(platform)?, stats.clone());
            places
                .push(place, GFP_KERNEL)
                .map_err(|_| Error::NoMemory)?;
        }
        Ok(Self { queue, places })
    }

    /// That of the buffer `at`.
    #[inline]
    pub(crate) fn place(&self, at: usize) -> Option<&Place> {
        self.places.get(at)
    }
}

/// All buffers of a disk.
pub(crate) struct DiskMemory {
    pub(crate) lanes: KVec<Lane>,
    /// The most bytes that one command may move.
    pub(crate) span: u32,
    _claim: Claim,
}

impl DiskMemory {
    /// No buffers yet, for commands of up to `span` bytes.
    pub(crate) fn new(claim: Claim, span: u32) -> Self {
        Self {
            lanes: KVec::new(),
            // CAST: a small constant.
            span: span.min(SPAN as u32),
            _claim: claim,
        }
    }
}
