// SPDX-License-Identifier: GPL-2.0
//! Queue pairs: how the controller gets one, and what is kept of it so that it can be made again
//! after a reset.

use crate::controller::NvmeController;
use crate::cqe::Cids;
use crate::queue::{NvmeQueue, Plan};
use crate::quirks::Quirks;
use crate::state::State;
use hal::{Error, Mmio, Platform};

/// A queue as the controller knows it, with handles of its memory: whatever becomes of the queue,
/// the device knows of no memory that is gone.
pub(crate) struct Made<D> {
    pub(crate) sq: D,
    pub(crate) cq: D,
    pub(crate) entries: u16,
    /// `None`: it never interrupts.
    pub(crate) vector: Option<u16>,
}

/// A queue pair that the controller knows.
type Pair<P, M> = (NvmeQueue<P, M>, Made<<P as Platform>::Dma>);

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Makes queue pair `qid` of `tags` tags, and tells the controller of it.
    ///
    /// [`Error::Refused`]: the controller does not take it. Where the controller may have it all
    /// the same, its memory is kept in `state.kept.queue` until the controller is disabled; no
    /// other is made before.
    pub(crate) fn make_pair(
        &self,
        state: &mut State<P, M>,
        qid: u16,
        tags: u16,
        vector: Option<u16>,
    ) -> Result<Pair<P, M>, Error> {
        let about = state.about.ok_or(Error::Invalid)?;
        if state.kept.queue.is_some() {
            return Err(Error::Timeout);
        }
        let quirks = self.quirk_set();
        let plan = Plan {
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
        let made = Made {
            sq,
            cq,
            entries,
            vector,
        };
        match self.announce(qid, &made) {
            Ok(()) => Ok((queue, made)),
            Err(why @ Error::Refused(_)) => Err(why),
            Err(why) => {
                state.kept.queue = Some(queue);
                Err(why)
            }
        }
    }
}
