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

use super::dma_segments::DmaSegments;
use super::map::MapKind;
use super::pieces::{Piece, Pieces};
use super::request::Rq;
use crate::shims;
use hal::{CmdError, Segment};
use kernel::bindings;

/// The controller reaches memory by DMA as `device`.
///
/// # Invariants
/// `device` is one that a driver is bound to for as long as this is used, with requests whose PDU
/// has room for a [`DmaMapped`].
pub struct DmaMap {
    device: *mut bindings::device,
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

/// What `hiops_map_single` answers for data that is not one segment. All above is no bus address
/// either.
// CAST: bindgen takes the macro for a negative number, whose 64 bits it is.
pub(super) const ITERATE: u64 = shims::HIOPS_MAP_ITERATE as u64;

/// The state of a request's DMA mapping. All zeroes are one.
pub struct DmaMapped {
    pub(super) how: How,
    /// Memory of another device, reached through the host bridge.
    pub(super) mmio: bool,
    /// Bytes mapped, for the IOMMU's range.
    pub(super) total: u32,
    pub(super) one: Piece,
    pub(super) list: Pieces,
    iova: bindings::dma_iova_state,
    /// Where blk-mq's iterator is; here so that the segments' own is small and moves cheaply.
    pub(super) iter: shims::blk_dma_iter,
}

/// What blk-mq's iterator has just mapped: the segment is in it.
pub(super) struct Found {
    /// Of `HIOPS_MAPPED_`.
    pub(super) kind: u32,
    /// Segments by themselves are to be unmapped.
    pub(super) unmaps: bool,
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

    /// Maps all of the data of `rq` at once, if it is one segment: its address, or what says that
    /// it has none, and whether it is to be unmapped.
    #[inline(always)]
    pub(super) fn map_single(&self, rq: &Rq) -> (u64, bool) {
        // SAFETY: the request is owned and the device is bound. Asked after the mapping, which may
        // be what makes it true.
        unsafe {
            let addr = shims::hiops_map_single(rq.as_raw(), self.device);
            (
                addr,
                addr < ITERATE && bindings::dma_need_unmap(self.device),
            )
        }
    }

    /// Has blk-mq's iterator `begin`, or go on, and map a segment, if there is one.
    pub(super) fn iterate(&self, rq: &mut Rq, begin: bool) -> Option<Found> {
        let raw = rq.as_raw();
        let mapped = self.mapped(rq);
        let (iova, iter) = (&raw mut mapped.iova, &raw mut mapped.iter);
        // SAFETY: the request is owned, the device is bound; the start comes first, for which state
        // and iterator need no value. As of a single one, it is asked after the mapping.
        unsafe {
            let some = match begin {
                true => shims::blk_rq_dma_map_iter_start(raw, self.device, iova, iter),
                false => shims::blk_rq_dma_map_iter_next(raw, self.device, iter),
            };
            some.then(|| Found {
                kind: shims::hiops_map_kind(iter, iova),
                unmaps: bindings::dma_need_unmap(self.device),
            })
        }
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
    fn unmap_some(&self, rq: &mut Rq) {
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

impl MapKind for DmaMap {
    type Mapped = DmaMapped;

    #[inline]
    fn segments<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> impl Iterator<Item = Result<Segment, CmdError>> + 'a {
        DmaSegments::new(self, rq)
    }

    #[inline(always)]
    fn unmap(&self, rq: &mut Rq) {
        if self.mapped(rq).how != How::Nothing {
            self.unmap_some(rq);
        }
    }
}
