// SPDX-License-Identifier: GPL-2.0
//! Who has which buffer of a hardware queue, and the threads that wait for one.

use bytewise::Free;
use hal::Error;
use kernel::prelude::*;
use kernel::sync::{new_condvar, new_mutex, Arc, CondVar, Mutex};

/// The buffers of one queue of a disk, by their numbers.
#[pin_data]
pub(crate) struct Room {
    free: Free,
    #[pin]
    lock: Mutex<()>,
    #[pin]
    given: CondVar,
}

impl Room {
    /// For `count` buffers, all of them free. Sleeps.
    pub(crate) fn new(count: usize) -> Result<Arc<Self>, Error> {
        let init = pin_init!(Self {
            free: Free::new(count),
            lock <- new_mutex!((), "hiops_bytes_room"),
            given <- new_condvar!("hiops_bytes_given"),
        });
        Arc::pin_init(init, GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    /// How many buffers it is for.
    pub(crate) fn count(&self) -> usize {
        self.free.count()
    }

    /// Takes a buffer. Sleeps until there is one, if it may; else there may be none.
    #[inline]
    pub(crate) fn take(&self, may_wait: bool) -> Option<usize> {
        match self.free.take() {
            None if may_wait => Some(self.wait()),
            taken => taken,
        }
    }

    #[cold]
    fn wait(&self) -> usize {
        let mut lock = self.lock.lock();
        self.free.begin_wait();
        let buffer = loop {
            match self.free.take_again() {
                Some(buffer) => break buffer,
                None => self.given.wait(&mut lock),
            }
        };
        self.free.end_wait();
        buffer
    }

    /// Gives a buffer back that was taken. Whether a thread waits for one, which is to be woken
    /// ([`Room::wake_all`]). Any context.
    #[inline]
    #[must_use = "who waits for a buffer is to be woken"]
    pub(crate) fn give(&self, buffer: usize) -> bool {
        self.free.give(buffer)
    }

    /// Has one that waits look again. Sleeps.
    #[cold]
    fn wake(&self) {
        let _lock = self.lock.lock();
        self.given.notify_one();
    }

    /// Has all that wait look again. Sleeps.
    #[cold]
    pub(crate) fn wake_all(&self) {
        let _lock = self.lock.lock();
        self.given.notify_all();
    }
}

/// A buffer's number, which is this thread's until the drop; no I/O of it is under way then.
pub(crate) struct Taken<'a> {
    room: &'a Room,
    /// Which queue's.
    pub(crate) lane: usize,
    /// Which of its buffers.
    pub(crate) at: usize,
}

impl<'a> Taken<'a> {
    /// One of `room`, that of the queue `lane`. Sleeps until there is one, if it may.
    #[inline]
    pub(crate) fn of(room: &'a Room, lane: usize, may_wait: bool) -> Option<Self> {
        let at = room.take(may_wait)?;
        Some(Self { room, lane, at })
    }
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.room.give(self.at) {
            self.room.wake();
        }
    }
}
