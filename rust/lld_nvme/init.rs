// SPDX-License-Identifier: GPL-2.0
//! A controller's way up and down: from any state to one that takes commands (Base 2.0 section
//! 3.5.1), that is reset, ask, agree, and make anew the queues that were there; disabling, enabling
//! and shutting down (sections 3.5 and 3.6), each bounded by what the controller says it needs; and
//! the making of queue pairs.
//!
//! After a reset what was promised to the layers above still has to hold: a controller that comes
//! back with less is refused.

use cell::sync::Ordering;
use cell::TryLock;
use hal::{poll_until, Backoff, Deadline, DmaMem, Error, Limits, Mmio, Platform};

use crate::admin::{AdminBase, AdminStep, Cns};
use crate::cqe::Cids;
use crate::ctrl::{
    About, ControllerId, DeferredFrees, LiveQueuePair, NvmeController, State, QUEUES_MAX,
};
use crate::queue::{NvmeQueue, QueueParts, Shadow};
use crate::quirks::Quirks;
use crate::regs::{
    Cap, ACQ, AQA, ASQ, CC, CC_EN, CC_SHN, CC_SHN_NORMAL, CRTO, CSTS, CSTS_CFS, CSTS_RDY,
    CSTS_SHST, CSTS_SHST_DONE,
};
use crate::sqe::{Layout, LIST_MAX};
use crate::{admin, cqe, queue, regs};

/// Tags of a queue, as in tree (`io_queue_depth`, Linux 7.3): with the entry that keeps it from
/// being full, its entries fill whole pages.
const TAGS: u16 = 1023;
/// Most bytes of a command, of what a tag's list can say.
const TRANSFER_MAX: u32 = 2 << 20;

// Every tag fits the CID, and the largest transfer a list.
const _: () = assert!(TAGS <= cqe::TAGS_MAX);
const _: () = assert!(TRANSFER_MAX as usize / 4096 * 8 <= LIST_MAX);

/// Whether a controller that is being enabled gets its time to be ready before it is disabled: what
/// clearing EN does before RDY is set is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// It gets its time; one that never gets there is disabled all the same.
    Full,
    /// It has had it.
    Over,
}

/// A queue pair that was created at the controller.
type Pair<P, M> = (NvmeQueue<P, M>, LiveQueuePair<<P as Platform>::Dma>);

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Resets the controller and brings it up; queues that exist are made again.
    pub(crate) fn bring_up(&self, state: &mut State<P, M>) -> Result<(), Error> {
        self.disable()?;
        // Now it touches no memory.
        state.deferred = DeferredFrees::nothing();
        state.effects = None;
        self.enable()?;
        if self.is_pin() {
            // The handler may not be registered yet.
            regs::mask(&self.mmio, 0);
        }
        let id = self.identify_controller()?;
        self.disable_apst(&id)?;
        self.enable_retry_delays(&id)?;
        self.setup_hmb(state, &id)?;
        let queues = self.set_queue_count(state.queues)?;
        let about = self.about(id, queues)?;
        match state.about {
            // What was promised to the layers above still has to hold.
            Some(before) if !keeps(&before, &about) => return Err(Error::Malformed),
            Some(_) => {}
            None => state.about = Some(about),
        }
        self.set_up_shadow(state, &about)?;
        for qid in 1..=state.queues {
            let place = self.live_pairs.get(usize::from(qid.saturating_sub(1)));
            let made = place.and_then(TryLock::try_lock);
            let made = made.as_ref().and_then(|made| made.as_ref());
            self.announce(qid, made.ok_or(Error::Invalid)?)?;
        }
        state.events.on_start();
        self.enable_async_events(&about.id)
    }

    /// What the controller says of itself. The quirks of its model are added to those of its
    /// function.
    fn identify_controller(&self) -> Result<ControllerId, Error> {
        let view = self.identify(AdminStep::IdentifyController, Cns::Controller, 0)?;
        let id = ControllerId::decode(&view);
        self.add_quirks(Quirks::of_model(id.vendor, &id.model, &id.firmware));
        // 1: an I/O controller; 0: one older than the field.
        let sized = id.has_entry_sizes || self.quirk_set().has(Quirks::SQES_128_BYTES);
        if id.kind > 1 || !sized {
            return Err(Error::Unsupported);
        }
        Ok(id)
    }

    /// Turns autonomous power state transitions off, where they are known to end badly. A
    /// controller that refuses keeps them: it is no worse off than before.
    fn disable_apst(&self, id: &ControllerId) -> Result<(), Error> {
        if !(id.has_apst && self.quirk_set().stays_awake()) {
            return Ok(());
        }
        let base = self.page();
        self.pages.zero(base, admin::IDENTIFY_BYTES);
        let table = self.pages.bus_addr().wrapping_add(base as u64);
        match self.command(AdminStep::PowerStates, admin::disable_apst(table)) {
            Ok(_) | Err(Error::Refused(_)) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Has the controller say with a failure how long to wait before the next try, where it has
    /// such delays (Base 2.0 section 5.27.1.18). That it refuses is no reason to do without it:
    /// then it names none.
    fn enable_retry_delays(&self, id: &ControllerId) -> Result<(), Error> {
        if id.retry_delays == [0; 3] {
            return Ok(());
        }
        let base = self.page();
        self.pages.zero(base, admin::HOST_BEHAVIOR_BYTES);
        self.pages.write32(base, admin::RETRY_DELAYS);
        let from = self.pages.bus_addr().wrapping_add(base as u64);
        match self.command(AdminStep::HostBehavior, admin::host_behavior(from)) {
            Ok(_) | Err(Error::Refused(_)) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Negotiates the number of I/O queue pairs (Set Features, Number of Queues).
    /// [`Error::Malformed`]: fewer are granted than `exist`.
    fn set_queue_count(&self, exist: u16) -> Result<u16, Error> {
        let wanted = self.quirk_set().queues(self.queues_wanted());
        let result = self.command(AdminStep::NumberOfQueues, admin::number_of_queues(wanted))?;
        let queues = admin::granted(result).min(wanted);
        if queues < exist {
            return Err(Error::Malformed);
        }
        Ok(queues)
    }

    /// Queues worth asking for: as many as have doorbells in the window.
    fn queues_wanted(&self) -> u16 {
        let doorbells = self.mmio.len().saturating_sub(regs::DOORBELLS);
        let pairs = regs::pairs_within(doorbells, self.cap.stride());
        u16::try_from(pairs.saturating_sub(1))
            .unwrap_or(QUEUES_MAX)
            .min(QUEUES_MAX)
    }

    /// The limits and the layout that follow from what it says of itself.
    fn about(&self, id: ControllerId, queues: u16) -> Result<About, Error> {
        let page_shift = self.cap.page_shift_min();
        let page = self.page() as u64;
        // MDTS counts smallest pages as a power of two; 0, or more than fits, is no limit.
        let device = 1u32
            .checked_shl(u32::from(page_shift).saturating_add(u32::from(id.mdts)))
            .filter(|_| id.mdts != 0)
            .unwrap_or(u32::MAX);
        let layout = Layout {
            page_mask: page.wrapping_sub(1),
            sgl_align: id.sgls.align(),
            has_bit_bucket: id.has_bit_bucket,
            max_transfer: device.min(TRANSFER_MAX),
            zeroes_by_discard: self.quirk_set().has(Quirks::DEALLOCATE_ZEROES) && id.has_discard,
        };
        let quirks = self.quirk_set();
        let limits = Limits {
            queues,
            tags: quirks.tags(TAGS.min(quirks.mqes(self.cap.mqes()))),
            max_transfer: layout.max_transfer,
            max_segments: layout.max_segments(),
            // A descriptor's length has 32 bits; of pages there may be any number.
            max_segment: u32::MAX,
            virt_boundary: match id.sgls.align() {
                Some(_) => 0,
                None => layout.page_mask,
            },
            dma_align: match id.sgls.align() {
                Some(0) => 0,
                _ => 3,
            },
            // CAST: two bits.
            hole_align: (id.sgls.align())
                .filter(|_| id.has_bit_bucket)
                .map(|align| align as u32),
            segment_boundary: u64::MAX,
        };
        Ok(About { id, limits, layout })
    }

    /// Shadow doorbells, where the controller has them. That it refuses them is no reason to do
    /// without it.
    fn set_up_shadow(&self, state: &mut State<P, M>, about: &About) -> Result<(), Error> {
        if !about.id.has_doorbell_buffer {
            // Queues that use them can't go back.
            return match state.shadow {
                None => Ok(()),
                Some(_) => Err(Error::Malformed),
            };
        }
        let first = state.queues == 0;
        if first && state.shadow.is_none() {
            state.shadow = Some(self.new_shadow(about)?);
        }
        let Some(shadow) = &state.shadow else {
            return Ok(());
        };
        shadow.memory.zero(0, shadow.memory.len());
        let values = shadow.memory.bus_addr();
        let events = values.wrapping_add(shadow.events as u64);
        match self.command(
            AdminStep::DoorbellBuffer,
            admin::doorbell_buffer(values, events),
        ) {
            Ok(_) => Ok(()),
            Err(Error::Refused(_)) if first => {
                state.shadow = None;
                Ok(())
            }
            Err(why) => Err(why),
        }
    }

    /// Memory for shadow doorbells of as many queues as there may be.
    fn new_shadow(&self, about: &About) -> Result<Shadow<P::Dma>, Error> {
        let queues = about.limits.queues.saturating_add(1);
        let bytes = regs::sq_doorbell(queues, self.cap.stride());
        let page = self.page();
        let mask = page.wrapping_sub(1);
        let events = bytes.saturating_add(mask) & !mask;
        let memory = queue::paged(&self.platform, events.saturating_mul(2), page)?;
        Ok(Shadow { memory, events })
    }

    /// Allocates queue pair `qid` of `tags` tags, and creates it at the controller.
    ///
    /// [`Error::Refused`]: the controller does not take it. Where the controller may have it all
    /// the same, its memory is kept in `state.deferred.queue` until the controller is disabled; no
    /// other is made before.
    pub(crate) fn create_queue_pair(
        &self,
        state: &mut State<P, M>,
        qid: u16,
        tags: u16,
        vector: Option<u16>,
    ) -> Result<Pair<P, M>, Error> {
        let about = state.about.ok_or(Error::Invalid)?;
        if state.deferred.queue.is_some() {
            return Err(Error::Timeout);
        }
        let quirks = self.quirk_set();
        let plan = QueueParts {
            qid,
            tags,
            cids: Cids::new(quirks.first_cid(), !quirks.has(Quirks::SKIP_CID_GEN)),
            sqe_shift: quirks.sqe_shift(),
            layout: about.layout,
            stride: self.cap.stride(),
            mmio: self.mmio.clone(),
            shadow: state.shadow.clone(),
            delays: about.id.retry_delays,
            pin: vector.filter(|_| self.is_pin()),
        };
        let queue = NvmeQueue::new(&self.platform, plan, self.page())?;
        let (sq, cq) = queue.memory();
        let entries = queue.entries();
        let made = LiveQueuePair {
            sq,
            cq,
            entries,
            vector,
        };
        match self.announce(qid, &made) {
            Ok(()) => Ok((queue, made)),
            Err(why @ Error::Refused(_)) => Err(why),
            Err(why) => {
                state.deferred.queue = Some(queue);
                Err(why)
            }
        }
    }

    /// Creates completion and submission queue `qid` at the controller (Base 2.0 sections 5.5 and
    /// 5.6).
    fn announce(&self, qid: u16, made: &LiveQueuePair<P::Dma>) -> Result<(), Error> {
        let create = admin::create_cq(qid, made.entries, made.cq.bus_addr(), made.vector);
        self.command(AdminStep::CreateCompletionQueue, create)?;
        let medium = self.quirk_set().has(Quirks::MEDIUM_PRIO_SQ);
        let create = admin::create_sq(qid, made.entries, made.sq.bus_addr(), medium);
        let refused = self.command(AdminStep::CreateSubmissionQueue, create);
        if let Err(Error::Refused(status)) = refused {
            // The one without the other is of no use, and its memory is about to go. What is
            // reported is what failed first.
            self.command(AdminStep::DeleteCompletionQueue, admin::delete_cq(qid))
                .map_err(|_| Error::Fatal)?;
            self.progress.at(AdminStep::CreateSubmissionQueue);
            return Err(Error::Refused(status));
        }
        refused.map(|_| ())
    }

    /// After `Ok` the device touches no memory.
    pub(crate) fn disable(&self) -> Result<(), Error> {
        self.progress.at(AdminStep::Disable);
        self.disable_after(Patience::Full)
    }

    /// Disables it after a failure; what failed stays the step that is named.
    pub(crate) fn disable_quietly(&self) -> Result<(), Error> {
        self.disable_after(Patience::Over)
    }

    /// Disables it, and notes that it touches no memory.
    fn disable_after(&self, patience: Patience) -> Result<(), Error> {
        self.admin.close();
        let delay_us = self.quirk_set().delay_us();
        disable(&self.platform, &self.mmio, self.cap, patience, delay_us)?;
        self.enabled.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Enables the disabled controller.
    fn enable(&self) -> Result<(), Error> {
        self.progress.at(AdminStep::Enable);
        let base = self.admin.rewind();
        self.enabled.store(true, Ordering::Relaxed);
        let page_shift = self.cap.page_shift_min();
        enable(&self.platform, &self.mmio, self.cap, page_shift, &base)
    }
}

/// Whether what was promised `before` a reset holds for what is there `now`.
fn keeps(before: &About, now: &About) -> bool {
    let (was, is) = (&before.limits, &now.limits);
    is.tags >= was.tags
        && is.max_transfer >= was.max_transfer
        && now.id.sgls == before.id.sgls
        && now.id.has_bit_bucket == before.id.has_bit_bucket
        && now.id.serial == before.id.serial
}

impl<P: Platform, M: Mmio + Clone> Drop for NvmeController<P, M>
where
    P::Dma: Clone,
{
    fn drop(&mut self) {
        // The memory of a device that runs is not freed. Where it can't be stopped the caller has
        // cut it off the bus.
        if self.enabled.load(Ordering::Relaxed) {
            let _ = self.disable();
        }
    }
}

/// The first and the longest pause between two looks at a register, in microseconds.
const PAUSES: Backoff = Backoff::new(50, 5_000);
/// The least time that anything is given: `CAP.TO` counts half seconds, and 0 of them is nobody's
/// truth.
const LEAST_US: u64 = 500_000;
/// Bounds of a shutdown, whatever RTD3E says.
const SHUTDOWN_US: (u64, u64) = (5_000_000, 60_000_000);

/// `CC.EN = 0`, until `CSTS.RDY` says so: afterwards the controller touches no memory. For
/// `delay_us` it is not even asked.
fn disable<P: Platform>(
    platform: &P,
    mmio: &impl Mmio,
    cap: Cap,
    patience: Patience,
    delay_us: u64,
) -> Result<(), Error> {
    let limit = ready_us(mmio, cap)?;
    let cc = regs::read(mmio, CC)?;
    if cc & CC_EN != 0 {
        let csts = regs::read(mmio, CSTS)?;
        let settled = csts & (CSTS_RDY | CSTS_CFS | CSTS_SHST) != 0;
        if patience == Patience::Full && !settled {
            if let Err(Error::Gone) = wait(platform, mmio, CSTS_RDY, CSTS_RDY, limit) {
                return Err(Error::Gone);
            }
        }
        mmio.write32(CC, cc & !(CC_EN | CC_SHN));
    }
    // Whoever cleared it, a moment ago perhaps.
    if delay_us != 0 {
        platform.sleep_us(delay_us);
    }
    wait(platform, mmio, CSTS_RDY, 0, limit)?;
    // Zeroes, as of a device whose memory space is off, would have said the same of one that runs.
    match Cap::read(mmio)? {
        Cap(0) => Err(Error::Gone),
        _ => Ok(()),
    }
}

/// Gives a disabled controller its admin queues and enables it.
fn enable<P: Platform>(
    platform: &P,
    mmio: &impl Mmio,
    cap: Cap,
    page_shift: u8,
    admin: &AdminBase,
) -> Result<(), Error> {
    let limit = ready_us(mmio, cap)?;
    let size = u32::from(admin.entries.saturating_sub(1));
    mmio.write32(AQA, (size << 16) | size);
    mmio.write64(ASQ, admin.sq);
    mmio.write64(ACQ, admin.cq);
    mmio.write32(CC, regs::cc_enabled(page_shift, cap.has_command_sets()));
    wait(platform, mmio, CSTS_RDY, CSTS_RDY, limit)
}

/// A normal shutdown: the device makes its data and its tables durable.
pub(crate) fn shutdown<P: Platform>(
    platform: &P,
    mmio: &impl Mmio,
    rtd3e_us: u32,
) -> Result<(), Error> {
    let cc = regs::read(mmio, CC)?;
    mmio.write32(CC, (cc & !CC_SHN) | CC_SHN_NORMAL);
    // TIMEOUT: RTD3E, which many devices don't report and some underestimate.
    let limit = u64::from(rtd3e_us).clamp(SHUTDOWN_US.0, SHUTDOWN_US.1);
    wait(platform, mmio, CSTS_SHST, CSTS_SHST_DONE, limit)
}

/// How long `CSTS.RDY` may take to change.
fn ready_us(mmio: &impl Mmio, cap: Cap) -> Result<u64, Error> {
    let mut limit = cap.timeout_us().max(LEAST_US);
    if cap.has_crto() {
        // CRWMT, the time until it is ready with media: half seconds in 16 bits. TO stops at 127 s,
        // this one goes on.
        let crwmt = regs::read(mmio, CRTO)? & 0xffff;
        limit = limit.max(u64::from(crwmt).saturating_mul(500_000));
    }
    Ok(limit)
}

/// Sleeps until `CSTS & mask == value`, for `limit_us` at most.
fn wait(
    platform: &impl Platform,
    mmio: &impl Mmio,
    mask: u32,
    value: u32,
    limit_us: u64,
) -> Result<(), Error> {
    poll_until(platform, Deadline::after(limit_us), PAUSES, || {
        let csts = regs::read(mmio, CSTS)?;
        if csts & mask == value {
            return Ok(Some(()));
        }
        // Waiting for RDY to rise is vain after a fatal error; for it to fall it is what helps.
        match csts & CSTS_CFS != 0 && value & CSTS_RDY != 0 {
            true => Err(Error::Fatal),
            false => Ok(None),
        }
    })
}
