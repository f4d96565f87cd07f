// SPDX-License-Identifier: GPL-2.0
//! A disk's bytes, `/dev/<disk>_bytes`: reads of any bytes go past page cache and block layer
//! straight to the engine, whole blocks into a buffer of hiops' own, of which the wanted bytes are
//! copied (docs/bytes.md).
//!
//! ```text
//!  read(2) --take a buffer--enter (the block layer's counter)--submit--> engine: Req::Bytes
//!            sleeps, polls, yields as a block reader does (c_shims/wait.c)   │
//!          <--copy, exit, give the buffer-- over <--end_cmd, finish──────────┘
//! ```
//! `io`: one such I/O, beside the block layer's requests. `buffer`, `memory`: one buffer, and all
//! of a disk. `switch`: what a disk keeps of it, on or off. `read`: what a reader does.

pub(crate) mod buffer;
pub(crate) mod io;
pub(crate) mod memory;
pub(crate) mod read;
pub(crate) mod switch;
