// SPDX-License-Identifier: GPL-2.0
//! The strategies: policy alone. What carries their decisions out is the engine
//! ([`engine::Strategy`] says what it asks, and when); here is no fence, no token, no request.
//!
//! * [`Plain`]: what the in-tree drivers do.
//! * [`Coop`]: the cooperative strategy of HIOPS (ATC '14): who passes by takes completions.
//! * [`Chosen`]: whichever of them an operator has chosen for a queue.
#![no_std]
#![forbid(unsafe_code)]

mod chosen;
mod coop;
mod plain;

pub use chosen::Chosen;
pub use coop::Coop;
pub use plain::Plain;
