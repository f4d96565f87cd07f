// SPDX-License-Identifier: GPL-2.0
//! Persistent reservations: hosts that share a disk register a key each, and one of them reserves
//! it. Whose key it is the disk remembers, whatever becomes of the host.

use crate::Error;

/// A disk's answer.
pub type Answer<T> = Result<T, Denied>;

/// The control path to the reservations of a controller's disks, named by [`crate::Unit::id`].
/// Sleeps; under the same mutex as the control path. `wanted` returns whether another thread waits
/// for that mutex ([`crate::Deadline::preemptible`]).
///
/// [`Error::Unsupported`]: the device has nothing left by which it could be asked.
/// [`Error::Invalid`]: it is asked for more than it transfers at once.
/// [`Error::Timeout`]: it has to be recovered.
pub trait Reservations {
    /// Has `what` done.
    fn reserve(
        &self,
        unit: u32,
        what: &Reserve,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Answer<()>, Error>;

    /// Writes the keys that are registered to `keys`, as many as there is room for.
    fn registered(
        &self,
        unit: u32,
        keys: &mut [u64],
        wanted: &dyn Fn() -> bool,
    ) -> Result<Answer<Registered>, Error>;

    /// Who has reserved it.
    fn holder(&self, unit: u32, wanted: &dyn Fn() -> bool) -> Result<Answer<Holder>, Error>;
}

/// What a reservation leaves to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Others read; the holder alone writes.
    WriteExclusive,
    /// The holder alone reads and writes.
    ExclusiveAccess,
    /// Others read; who is registered writes.
    WriteExclusiveRegistrants,
    /// Who is registered reads and writes.
    ExclusiveAccessRegistrants,
    /// As [`Access::WriteExclusiveRegistrants`], and who is registered holds it.
    WriteExclusiveAll,
    /// As [`Access::ExclusiveAccessRegistrants`], and who is registered holds it.
    ExclusiveAccessAll,
}

/// What is to become of a disk's keys and reservation. `access` is `None` where the caller's is
/// none of them: the disk refuses that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// This host's key is `new` from now on; before it was `old`, 0: none. It outlives a loss of
    /// power.
    Register {
        /// The key until now.
        old: u64,
        /// The key from now on.
        new: u64,
        /// Whatever the key was.
        ignore: bool,
    },
    /// This host, whose key is `key`, reserves the disk.
    Acquire {
        /// Its key.
        key: u64,
        /// How.
        access: Option<Access>,
        /// Whatever its key is.
        ignore: bool,
    },
    /// Who registered `victim` loses that, and the reservation; this host takes it over.
    Preempt {
        /// This host's key.
        key: u64,
        /// The other's.
        victim: u64,
        /// How it reserves the disk.
        access: Option<Access>,
        /// The other's commands are aborted.
        abort: bool,
    },
    /// This host gives the reservation up.
    Release {
        /// Its key; 0: whatever that is.
        key: u64,
        /// What it holds.
        access: Option<Access>,
    },
    /// All keys go, and the reservation.
    Clear {
        /// This host's key; 0: whatever that is.
        key: u64,
    },
}

/// Why a disk has not done so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// This host has not the key, or another has the reservation.
    Conflict,
    /// The disk does not know the command, or not with these parameters.
    Invalid,
    /// The way to the disk failed.
    Path,
    /// Anything else.
    Failed,
}

/// What is registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// Counts what changes the keys.
    pub generation: u32,
    /// How many keys there are.
    pub keys: u32,
}

/// Who holds the reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Counts what changes the keys.
    pub generation: u32,
    /// How it is reserved; `None`: not.
    pub access: Option<Access>,
    /// The (first) holder's key; 0: there is none.
    pub key: u64,
}
