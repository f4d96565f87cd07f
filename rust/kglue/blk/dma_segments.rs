// SPDX-License-Identifier: GPL-2.0
//! The segments of a request that is mapped for DMA, each mapped when it is asked for.

use super::dma_map::{DmaMap, Found, How, ITERATE};
use super::pieces::Piece;
use super::request::Rq;
use crate::shims;
use hal::{CmdError, Segment};

enum At {
    Begin,
    Within,
    End,
}

/// Maps the data of a request, segment by segment.
pub(super) struct DmaSegments<'a> {
    map: &'a DmaMap,
    rq: &'a mut Rq,
    at: At,
}

impl<'a> DmaSegments<'a> {
    #[inline(always)]
    pub(super) fn new(map: &'a DmaMap, rq: &'a mut Rq) -> Self {
        let at = At::Begin;
        Self { map, rq, at }
    }

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
