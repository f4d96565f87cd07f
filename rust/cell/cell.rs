// SPDX-License-Identifier: GPL-2.0
//! Interior mutability shared between contexts.
//!
//! The pure crates forbid `unsafe`; what they share between threads and interrupts lives in the
//! three types of this crate, and nowhere else:
//!
//! * [`TryLock`]: a value with one holder at a time, for whom nobody waits: who finds it held
//!   *knocks*.
//! * [`Slot`]: a place for one value that is put once and taken once, whoever asks.
//! * [`Handover`]: a place for one value between one [`Putter`] and one [`Taker`].
//!
//! All are made of what [`sync`] offers: `core`'s atomics in the kernel and on the host, loom's
//! under `--cfg loom`, where `tests/` tries every interleaving.
#![no_std]

mod handover;
mod slot;
pub mod sync;
mod try_lock;

pub use handover::{Handover, Putter, Taker};
pub use slot::Slot;
pub use try_lock::{Guard, TryLock};
