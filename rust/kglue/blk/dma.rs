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
use kernel::device::{Bound, Device};
use kernel::prelude::*;

use crate::blk::hctx::{Lent, Rq};
use crate::blk::request::Vecs;
use crate::platform::{raw_device, BoundDevice};
use crate::shims;

#[allow(clashing_extern_declarations, reason = "bindgen's are unsafe to call")]
#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for a device that a driver is bound to, and for a request that is owned,
// which the types say; what is mapped and never unmapped is a leak. Each is as its header says it:
// see the constants below.
unsafe extern "C" {
    /// Whether nothing that is mapped for the device is to be unmapped, whatever is mapped.
    safe fn hiops_never_unmaps(device: &Device<Bound>) -> bool;
    /// Whether what was mapped for it so far is to be unmapped. Any context.
    safe fn dma_need_unmap(device: &Device<Bound>) -> bool;
    /// Maps all of the request's data, if it is one segment: its address, or `HIOPS_MAP_ITERATE`,
    /// or all ones. Any context.
    safe fn hiops_map_single(rq: Lent<'_>, device: &Device<Bound>) -> u64;
    /// Begins `iter` and `state`, whatever was in them, and maps the first segment; `false`: there
    /// is none, or `iter` says why. Any context.
    safe fn blk_rq_dma_map_iter_start(
        rq: Lent<'_>,
        device: &Device<Bound>,
        state: &mut bindings::dma_iova_state,
        iter: &mut shims::blk_dma_iter,
    ) -> bool;
    /// How `iter` has just mapped a segment, of `HIOPS_MAPPED_`.
    safe fn hiops_map_kind(iter: &shims::blk_dma_iter, state: &mut bindings::dma_iova_state)
        -> u32;
}

const _: [unsafe extern "C" fn(*mut bindings::device) -> bool; 2] =
    [shims::hiops_never_unmaps, bindings::dma_need_unmap];
const _: [unsafe extern "C" fn(*mut bindings::request, *mut bindings::device) -> u64; 1] =
    [shims::hiops_map_single];
const _: [unsafe extern "C" fn(
    *mut bindings::request,
    *mut bindings::device,
    *mut bindings::dma_iova_state,
    *mut shims::blk_dma_iter,
) -> bool; 1] = [shims::blk_rq_dma_map_iter_start];
const _: [unsafe extern "C" fn(*const shims::blk_dma_iter, *mut bindings::dma_iova_state) -> u32;
    1] = [shims::hiops_map_kind];

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
/// It is used with requests whose PDU has room for a [`DmaMapped`].
pub struct DmaMap {
    device: BoundDevice,
    /// Nothing that is mapped for it is to be unmapped, whatever is mapped.
    never_unmaps: bool,
}

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
    /// The requests that are mapped with this are of a tag set that has room for `Pdu<DmaMapped>`.
    pub unsafe fn new(device: BoundDevice) -> Self {
        let never_unmaps = hiops_never_unmaps(&device);
        // INVARIANT: the caller's promise.
        Self {
            device,
            never_unmaps,
        }
    }

    #[inline(always)]
    fn mapped<'a>(&self, rq: &'a mut Rq) -> &'a mut DmaMapped {
        self.split(rq).1
    }

    /// The request, to be mapped, and the state of its mapping, which is no part of it.
    #[inline(always)]
    fn split<'a>(&self, rq: &'a mut Rq) -> (Lent<'a>, &'a mut DmaMapped) {
        let pdu = rq.pdu::<DmaMapped>();
        // SAFETY: the PDU has room for it (invariant), zeroed by blk-mq or written by this; it is
        // the owner's alone, who is the caller, and a request that is lent does not lead to it.
        (rq.lend(), unsafe { &mut (*pdu).mapped })
    }

    #[inline]
    fn unmap_segment(&self, rq: &Rq, segment: MappedSegment, mmio: bool) {
        let (device, MappedSegment { addr, len }) = (raw_device(&self.device), segment);
        // SAFETY: mapped for this device and in this request's direction, and not unmapped since.
        unsafe { shims::hiops_unmap_one(device, addr, len, rq.as_raw(), mmio) };
    }

    fn unmap_range(&self, rq: &mut Rq) {
        let (device, request) = (raw_device(&self.device), rq.as_raw());
        let mapped = self.mapped(rq);
        let (bytes, mmio) = (mapped.total as usize, mapped.mmio);
        // SAFETY: the range was made for this request and is given back once.
        unsafe { shims::hiops_iova_destroy(device, &mut mapped.iova, bytes, request, mmio) };
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
        hiops_map_single(rq.lend(), &self.device)
    }

    /// Has blk-mq's iterator begin and map the first segment, if there is one: how, of
    /// `HIOPS_MAPPED_`.
    fn iterate(&self, rq: &mut Rq) -> Option<u32> {
        let (rq, mapped) = self.split(rq);
        let (iova, iter) = (&mut mapped.iova, &mut mapped.iter);
        let some = blk_rq_dma_map_iter_start(rq, &self.device, iova, iter);
        some.then(|| hiops_map_kind(iter, iova))
    }

    /// Has it go on and map the next segment, if there is one.
    ///
    /// # Safety
    /// It has begun.
    #[inline(always)]
    unsafe fn iterate_on(&self, rq: &mut Rq) -> bool {
        let (device, request) = (raw_device(&self.device), rq.as_raw());
        let iter = &raw mut self.mapped(rq).iter;
        // SAFETY: the request is owned, the device is bound, the iterator was begun.
        unsafe { shims::blk_rq_dma_map_iter_next(request, device, iter) }
    }

    /// Whether what is mapped has to be unmapped. Asked after each mapping, which may be what makes
    /// it true.
    #[inline(always)]
    fn unmaps(&self) -> bool {
        !self.never_unmaps && dma_need_unmap(&self.device)
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
