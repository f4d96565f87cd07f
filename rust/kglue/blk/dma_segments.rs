// SPDX-License-Identifier: GPL-2.0
//! The segments of a request that is mapped for DMA, each mapped when it is asked for.

use super::dma_map::{DmaMap, DmaMapped, How};
use super::map::MapKind;
use super::pieces::Piece;
use super::request::Rq;
use crate::shims;
use hal::{CmdError, Segment};
use kernel::bindings;

/// What `hiops_map_single` answers for data that is not one segment. All above is no bus address
/// either.
// CAST: bindgen takes the macro for a negative number, whose 64 bits it is.
const ITERATE: u64 = shims::HIOPS_MAP_ITERATE as u64;

impl DmaMap {
    /// Maps all of the data of `rq` at once, if it is one segment: its address, or what says that
    /// it has none.
    #[inline(always)]
    fn map_single(&self, rq: &Rq) -> u64 {
        // SAFETY: the request is owned and the device is bound.
        unsafe { shims::hiops_map_single(rq.as_raw(), self.device) }
    }

    /// Has blk-mq's iterator begin and map the first segment, if there is one: how, of
    /// `HIOPS_MAPPED_`.
    fn iterate(&self, rq: &mut Rq) -> Option<u32> {
        let raw = rq.as_raw();
        let mapped = self.mapped(rq);
        let (iova, iter) = (&raw mut mapped.iova, &raw mut mapped.iter);
        // SAFETY: the request is owned, the device is bound; state and iterator need no value.
        unsafe {
            let some = shims::blk_rq_dma_map_iter_start(raw, self.device, iova, iter);
            some.then(|| shims::hiops_map_kind(iter, iova))
        }
    }

    /// Has it go on and map the next segment, if there is one.
    ///
    /// # Safety
    /// It has begun.
    #[inline(always)]
    unsafe fn iterate_on(&self, rq: &mut Rq) -> bool {
        let raw = rq.as_raw();
        // SAFETY: the request is owned, the device is bound, the iterator was begun.
        unsafe {
            let iter = &raw mut self.mapped(rq).iter;
            shims::blk_rq_dma_map_iter_next(raw, self.device, iter)
        }
    }

    /// Whether what is mapped has to be unmapped. Asked after each mapping, which may be what makes
    /// it true.
    #[inline(always)]
    fn unmaps(&self) -> bool {
        // SAFETY: the device is bound.
        unsafe { bindings::dma_need_unmap(self.device) }
    }
}

enum At {
    Begin,
    /// `lists`: segments that have to be unmapped are listed.
    Within {
        lists: bool,
    },
    End,
}

/// Maps the data of a request, segment by segment.
struct DmaSegments<'a> {
    map: &'a DmaMap,
    rq: &'a mut Rq,
    at: At,
}

impl DmaSegments<'_> {
    /// Maps all of the data at once, if it is one segment.
    #[inline(always)]
    fn first(&mut self) -> Result<Segment, CmdError> {
        let addr = self.map.map_single(self.rq);
        if addr >= ITERATE {
            return self.first_of_many(addr);
        }
        self.at = At::End;
        let len = self.rq.view().bytes();
        // With most devices unmapping would do nothing.
        if self.map.unmaps() {
            let mapped = self.map.mapped(self.rq);
            mapped.how = How::Single;
            mapped.one = Piece { addr, len };
        }
        Ok(Segment { addr, len })
    }

    /// The answer of `hiops_map_single` was no bus address.
    #[inline(never)]
    fn first_of_many(&mut self, answer: u64) -> Result<Segment, CmdError> {
        if answer != ITERATE {
            self.at = At::End;
            return Err(CmdError::NotReady);
        }
        let Some(kind) = self.map.iterate(self.rq) else {
            // Data that has no segment is no data of a command.
            return self.stopped().unwrap_or(Err(CmdError::Invalid));
        };
        let mapped = self.map.mapped(self.rq);
        mapped.mmio = kind & shims::HIOPS_MAPPED_MMIO != 0;
        // The whole request may already be one range of the IOMMU.
        (mapped.how, self.at) = match kind & (shims::HIOPS_MAPPED_BUS | shims::HIOPS_MAPPED_RANGE) {
            0 => (How::Each, At::Within { lists: true }),
            shims::HIOPS_MAPPED_RANGE => (How::Range, At::End),
            _ => (How::Nothing, At::Within { lists: false }),
        };
        let seg = mapped.found();
        mapped.total = seg.len;
        match self.at {
            At::Within { lists: true } if self.map.unmaps() => self.note(seg),
            _ => Ok(seg),
        }
    }

    /// What blk-mq's iterator finds next.
    #[inline]
    fn another(&mut self, lists: bool) -> Option<Result<Segment, CmdError>> {
        // SAFETY: it has begun, or this would not be asked for another.
        if !unsafe { self.map.iterate_on(self.rq) } {
            return self.stopped();
        }
        let seg = self.map.mapped(self.rq).found();
        match lists && self.map.unmaps() {
            true => Some(self.note(seg)),
            false => Some(Ok(seg)),
        }
    }

    /// Why blk-mq's iterator stopped.
    #[cold]
    fn stopped(&mut self) -> Option<Result<Segment, CmdError>> {
        self.at = At::End;
        match self.map.mapped(self.rq).iter.status {
            shims::HIOPS_STS_OK => None,
            shims::HIOPS_STS_INVAL => Some(Err(CmdError::Invalid)),
            _ => Some(Err(CmdError::NotReady)),
        }
    }

    /// Notes a segment that is to be unmapped by itself, or unmaps it, and ends.
    #[inline(never)]
    fn note(&mut self, seg: Segment) -> Result<Segment, CmdError> {
        let Segment { addr, len } = seg;
        let piece = Piece { addr, len };
        let room = usize::from(self.rq.view().segments());
        let mapped = self.map.mapped(self.rq);
        let noted = match mapped.list.count() < room {
            true => mapped.list.push(piece).map_err(|_| CmdError::NotReady),
            false => Err(CmdError::Invalid),
        };
        if noted.is_err() {
            self.at = At::End;
            let mmio = mapped.mmio;
            self.map.unmap_piece(self.rq, piece, mmio);
        }
        noted.map(|()| seg)
    }
}

impl Iterator for DmaSegments<'_> {
    type Item = Result<Segment, CmdError>;

    // Inline as far as most requests go, which are one segment.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self.at {
            At::Begin => Some(self.first()),
            At::Within { lists } => self.another(lists),
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
        let (map, at) = (self, At::Begin);
        DmaSegments { map, rq, at }
    }

    #[inline(always)]
    fn unmap(&self, rq: &mut Rq) {
        if self.mapped(rq).how != How::Nothing {
            self.unmap_some(rq);
        }
    }
}
