// SPDX-License-Identifier: GPL-2.0
//! The tag set that blk-mq has of an adapter's queues.
//!
//! The kernel crate's (`kernel::block::mq::TagSet`, Linux 7.2 and 7.3) is of operations that lack
//! what is needed here (`blk/ops.rs`), has one map of queues, and is neither quiesced nor timed.

use kernel::bindings;
use kernel::prelude::*;
use kernel::types::Opaque;

/// A tag set, freed when dropped, which is after the last disk on it.
///
/// # Invariants
/// It is allocated.
pub(crate) struct TagSet(pub(super) KBox<Opaque<bindings::blk_mq_tag_set>>);

// SAFETY: blk-mq orders what is done to it by itself.
unsafe impl Send for TagSet {}
// SAFETY: as above.
unsafe impl Sync for TagSet {}

impl TagSet {
    /// The kernel's structure.
    pub(super) fn as_raw(&self) -> *mut bindings::blk_mq_tag_set {
        self.0.get()
    }

    /// Does with it what `verb` is for: one of those of blk-mq that ask for nothing but a tag set.
    fn tell(&self, verb: unsafe extern "C" fn(*mut bindings::blk_mq_tag_set)) {
        // SAFETY: allocated, by the invariant.
        unsafe { verb(self.as_raw()) };
    }

    /// What was being given to its queues when they were quiesced ([`Disk::quiesce`]) is there.
    /// Sleeps.
    ///
    /// [`Disk::quiesce`]: crate::blk::disk::Disk::quiesce
    pub(super) fn wait_for_dispatch(&self) {
        self.tell(bindings::blk_mq_wait_quiesce_done);
    }
}

impl Drop for TagSet {
    fn drop(&mut self) {
        self.tell(bindings::blk_mq_free_tag_set);
    }
}
