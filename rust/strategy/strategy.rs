// SPDX-License-Identifier: GPL-2.0
//! The strategies: policy alone. The engine does what they decide
//! ([`engine::Strategy`] says what it asks, and when); here is no fence, no token, no request.
//!
//! * [`Plain`]: what the in-tree drivers do.
//! * [`Coop`]: the cooperative strategy of HIOPS (ATC '14): every thread that comes by takes
//!   completions.
//! * `Random`: answers with dice, for tests.
//! * [`Selected`]: whichever of them an operator has chosen for a queue.
//!
//! Whatever is learnt of what pays is in an [`Account`]: what a success saves, and what a failure
//! takes. When a command is over is in a [`Forecast`].
#![no_std]
#![forbid(unsafe_code)]

mod account;
mod chosen;
mod coop;
mod estimator;
mod hybrid;
mod plain;
mod predict;
#[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
mod random;

pub use account::{Account, Stakes};
pub use chosen::{Selected, NAMES};
pub use coop::Coop;
pub use estimator::{Class, Forecast, Known};
pub use plain::Plain;
pub use predict::Foresight;
#[cfg(any(feature = "random", CONFIG_FAULT_INJECTION_DEBUG_FS = "y"))]
pub use random::Random;
