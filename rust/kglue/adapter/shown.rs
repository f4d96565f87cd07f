// SPDX-License-Identifier: GPL-2.0
//! The disks that an adapter shows, from all of which requests are kept away together.
//!
//! blk-mq would quiesce a whole tag set at once (`blk_mq_quiesce_tagset`), and count that by queue:
//! one that joins the set in between has less to undo than the others. So it is counted here, under
//! the lock of the list, and whoever joins or leaves is made even.

use crate::blk::disk::Disk;
use core::ops::Deref;
use hal::Error;
use kernel::prelude::*;

/// The disks.
///
/// # Invariants
/// Each disk's queue was quiesced `kept_out` times by this, and not undone; and frozen once where
/// `frozen` says so.
pub(crate) struct Shown {
    disks: KVec<Disk>,
    kept_out: u32,
    frozen: bool,
}

impl Shown {
    /// None.
    pub(super) fn new() -> Self {
        let disks = KVec::new();
        Self {
            disks,
            kept_out: 0,
            frozen: false,
        }
    }

    /// `disk` is one of them from now on; nobody has I/O for it yet. Sleeps.
    pub(super) fn add(&mut self, disk: Disk) -> Result<(), Error> {
        (self.disks.reserve(1, GFP_KERNEL)).map_err(|_| Error::NoMemory)?;
        // INVARIANT: as often as the others.
        (0..self.kept_out).for_each(|_| disk.quiesce());
        if self.frozen {
            // Who shows it waits for its partition table as others for their I/O.
            disk.freeze();
        }
        (self.disks.push_within_capacity(disk)).map_err(|_| Error::NoMemory)
    }

    /// The name of the first one.
    pub(super) fn first_name(&self) -> Option<&str> {
        self.disks.iter().next().map(Disk::name)
    }

    /// The first disk of which `is_meant` is one of them no more; what it has still to do gets
    /// through.
    pub(super) fn take(&mut self, is_meant: impl FnMut(&Disk) -> bool) -> Option<Disk> {
        let at = self.disks.iter().position(is_meant)?;
        let disk = self.disks.remove(at).ok()?;
        (0..self.kept_out).for_each(|_| disk.unquiesce());
        if self.frozen {
            disk.thaw();
        }
        Some(disk)
    }

    /// Likewise the last one, all of whose I/O has ended.
    pub(super) fn pop(&mut self) -> Option<Disk> {
        self.disks.pop()
    }

    /// Requests are kept away from all of them, until [`Shown::let_in`]. What is in dispatch gets
    /// through.
    pub(super) fn keep_out(&mut self) {
        self.kept_out = self.kept_out.saturating_add(1);
        self.disks.iter().for_each(Disk::quiesce);
    }

    /// What is under way for any of them goes on, and what comes waits and holds nothing of the
    /// block layer's, until [`Shown::thaw`]. Once frozen they stay so. Sleeps.
    pub(super) fn freeze(&mut self) {
        if !core::mem::replace(&mut self.frozen, true) {
            self.disks.iter().for_each(Disk::freeze);
        }
    }

    /// Nothing that [`Shown::freeze`] waits for is under way any more; or they were thawed
    /// meanwhile, as their device is gone, and all that comes fails.
    pub(super) fn is_frozen(&self) -> bool {
        !self.frozen || self.disks.iter().all(Disk::is_frozen)
    }

    /// Undoes [`Shown::freeze`]; without that, does nothing. Sleeps.
    pub(super) fn thaw(&mut self) {
        if core::mem::take(&mut self.frozen) {
            self.disks.iter().for_each(Disk::thaw);
        }
    }

    /// Undoes one [`Shown::keep_out`].
    pub(super) fn let_in(&mut self) {
        if let Some(left) = self.kept_out.checked_sub(1) {
            self.kept_out = left;
            self.disks.iter().for_each(Disk::unquiesce);
        }
    }
}

impl Deref for Shown {
    type Target = [Disk];

    fn deref(&self) -> &[Disk] {
        &self.disks
    }
}
