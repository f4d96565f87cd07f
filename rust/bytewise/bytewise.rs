// SPDX-License-Identifier: GPL-2.0
//! A disk's bytes, read and written at any offset: which blocks those are in ([`Plan`]), what of
//! those need not come ([`Sparse`]), which buffers they may go into ([`Free`]), which locks a write
//! takes ([`Regions`], [`Busy`]), and whether somebody looks after what no thread waits for
//! ([`Armed`]).
#![no_std]
#![forbid(unsafe_code)]

mod armed;
mod busy;
mod free;
mod holes;
mod plan;
mod regions;

pub use armed::Armed;
pub use busy::Busy;
pub use free::Free;
pub use holes::{is_telling, spoil, trials, Piece, Pieces, Sparse};
pub use plan::{Geometry, Plan, Run, SPAN};
pub use regions::{Region, Regions};
