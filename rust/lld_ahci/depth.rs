// SPDX-License-Identifier: GPL-2.0
//! How many commands a drive is given at once, as far as an operator has a say in it: as libata's
//! `queue_depth` (`ata_change_queue_depth` in Linux 7.3's drivers/ata/libata-sata.c), 1 turns
//! queuing (NCQ) off, and more turns it on again, also where errors had cost it
//! ([`crate::decline`]).

use crate::port::{About, Port};
use cell::sync::{AtomicU32, Ordering};
use hal::{Error, Mmio, Platform};

/// The depth that was chosen.
pub(crate) struct Depth {
    /// Slots from this one on are left alone.
    chosen: AtomicU32,
    /// The drive's own, once its queue was made; 0: it was not.
    most: AtomicU32,
}

impl Depth {
    pub(crate) fn new() -> Self {
        Self {
            chosen: AtomicU32::new(u32::MAX),
            most: AtomicU32::new(0),
        }
    }

    /// The drive says that of itself.
    pub(crate) fn begin(&self, about: &About) {
        let most = if about.dialect.ncq { about.tags } else { 1 };
        self.most.store(u32::from(most), Ordering::Relaxed);
    }

    /// Slots that may be used.
    #[inline]
    pub(crate) fn slots(&self) -> usize {
        // CAST: a usize has 32 bits at least.
        self.chosen.load(Ordering::Relaxed) as usize
    }

    /// Whether the operator wants one command at a time.
    pub(crate) fn is_one(&self) -> bool {
        self.slots() == 1
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// The commands that the drive is given at once, at most.
    pub(crate) fn depth(&self) -> u16 {
        let most = self.depth.most.load(Ordering::Relaxed);
        let now = match self.is_unqueued() {
            true => 1,
            false => self.depth.chosen.load(Ordering::Relaxed).min(most),
        };
        // CAST: 32 at most.
        now as u16
    }

    /// Limits the commands that it is given at once to `depth`. The queue is at rest, as the issue
    /// side keeps free slots for itself. [`Error::Invalid`]: none, or more than the drive takes.
    pub(crate) fn set_depth(&self, depth: u16) -> Result<(), Error> {
        let most = self.depth.most.load(Ordering::Relaxed);
        let depth = u32::from(depth);
        if !(1..=most).contains(&depth) {
            return Err(Error::Invalid);
        }
        // Of a drive without a queue the HBA keeps the others.
        if most > 1 {
            self.depth.chosen.store(depth, Ordering::Relaxed);
            self.unqueued.store(depth == 1, Ordering::Relaxed);
        }
        Ok(())
    }
}
