// SPDX-License-Identifier: GPL-2.0
//! From any state to a controller that takes commands (Base 2.0 section 3.5.1): reset, ask, agree,
//! re-create what was there.

use crate::controller::{NvmeController, QUEUES_MAX};
use crate::data::{Layout, LIST_MAX};
use crate::doorbell::Shadow;
use crate::identify::{self, Cns, ControllerId, View};
use crate::kept::Kept;
use crate::made::Made;
use crate::quirks::Quirks;
use crate::regs;
use crate::state::{About, State};
use crate::step::Step;
use crate::{admin, cqe, features, interrupt};
use cell::TryLock;
use hal::{DmaMem, Error, Limits, Mmio, Platform};

/// Tags of a queue, as in tree (`io_queue_depth`, Linux 7.3): with the entry that keeps it from
/// being full, its entries fill whole pages.
const TAGS: u16 = 1023;
/// Most bytes of a command, of what a tag's list can say.
const TRANSFER_MAX: u32 = 2 << 20;

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Resets the controller and brings it up; queues that exist are made again.
    pub(crate) fn bring_up(&self, state: &mut State<P, M>) -> Result<(), Error> {
        self.disable()?;
        // Now it touches no memory.
        state.kept = Kept::nothing();
        state.effects = None;
        self.enable()?;
        if self.is_pin() {
            // Nobody may listen yet.
            interrupt::mask(&self.mmio, 0);
        }
        let id = self.identify_controller()?;
        self.keep_awake(&id)?;
        self.ask_for_retry_delays(&id)?;
        self.lend(state, &id)?;
        let queues = self.agree_on_queues(state.queues)?;
        let about = self.about(id, queues)?;
        match state.about {
            // What was promised to the layers above still has to hold.
            Some(before) if !keeps(&before, &about) => return Err(Error::Malformed),
            Some(_) => {}
            None => state.about = Some(about),
        }
        self.set_up_shadow(state, &about)?;
        for qid in 1..=state.queues {
            let place = self.made.get(usize::from(qid.saturating_sub(1)));
            let made = place.and_then(TryLock::try_lock);
            let made = made.as_ref().and_then(|made| made.as_ref());
            self.announce(qid, made.ok_or(Error::Invalid)?)?;
        }
        state.events.begin_again();
        self.listen(&about.id)
    }

    /// Tells the controller of queue `qid`.
    pub(crate) fn announce(&self, qid: u16, made: &Made<P::Dma>) -> Result<(), Error> {
        let create = features::create_cq(qid, made.entries, made.cq.bus_addr(), made.vector);
        self.command(Step::CreateCompletionQueue, create)?;
        let medium = self.quirk_set().has(Quirks::MEDIUM_PRIO_SQ);
        let create = features::create_sq(qid, made.entries, made.sq.bus_addr(), medium);
        let refused = self.command(Step::CreateSubmissionQueue, create);
        if let Err(Error::Refused(status)) = refused {
            // The one without the other is of no use, and its memory is about to go. What is
            // reported is what failed first.
            self.command(Step::DeleteCompletionQueue, features::delete_cq(qid))
                .map_err(|_| Error::Fatal)?;
            self.progress.at(Step::CreateSubmissionQueue);
            return Err(Error::Refused(status));
        }
        refused.map(|_| ())
    }

    fn identify_controller(&self) -> Result<ControllerId, Error> {
        let view = self.identify(Step::IdentifyController, Cns::Controller, 0)?;
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
    fn keep_awake(&self, id: &ControllerId) -> Result<(), Error> {
        if !(id.has_apst && self.quirk_set().stays_awake()) {
            return Ok(());
        }
        let base = self.page();
        self.pages.zero(base, identify::BYTES);
        let table = self.pages.bus_addr().wrapping_add(base as u64);
        match self.command(Step::PowerStates, features::stay_awake(table)) {
            Ok(_) | Err(Error::Refused(_)) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Identify into the second page.
    pub(crate) fn identify(
        &self,
        step: Step,
        cns: Cns,
        nsid: u32,
    ) -> Result<View<'_, P::Dma>, Error> {
        let base = self.page();
        let to = self.pages.bus_addr().wrapping_add(base as u64);
        self.command(step, features::identify(cns, nsid, to))?;
        Ok(View {
            memory: &self.pages,
            base,
        })
    }

    /// Has the controller say with a failure how long to wait before the next try, where it has
    /// such delays (Base 2.0 section 5.27.1.18). That it refuses is no reason to do without it:
    /// then it names none.
    fn ask_for_retry_delays(&self, id: &ControllerId) -> Result<(), Error> {
        if id.retry_delays == [0; 3] {
            return Ok(());
        }
        let base = self.page();
        self.pages.zero(base, features::HOST_BEHAVIOR_BYTES);
        self.pages.write32(base, features::RETRY_DELAYS);
        let from = self.pages.bus_addr().wrapping_add(base as u64);
        match self.command(Step::HostBehavior, features::host_behavior(from)) {
            Ok(_) | Err(Error::Refused(_)) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Number of Queues: at least those that `exist`.
    fn agree_on_queues(&self, exist: u16) -> Result<u16, Error> {
        let wanted = self.quirk_set().queues(self.queues_wanted());
        let result = self.command(Step::NumberOfQueues, features::number_of_queues(wanted))?;
        let queues = features::granted(result).min(wanted);
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
            Step::DoorbellBuffer,
            features::doorbell_buffer(values, events),
        ) {
            Ok(_) => Ok(()),
            Err(Error::Refused(_)) if first => {
                state.shadow = None;
                Ok(())
            }
            Err(why) => Err(why),
        }
    }

    fn new_shadow(&self, about: &About) -> Result<Shadow<P::Dma>, Error> {
        let queues = about.limits.queues.saturating_add(1);
        let bytes = regs::sq_doorbell(queues, self.cap.stride());
        let page = self.page();
        let mask = page.wrapping_sub(1);
        let events = bytes.saturating_add(mask) & !mask;
        let memory = admin::paged(&self.platform, events.saturating_mul(2), page)?;
        Ok(Shadow { memory, events })
    }
}

/// Whether what was promised `before` a reset holds for what is there `now`.
fn keeps(before: &About, now: &About) -> bool {
    let (was, is) = (&before.limits, &now.limits);
    is.tags >= was.tags
        && is.max_transfer >= was.max_transfer
        && now.id.sgls == before.id.sgls
        && now.id.serial == before.id.serial
}

// Every tag fits the CID, and the largest transfer a list.
const _: () = assert!(TAGS <= cqe::TAGS_MAX);
const _: () = assert!(TRANSFER_MAX as usize / 4096 * 8 <= LIST_MAX);
