// SPDX-License-Identifier: GPL-2.0
//! The hal control path of a controller: what each verb of [`hal::Controller`] comes to, by the
//! methods that the subjects' files give [`NvmeController`].
//!
//! Verbs that sleep take the control path's [`State`](crate::ctrl::State) first, so one of them is
//! under way at a time. Abort (Base 2.0 section 5.1), by which the controller gives one command up,
//! which then ends with the status Command Abort Requested, is here in whole.

use cell::sync::Ordering;
use core::fmt;
use hal::{
    Cause, Controller, Deadline, DeviceEvent, Error, EventAction, Limits, Mmio, NewQueue, Platform,
    Queues, Refused, Reservations, Shutdown, Temperature, Unit,
};

use crate::admin::AdminStep;
use crate::ctrl::{DeferredFrees, NvmeController};
use crate::queue::{NvmeDrain, NvmeIssue, NvmeQueue};
use crate::timeout_report::Registers;
use crate::{admin, init, regs};

/// Bit 0 of dword 0 of the answer to Abort: the command was not aborted.
const NOT_ABORTED: u64 = 1;

impl<P: Platform, M: Mmio + Clone> Controller for NvmeController<P, M>
where
    P::Dma: Clone,
{
    type Queue = NvmeQueue<P, M>;

    fn start(&self) -> Result<(), Error> {
        let mut state = self.state()?;
        let started = self.bring_up(&mut state);
        if started.is_err() {
            // Not half alive.
            let _ = self.disable_quietly();
        }
        started
    }

    fn limits(&self) -> Limits {
        let about = self.state().ok().and_then(|state| state.about);
        about.map_or(
            Limits {
                queues: 1,
                tags: 1,
                max_transfer: 4096,
                max_segments: 1,
                max_segment: 4096,
                virt_boundary: 4095,
                dma_align: 3,
                hole_align: None,
                segment_boundary: u64::MAX,
            },
            |about| about.limits,
        )
    }

    fn create_queue(
        &self,
        index: u16,
        vector: Option<u16>,
    ) -> Result<NewQueue<Self::Queue>, Error> {
        let mut state = self.state()?;
        let about = state.about.ok_or(Error::Invalid)?;
        let place = self
            .live_pairs
            .get(usize::from(index))
            .ok_or(Error::Invalid)?;
        if index != state.queues
            || index >= about.limits.queues
            || state.deferred.passthru.is_some()
        {
            return Err(Error::Invalid);
        }
        let qid = index.saturating_add(1);
        let pair = self.create_queue_pair(&mut state, qid, about.limits.tags, vector);
        if state.deferred.queue.is_some() {
            let _ = self.disable_quietly();
        }
        let (queue, made) = pair?;
        if let Some(mut place) = place.try_lock() {
            *place = Some(made);
        }
        state.queues = qid;
        Ok(NewQueue {
            queue,
            issue: NvmeIssue::default(),
            drain: NvmeDrain::new(),
        })
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        let state = self.state()?;
        let about = state.about.ok_or(Error::Invalid)?;
        self.each_unit(&about, found)
    }

    fn stop(&self) -> Result<(), Error> {
        let mut state = self.state()?;
        self.disable()?;
        state.deferred = DeferredFrees::nothing();
        Ok(())
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        let state = self.state()?;
        self.progress.at(AdminStep::Shutdown);
        self.admin.close();
        match how {
            Shutdown::Dead => Ok(()),
            Shutdown::Normal if !self.enabled.load(Ordering::Relaxed) => Ok(()),
            Shutdown::Normal => {
                let rtd3e_us = state.about.map_or(0, |about| about.id.rtd3e_us);
                init::shutdown(&self.platform, &self.mmio, rtd3e_us)
            }
        }
    }

    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        self.quirk_set().each(named);
    }

    fn handle_events(
        &self,
        queues: Queues,
        tell: &mut dyn FnMut(DeviceEvent<'_>),
    ) -> Result<EventAction, Error> {
        let mut state = self.state()?;
        self.handle_async_events(&mut state, queues, tell)
    }

    fn timeout_report(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        let registers = Registers {
            csts: self.mmio.read32(regs::CSTS),
            cc: self.mmio.read32(regs::CC),
            admin: self.admin.is_lost().then(|| self.admin.timeout_report()),
        };
        write!(to, "{registers}")
    }

    fn temperature(&self) -> Result<Option<Temperature>, Error> {
        self.read_temperature()
    }

    fn reservations(&self) -> Option<&dyn Reservations> {
        Some(self)
    }

    const ABORTS: bool = true;

    fn abort(&self, queue: &Self::Queue, tag: usize, limit_us: u64) -> Result<bool, Error> {
        let _state = self.state()?;
        let Some((qid, cid)) = queue.name_of(tag) else {
            return Ok(false);
        };
        self.progress.at(AdminStep::Abort);
        let deadline = Deadline::after(limit_us.min(admin::TIMEOUT_US));
        let sqe = admin::abort(qid, cid);
        let reply = self
            .admin
            .submit(&self.platform, &self.mmio, sqe, deadline)?;
        // One at a time: no controller's limit (ACL) is in the way. Whatever it is that it objects
        // to, the command has not been aborted.
        Ok(reply.status == 0 && reply.result & NOT_ABORTED == 0)
    }

    fn alive(&self) -> Result<(), Error> {
        regs::alive(&self.mmio)
    }

    // Its messages end by themselves, and its events come on the first.
    const ACKNOWLEDGES: bool = false;

    fn interrupt(&self, vector: u16) -> Cause {
        let pin = self.is_pin();
        if pin {
            regs::mask(&self.mmio, vector);
        }
        match self.has_event(vector, pin) {
            true => Cause::AsyncEvent,
            false => Cause::Queues,
        }
    }

    fn set_interrupt(&self, vector: u16, enabled: bool) {
        match (self.is_pin(), enabled) {
            (false, _) => {}
            (true, true) => regs::unmask(&self.mmio, vector),
            (true, false) => regs::mask(&self.mmio, vector),
        }
    }
}
