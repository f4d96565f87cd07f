// SPDX-License-Identifier: GPL-2.0
//! A controller, in one view: all that is kept of it, and how a command of the driver's own is sent
//! to it. What is done with it is in the files of the subjects.
//!
//! [`NvmeController`] is what any context may look at. [`State`] is the control path's alone, from
//! one call to the next: of two callers at once the second is refused. What the controller says of
//! itself (Identify Controller, Base 2.0 section 5.17) is decoded here, field by field from memory
//! that the device wrote; each field is read once.

use cell::sync::{AtomicBool, AtomicU64, Ordering};
use cell::{Guard, TryLock};
use hal::{Deadline, DmaMem, Error, Limits, Mmio, PciIds, Platform};

use crate::admin::{Admin, AdminStep, Cns};
use crate::cqe::RetryDelays;
use crate::queue::{NvmeDrain, NvmeIssue, NvmeQueue, Shadow};
use crate::quirks::Quirks;
use crate::regs::Cap;
use crate::sqe::{Layout, Sqe};
use crate::{admin, queue, regs};

/// Most queues that are asked for: no device grants more than a few dozen, and no machine has use
/// for more than one a CPU.
pub(crate) const QUEUES_MAX: u16 = 128;
/// Largest memory page, log2, of which tables are still allocated without thought.
const PAGE_SHIFT_MAX: u8 = 16;

/// One NVMe controller.
///
/// `platform` and `mmio` are the machine and the whole register window (BAR 0). Clones of `M` and
/// of `P::Dma` are handles of the same thing.
pub struct NvmeController<P: Platform, M: Mmio + Clone>
where
    P::Dma: Clone,
{
    pub(crate) platform: P,
    pub(crate) mmio: M,
    pub(crate) cap: Cap,
    pub(crate) admin: Admin<P>,
    /// Three pages: namespace list, other structures, PRP list of a command passed through.
    pub(crate) pages: P::Dma,
    /// The I/O queue pairs that exist, which a start after a reset creates again.
    pub(crate) live_pairs: P::Table<TryLock<Option<LiveQueuePair<P::Dma>>>>,
    pub(crate) progress: hal::Progress<AdminStep>,
    /// The bits of [`Quirks`]: the function's, and once it is identified the model's.
    pub(crate) quirks: AtomicU64,
    /// Interrupts come by a pin.
    pin: AtomicBool,
    /// Namespaces that other controllers have, too, are disks.
    pub(crate) shared: AtomicBool,
    /// Maximum bytes of the host memory buffer; 0: it is disabled.
    pub(crate) hmb_limit: AtomicU64,
    /// The device may touch memory.
    pub(crate) enabled: AtomicBool,
    /// One, apart from the rest, which is made on a thread's stack.
    state: P::Table<TryLock<State<P, M>>>,
}

/// What only the control path touches.
pub(crate) struct State<P: Platform, M: Mmio> {
    /// Known after the first start.
    pub(crate) about: Option<About>,
    /// What admin commands change, once it was asked for.
    pub(crate) effects: Option<Log>,
    /// What is known of the events that it has reported.
    pub(crate) events: Events,
    /// The host memory buffer, and what became of it, which is yet to be logged.
    pub(crate) hmb: Option<HostMemoryBuffer<P>>,
    pub(crate) hmb_outcome: Option<HmbOutcome>,
    /// The shadow doorbells, once they exist.
    pub(crate) shadow: Option<Shadow<P::Dma>>,
    /// How many queues exist.
    pub(crate) queues: u16,
    /// Memory that the device may still access, freed when it is next disabled.
    pub(crate) deferred: DeferredFrees<P, M>,
}

/// What the controller said about itself, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) id: ControllerId,
    pub(crate) limits: Limits,
    pub(crate) layout: Layout,
}

/// Identify Controller (figure 275), as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ControllerId {
    /// The PCI vendor, as the controller says.
    pub(crate) vendor: u16,
    pub(crate) serial: [u8; 20],
    pub(crate) model: [u8; 40],
    pub(crate) firmware: [u8; 8],
    /// The NVM subsystem has more than one port, or more than one controller (CMIC).
    pub(crate) has_siblings: bool,
    /// Most data of a command, log2 of smallest pages; 0: no limit.
    pub(crate) mdts: u8,
    /// Microseconds that a shutdown may take; 0: not said.
    pub(crate) rtd3e_us: u32,
    /// The optional events that it reports (OAES).
    pub(crate) events: u32,
    /// Most tenths of a second for which it takes no commands while it activates firmware; 0: not
    /// said.
    pub(crate) mtfa: u16,
    /// Autonomous power state transitions are there.
    pub(crate) has_apst: bool,
    /// 0 (not said) or 1: an I/O controller.
    pub(crate) kind: u8,
    /// How hot it may be.
    pub(crate) temperature: Bounds,
    /// Requirements of a host memory buffer.
    pub(crate) hmb: HmbRequirements,
    /// CRDT1 to CRDT3; all zero: it asks for no delays.
    pub(crate) retry_delays: RetryDelays,
    pub(crate) has_doorbell_buffer: bool,
    /// The log page Commands Supported and Effects is there (LPA).
    pub(crate) has_effects_log: bool,
    /// Submission and completion entries of 64 and 16 bytes are taken.
    pub(crate) has_entry_sizes: bool,
    /// The largest NSID.
    pub(crate) namespaces: u32,
    pub(crate) has_discard: bool,
    pub(crate) has_write_zeroes: bool,
    pub(crate) has_reservations: bool,
    pub(crate) write_cache: bool,
    pub(crate) sgls: Sgls,
    /// SGLs may have bit buckets (SGLS, bit 16).
    pub(crate) has_bit_bucket: bool,
}

/// How a controller takes SGLs (SGLS, bits 1:0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sgls {
    No,
    Any,
    Dword,
}

/// From which temperatures on a controller is hot (WCTEMP and CCTEMP), in kelvins; 0: not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) warning: u16,
    pub(crate) critical: u16,
}

/// A controller's requirements of a host memory buffer, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HmbRequirements {
    /// HMPRE: preferred size; 0: the feature is not supported.
    pub(crate) preferred: u64,
    /// HMMIN: minimum size.
    pub(crate) min: u64,
    /// HMMINDS: minimum size of a chunk.
    pub(crate) min_chunk: u64,
    /// HMMAXD: maximum number of chunks; 0: no limit is reported.
    pub(crate) max_chunks: u16,
}

/// A queue pair that was created at the controller, with handles of its memory, which keep it
/// allocated for as long as the device may access it.
pub(crate) struct LiveQueuePair<D> {
    pub(crate) sq: D,
    pub(crate) cq: D,
    pub(crate) entries: u16,
    /// `None`: it never interrupts.
    pub(crate) vector: Option<u16>,
}

/// Memory that no layer above uses any more but the device may still access. It is freed when the
/// controller is next disabled, which proves that the device accesses none of it.
pub(crate) struct DeferredFrees<P: Platform, M: Mmio> {
    /// Data of an admin command that was not answered.
    pub(crate) data: Option<P::Dma>,
    /// A queue that the controller was not seen to delete.
    pub(crate) queue: Option<NvmeQueue<P, M>>,
    /// The queue pair of passthrough I/O commands, once there was one.
    pub(crate) passthru: Option<PassthruQueue<P, M>>,
}

/// A queue pair for passthrough I/O commands, created for the first of them. It has one command in
/// flight at a time.
pub(crate) struct PassthruQueue<P: Platform, M: Mmio> {
    pub(crate) queue: NvmeQueue<P, M>,
    pub(crate) issue: NvmeIssue,
    pub(crate) drain: NvmeDrain,
    /// The device has a command.
    pub(crate) busy: bool,
    /// That command's data.
    pub(crate) data: Option<P::Dma>,
}

/// A host memory buffer, which the controller owns, or will own with its next start.
pub(crate) struct HostMemoryBuffer<P: Platform> {
    /// Its chunks, which this driver neither reads nor writes.
    pub(crate) _chunks: P::Table<Option<P::Dma>>,
    /// Descriptor list of the chunks, for the controller.
    pub(crate) list: P::Dma,
    /// Number of chunks, and bytes of all of them.
    pub(crate) count: u32,
    pub(crate) bytes: u64,
}

/// Result of setting up the host memory buffer, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HmbOutcome {
    /// Enabled, with this many bytes in this many chunks.
    Enabled(u64, u32),
    /// The controller requires at least this many bytes, which the limit does not allow.
    OverLimit(u64),
    /// The machine could not allocate this many bytes.
    NoMemory(u64),
    /// The controller failed Set Features with this status.
    Refused(u16),
}

/// State of the asynchronous events, which stays across resets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events {
    pub(crate) rate_limit: RateLimit,
    /// The controller was started at least once.
    pub(crate) begun: bool,
    /// The controller was reset: events may have been lost.
    pub(crate) missed: bool,
    /// A firmware activation has begun, which is handled with the queues quiesced.
    pub(crate) firmware: bool,
    /// The critical warnings reported last.
    pub(crate) warnings: u8,
}

/// Rate limit of asynchronous events: a burst, then one an interval, which doubles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// Events left of the burst.
    pub(crate) left: u8,
    /// Microseconds between two events once the burst is used up.
    pub(crate) interval_us: u32,
    /// When the last event was handled.
    pub(crate) last_us: u64,
    /// One was deferred.
    pub(crate) waits: bool,
}

/// What the log page Commands Supported and Effects says of each admin command, by opcode, as far
/// as it matters.
pub(crate) type Log = [u8; 256];

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Looks at the capabilities and allocates what administration needs; the device is not touched
    /// before [`hal::Controller::start`]. Sleeps.
    ///
    /// [`Error::Gone`]: no device answers. [`Error::Malformed`], [`Error::Unsupported`]: its
    /// capabilities contradict the specification or the window's length, or it has no command set
    /// or page size that this driver knows.
    ///
    /// `ids` says what is known of it: memory is where [`Quirks::dma_bits`] of it reach by now, and
    /// interrupts come as [`Quirks::messages`] has it.
    pub fn new(platform: P, mmio: M, ids: &PciIds) -> Result<Self, Error> {
        let cap = Cap::read(&mmio)?;
        let quirks = Quirks::of_function(ids);
        let page_shift = cap.page_shift_min();
        if quirks.mqes(cap.mqes()) == 0 || page_shift > cap.page_shift_max() {
            return Err(Error::Malformed);
        }
        if page_shift > PAGE_SHIFT_MAX || !(cap.has_nvm_command_set() || cap.has_command_sets()) {
            return Err(Error::Unsupported);
        }
        // The admin pair and one more.
        let doorbells = mmio.len().saturating_sub(regs::DOORBELLS);
        if regs::pairs_within(doorbells, cap.stride()) < 2 {
            return Err(Error::Malformed);
        }
        let page = 1usize.wrapping_shl(u32::from(page_shift));
        Ok(Self {
            admin: Admin::new(&platform, cap.stride(), page, quirks.has_small_cids())?,
            pages: queue::paged(&platform, page.saturating_mul(3), page)?,
            live_pairs: platform.table(usize::from(QUEUES_MAX), |_| TryLock::new(None))?,
            mmio,
            cap,
            progress: hal::Progress::new(AdminStep::Probe),
            quirks: AtomicU64::new(quirks.bits()),
            pin: AtomicBool::new(false),
            shared: AtomicBool::new(false),
            hmb_limit: AtomicU64::new(0),
            enabled: AtomicBool::new(false),
            state: platform.table(1, |_| TryLock::new(State::new()))?,
            platform,
        })
    }

    /// Says that the interrupt is a pin (INTx, a level) rather than messages. To be called before
    /// queues are created and the handler is registered; then there is one queue, and it starts
    /// masked: [`hal::Controller::set_interrupt`] opens it.
    pub fn use_pin(&self, pin: bool) {
        self.pin.store(pin, Ordering::Relaxed);
        if pin && self.enabled.load(Ordering::Relaxed) {
            regs::mask(&self.mmio, 0);
        }
    }

    /// What the control path was last doing: names the command or the step that an [`Error`] of it
    /// is about.
    pub fn step(&self) -> &'static str {
        self.progress.name()
    }

    /// What it is spared. Any context.
    pub fn quirk_set(&self) -> Quirks {
        Quirks::from_bits(self.quirks.load(Ordering::Relaxed))
    }

    /// The control path's state. [`Error::Invalid`]: two callers at once, against the contract.
    pub(crate) fn state(&self) -> Result<Guard<'_, State<P, M>>, Error> {
        (self.state.first().and_then(TryLock::try_lock)).ok_or(Error::Invalid)
    }

    /// Bytes of the controller's memory page.
    pub(crate) fn page(&self) -> usize {
        1usize.wrapping_shl(u32::from(self.cap.page_shift_min()))
    }

    pub(crate) fn is_pin(&self) -> bool {
        self.pin.load(Ordering::Relaxed)
    }

    /// It has these, too.
    pub(crate) fn add_quirks(&self, more: Quirks) {
        self.quirks.fetch_or(more.bits(), Ordering::Relaxed);
    }

    /// Sends a command of the driver's own; any status but success is [`Error::Refused`] with it.
    pub(crate) fn command(&self, step: AdminStep, sqe: Sqe) -> Result<u64, Error> {
        self.progress.at(step);
        let deadline = Deadline::after(admin::TIMEOUT_US);
        let reply = (self.admin).submit(&self.platform, &self.mmio, sqe, deadline)?;
        match reply.status {
            0 => Ok(reply.result),
            status => Err(Error::Refused(status)),
        }
    }

    /// Identify into the second page.
    pub(crate) fn identify(
        &self,
        step: AdminStep,
        cns: Cns,
        nsid: u32,
    ) -> Result<Structure<'_, P::Dma>, Error> {
        let base = self.page();
        let to = self.pages.bus_addr().wrapping_add(base as u64);
        self.command(step, admin::identify(cns, nsid, to))?;
        Ok(Structure {
            memory: &self.pages,
            base,
        })
    }
}

impl<P: Platform, M: Mmio> State<P, M> {
    /// That of a controller which was not started yet.
    fn new() -> Self {
        Self {
            about: None,
            effects: None,
            events: Events::default(),
            hmb: None,
            hmb_outcome: None,
            shadow: None,
            queues: 0,
            deferred: DeferredFrees::nothing(),
        }
    }
}

impl<P: Platform, M: Mmio> DeferredFrees<P, M> {
    pub(crate) fn nothing() -> Self {
        Self {
            data: None,
            queue: None,
            passthru: None,
        }
    }
}

impl ControllerId {
    pub(crate) fn decode<D: DmaMem>(at: &Structure<'_, D>) -> Self {
        let (sqes, cqes) = (at.u8(512), at.u8(513));
        let oncs = at.u16(520);
        Self {
            vendor: at.u16(0),
            serial: at.bytes(4),
            model: at.bytes(24),
            firmware: at.bytes(64),
            has_siblings: at.u8(76) & 0b11 != 0,
            mdts: at.u8(77),
            rtd3e_us: at.u32(88),
            events: at.u32(92),
            mtfa: at.u16(270),
            has_apst: at.u8(265) & 1 != 0,
            kind: at.u8(111),
            temperature: Bounds {
                warning: at.u16(266),
                critical: at.u16(268),
            },
            hmb: HmbRequirements::new(at.u32(272), at.u32(276), at.u32(332), at.u16(336)),
            retry_delays: [at.u16(128), at.u16(130), at.u16(132)],
            has_doorbell_buffer: at.u16(256) & (1 << 8) != 0,
            has_effects_log: at.u8(261) & (1 << 1) != 0,
            has_entry_sizes: (sqes & 0xf) <= 6
                && (sqes >> 4) >= 6
                && (cqes & 0xf) <= 4
                && (cqes >> 4) >= 4,
            namespaces: at.u32(516),
            has_discard: oncs & (1 << 2) != 0,
            has_write_zeroes: oncs & (1 << 3) != 0,
            has_reservations: oncs & (1 << 5) != 0,
            write_cache: at.u8(525) & 1 != 0,
            sgls: match at.u32(536) & 3 {
                1 => Sgls::Any,
                2 => Sgls::Dword,
                _ => Sgls::No,
            },
            has_bit_bucket: at.u32(536) & (1 << 16) != 0,
        }
    }
}

impl Sgls {
    /// Bits that a segment's address and length must not have; `None`: no SGLs.
    pub(crate) const fn align(self) -> Option<u64> {
        match self {
            Self::No => None,
            Self::Any => Some(0),
            Self::Dword => Some(3),
        }
    }
}

/// Log2 of the bytes that HMPRE, HMMIN and HMMINDS count.
const UNIT_SHIFT: u32 = 12;

impl HmbRequirements {
    /// From the fields of Identify Controller.
    fn new(hmpre: u32, hmmin: u32, hmminds: u32, hmmaxd: u16) -> Self {
        let bytes = |units: u32| u64::from(units).wrapping_shl(UNIT_SHIFT);
        Self {
            preferred: bytes(hmpre),
            min: bytes(hmmin),
            min_chunk: bytes(hmminds),
            max_chunks: hmmaxd,
        }
    }
}

/// A structure in DMA memory.
#[derive(Clone, Copy)]
pub(crate) struct Structure<'a, D> {
    pub(crate) memory: &'a D,
    /// Where it begins.
    pub(crate) base: usize,
}

impl<D: DmaMem> Structure<'_, D> {
    pub(crate) fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory
            .read_bytes(self.base.wrapping_add(at), &mut bytes);
        bytes
    }

    pub(crate) fn u8(&self, at: usize) -> u8 {
        u8::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }
}
