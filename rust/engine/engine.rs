// SPDX-License-Identifier: GPL-2.0
//! The engine of HIOPS: how requests of a layer above become commands of a controller's queue, and
//! how their completions find back, without a lock that anybody waits for.
//!
//! # Vocabulary
//! * **Request**: what the layer above ([`Upper`]) wants done. The engine owns it from
//!   [`IoQueue::submit`] until it is *ended*, exactly once, through [`Upper::end_cmd`].
//! * **FIFO**: requests that wait for a tag, in order. The layer above may be deeper than the
//!   controller.
//! * **Issue token, drain token**: the right to the issuing and to the draining side of the
//!   hardware queue ([`cell::TryLock`]). Nobody waits for a token: who finds it held *knocks*, and
//!   the holder looks once more before it leaves.
//! * **Slot**: the request that a tag is bound to. The context that takes it out of its place
//!   ([`cell::Handover`]) ends it; there is no second arbiter.
//! * **Gate**: open, quiesced ([`Quiesced`] holds both tokens) or dead.
//! * **Strategy**: who decides when and how much is done ([`Strategy`]); the engine does it.
//! * **Mode**: how completions are noticed when nobody passes by: by interrupt, by a timer, or by
//!   whichever of them the strategy chooses (`timer.rs`).
//!
//! # A request's way
//! ```text
//!  submit - token free, FIFO empty, tag free -> bind -> begin_cmd -> slot -> issue_tags -> device
//!     |                                          ^                                           |
//!     +--> FIFO -- the issue token's holder -----+               drain: fetch, detach, take slot
//!                        ^                                             |                |
//!                        +---- release_tags: tags are free again <-----+        end_cmd ... finish
//! ```
//!
//! # The two hand-overs
//! *Submitter and drainer.* A submitter that finds no tag leaves its request in the FIFO; a drainer
//! that releases tags looks there. Each first writes, then passes a full fence, then reads what the
//! other writes, so at least one of them sees the other (`submit.rs`, `complete.rs`). So do an
//! issuer and the timer ([`OnDemand`]).
//!
//! *Holder and knocker.* What a knocker wrote is seen by the holder after its `release`, which told
//! it to look again.
//!
//! Each is modelled in `tests/loom_handover.rs`. All loops are bounded: who is kept busy by others
//! leaves through [`Upper::retry_later`].
#![no_std]
#![forbid(unsafe_code)]

mod complete;
pub mod latency;
mod on_demand;
mod policy;
mod predict;
mod queue;
mod quiesce;
mod retry;
mod submit;
mod timer;
mod wait;
mod waiter;

pub use on_demand::OnDemand;
pub use policy::{
    Alone, Batching, Block, Context, Costs, Cpu, Drained, Due, Expected, Interrupted, Learned,
    Mode, Nap, Next, Polling, Predicted, Prediction, Predictor, Seen, Selectable, Staged, Strategy,
    Switches, View, WaitOutcome, WaitPlan, Yield, DEFAULT_POLL_INTERVAL_US,
};
pub use predict::CLOSE;
pub use queue::{Data, IoQueue, Overdue, Upper};
pub use quiesce::Quiesced;
pub use retry::{Retry, RetryCount};
pub use wait::{Waiting, MOST_WINDOW_US};
pub use waiter::{Thread, Waiter, Waiters};
