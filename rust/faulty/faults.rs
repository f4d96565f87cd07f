// SPDX-License-Identifier: GPL-2.0
//! What is to go wrong with one device.

use crate::ahci::Unheard;
use crate::knob::Knob;
use hal::{Again, CmdError, Failure};

/// Most of what is counted, and of microseconds that a completion is late.
const MOST: u32 = 1_000_000_000;

/// What [`Faults::fail_as`] may be, and what each is.
const KINDS: &[&str] = &["medium", "link", "aborted", "busy"];

/// The faults of one device, each with its switch.
pub struct Faults {
    /// So many of the next completions are lost: the command stays the device's until it is reset.
    pub drop: Knob,
    /// While it is not 0, completions are reported so many microseconds late.
    pub delay_us: Knob,
    /// So many of the next completions come twice: the second answers nothing, and counts as a
    /// violation.
    pub duplicate: Knob,
    /// The so-manieth completion from now on says that its command has failed.
    pub fail_nth: Knob,
    /// And why: `medium`, which is final; `link`, `aborted`, `busy`, which may be tried again.
    pub fail_as: Knob,
    /// The device sees no doorbell any more.
    pub deaf: Knob,
    /// It reports a fatal status, and sees no command, until it is reset.
    pub cfs: Knob,
    /// Its registers read as all ones, and writes go nowhere, as if it were pulled.
    pub all_ones: Knob,
    /// Commands that were issued to the ports of an HBA and that they have not seen.
    pub(crate) unheard: Unheard,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            drop: Knob::number(MOST),
            delay_us: Knob::number(MOST),
            duplicate: Knob::number(MOST),
            fail_nth: Knob::number(MOST),
            fail_as: Knob::word(KINDS),
            deaf: Knob::number(1),
            cfs: Knob::number(1),
            all_ones: Knob::number(1),
            unheard: Unheard::default(),
        }
    }
}

impl Faults {
    /// Whether the device sees no doorbell.
    #[inline]
    pub(crate) fn is_deaf(&self) -> bool {
        self.deaf.is_on() || self.cfs.is_on()
    }

    /// How a command fails that is made to.
    pub(crate) fn failure(&self) -> Failure {
        match self.fail_as.get() {
            0 => CmdError::Medium.finally(),
            1 => CmdError::Path.again(),
            2 => CmdError::Aborted.again(),
            _ => Failure {
                error: CmdError::NotReady,
                again: Again::After(1),
            },
        }
    }
}
