// SPDX-License-Identifier: GPL-2.0
//! A disk's bytes, `/dev/<disk>_bytes`: reads and writes of any bytes go past page cache and block
//! layer straight to the engine, whole blocks to and from a buffer of hiops' own, to which the
//! bytes are copied, or from it (docs/bytes.md).
//!
//! ```text
//!  read(2) --take a buffer--enter (the block layer's counter)--submit--> engine: Req::Bytes
//!            sleeps, polls, yields as a block reader does (c_shims/wait.c)   │
//!          <--copy, exit, give the buffer-- over <--end_cmd, finish──────────┘
//! ```
//! `io`: one command, beside the block layer's requests. `entered`: the block layer's counter.
//! `buffer`, `room`, `memory`: one buffer, who has which, and all of a disk. `holes`, `trial`:
//! whether what nobody wants may stay with the device. `switch`: what a disk
//! keeps of it, on or off. `transfer`: blocks, for a thread that waits. `read`, `write`, `locks`:
//! what it does with them. `async_io`, `begin`: an I/O for which no thread waits; `watchdog`: who
//! looks after it.

pub(crate) mod async_io;
pub(crate) mod begin;
pub(crate) mod buffer;
pub(crate) mod entered;
pub(crate) mod holes;
pub(crate) mod io;
pub(crate) mod locks;
pub(crate) mod memory;
pub(crate) mod read;
pub(crate) mod room;
pub(crate) mod switch;
pub(crate) mod transfer;
pub(crate) mod trial;
pub(crate) mod watchdog;
pub(crate) mod write;
