// SPDX-License-Identifier: GPL-2.0
//! A request's data as the controller is to see it, mapped and undone exactly once.

use super::request::Rq;
use crate::shims;
use core::mem::{size_of, MaybeUninit};
use core::ptr::null_mut;
use hal::{CmdError, Segment};
use kernel::bindings;
use kernel::ffi::c_void;
use kernel::prelude::*;

/// How data reaches the controller.
pub trait MapKind: Send + Sync + 'static {
    /// What is kept in the request for as long as it is mapped; all zeroes means "not mapped".
    type Mapped: 'static;

    /// Maps the data of `rq` and yields it piece by piece. [`MapKind::unmap`] undoes what was mapped so far, at any moment.
    fn segments<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> impl Iterator<Item = Result<Segment, CmdError>> + 'a;

    /// Undoes the mapping, if there is one.
    fn unmap(&self, rq: &Rq);
}

/// The controller reaches memory by DMA as `device`.
pub struct DmaMap {
    device: *mut bindings::device,
}

// SAFETY: the device is one that a driver is bound to, and the DMA API may be called for it from any context.
unsafe impl Send for DmaMap {}
// SAFETY: as above.
unsafe impl Sync for DmaMap {}

/// How a request is mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum How {
    /// Not, or nothing of it is left to undo.
    Nothing = 0,
    /// One segment, `one`, that is to be unmapped.
    Single,
    /// By blk-mq's iterator.
    Iterated,
}

/// What `hiops_map_single` answers for data that is not one segment. All above is no bus address either.
// CAST: bindgen takes the macro for a negative number, whose 64 bits it is.
const ITERATE: u64 = shims::HIOPS_MAP_ITERATE as u64;

/// One mapped segment that is to be unmapped by itself.
#[derive(Clone, Copy)]
struct Piece {
    addr: u64,
    len: u32,
}

/// The state of a request's DMA mapping.
pub struct DmaMapped {
    how: How,
    /// Memory of another device, reached through the host bridge.
    mmio: bool,
    /// Memory of another device, by its bus address: nothing to undo.
    bus: bool,
    /// How many of `list` are in use.
    count: u16,
    /// Bytes mapped, for the IOMMU's range.
    total: u32,
    one: Piece,
    /// `blk_rq_nr_phys_segments` pieces from kmalloc, or null.
    list: *mut Piece,
    iova: bindings::dma_iova_state,
    /// Where blk-mq's iterator is; here so that the segments' own is small and moves cheaply.
    iter: MaybeUninit<shims::blk_dma_iter>,
}

impl DmaMap {
    /// A mapping for `device`.
    ///
    /// # Safety
    /// `device` stays bound to its driver for as long as requests are mapped with this.
    pub unsafe fn new(device: *mut bindings::device) -> Self {
        Self { device }
    }

    #[inline(always)]
    fn mapped(rq: &Rq) -> *mut DmaMapped {
        // SAFETY: the tag set has room for the PDU (invariant of `Rq`); no reference is made.
        unsafe { &raw mut (*rq.pdu::<DmaMapped>()).mapped }
    }

    /// Notes a segment that the iterator has mapped.
    fn note(&self, rq: &Rq, mapped: &mut DmaMapped, seg: Segment) -> Result<(), CmdError> {
        mapped.total = mapped.total.wrapping_add(seg.len);
        // SAFETY: `iova` was set by `blk_rq_dma_map_iter_start`.
        let whole = mapped.bus || unsafe { shims::hiops_use_iova(&mut mapped.iova) };
        // SAFETY: the device is bound.
        if whole || !unsafe { bindings::dma_need_unmap(self.device) } {
            return Ok(());
        }
        let piece = Piece {
            addr: seg.addr,
            len: seg.len,
        };
        // SAFETY: the request is owned.
        let room = unsafe { (*rq.as_raw()).nr_phys_segments };
        if mapped.list.is_null() {
            let bytes = usize::from(room).saturating_mul(size_of::<Piece>());
            // SAFETY: any size may be asked for; a null pointer is looked for.
            mapped.list = unsafe {
                bindings::krealloc_node_align_noprof(
                    null_mut(),
                    bytes,
                    core::mem::align_of::<Piece>(),
                    bindings::GFP_ATOMIC,
                    bindings::NUMA_NO_NODE,
                )
            }
            .cast();
        }
        if mapped.list.is_null() || mapped.count >= room {
            self.unmap_piece(rq, piece, mapped.mmio);
            return Err(if mapped.list.is_null() {
                CmdError::NotReady
            } else {
                CmdError::Invalid
            });
        }
        // SAFETY: `list` has `room` places, and `count` is below it.
        unsafe { mapped.list.add(usize::from(mapped.count)).write(piece) };
        mapped.count = mapped.count.wrapping_add(1);
        Ok(())
    }

    #[inline]
    fn unmap_piece(&self, rq: &Rq, piece: Piece, mmio: bool) {
        // SAFETY: mapped for this device and in this request's direction, and not unmapped since.
        unsafe {
            shims::hiops_unmap_one(self.device, piece.addr, piece.len, rq.as_raw(), mmio);
        }
    }

    /// Undoes a mapping that needs it.
    #[inline(never)]
    fn unmap_some(&self, rq: &Rq) {
        // SAFETY: the request is owned, so nobody else uses its PDU; no other reference to it is alive.
        let mapped = unsafe { &mut *Self::mapped(rq) };
        match core::mem::replace(&mut mapped.how, How::Nothing) {
            How::Nothing => {}
            How::Single => self.unmap_piece(rq, mapped.one, false),
            How::Iterated => self.unmap_iterated(rq, mapped),
        }
    }

    fn unmap_iterated(&self, rq: &Rq, mapped: &mut DmaMapped) {
        // SAFETY: `iova` was set when the mapping began.
        if !mapped.bus && unsafe { shims::hiops_use_iova(&mut mapped.iova) } {
            // SAFETY: the range was made for this request and is given back once.
            unsafe {
                shims::hiops_iova_destroy(
                    self.device,
                    &mut mapped.iova,
                    mapped.total as usize,
                    rq.as_raw(),
                    mapped.mmio,
                );
            }
        }
        for at in 0..usize::from(mapped.count) {
            // SAFETY: the first `count` places of `list` are written.
            let piece = unsafe { mapped.list.add(at).read() };
            self.unmap_piece(rq, piece, mapped.mmio);
        }
        // SAFETY: from kmalloc, or null; not used after.
        unsafe { bindings::kfree(mapped.list.cast::<c_void>()) };
        mapped.list = null_mut();
        mapped.count = 0;
    }
}

enum At {
    Begin,
    Within,
    End,
}

struct DmaSegments<'a> {
    map: &'a DmaMap,
    rq: &'a Rq,
    at: At,
}

impl DmaSegments<'_> {
    /// Maps all of the data at once, if it is one segment.
    #[inline(always)]
    fn first(&mut self) -> Result<Segment, CmdError> {
        let rq = self.rq.as_raw();
        // SAFETY: the request is owned and the device is bound.
        let (addr, len) = unsafe {
            (
                shims::hiops_map_single(rq, self.map.device),
                (*rq).__data_len,
            )
        };
        if addr >= ITERATE {
            return self.first_of_many(addr);
        }
        self.at = At::End;
        // Asked after the mapping, which may be what makes it true. Where it is false, which is with most devices, unmapping would do nothing.
        // SAFETY: the device is bound.
        if unsafe { bindings::dma_need_unmap(self.map.device) } {
            // SAFETY: as in `first_of_many`.
            let mapped = unsafe { &mut *DmaMap::mapped(self.rq) };
            mapped.how = How::Single;
            mapped.one = Piece { addr, len };
        }
        Ok(Segment { addr, len })
    }

    /// The answer of `hiops_map_single` was no bus address.
    #[inline(never)]
    fn first_of_many(&mut self, answer: u64) -> Result<Segment, CmdError> {
        if answer == ITERATE {
            // SAFETY: the request is owned, so nobody else uses its PDU; no other reference to it is alive.
            let mapped = unsafe { &mut *DmaMap::mapped(self.rq) };
            // Data that has no segment is no data of a command.
            return self
                .start_iterating(mapped)
                .unwrap_or(Err(CmdError::Invalid));
        }
        self.at = At::End;
        Err(CmdError::NotReady)
    }

    /// What blk-mq's iterator finds next.
    #[inline(never)]
    fn another(&mut self) -> Option<Result<Segment, CmdError>> {
        // SAFETY: as in `first_of_many`.
        let mapped = unsafe { &mut *DmaMap::mapped(self.rq) };
        // SAFETY: started, and not at its end yet.
        let some = unsafe {
            shims::blk_rq_dma_map_iter_next(
                self.rq.as_raw(),
                self.map.device,
                mapped.iter.as_mut_ptr(),
            )
        };
        if some {
            self.iterated(mapped)
        } else {
            self.stopped(mapped)
        }
    }

    /// Why blk-mq's iterator stopped.
    fn stopped(&mut self, mapped: &DmaMapped) -> Option<Result<Segment, CmdError>> {
        self.at = At::End;
        // SAFETY: `blk_rq_dma_map_iter_start` has set it.
        match unsafe { (*mapped.iter.as_ptr()).status } {
            shims::HIOPS_STS_OK => None,
            shims::HIOPS_STS_INVAL => Some(Err(CmdError::Invalid)),
            _ => Some(Err(CmdError::NotReady)),
        }
    }

    fn iterated(&mut self, mapped: &mut DmaMapped) -> Option<Result<Segment, CmdError>> {
        // SAFETY: the iterator has just yielded a segment.
        let seg = unsafe {
            let iter = mapped.iter.as_ptr();
            Segment {
                addr: (*iter).addr,
                len: (*iter).len,
            }
        };
        let noted = self.map.note(self.rq, mapped, seg);
        if noted.is_err() {
            self.at = At::End;
        }
        Some(noted.map(|()| seg))
    }

    fn start_iterating(&mut self, mapped: &mut DmaMapped) -> Option<Result<Segment, CmdError>> {
        // SAFETY: the request is owned, the device is bound; state and iterator need no initial value.
        let some = unsafe {
            shims::blk_rq_dma_map_iter_start(
                self.rq.as_raw(),
                self.map.device,
                &mut mapped.iova,
                mapped.iter.as_mut_ptr(),
            )
        };
        if !some {
            return self.stopped(mapped);
        }
        // SAFETY: started.
        let kind = unsafe { shims::hiops_map_kind(mapped.iter.as_ptr()) };
        mapped.how = How::Iterated;
        mapped.bus = kind == 1;
        mapped.mmio = kind == 2;
        mapped.count = 0;
        mapped.total = 0;
        mapped.list = null_mut();
        self.at = At::Within;
        // SAFETY: set by the start; the whole request may already be one range of the IOMMU.
        if !mapped.bus && unsafe { shims::hiops_use_iova(&mut mapped.iova) } {
            self.at = At::End;
        }
        self.iterated(mapped)
    }
}

impl Iterator for DmaSegments<'_> {
    type Item = Result<Segment, CmdError>;

    // Inline as far as most requests go, which are one segment.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self.at {
            At::Begin => Some(self.first()),
            At::Within => self.another(),
            At::End => None,
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
        DmaSegments {
            map: self,
            rq,
            at: At::Begin,
        }
    }

    #[inline(always)]
    fn unmap(&self, rq: &Rq) {
        // SAFETY: the request is owned, so nobody else uses its PDU.
        if unsafe { (*Self::mapped(rq)).how } != How::Nothing {
            self.unmap_some(rq);
        }
    }
}
