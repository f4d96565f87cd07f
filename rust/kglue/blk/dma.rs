// SPDX-License-Identifier: GPL-2.0
//! A request's data as the controller is to see it, mapped and undone exactly once: not at all for
//! a controller made of software ([`DirectMap`]), and by DMA for all others ([`DmaMap`]), one
//! segment after the other as the controller asks for it.
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

use engine::Data;
use hal::{CmdError, Segment};
use kernel::alloc::AllocError;
use kernel::bindings;
use kernel::prelude::*;

use crate::blk::hctx::Rq;
use crate::blk::request::Vecs;
use crate::shims;

/// How data reaches the controller.
pub trait MapKind: Send + Sync + 'static {
    /// What is kept in the request for as long as it is mapped; all zeroes means "not mapped".
    type Mapped: 'static;

    /// Maps the data of `rq`, a read or a write: all of it, or segment by segment as these are
    /// taken. [`MapKind::unmap`] undoes what was mapped so far, at any moment.
    fn data<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a>;

    /// Undoes the mapping, if there is one.
    fn unmap(&self, rq: &mut Rq);
}

/// The controller is software and sees memory as the CPU does: addresses are the kernel's own.
pub struct DirectMap;

impl MapKind for DirectMap {
    type Mapped = ();

    #[inline]
    fn data<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
        Data::Many(Vecs::new(rq.bios()).map(Ok))
    }

    #[inline]
    fn unmap(&self, _rq: &mut Rq) {}
}

/// The controller reaches memory by DMA as `device`.
///
/// # Invariants
/// `device` is one that a driver is bound to for as long as this is used, with requests whose PDU
/// has room for a [`DmaMapped`].
pub struct DmaMap {
    device: *mut bindings::device,
    /// Nothing that is mapped for it is to be unmapped, whatever is mapped.
    never_unmaps: bool,
}

// SAFETY: the device is one that a driver is bound to, and the DMA API may be called for it from
// any context.
unsafe impl Send for DmaMap {}
// SAFETY: as above.
unsafe impl Sync for DmaMap {}

/// How a request is mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum How {
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
    how: How,
    /// Memory of another device, reached through the host bridge.
    mmio: bool,
    /// Bytes mapped, for the IOMMU's range.
    total: u32,
    one: MappedSegment,
    list: MappedSegments,
    iova: bindings::dma_iova_state,
    /// Where blk-mq's iterator is; here so that the segments' own is small and moves cheaply.
    iter: shims::blk_dma_iter,
}

impl DmaMapped {
    /// The segment that blk-mq's iterator has just mapped.
    #[inline(always)]
    fn found(&self) -> Segment {
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
        // SAFETY: bound, by the caller's promise.
        let never_unmaps = unsafe { shims::hiops_never_unmaps(device) };
        Self {
            device,
            never_unmaps,
        }
    }

    #[inline(always)]
    fn mapped<'a>(&self, rq: &'a mut Rq) -> &'a mut DmaMapped {
        // SAFETY: the PDU has room for it (invariant), zeroed by blk-mq or written by this; it is
        // the owner's alone, who is the caller.
        unsafe { &mut (*rq.pdu::<DmaMapped>()).mapped }
    }

    #[inline]
    fn unmap_segment(&self, rq: &Rq, segment: MappedSegment, mmio: bool) {
        // SAFETY: mapped for this device and in this request's direction, and not unmapped since.
        unsafe {
            shims::hiops_unmap_one(self.device, segment.addr, segment.len, rq.as_raw(), mmio);
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
            How::Single => self.unmap_segment(rq, one, false),
            How::Each => {
                while let Some(segment) = self.mapped(rq).list.pop() {
                    self.unmap_segment(rq, segment, mmio);
                }
            }
            How::Range => self.unmap_range(rq),
        }
    }
}

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
        !self.never_unmaps && unsafe { bindings::dma_need_unmap(self.device) }
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

/// Maps data that is not one segment, segment by segment.
struct DmaSegments<'a> {
    map: &'a DmaMap,
    rq: &'a mut Rq,
    at: At,
}

impl DmaSegments<'_> {
    /// The first of several.
    #[inline(never)]
    fn first(&mut self) -> Result<Segment, CmdError> {
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
        let segment = MappedSegment { addr, len };
        let room = usize::from(self.rq.view().segments());
        let mapped = self.map.mapped(self.rq);
        let noted = match mapped.list.count() < room {
            true => mapped.list.push(segment).map_err(|_| CmdError::NotReady),
            false => Err(CmdError::Invalid),
        };
        if noted.is_err() {
            self.at = At::End;
            let mmio = mapped.mmio;
            self.map.unmap_segment(self.rq, segment, mmio);
        }
        noted.map(|()| seg)
    }
}

impl Iterator for DmaSegments<'_> {
    type Item = Result<Segment, CmdError>;

    #[inline]
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

    #[inline(always)]
    fn data<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
        let addr = self.map_single(rq);
        if addr >= ITERATE {
            let (map, at) = (self, At::Begin);
            return match addr {
                ITERATE => Data::Many(DmaSegments { map, rq, at }),
                _ => Data::Not(CmdError::NotReady),
            };
        }
        let len = rq.view().bytes();
        // With most devices unmapping would do nothing.
        if self.unmaps() {
            let mapped = self.mapped(rq);
            mapped.how = How::Single;
            mapped.one = MappedSegment { addr, len };
        }
        Data::One(Segment { addr, len })
    }

    #[inline(always)]
    fn unmap(&self, rq: &mut Rq) {
        if self.mapped(rq).how != How::Nothing {
            self.unmap_some(rq);
        }
    }
}

/// One mapped segment.
#[derive(Clone, Copy, Zeroable)]
pub(crate) struct MappedSegment {
    pub(crate) addr: u64,
    pub(crate) len: u32,
}

/// How many segments lie together: most requests have fewer.
const TOGETHER: usize = 31;

/// Any number of mapped segments. All zeroes: none.
#[derive(Zeroable)]
pub(crate) struct MappedSegments {
    last: Option<KBox<Chunk>>,
    count: usize,
}

#[derive(Zeroable)]
struct Chunk {
    segments: [MappedSegment; TOGETHER],
    /// What came before them.
    before: Option<KBox<Chunk>>,
}

impl MappedSegments {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Notes `segment`. Any context.
    pub(crate) fn push(&mut self, segment: MappedSegment) -> Result<(), AllocError> {
        let at = self.count % TOGETHER;
        if at == 0 {
            let mut chunk =
                KBox::init(pin_init::init_zeroed::<Chunk>(), GFP_ATOMIC).map_err(|_| AllocError)?;
            chunk.before = self.last.take();
            self.last = Some(chunk);
        }
        if let Some(place) = (self.last.as_mut()).and_then(|chunk| chunk.segments.get_mut(at)) {
            *place = segment;
        }
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    /// Takes the last one out.
    pub(crate) fn pop(&mut self) -> Option<MappedSegment> {
        let count = self.count.checked_sub(1)?;
        let at = count % TOGETHER;
        let segment = self.last.as_ref()?.segments.get(at).copied();
        if at == 0 {
            self.last = self.last.take().and_then(|mut chunk| chunk.before.take());
        }
        self.count = count;
        segment
    }
}
