// SPDX-License-Identifier: GPL-2.0
//! Data for a controller that reaches memory by DMA.
//!
//! `kernel::dma` (Linux 7.2 and 7.3) has memory that a driver allocates for itself, and
//! scatterlists, but neither `dma_map_phys` nor blk-mq's iterator over a request's data.
//!
//! ```text
//!  map_single --one segment--> Single
//!    +----------several----> iterate ... --each by itself--> Each (those that need it are listed)
//!                          +--one range of the IOMMU--> Range
//!                          +--bus addresses of another device--> Nothing
//! ```

use super::pieces::{Piece, Pieces};
use super::request::Rq;
use crate::shims;
use hal::Segment;
use kernel::bindings;

/// The controller reaches memory by DMA as `device`.
///
/// # Invariants
/// `device` is one that a driver is bound to for as long as this is used, with requests whose PDU
/// has room for a [`DmaMapped`].
pub struct DmaMap {
    pub(super) device: *mut bindings::device,
}

// SAFETY: the device is one that a driver is bound to, and the DMA API may be called for it from
// any context.
unsafe impl Send for DmaMap {}
// SAFETY: as above.
unsafe impl Sync for DmaMap {}

/// How a request is mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum How {
    /// Not, or nothing of it is to be undone.
    Nothing = 0,
    /// One segment, `one`, that is to be unmapped.
    Single,
    /// Segments that are to be unmapped are in `list`.
    Each,
    /// As a range of the IOMMU, `iova`, of `total` bytes.
    Range,
}

/// The state of a request's DMA mapping. All zeroes are one.
pub struct DmaMapped {
    pub(super) how: How,
    /// Memory of another device, reached through the host bridge.
    pub(super) mmio: bool,
    /// Bytes mapped, for the IOMMU's range.
    pub(super) total: u32,
    pub(super) one: Piece,
    pub(super) list: Pieces,
    pub(super) iova: bindings::dma_iova_state,
    /// Where blk-mq's iterator is; here so that the segments' own is small and moves cheaply.
    pub(super) iter: shims::blk_dma_iter,
}

impl DmaMapped {
    /// The segment that blk-mq's iterator has just mapped.
    #[inline(always)]
    pub(super) fn found(&self) -> Segment {
        let (addr, len) = (self.iter.addr, self.iter.len);
        Segment { addr, len }
    }
}

impl DmaMap {
    /// A mapping for `device`.
    ///
    /// # Safety
    /// `device` stays bound to its driver for as long as requests are mapped with this, which are
    /// of a tag set that has room for `Pdu<DmaMapped>`.
    pub unsafe fn new(device: *mut bindings::device) -> Self {
        Self { device }
    }

    #[inline(always)]
    pub(super) fn mapped<'a>(&self, rq: &'a mut Rq) -> &'a mut DmaMapped {
        // SAFETY: the PDU has room for it (invariant), zeroed by blk-mq or written by this; it is
        // the owner's alone, who is the caller.
        unsafe { &mut (*rq.pdu::<DmaMapped>()).mapped }
    }

    #[inline]
    pub(super) fn unmap_piece(&self, rq: &Rq, piece: Piece, mmio: bool) {
        // SAFETY: mapped for this device and in this request's direction, and not unmapped since.
        unsafe {
            shims::hiops_unmap_one(self.device, piece.addr, piece.len, rq.as_raw(), mmio);
        }
    }

    fn unmap_range(&self, rq: &mut Rq) {
        let raw = rq.as_raw();
        let mapped = self.mapped(rq);
        let (bytes, mmio) = (mapped.total as usize, mapped.mmio);
        // SAFETY: the range was made for this request and is given back once.
        unsafe { shims::hiops_iova_destroy(self.device, &mut mapped.iova, bytes, raw, mmio) };
    }

    /// Undoes a mapping that needs it.
    #[inline(never)]
    pub(super) fn unmap_some(&self, rq: &mut Rq) {
        let mapped = self.mapped(rq);
        let (one, mmio) = (mapped.one, mapped.mmio);
        match core::mem::replace(&mut mapped.how, How::Nothing) {
            How::Nothing => {}
            How::Single => self.unmap_piece(rq, one, false),
            How::Each => {
                while let Some(piece) = self.mapped(rq).list.pop() {
                    self.unmap_piece(rq, piece, mmio);
                }
            }
            How::Range => self.unmap_range(rq),
        }
    }
}
