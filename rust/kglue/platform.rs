// SPDX-License-Identifier: GPL-2.0
//! The kernel as a hal platform: tables, DMA memory, registers, time; the context that it runs
//! hiops in, its clocks; and what this machine takes for what a strategy can choose between,
//! measured as a controller is bound.
//!
//! DMA memory is the kernel crate's (`kernel::dma::Coherent`). The words in it are read and written
//! here: what the crate has for that is another thing in each of Linux 7.2 and 7.3, and is meant
//! for fields whose place is known when the driver is compiled.
//!
//! Registers are not `kernel::pci::Bar`, which is another thing in each of Linux 7.2 and 7.3, lives
//! no longer than a borrow of the device, and answers an offset outside with an error and not as a
//! device that is gone.

use core::mem::size_of;
use core::ops::{Deref, Range};
use core::ptr::{read_volatile, write_volatile, NonNull};
use core::sync::atomic::Ordering;
use engine::Costs;
use hal::{DmaMem, Error, Mmio, Platform};
use kernel::alloc::flags::__GFP_NOWARN;
use kernel::alloc::KVVec;
use kernel::bindings;
use kernel::cpu::CpuId;
use kernel::device::{Bound, Device};
use kernel::dma::Coherent;
use kernel::ffi::{c_uint, c_void};
use kernel::jump_label::static_branch_unlikely;
use kernel::prelude::*;
use kernel::sync::aref::{ARef, AlwaysRefCounted};
use kernel::sync::Arc;
use kernel::time::delay::fsleep;
use kernel::time::{ClockSource, Delta, Instant, Monotonic};

use crate::{shims, shims_safe};

/// What the pure crates stand on in the kernel, for one device or for none.
#[derive(Clone)]
pub struct KernelPlatform {
    /// Whose DMA memory [`Platform::dma`] hands out; `None`: there is no such device (the RAM
    /// disk).
    device: Option<BoundDevice>,
    /// Where [`Platform::now_us`] counts from.
    epoch: Instant<Monotonic>,
}

impl KernelPlatform {
    /// A platform without a device, for controllers made of software: [`Platform::dma`] answers
    /// [`Error::Unsupported`].
    pub fn without_device() -> Self {
        Self {
            device: None,
            epoch: Instant::now(),
        }
    }

    /// A platform for `device`.
    pub fn new(device: BoundDevice) -> Self {
        Self {
            device: Some(device),
            epoch: Instant::now(),
        }
    }

    /// The device's name, if there is a device.
    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    pub fn name(&self) -> Option<&CStr> {
        self.device.as_ref().map(|device| device.name())
    }
}

/// A table of fixed length in kernel memory.
pub struct Table<T>(KVVec<T>);

impl<T> Deref for Table<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl Platform for KernelPlatform {
    type Table<T: Send + Sync + 'static> = Table<T>;
    type Dma = DmaBlock;

    fn table<T: Send + Sync + 'static>(
        &self,
        len: usize,
        mut make: impl FnMut(usize) -> T,
    ) -> Result<Table<T>, Error> {
        let mut table = KVVec::with_capacity(len, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        for at in 0..len {
            table
                .push(make(at), GFP_KERNEL)
                .map_err(|_| Error::NoMemory)?;
        }
        Ok(Table(table))
    }

    fn dma(&self, bytes: usize) -> Result<DmaBlock, Error> {
        let device = self.device.as_ref().ok_or(Error::Unsupported)?;
        DmaBlock::new(device, bytes)
    }

    fn now_us(&self) -> u64 {
        // CAST: time since an earlier moment of a monotonic clock is never negative.
        self.epoch.elapsed().as_micros_ceil() as u64
    }

    fn sleep_us(&self, us: u64) {
        fsleep(Delta::from_micros(i64::try_from(us).unwrap_or(i64::MAX)));
    }
}

/// Measures what things cost on this CPU; what can't be measured is assumed. Some milliseconds;
/// sleeps.
pub(crate) fn measure_costs() -> Costs {
    let mut found = shims::hiops_costs::default();
    shims_safe::hiops_measure_costs(&mut found);
    let or = |ns: u64, assumed: u64| if ns == 0 { assumed } else { ns };
    let tick_ns = or(found.tick_ns, Costs::ASSUMED.tick_ns);
    Costs {
        sleep_ns: or(found.sleep_ns, Costs::ASSUMED.sleep_ns),
        yield_ns: or(found.yield_ns, Costs::ASSUMED.yield_ns),
        tick_ns,
        // Until one came: what it does beside is its driver's.
        interrupt_ns: tick_ns,
    }
}

/// While it lives, this thread stays on its CPU and runs on: the holder of a token is never
/// scheduled away.
pub(crate) struct PreemptOff(());

impl PreemptOff {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        shims_safe::hiops_preempt_disable();
        Self(())
    }

    /// For a thread that submits: should it go to sleep, that needs no timer of its own
    /// (`wait/sleepers.rs`).
    #[inline(always)]
    pub(crate) fn of_submitter() -> Self {
        shims_safe::hiops_submit_begin();
        Self(())
    }
}

impl Drop for PreemptOff {
    #[inline(always)]
    fn drop(&mut self) {
        shims_safe::hiops_preempt_enable();
    }
}

/// While it lives, this thread's allocations start no I/O, which might wait for the disk that is
/// being recovered.
pub(crate) struct NoIo(u32);

impl NoIo {
    pub(crate) fn new() -> Self {
        Self(shims_safe::hiops_noio_save())
    }
}

impl Drop for NoIo {
    fn drop(&mut self) {
        shims_safe::hiops_noio_restore(self.0);
    }
}

/// The CPU that runs this; with preemption on, one that has.
#[inline(always)]
pub(crate) fn cpu() -> usize {
    CpuId::current().as_u32() as usize
}

/// `N` numbers, which each CPU counts by itself; sums are taken when a reader asks for them.
///
/// # Invariants
/// They are `N` numbers from `hiops_percpu_alloc`, and freed by the drop.
pub(crate) struct PerCpu<const N: usize>(NonNull<u64>);

// SAFETY: any context may count, and take sums.
unsafe impl<const N: usize> Send for PerCpu<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for PerCpu<N> {}

impl<const N: usize> PerCpu<N> {
    /// All of them 0. Sleeps.
    pub(crate) fn new() -> Result<Self, Error> {
        // CAST: some hundreds.
        let numbers = NonNull::new(shims_safe::hiops_percpu_alloc(N as c_uint));
        // INVARIANT: just allocated.
        numbers.map(Self).ok_or(Error::NoMemory)
    }

    /// Adds `n` to this CPU's copy of the number `at`, if there is such a one, as the kernel's
    /// `this_cpu_add` does. Any context.
    #[inline(always)]
    pub(crate) fn add(&self, at: usize, n: u64) {
        if at >= N {
            return;
        }
        let number = self.0.as_ptr().wrapping_add(at);
        // SAFETY: by the invariant; a CPU's copy of such memory lies where GS points to, as far on
        // as `number` says (arch/x86/include/asm/percpu.h). One instruction: neither an interrupt
        // nor the scheduler comes between finding the copy and changing it.
        unsafe {
            core::arch::asm!(
                "add qword ptr gs:[{}], {}", in(reg) number, in(reg) n, options(nostack)
            );
        }
    }

    /// The sum of all CPUs of the number `at`; 0: there is no such number. Any context.
    pub(crate) fn sum(&self, at: usize) -> u64 {
        if at >= N {
            return 0;
        }
        // SAFETY: by the invariant; it is one of them.
        // CAST: some hundreds.
        unsafe { shims::hiops_percpu_sum(self.0.as_ptr(), at as c_uint) }
    }

    /// Those of `which`, as far as there are any, are 0 from now on. Any context.
    pub(crate) fn reset(&self, which: Range<usize>) {
        let end = which.end.min(N);
        let from = which.start.min(end);
        let count = end.wrapping_sub(from);
        // SAFETY: by the invariant; all are some of them.
        // CAST: some hundreds.
        unsafe { shims::hiops_percpu_reset(self.0.as_ptr(), from as c_uint, count as c_uint) };
    }
}

impl<const N: usize> Drop for PerCpu<N> {
    fn drop(&mut self) {
        // SAFETY: by the invariant; nothing is counted any more.
        unsafe { shims::hiops_percpu_free(self.0.as_ptr()) };
    }
}

/// Whether any queue may have prediction on: a no-op where none has. Any context.
#[inline(always)]
pub(crate) fn may_predict() -> bool {
    // SAFETY: a static key that C defines, and whose fields have the types that are named.
    unsafe { static_branch_unlikely!(shims::hiops_predicts, shims::hiops_key, key) }
}

/// A stamp for short intervals on one CPU, in units of its own: see [`stamps_to_ns`].
#[inline(always)]
pub(crate) fn stamp() -> u64 {
    // The time stamp counter itself: a clock in nanoseconds costs more than some interrupts' work.
    // SAFETY: every processor of 64 bits has one, and the kernel may always read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The nanoseconds between two stamps that differ by `stamps`.
pub(crate) fn stamps_to_ns(stamps: u64) -> u64 {
    shims_safe::hiops_stamp_ns(stamps)
}

/// Nanoseconds by the kernel's monotonic clock, on all CPUs the same.
#[inline]
pub(crate) fn now_ns() -> u64 {
    // CAST: the trait promises that it is not negative.
    Monotonic::ktime_get() as u64
}

/// How much two stamps differ by that are `ns` apart; a clock of unknown speed tells no intervals.
pub(crate) fn stamps_of(ns: u64) -> u64 {
    const PROBE: u64 = 1 << 20;
    let probe_ns = stamps_to_ns(PROBE);
    ns.saturating_mul(PROBE)
        .checked_div(probe_ns)
        .unwrap_or(u64::MAX)
}

/// The kernel's tick count, wrapping.
#[inline]
pub(crate) fn jiffies() -> kernel::ffi::c_ulong {
    shims_safe::jiffies.load(Ordering::Relaxed)
}

/// The step of [`now_ms`].
pub(crate) const TICK_MS: u64 = 1000 / shims::HIOPS_HZ as u64;

/// Milliseconds since some moment before boot, in steps of a tick.
#[inline]
pub(crate) fn now_ms() -> u64 {
    (jiffies() as u64).wrapping_mul(TICK_MS)
}

/// A counted reference to a device, as its bus has it, whose driver is bound. Clones are references
/// to the same.
///
/// The kernel crate (Linux 7.2 and 7.3) proves that a device is bound by a `&Device<Bound>`, which
/// lives as long as a callback of the crate's own bus drivers. What is made of a device here lives
/// from probe to unbind, in the private data of drivers that are not the crate's
/// ([`crate::pci::registration`] says why), so the proof is a counted reference with a promise.
///
/// # Invariants
/// The driver is bound for as long as the reference lives.
pub struct BoundRef<T: AlwaysRefCounted>(ARef<T>);

/// The same of a device, whatever bus it is on.
pub type BoundDevice = BoundRef<Device>;

impl<T: AlwaysRefCounted> Clone for BoundRef<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: AlwaysRefCounted + AsRef<Device>> BoundRef<T> {
    /// # Safety
    /// The type's invariant, which becomes the reference's.
    pub(crate) unsafe fn new(device: ARef<T>) -> Self {
        // INVARIANT: the caller's promise.
        Self(device)
    }

    /// It, as it is on its bus.
    pub(crate) fn on_bus(&self) -> &T {
        &self.0
    }

    /// The device that it is.
    pub(crate) fn device(&self) -> BoundDevice {
        // INVARIANT: the same device, with the same driver.
        BoundRef(self.0.as_ref().into())
    }
}

impl Deref for BoundDevice {
    type Target = Device<Bound>;

    fn deref(&self) -> &Device<Bound> {
        // SAFETY: bound, by the invariant.
        unsafe { self.0.as_bound() }
    }
}

/// The kernel's structure of `device`, whose wrapper in the kernel crate is transparent. What is
/// done with it is up to the caller.
pub(crate) fn raw_device(device: &Device) -> *mut bindings::device {
    core::ptr::from_ref(device).cast_mut().cast()
}

/// How much is mapped for a device at once.
pub(crate) enum Mapping {
    /// What can be: less than everything where data goes through bounce buffers, as in confidential
    /// machines.
    AtAll,
    /// What can be without undue cost: behind an IOMMU, what its cache of addresses holds.
    Well,
}

/// Most bytes that are mapped for `device` at once, whose driver has set its DMA mask.
pub(crate) fn mapping(device: &Device<Bound>, how: Mapping) -> u64 {
    let bytes = match how {
        Mapping::AtAll => shims_safe::dma_max_mapping_size(device),
        Mapping::Well => shims_safe::dma_opt_mapping_size(device),
    };
    // CAST: a `usize` has 64 bits at most.
    bytes as u64
}

/// A block of coherent memory, as words that are copied in and out, never borrowed. Clones are
/// handles of the same memory, which is freed with the last of them.
///
/// The length is a multiple of 8, so an aligned word that starts inside also ends inside: one
/// comparison and one test of the low bits are the whole bounds check.
///
/// # Invariants
/// `first` and `len` are the start and the length in bytes of `memory`, whose device address is
/// `bus`.
#[derive(Clone)]
pub struct DmaBlock {
    first: NonNull<u64>,
    len: usize,
    bus: u64,
    /// Keeps the memory.
    _memory: Arc<Coherent<[u64]>>,
}

// SAFETY: the memory belongs to no thread.
unsafe impl Send for DmaBlock {}
// SAFETY: every access is one volatile load or store of a word, with no reference to the memory
// anywhere.
unsafe impl Sync for DmaBlock {}

/// What is read and written at once, whatever bits it has.
trait Word: Copy {}
impl Word for u32 {}
impl Word for u64 {}

impl DmaBlock {
    /// `bytes` (rounded up to a multiple of 8) of zeroed memory that `device` can reach, aligned to
    /// a page. Sleeps.
    pub fn new(device: &Device<Bound>, bytes: usize) -> Result<Self, Error> {
        if bytes == 0 {
            return Err(Error::Invalid);
        }
        // That there is none is told where it is missed, or there is a way without.
        let flags = GFP_KERNEL | __GFP_NOWARN;
        let memory = Coherent::zeroed_slice(device, bytes.div_ceil(size_of::<u64>()), flags)
            .map_err(|_| Error::NoMemory)?;
        // INVARIANT: asked of the memory itself.
        Ok(Self {
            first: NonNull::new(memory.as_mut_ptr().cast()).ok_or(Error::NoMemory)?,
            len: memory.size(),
            bus: crate::compat::dma_address(&memory),
            _memory: Arc::new(memory, GFP_KERNEL).map_err(|_| Error::NoMemory)?,
        })
    }

    /// Where the memory begins, for who copies from it when the device is done with it.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.first.cast()
    }

    /// Where the word of type `T` at byte `offset` is, if it is aligned and inside. A pointer that
    /// comes from here is valid for volatile access for as long as `self` lives.
    #[inline(always)]
    fn word<T>(&self, offset: usize) -> Option<*mut T> {
        let inside = offset < self.len && offset % size_of::<T>() == 0;
        report_stray(!inside);
        inside.then(|| self.first.as_ptr().wrapping_byte_add(offset).cast())
    }

    /// The word at byte `offset`, as it is there now.
    #[inline(always)]
    fn load<T: Word>(&self, offset: usize) -> Option<T> {
        // SAFETY: inside the block (see `word`); volatile, as the device may write it at any
        // moment.
        self.word(offset).map(|word| unsafe { read_volatile(word) })
    }

    /// Writes the word at byte `offset`, if that is inside.
    #[inline(always)]
    fn store<T: Word>(&self, offset: usize, value: T) {
        if let Some(word) = self.word(offset) {
            // SAFETY: as in `load`; no reference to the memory exists anywhere.
            unsafe { write_volatile(word, value) }
        }
    }
}

impl DmaMem for DmaBlock {
    #[inline(always)]
    fn bus_addr(&self) -> u64 {
        self.bus
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn read32(&self, offset: usize) -> u32 {
        self.load(offset).map_or(u32::MAX, u32::from_le)
    }

    #[inline(always)]
    fn write32(&self, offset: usize, value: u32) {
        self.store(offset, value.to_le());
    }

    #[inline(always)]
    fn read64(&self, offset: usize) -> u64 {
        self.load(offset).map_or(u64::MAX, u64::from_le)
    }

    #[inline(always)]
    fn write64(&self, offset: usize, value: u64) {
        self.store(offset, value.to_le());
    }

    #[inline(always)]
    fn write_words<const N: usize>(&self, offset: usize, words: [u64; N]) {
        let bytes = const { N * size_of::<u64>() };
        let inside = offset % size_of::<u64>() == 0
            && self
                .len
                .checked_sub(bytes)
                .is_some_and(|last| offset <= last);
        report_stray(!inside);
        if inside {
            let first = self.first.as_ptr().wrapping_byte_add(offset);
            for (at, word) in words.into_iter().enumerate() {
                // SAFETY: all `N` words are inside, as was just checked; otherwise as in `store`.
                unsafe { write_volatile(first.add(at), word.to_le()) }
            }
        }
    }
}

/// A window on a device's registers. Clones are handles of the same mapping, which lives as long as
/// any of them, also after the device was pulled: its registers then read as all ones.
///
/// # Invariants
/// `first` is the address of `mapping`, which holds at least `len` bytes of registers; `len` is a
/// multiple of 4.
#[derive(Clone)]
pub struct Window {
    first: NonNull<c_void>,
    len: usize,
    /// Keeps the mapping.
    _mapping: Arc<Registers>,
}

// SAFETY: a mapping belongs to no thread.
unsafe impl Send for Window {}
// SAFETY: each access is one load or store of the CPU; the device defines what concurrent ones
// mean.
unsafe impl Sync for Window {}

/// An address that `ioremap` gave, unmapped when dropped.
struct Registers(NonNull<c_void>);

// SAFETY: a mapping belongs to no thread.
unsafe impl Send for Registers {}
// SAFETY: nothing can be done with a shared reference.
unsafe impl Sync for Registers {}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: mapped in `Window::new`, unmapped only here.
        unsafe { bindings::iounmap(self.0.as_ptr()) }
    }
}

impl Window {
    /// Maps the registers that `len` bytes of physical memory from `start` on are, uncached.
    /// Sleeps.
    ///
    /// # Safety
    /// They are the caller's device's, and its driver's alone.
    pub(crate) unsafe fn new(start: u64, len: usize) -> Result<Self, Error> {
        // SAFETY: the driver's alone, by the caller's promise.
        let first = unsafe { bindings::ioremap(start, len) };
        let first = NonNull::new(first).ok_or(Error::NoMemory)?;
        let mapping = Arc::new(Registers(first), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // INVARIANT: just mapped; the length is rounded down.
        Ok(Self {
            first,
            len: len & !3,
            _mapping: mapping,
        })
    }

    /// Where the register at byte `offset` is, if it is aligned and inside.
    #[inline(always)]
    fn register(&self, offset: usize) -> Option<*mut c_void> {
        let inside = offset < self.len && offset % 4 == 0;
        report_stray(!inside);
        inside.then(|| self.first.as_ptr().wrapping_byte_add(offset))
    }
}

impl Mmio for Window {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn read32(&self, offset: usize) -> u32 {
        match self.register(offset) {
            // SAFETY: inside the mapping. `readl` orders later reads of memory behind it.
            Some(register) => unsafe { bindings::readl(register) },
            None => u32::MAX,
        }
    }

    #[inline(always)]
    fn write32(&self, offset: usize, value: u32) {
        if let Some(register) = self.register(offset) {
            // SAFETY: inside the mapping. `writel` orders earlier writes to memory before it.
            unsafe { bindings::writel(value, register) }
        }
    }
}

/// Debug builds say when an LLD reached outside its window or its DMA memory; other builds only
/// give it all ones.
#[inline(always)]
pub(crate) fn report_stray(stray: bool) {
    if cfg!(debug_assertions) {
        kernel::warn_on!(stray);
    }
}
