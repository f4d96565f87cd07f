// SPDX-License-Identifier: GPL-2.0
//! What an operator turns on and off for one disk.

/// The switches of a disk, as they stand when a request of it is submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches(pub u8);

impl Switches {
    /// Finished I/O is ended by the thread that sleeps for it.
    pub const LAZY: u8 = 1;
    /// Whoever passes by takes completions.
    pub const COOP: u8 = 2;

    /// Whether [`Switches::LAZY`] is on.
    #[inline(always)]
    pub fn lazy(self) -> bool {
        self.0 & Self::LAZY != 0
    }

    /// Whether [`Switches::COOP`] is on.
    #[inline(always)]
    pub fn coop(self) -> bool {
        self.0 & Self::COOP != 0
    }
}
