// SPDX-License-Identifier: GPL-2.0
//! The block layer's structure of a disk and of its queue, as far as hiops uses it; and what of a
//! disk is kept behind it: its limits, its lasting names, its device numbers, and [`DiskShared`],
//! the part that may outlive its adapter.
//!
//! `kernel::block::mq::GenDisk` (Linux 7.2 and 7.3) is a disk that its driver owns, made and
//! shown in one step: it can't be looked at from a callback, has no parent, no attributes, no owner
//! of its file operations, no limits beyond a few, and none that change; nor can it be marked dead,
//! frozen or resized. `kernel::block` has neither majors nor minors.
//!
//! # Names
//! Drives are sold whose identifiers are all the same: of several such only the first is known by
//! its lasting names, as in tree, or one would be mounted for another.
//!
//! # Numbers
//! SATA disks have numbers of their own. Other disks have those that the block layer hands out
//! (major 259), as NVMe's have in tree; tools that speak SCSI take a disk of that major for one of
//! NVMe, so a SATA disk has a major of hiops' own, and sixteen minors, as a SCSI disk has.
//! Partitions beyond the fifteenth get the block layer's, as there.
//!
//! The major's name begins as the SCSI disks' does: LVM serves disks of majors that it knows by the
//! beginning of their names in /proc/devices, and by the name it knows the sixteen minors.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use hal::{Error, Limits, Unit, UnitIds, UnitKind};
use kernel::bindings;
use kernel::ffi::{c_int, c_ulong};
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::time::delay::fsleep;
use kernel::time::Delta;

use crate::blk::ioctl::{Gate, Owner};
use crate::blk::request::{DiskStats, HctxData};
use crate::bytes::entered::DiskRef;
use crate::bytes::switch::Bytes;
use crate::compat::synchronize_rcu;
use crate::shims;
use crate::shims::HIOPS_DISK_MINORS;
use crate::shims_safe::{
    hiops_bytes_begin, hiops_bytes_end, hiops_disk_number_get, hiops_disk_number_put,
    hiops_major_get, hiops_major_put,
};
use crate::work::Pinned;

/// A disk of hiops to look at, and to tell of changes.
///
/// # Invariants
/// `disk` was made by [`Disk::new`](crate::blk::disk::Disk::new), so its `private_data` and its
/// queue's `queuedata` are its [`DiskShared`]; and it is there for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct GenDisk<'a> {
    disk: *mut bindings::gendisk,
    alive: PhantomData<&'a bindings::gendisk>,
}

/// A disk's queue, to be told of changes.
///
/// # Invariants
/// `queue` is that of a [`GenDisk`], and is there for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct DiskQueue<'a> {
    queue: *mut bindings::request_queue,
    alive: PhantomData<&'a bindings::request_queue>,
}

#[allow(clashing_extern_declarations, reason = "bindgen's are unsafe to call")]
#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for a disk or a queue that is there, which the types' invariants say. Out
// of turn (a thaw that no freeze was before) they warn, and harm what the disk does, not memory.
// Each is as its header says it: see the constants below.
unsafe extern "C" {
    /// Nothing gets through to the disk any more.
    safe fn blk_mark_disk_dead(disk: GenDisk<'_>);
    /// Capacity in sectors, and whether it is read-only. Sleeps.
    safe fn hiops_resize(disk: GenDisk<'_>, sectors: u64, read_only: bool);
    /// Whether who swaps there is to wait for each page.
    safe fn hiops_is_synchronous(disk: GenDisk<'_>) -> bool;
    /// Has it be so, or not; 0, or an errno. Sleeps.
    safe fn hiops_set_synchronous(disk: GenDisk<'_>, on: bool) -> c_int;
    /// Begins to freeze the queue, on behalf of no thread. Sleeps.
    pub(super) safe fn blk_freeze_queue_start_non_owner(queue: DiskQueue<'_>);
    /// Waits until it is frozen. Sleeps.
    pub(super) safe fn blk_mq_freeze_queue_wait(queue: DiskQueue<'_>);
    /// Undoes one freeze.
    pub(super) safe fn blk_mq_unfreeze_queue_non_owner(queue: DiskQueue<'_>);
    /// Waits until it is frozen, for `timeout` ticks at most; 0: it is not.
    safe fn blk_mq_freeze_queue_wait_timeout(queue: DiskQueue<'_>, timeout: c_ulong) -> c_int;
    /// Nothing more is given to the driver. Any context.
    pub(super) safe fn blk_mq_quiesce_queue_nowait(queue: DiskQueue<'_>);
    /// Undoes it.
    pub(super) safe fn blk_mq_unquiesce_queue(queue: DiskQueue<'_>);
    /// What is to be submitted anew is submitted now. Any context.
    pub(super) safe fn blk_mq_kick_requeue_list(queue: DiskQueue<'_>);
}

const _: [unsafe extern "C" fn(*mut bindings::gendisk); 1] = [bindings::blk_mark_disk_dead];
const _: [unsafe extern "C" fn(*mut bindings::gendisk, u64, bool); 1] = [shims::hiops_resize];
const _: [unsafe extern "C" fn(*mut bindings::gendisk) -> bool; 1] = [shims::hiops_is_synchronous];
const _: [unsafe extern "C" fn(*mut bindings::gendisk, bool) -> c_int; 1] =
    [shims::hiops_set_synchronous];
const _: [unsafe extern "C" fn(*mut bindings::request_queue); 6] = [
    bindings::blk_freeze_queue_start_non_owner,
    bindings::blk_mq_freeze_queue_wait,
    bindings::blk_mq_unfreeze_queue_non_owner,
    bindings::blk_mq_quiesce_queue_nowait,
    bindings::blk_mq_unquiesce_queue,
    bindings::blk_mq_kick_requeue_list,
];
const _: [unsafe extern "C" fn(*mut bindings::request_queue, c_ulong) -> c_int; 1] =
    [bindings::blk_mq_freeze_queue_wait_timeout];

/// What the block layer says of a disk.
struct Fields<'a> {
    name: &'a [u8; 32],
    queue: *mut bindings::request_queue,
    /// The part of it that is the whole disk.
    whole: *mut bindings::block_device,
    /// Its capacity.
    sectors: u64,
    data: *mut DiskShared,
    shared: &'a DiskShared,
    is_shown: bool,
}

impl<'a> GenDisk<'a> {
    /// # Safety
    /// The type's invariants, which become the handle's.
    pub(crate) unsafe fn from_raw(disk: *mut bindings::gendisk) -> Self {
        let alive = PhantomData;
        // INVARIANT: the caller's promise.
        Self { disk, alive }
    }

    /// That of `disk`, to look at more of it.
    pub(crate) fn of(disk: DiskRef<'a>) -> Self {
        let alive = PhantomData;
        // INVARIANT: one of hiops, and there for as long.
        Self {
            disk: disk.as_raw(),
            alive,
        }
    }

    /// The one place in which a disk is read.
    fn fields(self) -> Fields<'a> {
        let disk = self.as_raw();
        // SAFETY: by the invariant it is there, with its shared part; its name, its queue and its
        // part 0 don't change, and the bit stays once it is set. Any capacity is a valid one.
        unsafe {
            Fields {
                name: &(*disk).disk_name,
                queue: (*disk).queue,
                whole: (*disk).part0,
                sectors: (*(*disk).part0).bd_nr_sectors,
                data: (*disk).private_data.cast(),
                shared: &*(*disk).private_data.cast(),
                is_shown: (*disk).state & (1 << bindings::GD_ADDED) != 0,
            }
        }
    }

    /// The kernel's structure.
    pub(crate) fn as_raw(self) -> *mut bindings::gendisk {
        self.disk
    }

    /// The same, for what knows no more of it than that it is there.
    pub(crate) fn alive(self) -> DiskRef<'a> {
        // SAFETY: it is there for `'a`, by the invariant.
        unsafe { DiskRef::new(self.as_raw()) }
    }

    /// Its queue, to be told of changes.
    pub(super) fn queue(self) -> DiskQueue<'a> {
        let (queue, alive) = (self.fields().queue, PhantomData);
        // INVARIANT: the disk's, which is there for as long.
        DiskQueue { queue, alive }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'a CStr {
        CStr::from_bytes_until_nul(self.fields().name).unwrap_or(c"")
    }

    /// The part of it that is hiops' own.
    pub(crate) fn shared(self) -> &'a DiskShared {
        self.fields().shared
    }

    /// Where that is, as it was given to the disk.
    pub(super) fn data(self) -> *mut DiskShared {
        self.fields().data
    }

    /// Its capacity.
    pub(crate) fn sectors(self) -> u64 {
        self.fields().sectors
    }

    /// Whether `device`, which is one of it, is a partition.
    pub(crate) fn is_partition(self, device: *const bindings::block_device) -> bool {
        !core::ptr::eq(self.fields().whole, device)
    }

    /// Whether user space has ever seen it.
    pub(crate) fn is_shown(self) -> bool {
        self.fields().is_shown
    }

    /// Its limits are those of `unit` from now on. While it is frozen. Sleeps.
    pub(crate) fn change_limits(self, limits: &Limits, unit: &Unit) -> Result<(), Error> {
        let mut queue = Default::default();
        // SAFETY: it is there, by the invariant; the limits are taken once and given back.
        let failed = unsafe {
            shims::hiops_limits_begin(self.as_raw(), &mut queue);
            set_limits(&mut queue, limits, unit);
            shims::hiops_limits_end(self.as_raw(), &mut queue)
        };
        kernel::error::to_result(failed).map_err(crate::errno::from_errno)
    }

    /// It has the size of `unit` from now on, and may be written if that may; `None`: it has no
    /// size. User space is told. While it is frozen. Sleeps.
    pub(crate) fn resize(self, unit: Option<&Unit>) {
        let (size, read_only) = match unit {
            Some(unit) => (sectors(unit, unit.blocks), unit.read_only),
            None => (0, true),
        };
        hiops_resize(self, size, read_only);
    }

    /// Whether it is said to be faster than what a thread could do meanwhile
    /// (`BLK_FEAT_SYNCHRONOUS`).
    pub(crate) fn is_synchronous(self) -> bool {
        hiops_is_synchronous(self)
    }

    /// Has that be said of it, or not. `EBUSY`: who looks at it once, as `swapon` does, may have
    /// done so. Sleeps.
    pub(crate) fn set_synchronous(self, on: bool) -> kernel::error::Result<()> {
        kernel::error::to_result(hiops_set_synchronous(self, on))
    }

    /// Nothing more gets through to it: what waits for it fails. At any time, and again.
    pub(crate) fn mark_dead(self) {
        blk_mark_disk_dead(self);
    }

    /// Whether nothing of it is under way that has begun to be frozen. May sleep.
    pub(super) fn is_frozen(self) -> bool {
        blk_mq_freeze_queue_wait_timeout(self.queue(), 0) != 0
    }
}

/// 512-byte sectors, the block layer's unit, in one logical block.
fn sectors_shift(unit: &Unit) -> u32 {
    u32::from(unit.block_shift).saturating_sub(9)
}

/// `blocks` logical blocks in sectors, as far as they can be told.
pub(crate) fn sectors(unit: &Unit, blocks: u64) -> u64 {
    let shift = sectors_shift(unit);
    blocks
        .checked_mul(1u64 << shift.min(32))
        .unwrap_or(u64::MAX >> 9)
}

fn sectors32(unit: &Unit, blocks: u32) -> u32 {
    u32::try_from(sectors(unit, u64::from(blocks))).unwrap_or(u32::MAX)
}

/// Why the block layer can't have the disk, whatever its controller can do.
pub(crate) fn refusal(unit: &Unit) -> Option<&'static str> {
    let block = 1u32.checked_shl(u32::from(unit.block_shift));
    block
        .is_none_or(|block| block > shims::HIOPS_MAX_BLOCK)
        .then_some(
            "its logical blocks are larger than this kernel can have them: 64 KiB, and without \
         transparent huge pages 4 KiB",
        )
}

/// What the block layer asks of every disk: commands of a page and of a block at least, and a block
/// of a size that it knows.
pub(crate) fn check(limits: &Limits, unit: &Unit) -> Result<(), Error> {
    let block = 1u64.checked_shl(u32::from(unit.block_shift)).unwrap_or(0);
    let shifts = unit.block_shift >= 9 && unit.physical_shift >= unit.block_shift;
    let known = shifts && refusal(unit).is_none();
    let enough = limits.max_transfer >= 4096 && u64::from(limits.max_transfer) >= block;
    match known && enough && limits.max_segments != 0 {
        true => Ok(()),
        false => Err(Error::Unsupported),
    }
}

/// The features that hiops says of a disk; others stay as they are.
const FEATURES: u32 = shims::HIOPS_FEAT_WRITE_CACHE
    | shims::HIOPS_FEAT_FUA
    | shims::HIOPS_FEAT_ROTATIONAL
    | shims::HIOPS_FEAT_ATOMIC_WRITES;

fn features(unit: &Unit) -> u32 {
    let mut features = 0;
    if unit.write_cache {
        features |= shims::HIOPS_FEAT_WRITE_CACHE;
        if unit.fua {
            features |= shims::HIOPS_FEAT_FUA;
        }
    }
    if unit.rotational {
        features |= shims::HIOPS_FEAT_ROTATIONAL;
    }
    if unit.topology.atomic_write_max != 0 {
        features |= shims::HIOPS_FEAT_ATOMIC_WRITES;
    }
    features
}

/// The queue limits of a new disk.
pub(crate) fn queue_limits(limits: &Limits, unit: &Unit) -> bindings::queue_limits {
    let mut queue = Default::default();
    set_limits(&mut queue, limits, unit);
    queue
}

/// Makes `queue` the limits of a disk that may have changed. What a user has set stays, but for
/// `queue/write_cache`: a user that said that no flushes are needed said so of the cache that was.
pub(crate) fn set_limits(queue: &mut bindings::queue_limits, limits: &Limits, unit: &Unit) {
    let block = 1u32 << u32::from(unit.block_shift).min(16);
    let physical = 1u32 << u32::from(unit.physical_shift).min(16);
    let bytes = |blocks: u32| blocks.saturating_mul(block);
    let topology = &unit.topology;
    queue.features = (queue.features & !FEATURES) | features(unit);
    queue.flags &= !shims::HIOPS_FLAG_WRITE_CACHE_DISABLED;
    queue.logical_block_size = block;
    queue.physical_block_size = physical;
    queue.alignment_offset = bytes(topology.alignment_offset);
    queue.io_min = bytes(topology.io_min);
    queue.io_opt = bytes(topology.io_opt);
    queue.chunk_sectors = sectors32(unit, topology.chunk);
    queue.max_hw_sectors = limits.max_transfer >> 9;
    queue.max_segments = limits.max_segments;
    // With a virtual boundary the block layer wants segments of any size.
    queue.max_segment_size = match limits.virt_boundary {
        0 => limits.max_segment,
        _ => u32::MAX,
    };
    // CAST: address masks of a 64-bit machine.
    queue.seg_boundary_mask = limits.segment_boundary as kernel::ffi::c_ulong;
    queue.virt_boundary_mask = limits.virt_boundary as kernel::ffi::c_ulong;
    // 0 would mean the block layer's default of a sector.
    queue.dma_alignment = limits.dma_align.max(3);
    queue.max_write_zeroes_sectors = sectors32(unit, unit.max_write_zeroes);
    queue.max_hw_wzeroes_unmap_sectors = match topology.zeroes_unmap {
        true => queue.max_write_zeroes_sectors,
        false => 0,
    };
    queue.atomic_write_hw_max = bytes(topology.atomic_write_max);
    queue.atomic_write_hw_boundary = bytes(topology.atomic_write_boundary);
    queue.atomic_write_hw_unit_min = block;
    queue.atomic_write_hw_unit_max = match topology.atomic_write_max.checked_ilog2() {
        Some(shift) => bytes(1u32.wrapping_shl(shift)),
        None => block,
    };
    match unit.discard {
        Some(discard) => {
            queue.max_hw_discard_sectors = sectors32(unit, discard.max_blocks);
            queue.discard_granularity = bytes(discard.granularity.max(1));
            queue.max_discard_segments = discard.max_ranges.max(1);
        }
        None => {
            queue.max_hw_discard_sectors = 0;
            queue.discard_granularity = 0;
            queue.max_discard_segments = 1;
        }
    }
}

/// What lives as long as a file has the disk open, which may be longer than the adapter.
pub(crate) struct DiskShared {
    pub(crate) unit: Unit,
    pub(crate) names: Names,
    /// `None`: the block layer numbers the disk.
    pub(crate) number: Option<Number>,
    pub(crate) hctxs: KVec<HctxData>,
    pub(crate) stats: Arc<DiskStats>,
    pub(crate) bytes: Bytes,
    /// The gate to the adapter, closed when that goes.
    pub(crate) gate: Arc<Gate>,
    /// The adapter itself, for the disk's attributes: they go before it does.
    pub(crate) owner: Pinned<dyn Owner>,
}

impl DiskShared {
    /// The part of the disk `unit` that lives as long as it is open. Sleeps.
    pub(crate) fn new(
        unit: Unit,
        hctxs: KVec<HctxData>,
        stats: Arc<DiskStats>,
        bytes: Bytes,
        gate: Arc<Gate>,
        owner: Pinned<dyn Owner>,
    ) -> Result<KBox<Self>, Error> {
        let names = Names::take(&unit)?;
        let number = Number::take(&unit)?;
        ALIVE.fetch_add(1, Ordering::Relaxed);
        let shared = Self {
            unit,
            names,
            number,
            hctxs,
            stats,
            bytes,
            gate,
            owner,
        };
        KBox::new(shared, GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    /// Whether `which` is on.
    pub(crate) fn switch(&self, which: u8) -> bool {
        (self.hctxs.first()).is_some_and(|hctx| hctx.switches.get().0 & which != 0)
    }

    /// Turns `which` on or off.
    pub(crate) fn turn(&self, which: u8, on: bool) {
        (self.hctxs.iter()).for_each(|hctx| hctx.switches.turn(which, on));
    }
}

/// How many [`DiskShared`] there are. The last close of a disk frees its own after the module's
/// reference count has gone down, so leaving the module means waiting for them.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

impl Drop for DiskShared {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Release);
    }
}

/// All disks of the module: when it is dropped, it waits until none is being freed any more.
pub struct AllDisks {
    _major: Major,
    _nodes: Nodes,
}

impl AllDisks {
    /// Before the first disk; once. Sleeps.
    pub fn begin() -> Result<Self, Error> {
        let (major, nodes) = (Major::take()?, Nodes::begin()?);
        init_names();
        Ok(Self {
            _major: major,
            _nodes: nodes,
        })
    }
}

impl Drop for AllDisks {
    fn drop(&mut self) {
        // TIMEOUT: none: nobody has a disk open any more, so what is left is on its way through
        // `free_disk`.
        while ALIVE.load(Ordering::Acquire) != 0 {
            fsleep(Delta::from_millis(1));
        }
        // A thread that was in `free_disk` has left this module's text after it.
        synchronize_rcu();
    }
}

kernel::sync::global_lock! {
    // SAFETY: initialized by `init`, and not used before `READY` says so.
    unsafe(uninit) static HELD: Mutex<KVec<Held>> = KVec::new();
}

/// `HELD` is initialized.
static READY: AtomicBool = AtomicBool::new(false);

/// Before the first disk; once. Sleeps.
fn init_names() {
    // SAFETY: the module is initialized once, and its disks come afterwards.
    unsafe { HELD.init() };
    READY.store(true, Ordering::Release);
}

/// A disk with the names that it goes by.
struct Held {
    number: u64,
    drive: ([u8; 20], [u8; 40], u32),
    ids: UnitIds,
}

impl Held {
    /// Whether it has a name of `unit`, and is another disk. Controllers of one subsystem show the
    /// same disk under its own names.
    fn is_mistaken_for(&self, unit: &Unit) -> bool {
        let ids = &unit.ids;
        self.drive != drive(unit)
            && (is_same(&self.ids.uuid, &ids.uuid)
                || is_same(&self.ids.nguid, &ids.nguid)
                || is_same(&self.ids.eui64, &ids.eui64))
    }
}

fn drive(unit: &Unit) -> ([u8; 20], [u8; 40], u32) {
    (unit.serial, unit.model, unit.id)
}

fn is_same<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_some() && one == other
}

/// The names that a disk goes by, as long as it lives.
pub(crate) struct Names {
    ids: UnitIds,
    number: u64,
}

impl Names {
    /// Those of `unit`; none of them if another disk goes by one. Sleeps.
    pub(crate) fn take(unit: &Unit) -> Result<Self, Error> {
        if !READY.load(Ordering::Acquire) {
            return Err(Error::Invalid);
        }
        let mut held = HELD.lock();
        let number = held.last().map_or(0, |last| last.number.wrapping_add(1));
        let ids = match held.iter().any(|held| held.is_mistaken_for(unit)) {
            true => UnitIds::default(),
            false => unit.ids,
        };
        let new = Held {
            number,
            drive: drive(unit),
            ids,
        };
        held.push(new, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self { ids, number })
    }

    /// They are these.
    pub(crate) fn ids(&self) -> &UnitIds {
        &self.ids
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let mut held = HELD.lock();
        let at = held.iter().position(|held| held.number == self.number);
        if let Some(at) = at {
            drop(held.remove(at));
        }
    }
}

/// Minors of a disk: for itself and its first partitions.
// CAST: sixteen.
pub(super) const MINORS: i32 = HIOPS_DISK_MINORS as i32;

/// The major of SATA disks, as long as it is hiops'; 0: it is not.
static MAJOR: AtomicI32 = AtomicI32::new(0);

/// The numbers and the class of the nodes for disks' bytes, which go with the drop.
struct Nodes(());

impl Nodes {
    /// Before the first disk; once. Sleeps.
    fn begin() -> Result<Self, Error> {
        match hiops_bytes_begin() {
            0 => Ok(Self(())),
            _ => Err(Error::NoMemory),
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        hiops_bytes_end();
    }
}

/// The major of SATA disks, which goes back with the drop.
struct Major(i32);

impl Major {
    /// Before the first disk; once. Sleeps.
    fn take() -> Result<Self, Error> {
        match hiops_major_get() {
            major @ 1.. => {
                MAJOR.store(major, Ordering::Release);
                Ok(Self(major))
            }
            _ => Err(Error::NoMemory),
        }
    }
}

impl Drop for Major {
    fn drop(&mut self) {
        MAJOR.store(0, Ordering::Release);
        hiops_major_put(self.0);
    }
}

/// A SATA disk's number among all of them, which goes back with the drop: when nobody has the disk
/// any more.
pub(crate) struct Number(i32);

impl Number {
    /// The lowest free one for `unit`; `None`: it is no SATA disk. Sleeps.
    fn take(unit: &Unit) -> Result<Option<Self>, Error> {
        if unit.kind != UnitKind::Drive {
            return Ok(None);
        }
        match hiops_disk_number_get() {
            number @ 0.. => Ok(Some(Self(number))),
            _ => Err(Error::NoMemory),
        }
    }

    /// It.
    pub(crate) fn get(&self) -> u32 {
        self.0.unsigned_abs()
    }

    /// The disk's major and first minor.
    pub(super) fn device(&self) -> (i32, i32) {
        let major = MAJOR.load(Ordering::Acquire);
        (major, self.0.saturating_mul(MINORS))
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        hiops_disk_number_put(self.0);
    }
}
