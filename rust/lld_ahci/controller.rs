// SPDX-License-Identifier: GPL-2.0
//! The hal control path of a port, and its interrupt.

use crate::fis;
use crate::identify;
use crate::pass::{AtaCommand, AtaReply, Transfer};
use crate::port::{About, Occupant, Port, Site, State};
use crate::prdt;
use crate::queue::{AhciDrain, AhciQueue};
use crate::recover::News;
use crate::regs::{self, Reg, ABSENT, IS_DONE, IS_TROUBLE};
use cell::sync::Ordering;
use core::fmt;
use hal::{
    Cause, Controller, Error, Limits, LinkPower, NewQueue, Notice, Platform, Queues, Refused,
    Shutdown, TagTable, Unit, Weight, Wish,
};

/// One port of an HBA as a hal controller: one queue, and one disk if it is served.
pub struct AhciController<S: Site>(S);

impl<S: Site> AhciController<S> {
    /// The controller at `site`. The device is not touched before [`Controller::start`].
    pub fn new(site: S) -> Self {
        Self(site)
    }

    /// What the control path was last doing: names the command or the step that an [`Error`] of it
    /// is about.
    pub fn step(&self) -> &'static str {
        self.0.port().step()
    }

    /// Sees to what the port has called for ([`Site::call`]): errors that the device or the link
    /// reported, a drive that came or went. Called as the rest of the control path is, with the
    /// queue, if there is one, at rest (`engine::Paused`); afterwards it is drained. Sleeps.
    ///
    /// `Err`: it could not bring the port back. Then the device has to be recovered from scratch
    /// ([`Controller::stop`], reap, start), or given up.
    pub fn attend(&self) -> Result<News, Error> {
        let port = self.0.port();
        let mut state = port.state()?;
        port.begin();
        let news = port.attend(&mut state);
        if news.is_err() {
            // Whatever the registers say from here on, it is about no command.
            port.settle();
        }
        port.end();
        news
    }

    /// Has the drive carry out a command of the operator's tools, alone: what it has finishes
    /// first. Called as [`AhciController::attend`] is, with the queue at rest. `timeout_ms` of 0 is
    /// the driver's own, 30 s; it is up soon where `wanted` says that the control path is
    /// ([`hal::Deadline::unless`]). Sleeps. A command that failed is a reply whose status says so.
    ///
    /// [`Error::Invalid`]: no drive is served; a command that would take the drive from under the
    /// driver; data that can't be described. [`Error::Gone`], [`Error::Timeout`], [`Error::Fatal`]:
    /// the port has to be stopped and started again; the memory of the data must live until it was
    /// stopped.
    pub fn command(
        &self,
        command: &AtaCommand,
        transfer: &Transfer<'_, <S::Platform as Platform>::Dma>,
        timeout_ms: u32,
        wanted: &dyn Fn() -> bool,
    ) -> Result<AtaReply, Error> {
        self.control(|port, state| port.pass(state, command, transfer, timeout_ms, wanted))
    }

    /// Whether [`AhciController::attend`] is called for.
    pub fn is_alarmed(&self) -> bool {
        self.0.port().alarmed.load(Ordering::SeqCst)
    }

    fn control<R>(
        &self,
        work: impl FnOnce(&Port<S::Platform, S::Mmio>, &mut State) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let port = self.0.port();
        let mut state = port.state()?;
        port.begin();
        let done = work(port, &mut state);
        port.end();
        done
    }

    fn about(&self) -> Option<About> {
        match self.0.port().state().ok()?.occupant {
            Occupant::Drive(about) => Some(about),
            _ => None,
        }
    }
}

impl<S: Site> Controller for AhciController<S> {
    type Queue = AhciQueue<S>;

    fn start(&self) -> Result<(), Error> {
        self.control(|port, state| {
            let started = port.bring_up(state);
            if started.is_err() {
                // Not half alive.
                let _ = port.put_out();
            }
            started
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            queues: 1,
            tags: self.about().map_or(1, |about| u16::from(about.tags)),
            max_transfer: self
                .about()
                .map_or(identify::TRANSFER_MAX, |about| about.id.max_transfer),
            // CAST: a small constant.
            max_segments: prdt::ENTRIES as u16,
            max_segment: prdt::ENTRY_MAX,
            virt_boundary: 0,
            dma_align: prdt::ALIGN,
            segment_boundary: prdt::BOUNDARY,
        }
    }

    /// Its one queue, while a drive is served. `vector` is not looked at: whether the port
    /// interrupts is for [`Controller::set_interrupt`] to say.
    fn create_queue(
        &self,
        index: u16,
        _vector: Option<u16>,
    ) -> Result<NewQueue<Self::Queue>, Error> {
        let port = self.0.port();
        let mut state = port.state()?;
        let Occupant::Drive(about) = state.occupant else {
            return Err(Error::Unsupported);
        };
        if index != 0 || state.has_queue {
            return Err(Error::Invalid);
        }
        let tags = TagTable::new(&port.platform, u16::from(about.tags))?;
        state.has_queue = true;
        port.depth.begin(&about);
        Ok(NewQueue {
            queue: AhciQueue::new(self.0.clone(), tags, about.dialect),
            issue: (),
            drain: AhciDrain::default(),
        })
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        let port = self.0.port();
        let id = u32::from(port.number());
        let occupant = port.state()?.occupant;
        match occupant {
            Occupant::Nobody => {}
            Occupant::Refused(why) => found(Err(Refused { id, why })),
            Occupant::Drive(about) => found(Ok(about.id.unit(id))),
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), Error> {
        self.control(|port, _| port.put_out())
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        match how {
            Shutdown::Dead => Ok(()),
            Shutdown::Normal => self.control(|port, state| port.power_off(state)),
        }
    }

    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        let port = self.0.port();
        port.plan.board.each(named);
        port.quirks().each(named);
        if port.is_unqueued() && !port.depth.is_one() {
            named("noncq");
        }
        if port.power.is_given_up() {
            named("nolpm");
        }
    }

    fn link_power(&self) -> Option<LinkPower> {
        Some(self.0.port().link_power())
    }

    fn set_link_power(&self, policy: LinkPower) -> Result<Result<(), &'static str>, Error> {
        self.control(|port, state| port.set_link_power(state, policy))
    }

    fn depth(&self) -> Option<u16> {
        Some(self.0.port().depth())
    }

    fn set_depth(&self, depth: u16) -> Result<(), Error> {
        self.0.port().set_depth(depth)
    }

    const TURNS_CACHE: bool = true;

    fn set_write_cache(&self, on: bool) -> Result<Result<(), &'static str>, Error> {
        self.control(|port, state| port.set_write_cache(state, on))
    }

    /// Says what was taken from the drive. (What the port calls for is seen to by
    /// [`AhciController::attend`].)
    fn attend(&self, _queues: Queues, tell: &mut dyn FnMut(Notice<'_>)) -> Result<Wish, Error> {
        if let Some(taken) = self.0.port().taken.take() {
            tell(Notice {
                weight: Weight::Warning,
                text: &taken,
                uevent: None,
            });
        }
        Ok(Wish::Nothing)
    }

    fn silence(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        let port = self.0.port();
        let silence = port.take_silence();
        if silence.awaited != 0 {
            // The next start weighs it.
            let generation = port.generation().saturating_add(1);
            port.silent.store(generation, Ordering::Relaxed);
        }
        write!(to, "{silence}")
    }

    fn alive(&self) -> Result<(), Error> {
        let port = self.0.port();
        let link = port.has_link()?;
        match port.departed.load(Ordering::SeqCst) || (!link && !port.flight.is_halted()) {
            true => Err(Error::Gone),
            false => Ok(()),
        }
    }

    /// Usually one register write: that a command is over is seen in memory, so the status is
    /// acknowledged unread. The drain that follows clears what was seen, so the next interrupt is
    /// not taken for one of the same kind. Where no drain has followed, as the thread that is at it
    /// was interrupted, the next one looks closer: an error that keeps the line up would keep that
    /// thread from ever going on.
    #[inline]
    fn interrupt(&self, _vector: u16) -> Cause {
        let port = self.0.port();
        let (sdb, rfis) = port.memory.fises();
        let ended = sdb != 0 || fis::ends_command(rfis);
        let good = ended && !fis::is_error(sdb) && !fis::is_error(rfis);
        if good && port.flight.has_issued() && !port.heard.load(Ordering::Relaxed) {
            port.heard.store(true, Ordering::Relaxed);
            // What else came stays in the register, and keeps the line up.
            port.regs.write(Reg::Is, IS_DONE);
            return Cause::Queues;
        }
        self.look_closer(port)
    }

    fn set_interrupt(&self, _vector: u16, enabled: bool) {
        let port = self.0.port();
        port.listening.store(enabled, Ordering::SeqCst);
        port.arm();
    }
}

impl<S: Site> AhciController<S> {
    #[cold]
    fn look_closer(&self, port: &Port<S::Platform, S::Mmio>) -> Cause {
        if port.busy.load(Ordering::SeqCst) {
            // The control path looks itself, and nothing may be taken away from it.
            port.regs.write(Reg::Ie, 0);
            return Cause::None;
        }
        let status = port.regs.read(Reg::Is);
        if status == ABSENT {
            self.call(port);
            return Cause::None;
        }
        if status & IS_DONE != 0 {
            port.regs.write(Reg::Is, status & IS_DONE);
        }
        if status & IS_TROUBLE != 0 {
            self.call(port);
        }
        match status & (regs::IS_DONE | IS_TROUBLE) {
            0 => Cause::None,
            _ => Cause::Queues,
        }
    }

    #[cold]
    fn call(&self, port: &Port<S::Platform, S::Mmio>) {
        if port.alarm() {
            self.0.call();
        }
    }
}
