// SPDX-License-Identifier: GPL-2.0
//! A queue pair for I/O commands of the operator's tools: one command at a time, polled with
//! sleeps.
//!
//! It is one that the controller grants and the layers above have no use for, so their data path
//! knows nothing of it. It is made when the first such command comes, and is gone with the next
//! reset.

use crate::admin::AdminReply;
use crate::bringup;
use crate::command::Sqe;
use crate::controller::NvmeController;
use crate::queue::{NvmeDrain, NvmeIssue, NvmeQueue};
use crate::state::State;
use hal::{Deadline, Error, Mmio, Platform, Queue, TagBatch};

/// The first and the longest pause between two looks, in microseconds.
const PAUSE_US: (u64, u64) = (20, 2_000);

/// The queue pair.
pub(crate) struct ToolQueue<P: Platform, M: Mmio> {
    queue: NvmeQueue<P, M>,
    issue: NvmeIssue,
    drain: NvmeDrain,
    /// The device has a command.
    busy: bool,
    /// That command's data.
    data: Option<P::Dma>,
}

impl<P: Platform, M: Mmio> ToolQueue<P, M>
where
    P::Dma: Clone,
{
    /// Sends `sqe` (its CID is filled in), which points to `data`, and sleeps until it is answered.
    /// One caller at a time.
    ///
    /// [`Error::Timeout`]: the data stays the device's until it is disabled, and nothing more can
    /// be sent before.
    pub(crate) fn submit(
        &mut self,
        platform: &P,
        mmio: &M,
        sqe: Sqe,
        data: Option<&P::Dma>,
        deadline: Deadline<'_>,
    ) -> Result<AdminReply, Error> {
        bringup::alive(mmio)?;
        if self.busy {
            return Err(Error::Timeout);
        }
        let mut free = TagBatch::default();
        self.queue.get_free_tags(&mut self.issue, 1, &mut free);
        let mut bound = TagBatch::default();
        (free.pop())
            .and_then(|tag| self.queue.bind_entry(&mut self.issue, tag, sqe))
            .and_then(|tag| bound.push(tag).ok())
            .ok_or(Error::Fatal)?;
        (self.busy, self.data) = (true, data.cloned());
        self.queue.issue_tags(&mut self.issue, &mut bound);
        let reply = self.wait(platform, mmio, deadline)?;
        (self.busy, self.data) = (false, None);
        Ok(reply)
    }

    fn wait(
        &mut self,
        platform: &P,
        mmio: &M,
        mut deadline: Deadline<'_>,
    ) -> Result<AdminReply, Error> {
        let start = platform.now_us();
        let mut pause = PAUSE_US.0;
        loop {
            // The clock first: a late wake-up is not the device's fault.
            let waited = platform.now_us().saturating_sub(start);
            if let Some((tag, reply)) = self.queue.fetch_reply(&mut self.drain) {
                let mut done = TagBatch::default();
                // There is room: the batch is empty.
                let _ = done.push(self.queue.detach_tag_cmd(&mut self.drain, tag));
                self.queue.release_tags(&mut self.drain, &mut done);
                return Ok(reply);
            }
            bringup::alive(mmio)?;
            if deadline.has_come(waited) {
                return Err(Error::Timeout);
            }
            platform.sleep_us(pause);
            pause = pause.saturating_mul(2).min(PAUSE_US.1);
        }
    }
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// The tools' queue pair, made if there is none yet.
    ///
    /// [`Error::Unsupported`]: the controller grants no pair that the layers above leave.
    /// [`Error::Timeout`]: it is not known what the controller has; it has to be stopped.
    pub(crate) fn tool_queue<'a>(
        &self,
        state: &'a mut State<P, M>,
    ) -> Result<&'a mut ToolQueue<P, M>, Error> {
        if state.kept.tools.is_none() {
            self.make_tool_queue(state)?;
        }
        state.kept.tools.as_mut().ok_or(Error::Unsupported)
    }

    fn make_tool_queue(&self, state: &mut State<P, M>) -> Result<(), Error> {
        let about = state.about.ok_or(Error::Invalid)?;
        if state.queues >= about.limits.queues {
            return Err(Error::Unsupported);
        }
        let pair = self.make_pair(state, state.queues.saturating_add(1), 1, None);
        if state.kept.queue.is_some() {
            // The device may have the queue: it is to be disabled.
            return Err(Error::Timeout);
        }
        let (queue, _) = pair?;
        state.kept.tools = Some(ToolQueue {
            queue,
            issue: NvmeIssue::default(),
            drain: NvmeDrain::new(),
            busy: false,
            data: None,
        });
        Ok(())
    }
}
