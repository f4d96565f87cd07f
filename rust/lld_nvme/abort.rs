// SPDX-License-Identifier: GPL-2.0
//! Abort (Base 2.0 section 5.1): the controller gives one command up, which ends with the status
//! Command Abort Requested.

use crate::admin;
use crate::controller::NvmeController;
use crate::features;
use crate::queue::NvmeQueue;
use crate::step::Step;
use hal::{Deadline, Error, Mmio, Platform};

/// Bit 0 of dword 0: the command was not aborted.
const NOT_ABORTED: u64 = 1;

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// See [`hal::Controller::abort`].
    pub(crate) fn abort_command(
        &self,
        queue: &NvmeQueue<P, M>,
        tag: usize,
        limit_us: u64,
    ) -> Result<bool, Error> {
        let _state = self.state()?;
        let Some((qid, cid)) = queue.name_of(tag) else {
            return Ok(false);
        };
        self.progress.at(Step::Abort);
        let deadline = Deadline::after(limit_us.min(admin::TIMEOUT_US));
        let sqe = features::abort(qid, cid);
        let reply = self
            .admin
            .submit(&self.platform, &self.mmio, sqe, deadline)?;
        // One at a time: no controller's limit (ACL) is in the way. Whatever it is that it objects
        // to, the command has not been aborted.
        Ok(reply.status == 0 && reply.result & NOT_ABORTED == 0)
    }
}
