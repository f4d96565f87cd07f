// SPDX-License-Identifier: GPL-2.0
//! Why a controller is reset, in the log's words; and why it is put to rest.

use core::fmt;
use hal::Command;

/// Why a controller is reset.
#[derive(Clone, Copy)]
pub(crate) enum Reason {
    /// This command is not answered.
    Late(Command),
    /// This command waits, and no other was begun for as long as one may take.
    NoTag(Command),
    /// It reports completions of what it was not told.
    Lies,
    /// A command of the control path is not answered, or nothing sensible is.
    Unanswered,
    /// An operator wants it, or the device itself.
    Asked,
}

/// Why a controller is put to rest for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspend {
    /// Power may go away.
    Sleep,
    /// The function is reset next.
    Reset,
    /// Nothing gets through to it until it is reset.
    Frozen,
}

impl kernel::fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Late(cmd) => write!(
                f,
                "no answer to a {:?} of {} blocks at {} on disk {}",
                cmd.op, cmd.blocks, cmd.lba, cmd.unit
            ),
            Reason::NoTag(cmd) => write!(
                f,
                "no tag was free in time for a {:?} of {} blocks at {} on disk {}",
                cmd.op, cmd.blocks, cmd.lba, cmd.unit
            ),
            Reason::Lies => f.write_str("it reports completions of commands that it does not have"),
            Reason::Unanswered => {
                f.write_str("an administrative command was not answered as it should be")
            }
            Reason::Asked => f.write_str("a reset was asked for"),
        }
    }
}
