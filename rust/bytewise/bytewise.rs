// SPDX-License-Identifier: GPL-2.0
//! A disk's bytes, read at any offset: which blocks have to be read for them ([`Plan`]), and which
//! buffers those may go into ([`Free`]).
#![no_std]
#![forbid(unsafe_code)]

mod free;
mod plan;

pub use free::Free;
pub use plan::{Geometry, Plan, MOST};
