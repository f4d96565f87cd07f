// SPDX-License-Identifier: GPL-2.0
//! Errors at the kernel's edge: hal's kinds to errno. To `blk_status_t`: `blk/request.rs`.

use crate::compat::eopnotsupp;
use crate::shims;
use hal::{Denied, Error};
use kernel::error::code::*;
use kernel::ffi::c_int;

/// The errno that the driver core or user space gets for a failed control-path step.
pub fn to_errno(error: Error) -> kernel::error::Error {
    match error {
        Error::NoMemory => ENOMEM,
        Error::Timeout => ETIMEDOUT,
        Error::Gone => ENODEV,
        Error::Fatal | Error::Malformed | Error::Refused(_) => EIO,
        Error::Unsupported => eopnotsupp(),
        Error::Invalid => EINVAL,
    }
}

/// The kernel said no to something that the adapter asked of it.
pub(crate) fn from_errno(error: kernel::error::Error) -> Error {
    match error {
        e if e == ENOMEM => Error::NoMemory,
        e if e == EINVAL => Error::Invalid,
        e if e == ENODEV => Error::Gone,
        e if e == ETIMEDOUT => Error::Timeout,
        _ => Error::Fatal,
    }
}

/// The block layer's word for why a disk has not done what was asked of its reservations, as nvme
/// of Linux 7.3 has it: a `pr_status`, or an errno.
pub(crate) fn denied(why: Denied) -> c_int {
    let status = match why {
        Denied::Conflict => shims::pr_status_PR_STS_RESERVATION_CONFLICT,
        Denied::Path => shims::pr_status_PR_STS_PATH_FAILED,
        Denied::Failed => shims::pr_status_PR_STS_IOERR,
        Denied::Invalid => return EINVAL.to_errno(),
    };
    // CAST: all are below 2^17.
    status as c_int
}

/// What the operator reads about a failed control-path step.
pub fn advice(error: Error) -> &'static str {
    match error {
        Error::NoMemory => "no memory; free some and bind it again",
        Error::Timeout => "it did not get ready in the time it asks for; power-cycle it",
        Error::Gone => "it is gone; check its slot and power",
        Error::Fatal => "it reports a fatal status; power-cycle it, then look at its own log",
        Error::Malformed => "what it says of itself is contradictory; update its firmware",
        Error::Unsupported => "it lacks a feature that hiops needs; use its in-tree driver",
        Error::Refused(_) => "it refused a command of the set-up; look at its own log",
        Error::Invalid => "a parameter is out of range",
    }
}
