// SPDX-License-Identifier: GPL-2.0
//! The tag set that blk-mq has of an adapter's queues.
//!
//! The kernel crate's (`kernel::block::mq::TagSet`, Linux 7.2 and 7.3) is of operations that lack
//! what is needed here (`blk/ops.rs`), has one map of queues, and is neither quiesced nor timed.

use crate::adapter::config::Bus;
use crate::adapter::state::Adapter;
use crate::blk::ioctl::AdminPath;
use crate::blk::ops::Ops;
use crate::blk::request::Pdu;
use crate::blk::MapKind;
use crate::shims;
use core::mem::size_of;
use hal::Error;
use kernel::bindings;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::types::Opaque;

/// A tag set, freed when dropped, which is after the last disk on it.
///
/// # Invariants
/// It is allocated.
pub(crate) struct TagSet(KBox<Opaque<bindings::blk_mq_tag_set>>);

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

    /// blk-mq gives no requests to the queues until [`TagSet::unquiesce`]. What is in dispatch gets
    /// to the FIFO at most. Sleeps.
    pub(super) fn quiesce(&self) {
        self.tell(bindings::blk_mq_quiesce_tagset);
    }

    /// Undoes one [`TagSet::quiesce`].
    pub(super) fn unquiesce(&self) {
        self.tell(bindings::blk_mq_unquiesce_tagset);
    }
}

impl Drop for TagSet {
    fn drop(&mut self) {
        self.tell(bindings::blk_mq_free_tag_set);
    }
}

impl<C: AdminPath, B: Bus> Adapter<C, B> {
    /// Allocates the tag set of the queues, which are there. Sleeps.
    pub(super) fn allocate_set(&mut self) -> Result<(), Error> {
        let data: *mut Self = self;
        let set = bindings::blk_mq_tag_set {
            ops: &Ops::<C, B>::TABLE,
            nr_maps: match self.interrupting() == self.queues.len() {
                true => 1,
                false => bindings::hctx_type_HCTX_MAX_TYPES,
            },
            // CAST: as many as were created, which a u16 counted.
            nr_hw_queues: self.queues.len() as u32,
            queue_depth: u32::from(self.depth()),
            // CAST: some hundred bytes.
            cmd_size: size_of::<Pdu<<B::Map as MapKind>::Mapped>>() as u32,
            numa_node: self.bus.device().map_or(bindings::NUMA_NO_NODE, |device| {
                crate::compat::numa_node(device)
            }),
            timeout: self
                .config
                .timeout_ms
                .div_ceil(1000)
                .saturating_mul(shims::HIOPS_HZ),
            flags: bindings::BLK_MQ_F_NO_SCHED_BY_DEFAULT,
            driver_data: data.cast(),
            ..Default::default()
        };
        let set = KBox::new(Opaque::new(set), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // SAFETY: filled in, for an adapter that does not move any more and drops the set before
        // anything that `Ops` uses of it.
        to_result(unsafe { bindings::blk_mq_alloc_tag_set(set.get()) })
            .map_err(crate::errno::from_errno)?;
        // INVARIANT: just allocated.
        self.set = Some(TagSet(set));
        Ok(())
    }
}
