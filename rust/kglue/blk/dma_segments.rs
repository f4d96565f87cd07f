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

/// What blk-mq's iterator has just mapped: the segment is in it.
struct Found {
    /// Of `HIOPS_MAPPED_`.
    kind: u32,
    /// Segments by themselves are to be unmapped.
    unmaps: bool,
}

impl DmaMap {
    /// Maps all of the data of `rq` at once, if it is one segment: its address, or what says that
    /// it has none, and whether it is to be unmapped.
    #[inline(always)]
    fn map_single(&self, rq: &Rq) -> (u64, bool) {
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
    fn iterate(&self, rq: &mut Rq, begin: bool) -> Option<Found> {
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
}

enum At {
    Begin,
    Within,
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
        let (addr, unmaps) = self.map.map_single(self.rq);
        if addr >= ITERATE {
            return self.first_of_many(addr);
        }
        self.at = At::End;
        let len = self.rq.view().bytes();
        // With most devices unmapping would do nothing.
        if unmaps {
            let mapped = self.map.mapped(self.rq);
            mapped.how = How::Single;
            mapped.one = Piece { addr, len };
        }
        Ok(Segment { addr, len })
    }

    /// The answer of `hiops_map_single` was no bus address.
    #[inline(never)]
    fn first_of_many(&mut self, answer: u64) -> Result<Segment, CmdError> {
        if answer == ITERATE {
            // Data that has no segment is no data of a command.
            return self.another().unwrap_or(Err(CmdError::Invalid));
        }
        self.at = At::End;
        Err(CmdError::NotReady)
    }

    /// What blk-mq's iterator finds first, or next.
    #[inline(never)]
    fn another(&mut self) -> Option<Result<Segment, CmdError>> {
        let begin = matches!(self.at, At::Begin);
        let Some(found) = self.map.iterate(self.rq, begin) else {
            return self.stopped();
        };
        let mapped = self.map.mapped(self.rq);
        let Found { kind, unmaps } = found;
        if begin {
            mapped.how = match kind & (shims::HIOPS_MAPPED_BUS | shims::HIOPS_MAPPED_RANGE) {
                0 => How::Each,
                shims::HIOPS_MAPPED_RANGE => How::Range,
                _ => How::Nothing,
            };
            mapped.mmio = kind & shims::HIOPS_MAPPED_MMIO != 0;
            mapped.total = 0;
        }
        let seg = Segment {
            addr: mapped.iter.addr,
            len: mapped.iter.len,
        };
        mapped.total = mapped.total.wrapping_add(seg.len);
        // The whole request may already be one range of the IOMMU.
        self.at = match mapped.how {
            How::Range => At::End,
            _ => At::Within,
        };
        let noted = match mapped.how {
            How::Each if unmaps => self.note(seg),
            _ => Ok(()),
        };
        if noted.is_err() {
            self.at = At::End;
        }
        Some(noted.map(|()| seg))
    }

    /// Why blk-mq's iterator stopped.
    fn stopped(&mut self) -> Option<Result<Segment, CmdError>> {
        self.at = At::End;
        match self.map.mapped(self.rq).iter.status {
            shims::HIOPS_STS_OK => None,
            shims::HIOPS_STS_INVAL => Some(Err(CmdError::Invalid)),
            _ => Some(Err(CmdError::NotReady)),
        }
    }

    /// Notes a segment that is to be unmapped by itself, or unmaps it.
    fn note(&mut self, seg: Segment) -> Result<(), CmdError> {
        let Segment { addr, len } = seg;
        let piece = Piece { addr, len };
        let room = usize::from(self.rq.view().segments());
        let mapped = self.map.mapped(self.rq);
        let noted = match mapped.list.count() < room {
            true => mapped.list.push(piece).map_err(|_| CmdError::NotReady),
            false => Err(CmdError::Invalid),
        };
        if noted.is_err() {
            let mmio = mapped.mmio;
            self.map.unmap_piece(self.rq, piece, mmio);
        }
        noted
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
