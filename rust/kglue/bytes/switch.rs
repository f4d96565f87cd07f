// SPDX-License-Identifier: GPL-2.0
//! What a disk keeps for its bytes, on or off: its node and its buffers while they are on, and who
//! has which buffer.
//!
//! # What keeps the buffers alive
//! A thread reaches them between [`Entered::new`] and the drop of that: so long the block layer's
//! counter of the disk's queue is not zero. They are freed when the node is not open, or when
//! the disk is gone, for which `del_gendisk` has waited until that counter was zero for good.

use bytewise::Free;
use core::marker::PhantomData;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};
use hal::Error;
use kernel::bindings::gendisk;
use kernel::error::to_result;
use kernel::ffi::{c_int, c_ulong};
use kernel::prelude::*;
use kernel::sync::{new_condvar, new_mutex, CondVar, Mutex, SetOnce};

use crate::bytes::locks::{Held, RegionLocks};
use crate::bytes::memory::DiskMemory;
use crate::platform::{cpu, PreemptOff};
use crate::shims;

/// A disk's structure, of which only its address is known here.
///
/// # Invariants
/// It is there for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct DiskRef<'a> {
    disk: *mut gendisk,
    alive: PhantomData<&'a gendisk>,
}

impl DiskRef<'_> {
    /// # Safety
    /// The type's invariant, which becomes the handle's.
    pub(crate) unsafe fn new(disk: *mut gendisk) -> Self {
        let alive = PhantomData;
        // INVARIANT: the caller's promise.
        Self { disk, alive }
    }
}

#[allow(clashing_extern_declarations, reason = "bindgen's are unsafe to call")]
#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for a disk that is there, which the type's invariants say; counts that are
// wrong are all that comes of an end without a beginning. Each is as its header says it: see the
// constants below.
unsafe extern "C" {
    /// Shows the node; null: there is no memory, or no number. Sleeps.
    safe fn hiops_bytes_show(disk: DiskRef<'_>) -> *mut shims::hiops_bytes_node;
    /// Counts an I/O that a freeze waits for; 0, or an errno. Sleeps while the disk is frozen, if
    /// it may.
    safe fn hiops_bytes_enter(disk: DiskRef<'_>, may_wait: bool) -> c_int;
    /// Nothing may be given to the driver. With preemption off.
    safe fn hiops_bytes_is_quiesced(disk: DiskRef<'_>) -> bool;
    /// The disk goes away. Any context.
    safe fn hiops_bytes_is_dead(disk: DiskRef<'_>) -> bool;
    /// How long a command may take, in ticks. Any context.
    safe fn hiops_bytes_timeout(disk: DiskRef<'_>) -> u32;
    /// A command begins, for the disk's counts; what it answers is for the next. Any context.
    safe fn hiops_bytes_begin_acct(disk: DiskRef<'_>, is_write: bool) -> c_ulong;
    /// It is over. Any context.
    safe fn hiops_bytes_end_acct(disk: DiskRef<'_>, is_write: bool, sectors: u32, begun: c_ulong);
}

const _: [unsafe extern "C" fn(*mut gendisk) -> *mut shims::hiops_bytes_node; 1] =
    [shims::hiops_bytes_show];
const _: [unsafe extern "C" fn(*mut gendisk, bool) -> c_int; 1] = [shims::hiops_bytes_enter];
const _: [unsafe extern "C" fn(*const gendisk) -> bool; 2] =
    [shims::hiops_bytes_is_quiesced, shims::hiops_bytes_is_dead];
const _: [unsafe extern "C" fn(*const gendisk) -> u32; 1] = [shims::hiops_bytes_timeout];
const _: [unsafe extern "C" fn(*mut gendisk, bool) -> c_ulong; 1] = [shims::hiops_bytes_begin_acct];
const _: [unsafe extern "C" fn(*mut gendisk, bool, u32, c_ulong); 1] =
    [shims::hiops_bytes_end_acct];

/// A disk's bytes.
pub(crate) struct Bytes {
    /// By the number of the hardware queue, of those that interrupt.
    rooms: KVec<Pin<KBox<Room>>>,
    /// By the number of the CPU, to which queue its commands go.
    of_cpu: KVec<u16>,
    /// The disk itself, once it is made.
    disk: AtomicPtr<gendisk>,
    /// Of [`State::On`], else null.
    memory: AtomicPtr<DiskMemory>,
    state: Pin<KBox<Mutex<State>>>,
    /// Those of writers: once it has been on.
    locks: SetOnce<Pin<KVBox<RegionLocks>>>,
}

enum State {
    Off,
    On {
        node: Node,
        memory: KBox<DiskMemory>,
    },
    /// The disk is gone.
    Gone,
}

/// A node that is shown; [`Bytes`] hides it.
struct Node(NonNull<shims::hiops_bytes_node>);

// SAFETY: it belongs to no thread.
unsafe impl Send for Node {}

impl Node {
    /// Takes the node away; `false`: it is open, and does not have to go. Sleeps.
    fn hide(&self, has_to: bool) -> bool {
        // SAFETY: shown, and once hidden not used again: its owner drops it then.
        unsafe { shims::hiops_bytes_hide(self.0.as_ptr(), has_to) }
    }
}

/// Who has which buffer of a queue, and those that wait for one.
#[pin_data]
struct Room {
    free: Free,
    #[pin]
    lock: Mutex<()>,
    #[pin]
    given: CondVar,
}

impl Room {
    fn new() -> Result<Pin<KBox<Self>>, Error> {
        let init = pin_init!(Self {
            free: Free::new(),
            lock <- new_mutex!((), "hiops_bytes_room"),
            given <- new_condvar!("hiops_bytes_given"),
        });
        KBox::pin_init(init, GFP_KERNEL).map_err(|_| Error::NoMemory)
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

    #[cold]
    fn wake(&self) {
        let _lock = self.lock.lock();
        self.given.notify_one();
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

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.room.free.give(self.at) {
            self.room.wake();
        }
    }
}

impl Bytes {
    /// Off, for a disk with `queues` that interrupt, to which the CPUs' commands go as `of_cpu`
    /// says.
    /// Sleeps.
    pub(crate) fn new(queues: usize, of_cpu: KVec<u16>) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        let mut rooms = KVec::with_capacity(queues, GFP_KERNEL).map_err(no_memory)?;
        for _ in 0..queues {
            rooms
                .push(Room::new()?, GFP_KERNEL)
                .map_err(|_| Error::NoMemory)?;
        }
        let state = new_mutex!(State::Off, "hiops_bytes_state");
        Ok(Self {
            rooms,
            of_cpu,
            disk: AtomicPtr::new(null_mut()),
            memory: AtomicPtr::new(null_mut()),
            state: KBox::pin_init(state, GFP_KERNEL).map_err(|_| Error::NoMemory)?,
            locks: SetOnce::new(),
        })
    }

    /// Whether the node is there. Sleeps.
    pub(crate) fn is_on(&self) -> bool {
        matches!(*self.state.lock(), State::On { .. })
    }

    /// The disk is made, and there for as long as this is.
    pub(crate) fn set_disk(&self, disk: NonNull<gendisk>) {
        self.disk.store(disk.as_ptr(), Ordering::Release);
    }

    /// Has the node be there, with the buffers that `make` makes; `Ok`, too, if it was. Sleeps.
    pub(crate) fn turn_on(
        &self,
        make: impl FnOnce() -> Result<KBox<DiskMemory>, Error>,
    ) -> Result<(), Error> {
        let mut state = self.state.lock();
        match *state {
            State::Off => {}
            State::On { .. } => return Ok(()),
            State::Gone => return Err(Error::Gone),
        }
        let disk = NonNull::new(self.disk.load(Ordering::Acquire)).ok_or(Error::Gone)?;
        let memory = make()?;
        if self.locks.as_ref().is_none() {
            let locks = RegionLocks::new().map_err(|_| Error::NoMemory)?;
            self.locks.populate(locks);
        }
        // Before anybody can open it.
        (self.memory).store(core::ptr::from_ref(&*memory).cast_mut(), Ordering::Release);
        // SAFETY: the disk is there, as this is its own.
        let disk = unsafe { DiskRef::new(disk.as_ptr()) };
        let Some(node) = NonNull::new(hiops_bytes_show(disk)) else {
            self.memory.store(null_mut(), Ordering::Release);
            return Err(Error::NoMemory);
        };
        let node = Node(node);
        *state = State::On { node, memory };
        Ok(())
    }

    /// Has the node be there no more; `false`: it is open, and stays. Sleeps.
    pub(crate) fn turn_off(&self) -> bool {
        let mut state = self.state.lock();
        match &*state {
            State::On { node, .. } if !node.hide(false) => return false,
            State::On { .. } => {}
            State::Off | State::Gone => return true,
        }
        // No file has it open.
        self.memory.store(null_mut(), Ordering::Release);
        *state = State::Off;
        true
    }

    /// The disk goes: the node is there no more, open or not. What is returned is dropped
    /// when no reader is inside any more, nor comes. Sleeps.
    pub(crate) fn begin_end(&self) -> Option<KBox<DiskMemory>> {
        let mut state = self.state.lock();
        match core::mem::replace(&mut *state, State::Gone) {
            State::On { node, memory } => {
                node.hide(true);
                Some(memory)
            }
            State::Off | State::Gone => None,
        }
    }

    /// Takes a buffer of the queue that this CPU's commands go to. Sleeps until there is one, if it
    /// may; else `EAGAIN`.
    #[inline]
    pub(crate) fn take(&self, may_wait: bool) -> kernel::error::Result<Taken<'_>> {
        let lane = usize::from(*self.of_cpu.get(this_cpu()).ok_or(ENODEV)?);
        let room: &Room = self.rooms.get(lane).ok_or(ENODEV)?;
        let at = match room.free.take() {
            Some(at) => at,
            None if may_wait => room.wait(),
            None => return Err(EAGAIN),
        };
        Ok(Taken { room, lane, at })
    }

    /// No other writes to those bytes until the drop. Sleeps until then, if it may; else `EAGAIN`.
    pub(crate) fn lock(
        &self,
        offset: u64,
        len: usize,
        may_wait: bool,
    ) -> kernel::error::Result<Held<'_>> {
        let locks = self.locks.as_ref().ok_or(ENODEV)?;
        locks.lock(offset, len, may_wait).ok_or(EAGAIN)
    }

    /// The buffers; `None`: there are none.
    #[inline]
    pub(crate) fn memory<'a>(&'a self, _entered: &'a Entered<'_>) -> Option<&'a DiskMemory> {
        // SAFETY: null, or set while the node could not be open, and freed when it can't be open
        // again, or when the disk is gone and no thread has entered it, nor will: see the header.
        unsafe { self.memory.load(Ordering::Acquire).as_ref() }
    }
}

/// A disk's queue that is not frozen, nor will be until the drop.
///
/// # Invariants
/// The block layer counts it.
pub(crate) struct Entered<'a>(DiskRef<'a>);

impl<'a> Entered<'a> {
    /// Enters `disk`; `ENODEV`: it is dead. Sleeps while the disk is frozen, if it may; else
    /// `EAGAIN`.
    #[inline]
    pub(crate) fn new(disk: DiskRef<'a>, may_wait: bool) -> kernel::error::Result<Self> {
        to_result(hiops_bytes_enter(disk, may_wait))?;
        // INVARIANT: counted.
        Ok(Self(disk))
    }

    /// Whether nothing may be given to a queue. With preemption off.
    #[inline]
    pub(crate) fn is_quiesced(&self) -> bool {
        hiops_bytes_is_quiesced(self.0)
    }

    /// Whether the disk is going away.
    pub(crate) fn is_dead(&self) -> bool {
        hiops_bytes_is_dead(self.0)
    }

    /// A read or write of `sectors` begins, by the disk's counts; it is over with the drop of the
    /// result.
    #[inline]
    pub(crate) fn account(&self, is_write: bool, sectors: u32) -> Accounted<'a> {
        Accounted {
            disk: self.0,
            is_write,
            sectors,
            begun: hiops_bytes_begin_acct(self.0, is_write),
        }
    }

    /// How many ticks a command may take.
    #[inline]
    pub(crate) fn timeout(&self) -> u32 {
        hiops_bytes_timeout(self.0)
    }
}

/// A command that the disk's counts have as under way.
pub(crate) struct Accounted<'a> {
    disk: DiskRef<'a>,
    is_write: bool,
    sectors: u32,
    begun: c_ulong,
}

impl Drop for Accounted<'_> {
    #[inline]
    fn drop(&mut self) {
        hiops_bytes_end_acct(self.disk, self.is_write, self.sectors, self.begun);
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: entered once, by the invariant.
        unsafe { shims::hiops_bytes_exit(self.0.disk) };
    }
}

fn this_cpu() -> usize {
    let _stay = PreemptOff::new();
    cpu()
}
