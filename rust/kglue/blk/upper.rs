// SPDX-License-Identifier: GPL-2.0
//! blk-mq as the engine's upper layer ([`BlkUpper`]), and a request's data: what that is made of
//! ([`Bios`], [`Vecs`], [`Ranges`]), and how the controller is to see it, mapped and undone exactly
//! once: not at all for a controller made of software ([`DirectMap`]), and by DMA for all others
//! ([`DmaMap`]), one segment after the other as the controller asks for it.
//!
//! `kernel::dma` (Linux 7.2 and 7.3) has memory that a driver allocates for itself, and
//! scatterlists, but neither `dma_map_phys` nor blk-mq's iterator over a request's data. The kernel
//! crate has neither bios nor their vectors.
//!
//! ```text
//!  map_single --one segment--> Single
//!    +----------several----> iterate ... --each by itself--> Each (those that need it are listed)
//!                          +--one range of the IOMMU--> Range
//!                          +--bus addresses of another device--> Nothing
//! ```

use core::marker::PhantomData;
use core::ptr::{null, NonNull};
use engine::{Context, Cpu, Data, Expected, Interrupted, Upper, Waiter};
use hal::{CmdError, Command, Error, Failure, Op, Outcome, Segment};
use kernel::alloc::AllocError;
use kernel::bindings;
use kernel::device::{Bound, Device};
use kernel::prelude::*;

use crate::blk::batch;
use crate::blk::batch::EndedRequests;
use crate::blk::request::{status, Fields, Lent, Offer, Rq};
use crate::bytes::buffer::PartPieces;
use crate::bytes::io::Req;
use crate::compat::zeroed;
use crate::platform::{may_predict, now_ms, now_ns, raw_device, BoundDevice};
use crate::shims;
use crate::shims_safe::hiops_on_idle_cpu;
use crate::timers::{CoarseTimer, Poller};

/// One hardware queue's upper layer.
pub(crate) struct BlkUpper<M: MapKind> {
    map: M,
    /// Looks again at a queue whose first request could not be mapped.
    pub(crate) retry: KBox<CoarseTimer>,
    /// Looks for completions while the interrupt is off.
    pub(crate) poller: KBox<Poller>,
}

impl<M: MapKind> BlkUpper<M> {
    /// The upper layer of a queue whose data is mapped by `map`. Sleeps.
    pub(crate) fn new(map: M) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        Ok(Self {
            map,
            retry: CoarseTimer::new().map_err(no_memory)?,
            poller: Poller::new().map_err(no_memory)?,
        })
    }

    /// As [`BlkUpper::conclude`], out of line.
    #[inline(never)]
    fn conclude_rarely(&self, ended: &mut EndedRequests, rq: Rq) {
        self.conclude(ended, rq);
    }

    /// Unmaps `rq`, which is over, and puts it to those that end with `ended`.
    #[inline(always)]
    fn conclude(&self, ended: &mut EndedRequests, mut rq: Rq) {
        self.map.unmap(&mut rq);
        if cfg!(CONFIG_FAIL_IO_TIMEOUT) {
            rq = match rq.swallow() {
                // The time-out ends it: see `Ops::timeout`.
                Ok(()) => return,
                Err(rq) => rq,
            };
        }
        if let Some(waiter) = rq.waiter() {
            crate::wait::ended(waiter);
        }
        ended.put(rq);
    }

    /// `rq` failed: it is over, or is tried again.
    #[cold]
    fn fail(&self, ended: &mut EndedRequests, mut rq: Rq, failure: Failure) {
        if !batch::is_worth_a_try(&rq, failure) {
            return self.conclude_rarely(ended, rq);
        }
        self.map.unmap(&mut rq);
        if let Some(waiter) = rq.waiter() {
            crate::wait::ended(waiter);
        }
        ended.again.push(rq);
    }

    /// Offers each of those that are to be to the thread that waits for it; what is not taken is
    /// the caller's to end, in `ended`.
    #[inline(never)]
    fn offer(&self, ended: &mut EndedRequests) {
        let mut offers = core::mem::take(&mut ended.offers);
        while let Some(rq) = offers.pop() {
            let back = match rq.waiter() {
                Some(waiter) => crate::wait::offer(waiter, Offer(rq)),
                None => Some(Offer(rq)),
            };
            if let Some(Offer(rq)) = back {
                self.conclude_rarely(ended, rq);
            }
        }
    }

    /// Ends `rq`, an offer that was claimed in the context `by`: [`Context::Lazy`] for the thread
    /// that it was for, [`Context::Sweep`] for anybody else. With preemption off.
    #[inline]
    pub(crate) fn end_claimed(&self, rq: Rq, by: Context) {
        let mut ended = EndedRequests::default();
        self.conclude_rarely(&mut ended, rq);
        self.finish(&mut ended, by);
    }
}

/// What comes beside a command.
enum Beside<'a, D> {
    /// Its data, mapped.
    Data(D),
    /// Pieces of a buffer, and holes.
    Pieces(PartPieces),
    /// Of a discard, those of the disk.
    Ranges(Ranges<'a>),
}

impl<D: Iterator<Item = Result<Segment, CmdError>>> Iterator for Beside<'_, D> {
    type Item = Result<Segment, CmdError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Data(data) => data.next(),
            Self::Pieces(pieces) => pieces.next(),
            Self::Ranges(ranges) => ranges.next(),
        }
    }
}

impl<M: MapKind> Upper for BlkUpper<M> {
    type Request = Req;
    type Ended = EndedRequests;

    #[inline(always)]
    fn command(&self, rq: &Req) -> Command {
        match rq {
            Req::Block(rq) => rq.view().command(),
            Req::Bytes(io) => io.command(),
        }
    }

    #[inline(always)]
    fn data<'a>(
        &'a self,
        rq: &'a mut Req,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
        let rq = match rq {
            Req::Block(rq) => rq,
            Req::Bytes(io) => {
                let part = io.part();
                return match part.pieces() {
                    None => Data::One(part.all),
                    Some(pieces) => Data::Many(Beside::Pieces(pieces)),
                };
            }
        };
        match rq.view().op() {
            Some(Op::Read | Op::Write) => match self.map.data(rq) {
                Data::One(segment) => Data::One(segment),
                Data::Many(data) => Data::Many(Beside::Data(data)),
                Data::Not(why) => Data::Not(why),
            },
            // Of a discard its pieces; the others have none.
            _ => Data::Many(Beside::Ranges(rq.ranges())),
        }
    }

    #[inline(always)]
    fn begin_cmd(&self, rq: &mut Req) {
        match rq {
            Req::Block(rq) => rq.begin(),
            Req::Bytes(io) => io.stop_waiting(),
        }
    }

    #[inline]
    fn predict(&self, rq: &Req, over: Option<Expected>) -> bool {
        let waiter = match rq {
            Req::Block(rq) => rq.waiter(),
            Req::Bytes(io) => io.waiter(),
        };
        let Some(waiter) = waiter else {
            return false;
        };
        if let Some(what) = over {
            crate::wait::expect(waiter, what);
        }
        true
    }

    #[inline]
    fn unmap(&self, rq: &mut Req) {
        if let Req::Block(rq) = rq {
            self.map.unmap(rq);
        }
    }

    fn deferred(&self, rq: &Req) {
        match rq {
            Req::Block(rq) => rq.start_waiting(),
            Req::Bytes(io) => io.start_waiting(),
        }
    }

    #[cold]
    fn starved(&self, rq: &Req) {
        // A read of bytes has its memory mapped.
        let Req::Block(rq) = rq else { return };
        kernel::pr_err!(
            "{}: no memory to map {} bytes for DMA in half a minute, with nothing in flight that \
             holds any: the I/O fails. Give the machine more (swiotlb= on the kernel's command \
             line where data goes through bounce buffers), or lower queue/max_sectors_kb\n",
            rq.view().disk_name(),
            rq.view().bytes()
        );
    }

    #[inline(always)]
    fn end_cmd(&self, ended: &mut EndedRequests, rq: Req, outcome: Outcome) {
        let rq = match rq {
            Req::Block(rq) => rq,
            Req::Bytes(io) => {
                ended.wakes |= ended.bytes.put(io, outcome);
                return;
            }
        };
        rq.set_status(status(outcome));
        if let Err(failure) = outcome {
            rq.stop_waiting();
            return self.fail(ended, rq, failure);
        }
        let asleep = rq.waiter().is_some_and(Waiter::is_asleep);
        ended.wakes |= asleep;
        match asleep && rq.hctx().switches.get().lazy() {
            // What is left to do is its own, if it is asleep still when the token is free.
            true => ended.offers.push(rq),
            false => self.conclude(ended, rq),
        }
    }

    #[inline(always)]
    fn finish(&self, ended: &mut EndedRequests, by: Context) {
        if !ended.offers.is_empty() {
            self.offer(ended);
        }
        match by {
            // Inline: where each completion has an interrupt, it is a part of each.
            Context::Irq => ended.end_now(by),
            _ => ended.end(by),
        }
    }

    fn can_poll(&self) -> bool {
        self.poller.can_poll()
    }

    #[inline]
    fn wakes(&self, ended: &EndedRequests) -> bool {
        ended.wakes
    }

    fn set_interrupt(&self, on: bool) -> bool {
        self.poller.set_interrupt(on)
    }

    fn arm_poll(&self, us: u32) {
        self.poller.start(us);
    }

    #[cold]
    fn retry_later(&self) {
        self.retry.arm();
    }
}

impl<M: MapKind> Cpu for BlkUpper<M> {
    fn interrupted(&self) -> Interrupted {
        match hiops_on_idle_cpu() {
            true => Interrupted::Nobody,
            false if crate::wait::interrupts_waiter() => Interrupted::Waiter,
            false => Interrupted::Thread,
        }
    }

    #[inline]
    fn is_crowded(&self) -> bool {
        crate::wait::is_crowded()
    }

    #[inline(always)]
    fn may_predict(&self) -> bool {
        may_predict()
    }

    #[inline(always)]
    fn now_ms(&self) -> u64 {
        now_ms()
    }

    #[inline(always)]
    fn now_ns(&self) -> u64 {
        now_ns()
    }
}

impl Rq {
    /// The bios of its data.
    #[inline(always)]
    pub(crate) fn bios(&self) -> Bios<'_> {
        Bios::new(self.view().fields().bio)
    }

    /// The ranges of a discard: a bio each, where it has several; else it is its one range itself.
    #[inline(always)]
    pub(crate) fn ranges(&self) -> Ranges<'_> {
        let Fields { segments, bio, .. } = self.view().fields();
        let bios = Bios::new(if segments > 1 { bio } else { null() });
        Ranges::new(bios, self.hctx().format.block_shift())
    }
}

/// The bios of a request, from the first to the last: each with where it begins.
///
/// # Invariants
/// `bio` is null or one of a request's, which is owned for `'a`.
pub(crate) struct Bios<'a> {
    bio: *const bindings::bio,
    alive: PhantomData<&'a bindings::bio>,
}

impl Bios<'_> {
    /// `bio` and those that follow, of which the invariant holds.
    #[inline(always)]
    fn new(bio: *const bindings::bio) -> Self {
        let alive = PhantomData;
        Self { bio, alive }
    }
}

impl Iterator for Bios<'_> {
    type Item = (NonNull<bindings::bio>, bindings::bvec_iter);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let bio = NonNull::new(self.bio.cast_mut())?;
        // SAFETY: by the invariant; they do not change while the request is owned.
        let (next, begin) = unsafe { ((*bio.as_ptr()).bi_next, (*bio.as_ptr()).bi_iter) };
        self.bio = next;
        Some((bio, begin))
    }
}

/// The ranges of a discard, as [`hal::Command`] wants them.
pub(crate) struct Ranges<'a> {
    bios: Bios<'a>,
    shift: u8,
}

impl<'a> Ranges<'a> {
    /// A range for each of `bios`, in blocks of a size of which `shift` is the power of two.
    #[inline(always)]
    fn new(bios: Bios<'a>, shift: u8) -> Self {
        Self { bios, shift }
    }
}

impl Iterator for Ranges<'_> {
    type Item = Result<Segment, CmdError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (_, begin) = self.bios.next()?;
        let shift = u32::from(self.shift);
        Some(Ok(Segment {
            addr: begin.bi_sector.wrapping_shr(shift.wrapping_sub(9)),
            len: begin.bi_size.wrapping_shr(shift),
        }))
    }
}

/// The data of a request as the CPU sees it, segment by segment.
pub(crate) struct Vecs<'a> {
    bios: Bios<'a>,
    /// Where it is; of no meaning while nothing is left of `at`.
    bio: *const bindings::bio,
    at: bindings::bvec_iter,
}

impl<'a> Vecs<'a> {
    /// The segments of all of `bios`.
    #[inline(always)]
    pub(crate) fn new(bios: Bios<'a>) -> Self {
        Self {
            bios,
            bio: null(),
            at: zeroed(),
        }
    }
}

impl Iterator for Vecs<'_> {
    type Item = Segment;

    #[inline(always)]
    fn next(&mut self) -> Option<Segment> {
        while self.at.bi_size == 0 {
            let (bio, begin) = self.bios.next()?;
            self.bio = bio.as_ptr();
            self.at = begin;
        }
        let mut seg = shims::hiops_segment { addr: 0, len: 0 };
        // SAFETY: a bio of the request's, which is owned, and a place in it that is not its end.
        unsafe { shims::hiops_vec_next(self.bio, &mut self.at, &mut seg) };
        Some(Segment {
            addr: seg.addr,
            len: seg.len,
        })
    }
}

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
        let (device, request) = (raw_device(&self.map.device), self.rq.as_raw());
        let iter = &raw mut self.map.mapped(self.rq).iter;
        // SAFETY: the request is owned, the device is bound, and the iterator has begun, or this
        // would not be asked for another segment.
        if !unsafe { shims::blk_rq_dma_map_iter_next(request, device, iter) } {
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
