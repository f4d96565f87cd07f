// SPDX-License-Identifier: GPL-2.0
//! A port: what it owns. Controller and queue are two faces of it, for the control path and for the
//! data path.

use crate::command::Dialect;
use crate::decline::{History, Taken};
use crate::depth::Depth;
use crate::flight::Flight;
use crate::hba::PortPlan;
use crate::identify::DriveId;
use crate::lpm::Power;
use crate::memory::Memory;
use crate::quirks::Quirks;
use crate::regs::{self, PortRegs, Reg};
use crate::silence::Silence;
use crate::step::Progress;
use cell::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use cell::{Guard, Slot, TryLock};
use hal::{Error, Mmio, Platform};

/// Where a port's state lives, and how its control path is called for. In the kernel a counted
/// reference, with a work item.
pub trait Site: Clone + Send + Sync + 'static {
    /// The machine.
    type Platform: Platform;
    /// The HBA's registers.
    type Mmio: Mmio;

    /// The port. The same for every clone.
    fn port(&self) -> &Port<Self::Platform, Self::Mmio>;

    /// [`crate::AhciController::attend`] is to be called soon. Any context, with tokens held: it
    /// must not call the port or its queue back. Repeated wishes may be merged, a wish that comes
    /// after `attend` has begun may not.
    fn call(&self);
}

/// One port of an HBA, with the drive at it.
pub struct Port<P: Platform, M: Mmio> {
    pub(crate) platform: P,
    pub(crate) regs: PortRegs<M>,
    pub(crate) plan: PortPlan,
    pub(crate) memory: Memory<P>,
    pub(crate) flight: Flight,
    pub(crate) progress: Progress,
    /// The bits of the drive's [`Quirks`].
    pub(crate) quirks: AtomicU64,
    /// How much the link may sleep.
    pub(crate) power: Power,
    /// The layer above wants interrupts.
    pub(crate) listening: AtomicBool,
    /// Something came that the control path has to see to: no interrupts until it has.
    pub(crate) alarmed: AtomicBool,
    /// An interrupt was taken for the answer that is in memory, which nobody has looked at since.
    pub(crate) heard: AtomicBool,
    /// The control path is at work, and looks at the registers itself.
    pub(crate) busy: AtomicBool,
    /// The drive that was served is gone.
    pub(crate) departed: AtomicBool,
    /// The drive has a command of the driver's own, or one that was told alone, and did not answer
    /// it in time.
    pub(crate) unanswered: AtomicBool,
    /// The first answer that the control path has missed.
    pub(crate) missed: Slot<Silence>,
    /// A drive that has a queue is told everything singly.
    pub(crate) unqueued: AtomicBool,
    /// It is given so many commands at once.
    pub(crate) depth: Depth,
    /// The link's generation is limited to this; 0: it is not.
    pub(crate) generation_max: AtomicU32,
    /// Commands were not answered in time: the link's generation at that moment, and one more.
    pub(crate) silent: AtomicU32,
    /// What was taken, and was not told yet.
    pub(crate) taken: Slot<Taken>,
    state: TryLock<State>,
}

/// What only the control path touches.
pub(crate) struct State {
    pub(crate) occupant: Occupant,
    /// The queue was created.
    pub(crate) has_queue: bool,
    /// Errors of the link that came soon after one another,
    pub(crate) strikes: u32,
    /// and when the last one was.
    pub(crate) struck_us: u64,
    /// Errors that speak against queue or link.
    pub(crate) history: History,
}

/// What is at the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// Nothing, as far as is known.
    Nobody,
    /// Something that is left alone, and why.
    Refused(&'static str),
    /// A drive that is served.
    Drive(About),
}

/// What a drive said about itself, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) id: DriveId,
    pub(crate) dialect: Dialect,
    pub(crate) tags: u8,
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Memory for the port; its registers are not touched before [`hal::Controller::start`].
    /// Sleeps.
    ///
    /// [`Error::NoMemory`]. [`Error::Unsupported`]: the memory lies beyond the addresses of the
    /// HBA; see [`crate::Hba::dma_bits`].
    pub fn new(platform: P, mmio: M, plan: PortPlan) -> Result<Self, Error> {
        let memory = Memory::new(&platform, plan.cap.slots(), plan.below)?;
        Ok(Self {
            platform,
            regs: PortRegs::of(mmio, plan.number, plan.board),
            plan,
            memory,
            flight: Flight::new(),
            progress: Progress::new(),
            quirks: AtomicU64::new(0),
            power: Power::default(),
            listening: AtomicBool::new(false),
            alarmed: AtomicBool::new(false),
            heard: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            departed: AtomicBool::new(false),
            unanswered: AtomicBool::new(false),
            missed: Slot::default(),
            unqueued: AtomicBool::new(false),
            depth: Depth::new(),
            generation_max: AtomicU32::new(0),
            silent: AtomicU32::new(0),
            taken: Slot::default(),
            state: TryLock::new(State {
                occupant: Occupant::Nobody,
                has_queue: false,
                strikes: 0,
                struck_us: 0,
                history: History::default(),
            }),
        })
    }

    /// The port's number, from 0.
    pub const fn number(&self) -> u8 {
        self.plan.number
    }

    /// What the control path was last doing: names the command or the step that an [`Error`] of it
    /// is about.
    pub fn step(&self) -> &'static str {
        self.progress.name()
    }

    /// What the drive is known for. Any context.
    pub(crate) fn quirks(&self) -> Quirks {
        Quirks::from_bits(self.quirks.load(Ordering::Relaxed))
    }

    /// The control path's state. [`Error::Invalid`]: two callers at once, against the contract.
    pub(crate) fn state(&self) -> Result<Guard<'_, State>, Error> {
        self.state.try_lock().ok_or(Error::Invalid)
    }

    /// The control path begins: it looks at the registers itself, so they interrupt nobody.
    pub(crate) fn begin(&self) {
        self.busy.store(true, Ordering::SeqCst);
        self.regs.write(Reg::Ie, 0);
    }

    /// The control path is done, and so is what it was called for.
    pub(crate) fn end(&self) {
        self.flight.trust();
        self.give_turns();
        self.alarmed.store(false, Ordering::SeqCst);
        self.busy.store(false, Ordering::SeqCst);
        self.arm();
    }

    /// `PxIE` as the port's state and the layer above want it. Who silences the port at the same
    /// time may lose: then the next interrupt does it again.
    pub(crate) fn arm(&self) {
        let silent = !self.listening.load(Ordering::SeqCst)
            || self.alarmed.load(Ordering::SeqCst)
            || self.busy.load(Ordering::SeqCst);
        let enabled = match (silent, self.flight.is_halted()) {
            (true, _) => 0,
            (false, true) => regs::IS_HOTPLUG,
            (false, false) => regs::IS_DONE | regs::IS_TROUBLE,
        };
        self.regs.write(Reg::Ie, enabled);
    }

    /// Something came that the control path has to see to, and until then nothing is told. Whether
    /// it has to be called.
    #[cold]
    pub(crate) fn alarm(&self) -> bool {
        self.flight.suspect();
        let first = !self.alarmed.swap(true, Ordering::SeqCst);
        self.regs.write(Reg::Ie, 0);
        first
    }
}

impl<P: Platform, M: Mmio> Drop for Port<P, M> {
    fn drop(&mut self) {
        // Its memory is not freed under an HBA that may write to it. Where the port can't be
        // stopped the caller has cut it off the bus.
        let _ = self.put_out();
    }
}
