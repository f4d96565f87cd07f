// SPDX-License-Identifier: GPL-2.0
//! Requests that end together.
//!
//! `kernel::block::mq` (Linux 7.2 and 7.3) ends one request at a time.

use super::chain::Iter;
use super::Rq;
use crate::shims;
use core::ptr::{null_mut, NonNull};
use kernel::bindings;

/// Requests that are over, without an error, and that blk-mq ends all at once.
///
/// # Invariants
/// It owns the requests of its list.
pub(crate) struct Batch(bindings::io_comp_batch);

impl Batch {
    /// One with nothing in it.
    pub(crate) const EMPTY: Self = Self(bindings::io_comp_batch {
        req_list: bindings::rq_list {
            head: null_mut(),
            tail: null_mut(),
        },
        need_ts: false,
        complete: None,
        poll_ctx: null_mut(),
    });

    /// Takes `rq`, which is over, unless it is one that has to end by itself.
    #[inline(always)]
    pub(crate) fn add(&mut self, rq: Rq) -> Result<(), Rq> {
        // SAFETY: owned; it is the batch's if that is the answer.
        match unsafe { shims::hiops_add_to_batch(rq.as_raw(), &mut self.0) } {
            true => Ok(()),
            false => Err(rq),
        }
    }

    /// Looks at its requests.
    #[inline(always)]
    pub(crate) fn iter(&self) -> Iter<'_> {
        // INVARIANT: the batch owns them, and is borrowed.
        Iter::new(NonNull::new(self.0.req_list.head))
    }

    /// Ends all that are in it, after which there is none. Any context.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        if !self.0.req_list.head.is_null() {
            // SAFETY: all requests of the batch are owned by it, over, and end here.
            unsafe { bindings::blk_mq_end_request_batch(&mut self.0) };
        }
    }
}
