// SPDX-License-Identifier: GPL-2.0
//! An asynchronous read or write, as the kernel has it ([`Kiocb`]), and what is to be done when it
//! is over ([`AsyncIo`]).

use bytewise::{Plan, Regions};
use core::marker::PhantomData;
use core::ptr::NonNull;
use engine::{Retry, RetryCount};
use hal::Failure;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::ffi::{c_long, c_uint, c_void};

use crate::bytes::buffer::Buffer;
use crate::bytes::entered::{Accounted, Entered};
use crate::shims;

/// What the kernel has of an asynchronous read or write; of a read with the memory that it goes to,
/// which stays. To be ended once.
///
/// # Invariants
/// It is from `hiops_bytes_hold()` or `hiops_bytes_kiocb_new()`, and not ended: C hands it over.
#[repr(transparent)]
pub(crate) struct Kiocb(NonNull<shims::hiops_bytes_kiocb>);

// SAFETY: it may be ended in any context.
unsafe impl Send for Kiocb {}

/// One that its owner lends.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct LentKiocb<'a> {
    kiocb: NonNull<shims::hiops_bytes_kiocb>,
    owner: PhantomData<&'a Kiocb>,
}

// Safe to call: they ask for one that is not ended, which the types' invariants say. Each is as
// its header says it: see the constants below.
unsafe extern "C" {
    /// It is on that queue: `iopoll` is to look there. Any context.
    safe fn hiops_bytes_polled_on(kiocb: LentKiocb<'_>, lane: c_uint);
    /// It is over: so many bytes were moved, or a negative errno. Any context.
    safe fn hiops_bytes_complete(kiocb: Kiocb, ret: c_long);
}

const _: [unsafe extern "C" fn(*mut shims::hiops_bytes_kiocb, c_uint); 1] =
    [shims::hiops_bytes_polled_on];
const _: [unsafe extern "C" fn(*mut shims::hiops_bytes_kiocb, c_long); 1] =
    [shims::hiops_bytes_complete];

impl Kiocb {
    /// Polled I/O is looked for on the queue `lane`.
    #[inline]
    pub(crate) fn set_lane(&self, lane: usize) {
        let (kiocb, owner) = (self.0, PhantomData);
        // CAST: far fewer queues.
        hiops_bytes_polled_on(LentKiocb { kiocb, owner }, lane as c_uint);
    }
}

/// A read or write that no thread waits for.
pub(crate) struct AsyncIo {
    pub(crate) entered: Entered,
    pub(crate) kiocb: Kiocb,
    /// What of the buffer is wanted.
    pub(crate) plan: Plan,
    /// Of a write, those of the disk that it has made busy.
    pub(crate) writes: Option<Regions>,
    pub(crate) accounted: Accounted,
    /// How often it may be tried again.
    pub(crate) max_retries: u8,
}

impl AsyncIo {
    /// Whether, and when, it is tried again which has failed for the first time.
    #[cold]
    pub(crate) fn retry(&self, failure: Failure) -> Option<Retry> {
        let tries = RetryCount {
            done: 0,
            most: self.max_retries,
            fail_fast: false,
            dying: self.entered.is_dead(),
        };
        tries.after(failure)
    }

    /// It is over, by the device, with `buffer`: what was read there goes to its caller. How many
    /// bytes were moved. Any context.
    #[inline]
    pub(crate) fn fill(&self, buffer: &Buffer) -> Result<usize, Error> {
        let Plan { skip, len, .. } = self.plan;
        if self.writes.is_some() {
            return Ok(len);
        }
        let from = buffer.part(skip, len).ok_or(EIO)?;
        let from: *const c_void = from.cast_const().cast();
        // SAFETY: so many bytes of a buffer that no device reaches any more.
        unsafe { shims::hiops_bytes_fill(self.kiocb.0.as_ptr(), from, len) };
        Ok(len)
    }

    /// It is over, as `result` says, and its buffer given back. Any context, with bottom halves
    /// off or on.
    #[inline]
    pub(crate) fn end(self, result: Result<usize, Error>) {
        let ret = match result {
            // CAST: some thousand at most.
            Ok(len) => len as c_long,
            // CAST: an errno.
            Err(error) => error.to_errno() as c_long,
        };
        self.entered.account_end(self.accounted);
        // The caller may close the file, and take the disk away, as soon as it knows.
        drop(self.entered);
        hiops_bytes_complete(self.kiocb, ret);
    }
}
