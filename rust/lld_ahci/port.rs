// SPDX-License-Identifier: GPL-2.0
//! A port: what it owns. Controller and queue are two faces of it, for the control path and for the
//! data path.
//!
//! Starting and stopping the command list and the FIS receiver (AHCI 1.3.1 section 10.3), with the
//! waits that it bounds.
//!
//! From any state to a port that takes commands: stopped, link up, drive ready and recognized,
//! command list running.
//!
//! The link: spin-up, COMRESET, and the wait for the drive behind it (AHCI 1.3.1 sections 10.1,
//! 10.4.2, 10.10).
//!
//! BIOS/OS hand-off (AHCI 1.3.1 section 10.6): a firmware that uses the HBA itself lets go of it.

use cell::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use cell::{Guard, Slot, TryLock};
use hal::{Error, Mmio, Platform};

use crate::active::Flight;
use crate::cmd::{Dialect, Memory};
use crate::eh::{History, Progress, Step, Taken, Trouble};
use crate::host::PortPlan;
use crate::identify::DriveId;
use crate::lpm::Power;
use crate::queue::Depth;
use crate::quirks::Quirks;
use crate::regs::{
    PortRegs, Reg, BOHC, BOHC_BB, BOHC_BOS, BOHC_OOS, CAP2, CAP2_BOH, CMD_ALPM, CMD_CLO, CMD_CR,
    CMD_FR, CMD_FRE, CMD_ICC_ACTIVE, CMD_POD, CMD_ST, CMD_SUD, DET_READY, SCTL_DET, SCTL_GEN1, SPD,
    STATUS_BSY, STATUS_DF, STATUS_DRQ, STATUS_ERR,
};
use crate::timeout_report::Silence;
use crate::{cmd, eh, regs};

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

/// How long `PxCMD.CR` and `FR` may stay set after `ST` and `FRE` are cleared (10.3.1, 10.3.2), and
/// `CLO` after it is set.
const STOP_US: u64 = 500_000;
/// The first and the longest pause between two looks at a register, in microseconds.
const PAUSE_US: (u64, u64) = (20, 2_000);

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Sleeps until `reg & mask == value`, for `limit_us` at most.
    pub(crate) fn wait(&self, reg: Reg, mask: u32, value: u32, limit_us: u64) -> Result<(), Error> {
        let start = self.platform.now_us();
        let mut pause = PAUSE_US.0;
        loop {
            // The clock before the register: a late wake-up is not the device's fault.
            let waited = self.platform.now_us().saturating_sub(start);
            if self.regs.get(reg)? & mask == value {
                return Ok(());
            }
            if waited >= limit_us {
                return Err(Error::Timeout);
            }
            self.platform.sleep_us(pause);
            pause = pause.saturating_mul(2).min(PAUSE_US.1);
        }
    }

    /// Nothing more is issued, and what the device has finished is kept: once the list is stopped,
    /// nobody can tell it from what it has not.
    pub(crate) fn settle(&self) {
        if !self.flight.halt() {
            return;
        }
        let issued = self.flight.issued.load(Ordering::SeqCst);
        if issued == 0 {
            return;
        }
        let (sdb, rfis) = self.memory.fises();
        let answered = self.flight.answered.load(Ordering::Relaxed);
        let left = match self.flight.has_unqueued() {
            true if answered || cmd::ends_command(rfis) => self.unqueued_left(issued),
            false if sdb != 0 => self.regs.read(Reg::Sact),
            // Without a word from the drive a register says no more than that it has not heard of
            // them: what was written to it may have got lost.
            _ => issued,
        };
        // Afterwards: until then it said the truth.
        let left = if self.is_running() { left } else { issued };
        self.flight.judge(issued & !left, Ok(()));
    }

    /// Whether the command list runs. One that does not, and was not stopped from here, was reset
    /// by somebody else: then the registers say that everything is finished.
    #[cold]
    pub(crate) fn is_running(&self) -> bool {
        self.regs.get(Reg::Cmd).is_ok_and(|cmd| cmd & CMD_ST != 0)
    }

    /// Of the unqueued commands in `issued`, those that the device has not finished for certain.
    /// One error makes them all uncertain. All of them are in the register: nobody tells the device
    /// anything at the same time.
    fn unqueued_left(&self, issued: u32) -> u32 {
        let ci = self.regs.read(Reg::Ci);
        let (_, rfis) = self.memory.fises();
        let status = self.regs.read(Reg::Tfd) & (STATUS_ERR | STATUS_DF);
        match cmd::is_error(rfis) || status != 0 {
            true => issued,
            false => ci,
        }
    }

    /// Stops the command list. After `Ok` no command is with the device.
    pub(crate) fn halt(&self) -> Result<(), Error> {
        self.settle();
        self.stop_list()
    }

    fn stop_list(&self) -> Result<(), Error> {
        self.regs.change_cmd(CMD_ST, 0)?;
        let stopped = || self.wait(Reg::Cmd, CMD_CR, 0, STOP_US);
        match stopped() {
            Err(Error::Timeout) => {}
            waited => return waited,
        }
        if self.plan.cap.has_clo() {
            // Some HBAs wait for a busy drive.
            match self.override_busy().and_then(|()| stopped()) {
                Err(Error::Timeout) => {}
                waited => return waited,
            }
        }
        // It is hung: the drive may be reset all the same (10.4.2).
        self.pulse()?;
        stopped()
    }

    /// `PxCMD.CLO`: BSY and DRQ are cleared whatever the drive says (3.3.7).
    fn override_busy(&self) -> Result<(), Error> {
        self.regs.change_cmd(0, CMD_CLO)?;
        self.wait(Reg::Cmd, CMD_CLO, 0, STOP_US)
    }

    /// Stops the FIS receiver too: then the port touches no memory. A drive that has not finished
    /// everything is reset, lest it goes on when the port does.
    pub(crate) fn put_out(&self) -> Result<(), Error> {
        self.regs.write(Reg::Ie, 0);
        self.halt()?;
        let issued = self.flight.issued.load(Ordering::SeqCst) != 0;
        if issued || self.unanswered.load(Ordering::Relaxed) {
            self.pulse()?;
        }
        self.regs.change_cmd(CMD_FRE, 0)?;
        self.wait(Reg::Cmd, CMD_FR, 0, STOP_US)?;
        // Zeroes would have said the same of a port that runs.
        self.regs.are_there()
    }

    /// Gives a stopped port its memory, and lets it receive FISes.
    pub(crate) fn receive(&self) -> Result<(), Error> {
        self.memory.rewind();
        // CAST: the two halves.
        let (list, fis) = (self.memory.list_bus(), self.memory.fis_bus());
        self.regs.write(Reg::Clb, list as u32);
        self.regs.write(Reg::Clbu, (list >> 32) as u32);
        self.regs.write(Reg::Fb, fis as u32);
        self.regs.write(Reg::Fbu, (fis >> 32) as u32);
        self.regs.change_cmd(0, CMD_FRE)
    }

    /// Starts the command list of a port whose drive is ready; earlier errors are forgotten.
    pub(crate) fn run(&self) -> Result<(), Error> {
        self.progress.at(Step::Run);
        if self.regs.get(Reg::Tfd)? & (STATUS_BSY | STATUS_DRQ) != 0 {
            return Err(Error::Timeout);
        }
        self.forget_errors();
        self.memory.clear_sdb();
        self.memory.clear_rfis();
        self.regs.change_cmd(0, CMD_ST)
    }

    /// Clears `PxSERR` and `PxIS`, in this order: some bits of the latter follow the former.
    pub(crate) fn forget_errors(&self) {
        self.regs.write(Reg::Serr, u32::MAX);
        self.regs.write(Reg::Is, u32::MAX);
    }

    /// Starts the command list anew after a command that failed: nothing is with the device
    /// afterwards. [`Error::Timeout`]: it takes a reset of the link.
    pub(crate) fn run_again(&self) -> Result<(), Error> {
        self.progress.at(Step::Halt);
        self.stop_list()?;
        self.run()
    }

    /// The port is the data path's: nothing of what the control path did is announced to it.
    pub(crate) fn open(&self) {
        self.memory.clear_sdb();
        self.memory.clear_rfis();
        // What was missed was mastered.
        let _ = self.missed.take();
        self.flight.resume();
    }

    /// Whether the link is up, a register read.
    pub(crate) fn has_link(&self) -> Result<bool, Error> {
        Ok(self.regs.get(Reg::Ssts)? & 0xf == regs::DET_READY)
    }
}

/// How often a drive is asked what it is: an answer may be lost, or spoilt on the way.
const ASKED: u32 = 3;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Brings the port up. A drive that was served must be there again; at first it may be any, or
    /// none.
    pub(crate) fn bring_up(&self, state: &mut State) -> Result<(), Error> {
        self.progress.at(Step::Halt);
        self.put_out()?;
        if let Some(generation) = self.silent.swap(0, Ordering::Relaxed).checked_sub(1) {
            self.weigh(state, Trouble::Silence, generation)?;
        }
        self.receive()?;
        self.spin_up()?;
        state.strikes = 0;
        let again = matches!(state.occupant, Occupant::Drive(_));
        let found = match self.is_present()? {
            true => self.recognize(again)?,
            false => Occupant::Nobody,
        };
        let found = match (&state.occupant, found) {
            (Occupant::Drive(before), Occupant::Drive(now)) => {
                Occupant::Drive(self.as_promised(&before.id, now)?)
            }
            (_, found) => found,
        };
        match (&state.occupant, &found) {
            // What was promised to the layers above still has to hold.
            (Occupant::Drive(before), Occupant::Drive(now)) if !now.id.is_same(&before.id) => {
                return Err(Error::Malformed);
            }
            (Occupant::Drive(_), Occupant::Drive(_)) => {}
            (Occupant::Drive(_), _) => return Err(Error::Gone),
            _ => state.occupant = found,
        }
        match state.occupant {
            Occupant::Drive(_) => {
                self.departed.store(false, Ordering::SeqCst);
                self.open();
            }
            // Left alone; whoever comes or goes is noticed still.
            _ => {
                self.put_out()?;
                self.regs.heed_phy(true);
                self.forget_errors();
            }
        }
        Ok(())
    }

    /// What is there. `reset`: after a reset of the link. A drive that is served is left with its
    /// command list running and nothing issued.
    pub(crate) fn recognize(&self, reset: bool) -> Result<Occupant, Error> {
        let mut reset = reset;
        let mut last = Error::Timeout;
        for _ in 0..ASKED {
            self.grant(self.leave_at_first())?;
            let Some(signature) = self.awaken(reset)? else {
                return Ok(Occupant::Nobody);
            };
            if let Some(why) = refusal(signature) {
                return Ok(Occupant::Refused(why));
            }
            match self.run().and_then(|()| self.ask()) {
                // Once more, at the speed that it is reset to now.
                Ok(_) if self.slow_down()? => {}
                Ok(occupant) => return Ok(occupant),
                Err(Error::Gone) => return Err(Error::Gone),
                Err(why) => last = why,
            }
            self.halt()?;
            reset = true;
        }
        Err(last)
    }

    /// Asks the drive what it is.
    fn ask(&self) -> Result<Occupant, Error> {
        let (id, quirks) = match self.identity()? {
            Ok(said) => said,
            Err(why) => return Ok(Occupant::Refused(why)),
        };
        self.quirks.store(quirks.bits(), Ordering::Relaxed);
        if quirks.has(Quirks::DISABLE) {
            return Ok(Occupant::Refused("it is the front of a box, and no disk"));
        }
        let sleepless = quirks.is_sleepless(&id, &self.plan.around);
        self.power.may_not(sleepless);
        self.let_sleep(&id)?;
        let queued_trim = match id.sends_queued && id.logs && id.trim {
            true => {
                let asked = self.read_log(eh::NCQ_SEND);
                let says = asked.as_ref().is_ok_and(eh::has_queued_trim);
                self.unless_refused(asked.map(|_| ()))?;
                says
            }
            false => false,
        };
        let slots = self.plan.cap.slots();
        Ok(Occupant::Drive(About {
            id,
            tags: id.depth.map_or(slots, |depth| depth.min(slots)),
            dialect: Dialect {
                ncq: id.depth.is_some(),
                queued_trim,
                fua: id.fua,
                trim_blocks: match id.trim {
                    true => id.trim_blocks,
                    false => 0,
                },
                unit: u32::from(self.number()),
                block_shift: id.block_shift,
                below: self.plan.below,
            },
        }))
    }

    /// What the drive says of itself, less what it is spared, and what it is known for.
    pub(crate) fn identity(&self) -> Result<Result<(DriveId, Quirks), &'static str>, Error> {
        let id = match DriveId::decode(&self.identify()?)? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let quirks = Quirks::of(&id.model, &id.firmware);
        let id = DriveId {
            depth: id.depth.filter(|_| self.plan.cap.has_ncq()),
            ..id
        };
        Ok(Ok((id.spared(quirks, &self.plan.around), quirks)))
    }

    /// Limits the link of a drive that is lost at higher speeds, from the next reset on. Whether
    /// that is to come.
    fn slow_down(&self) -> Result<bool, Error> {
        let sctl = self.regs.get(Reg::Sctl)? & !SCTL_DET;
        let fast = self.regs.get(Reg::Ssts)? & SPD > SCTL_GEN1;
        if !(fast && self.quirks().has(Quirks::GEN1)) || sctl & SPD == SCTL_GEN1 {
            return Ok(false);
        }
        self.regs.write(Reg::Sctl, (sctl & !SPD) | SCTL_GEN1);
        Ok(true)
    }

    /// A refusal is an answer; anything else is an error.
    pub(crate) fn unless_refused(&self, ran: Result<(), Error>) -> Result<(), Error> {
        match ran {
            Ok(()) | Err(Error::Refused(_)) => Ok(()),
            Err(why) => Err(why),
        }
    }
}

/// How long a drive takes at most to show that it is there; a device answers COMRESET in 10 ms
/// (Serial ATA 3.x section 8.4).
const PRESENT_US: u64 = 100_000;
/// How long the speed negotiation with one that is there may take.
const NEGOTIATE_US: u64 = 1_000_000;
/// How long a link that was lost may take to come back by itself, before its drive counts as gone.
pub(crate) const GRACE_US: u64 = 500_000;
/// How long a drive may be busy after a reset. TIMEOUT: the standard's own 31 s are for disks that
/// spin up.
const READY_US: u64 = 10_000_000;
/// How long `PxSCTL.DET` is 1 for a COMRESET (10.4.2: at least 1 ms).
const COMRESET_US: u64 = 1_000;
/// How often a drive is reset before it is given up.
const ATTEMPTS: u32 = 3;
/// `PxSIG` before a drive has sent its signature.
const NO_SIGNATURE: u32 = u32::MAX;

/// What the signature says is there.
const ATA: u32 = 0x0000_0101;
const ATAPI: u32 = 0xeb14_0101;
const PORT_MULTIPLIER: u32 = 0x9669_0101;
const ENCLOSURE: u32 = 0xc33c_0101;

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Powers the drive and brings up the link, at the speed that the firmware had. One port after
    /// the other, so drives spin up one by one where the HBA wants that (`CAP.SSS`).
    pub(crate) fn spin_up(&self) -> Result<(), Error> {
        let leave = self.leave_at_first();
        let sctl = self.limited(self.plan.firmware.sctl & SPD | leave.ipm);
        self.regs.heed_phy(!leave.may_sleep());
        self.regs.write(Reg::Sctl, sctl);
        let set = CMD_POD | CMD_SUD | CMD_ICC_ACTIVE | leave.alpm;
        self.regs.change_cmd(CMD_ALPM, set)
    }

    /// Waits for the link. `false`: nobody is there.
    pub(crate) fn wait_link(&self, limit_us: u64) -> Result<bool, Error> {
        self.progress.at(Step::Link);
        // Present at least, with or without communication.
        match self.wait(Reg::Ssts, 1, 1, limit_us) {
            Err(Error::Timeout) => return Ok(false),
            waited => waited?,
        }
        match self.wait(Reg::Ssts, SCTL_DET, DET_READY, NEGOTIATE_US) {
            Err(Error::Timeout) => Ok(false),
            waited => waited.map(|()| true),
        }
    }

    /// Whether a drive is there after power-up.
    pub(crate) fn is_present(&self) -> Result<bool, Error> {
        self.wait_link(PRESENT_US)
    }

    /// Waits until the drive has told what it is and is not busy. Returns its signature.
    fn wait_ready(&self) -> Result<u32, Error> {
        self.progress.at(Step::Ready);
        let busy = STATUS_BSY | STATUS_DRQ;
        self.wait(Reg::Tfd, busy, 0, READY_US)?;
        match self.regs.read(Reg::Sig) {
            NO_SIGNATURE => Err(Error::Timeout),
            signature => Ok(signature),
        }
    }

    /// COMRESET, with the command list stopped: the drive forgets what it has.
    pub(crate) fn pulse(&self) -> Result<(), Error> {
        let sctl = self.regs.get(Reg::Sctl)? & !SCTL_DET;
        self.regs.write(Reg::Sctl, sctl | 1);
        self.platform.sleep_us(COMRESET_US);
        self.regs.write(Reg::Sctl, sctl);
        self.unanswered.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// COMRESET, and the wait for the link. `false`: nobody answers.
    fn comreset(&self) -> Result<bool, Error> {
        self.progress.at(Step::Link);
        self.pulse()?;
        self.is_present()
    }

    /// The ladder: waits for a drive that is there, and resets it when it does not get ready.
    /// Returns its signature, `None` when nobody is there (any more). `reset`: begins with a reset.
    pub(crate) fn awaken(&self, reset: bool) -> Result<Option<u32>, Error> {
        let mut last = Error::Timeout;
        for attempt in 0..ATTEMPTS {
            if (reset || attempt != 0) && !self.comreset()? {
                return Ok(None);
            }
            self.forget_errors();
            match self.wait_ready() {
                Ok(signature) => return Ok(Some(signature)),
                Err(Error::Gone) => return Err(Error::Gone),
                Err(why) => last = why,
            }
            if !self.has_link()? {
                return Ok(None);
            }
        }
        Err(last)
    }
}

/// Why what has this signature is left alone.
pub(crate) fn refusal(signature: u32) -> Option<&'static str> {
    match signature {
        ATA => None,
        ATAPI => Some("it is an ATAPI device"),
        PORT_MULTIPLIER => Some("it is a port multiplier"),
        ENCLOSURE => Some("it is an enclosure management bridge"),
        _ => Some("its signature is not a disk's"),
    }
}

/// How long the firmware may take to let go, or to say that it is busy doing so.
const HANDOFF_US: u64 = 25_000;
/// How long it may be busy.
const BUSY_US: u64 = 2_000_000;
/// The pause between two looks.
const HANDOFF_PAUSE_US: u64 = 1_000;

/// Takes the HBA over. A firmware that does not let go in its time has lost it: the reset that
/// follows takes it away.
pub(crate) fn take_over<P: Platform>(platform: &P, mmio: &impl Mmio) -> Result<(), Error> {
    if regs::read(mmio, CAP2)? & CAP2_BOH == 0 {
        return Ok(());
    }
    let bohc = regs::read(mmio, BOHC)?;
    if bohc & BOHC_BOS == 0 {
        return Ok(());
    }
    mmio.write32(BOHC, bohc | BOHC_OOS);
    let start = platform.now_us();
    loop {
        let waited = platform.now_us().saturating_sub(start);
        let bohc = regs::read(mmio, BOHC)?;
        // TIMEOUT: 25 ms, and two seconds for one that says it is busy (10.6.3).
        let limit = match bohc & BOHC_BB {
            0 => HANDOFF_US,
            _ => BUSY_US,
        };
        if bohc & BOHC_BOS == 0 || waited >= limit {
            return Ok(());
        }
        platform.sleep_us(HANDOFF_PAUSE_US);
    }
}
