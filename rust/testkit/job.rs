// SPDX-License-Identifier: GPL-2.0
//! A command for a device, a request that asks for it, and how it ended.

use hal::mock::MockMapping;
use hal::{CmdError, Command, Op, Outcome};

/// A request, with its data before and after.
pub struct Job {
    /// The test's name for it.
    pub id: usize,
    /// What it asks for.
    pub cmd: Command,
    /// What is written, or was read.
    pub data: Vec<u8>,
    pub(crate) shape: (usize, usize),
    pub(crate) mapped: Option<MockMapping>,
}

impl Job {
    /// A request whose data begins at a page and is one piece.
    pub fn new(id: usize, cmd: Command, data: Vec<u8>) -> Box<Self> {
        Self::shaped(id, cmd, data, (0, 0))
    }

    /// One whose data begins so far in a page, in pieces so long (0: all one).
    pub fn shaped(id: usize, cmd: Command, data: Vec<u8>, shape: (usize, usize)) -> Box<Self> {
        Box::new(Self {
            id,
            cmd,
            data,
            shape,
            mapped: None,
        })
    }
}

/// How a command ended, without what is to be said of another try: [`crate::Host::agains`] and
/// [`crate::Line::failure`] have that.
pub type Ended = Result<(), CmdError>;

/// How a command that had this outcome ended.
pub(crate) fn kind(outcome: Outcome) -> Ended {
    outcome.map_err(|failure| failure.error)
}

/// A command for `unit`, in blocks of 512 bytes.
pub fn command(unit: u32, op: Op, lba: u64, blocks: u32) -> Command {
    Command {
        op,
        unit,
        lba,
        blocks,
        block_shift: 9,
        fua: false,
        unmap: false,
    }
}

/// Bytes that say where they are.
pub fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at as u8).wrapping_mul(7) ^ (at >> 8) as u8 ^ seed)
        .collect()
}
