// SPDX-License-Identifier: GPL-2.0
//! What a disk keeps for its bytes, on or off: its node and its buffers while they are on.
//!
//! # What keeps the buffers alive
//! They are reached between [`Entered::new`] and the drop of that: so long the block layer's
//! counter of the disk's queue is not zero. They are freed when the node is not open, or when
//! the disk is gone, for which `del_gendisk` has waited until that counter was zero for good.

use bytewise::Regions;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};
use hal::Error;
use kernel::bindings::{blk_mode_t, block_device, gendisk};
use kernel::ffi::{c_int, c_ulong};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex, SetOnce};

use crate::bytes::entered::{DiskRef, Entered};
use crate::bytes::locks::{BusyRegions, Held, RegionLocks};
use crate::bytes::memory::DiskMemory;
use crate::bytes::room::{Room, Taken};
use crate::compat::eopnotsupp;
use crate::platform::cpu;
use crate::shims;

#[allow(clashing_extern_declarations, reason = "bindgen's are unsafe to call")]
#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for a disk that is there, and for a node that is shown, which the types'
// invariants say, and are as their header says it: see the constants below.
unsafe extern "C" {
    /// Shows the node; null: there is no memory, or no number. Sleeps.
    safe fn hiops_bytes_show(disk: DiskRef<'_>) -> Option<Node>;
    /// Takes the node away; `false`: it is open, and does not have to go. Sleeps.
    safe fn hiops_bytes_hide(node: Node, has_to: bool) -> bool;
}

const _: [unsafe extern "C" fn(*mut gendisk) -> *mut shims::hiops_bytes_node; 1] =
    [shims::hiops_bytes_show];
const _: [unsafe extern "C" fn(*mut shims::hiops_bytes_node, bool) -> bool; 1] =
    [shims::hiops_bytes_hide];

/// A disk's bytes.
pub(crate) struct Bytes {
    /// By the number of the hardware queue, of those that interrupt.
    rooms: KVec<Arc<Room>>,
    /// By the number of the CPU, to which queue its commands go.
    of_cpu: KVec<u16>,
    /// The disk itself, once it is made.
    disk: AtomicPtr<gendisk>,
    /// Of [`State::On`], else null.
    memory: AtomicPtr<DiskMemory>,
    state: Pin<KBox<Mutex<State>>>,
    /// Those of writers: once it has been on.
    locks: SetOnce<Pin<KVBox<RegionLocks>>>,
    busy: Arc<BusyRegions>,
}

/// What of it stays while it is off, for the buffers that are made.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    /// Who has which buffer, of each queue.
    pub(crate) rooms: &'a [Arc<Room>],
    pub(crate) busy: &'a Arc<BusyRegions>,
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

/// A node; [`Bytes`] hides it.
///
/// # Invariants
/// It is shown.
#[repr(transparent)]
struct Node(NonNull<shims::hiops_bytes_node>);

// SAFETY: it belongs to no thread.
unsafe impl Send for Node {}

impl Node {
    /// Takes the node away; it comes back if it is open, and does not have to go. Sleeps.
    fn hide(self, has_to: bool) -> Option<Self> {
        // INVARIANT: shown still, if it was not hidden.
        let shown = Self(self.0);
        match hiops_bytes_hide(self, has_to) {
            true => None,
            false => Some(shown),
        }
    }
}

/// Regions that are busy until the drop, or until a write is over that has taken them.
pub(crate) struct Busied<'a> {
    busy: &'a BusyRegions,
    pub(crate) regions: Regions,
}

impl Drop for Busied<'_> {
    fn drop(&mut self) {
        if self.busy.end_all(self.regions) {
            self.busy.wake_all();
        }
    }
}

impl Bytes {
    /// Off, for a disk with `queues` that interrupt, and `buffers` on each, to which the CPUs'
    /// commands go as `of_cpu` says. Sleeps.
    pub(crate) fn new(queues: usize, buffers: usize, of_cpu: KVec<u16>) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        let mut rooms = KVec::with_capacity(queues, GFP_KERNEL).map_err(no_memory)?;
        for _ in 0..queues {
            rooms
                .push(Room::new(buffers)?, GFP_KERNEL)
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
            busy: BusyRegions::new()?,
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

    /// Has the node be there, with the buffers that `make` makes, and after what is to be done with
    /// them first; `Ok`, too, if it was. Sleeps.
    pub(crate) fn turn_on(
        &self,
        make: impl FnOnce(Parts<'_>) -> Result<KBox<DiskMemory>, Error>,
        first: impl FnOnce(DiskRef<'_>, &DiskMemory),
    ) -> Result<(), Error> {
        let mut state = self.state.lock();
        match *state {
            State::Off => {}
            State::On { .. } => return Ok(()),
            State::Gone => return Err(Error::Gone),
        }
        let disk = NonNull::new(self.disk.load(Ordering::Acquire)).ok_or(Error::Gone)?;
        let memory = make(Parts {
            rooms: &self.rooms,
            busy: &self.busy,
        })?;
        if self.locks.as_ref().is_none() {
            let locks = RegionLocks::new(self.busy.clone()).map_err(|_| Error::NoMemory)?;
            self.locks.populate(locks);
        }
        // Before anybody can open it.
        (self.memory).store(core::ptr::from_ref(&*memory).cast_mut(), Ordering::Release);
        // SAFETY: the disk is there, as this is its own, and so is the memory.
        let disk = unsafe {
            DiskMemory::set_disk(&memory, disk.as_ptr());
            DiskRef::new(disk.as_ptr())
        };
        first(disk, &memory);
        let Some(node) = hiops_bytes_show(disk) else {
            self.memory.store(null_mut(), Ordering::Release);
            return Err(Error::NoMemory);
        };
        *state = State::On { node, memory };
        Ok(())
    }

    /// Has the node be there no more; `false`: it is open, and stays. Sleeps.
    pub(crate) fn turn_off(&self) -> bool {
        let mut state = self.state.lock();
        let (node, memory) = match core::mem::replace(&mut *state, State::Off) {
            State::On { node, memory } => (node, memory),
            other => {
                *state = other;
                return true;
            }
        };
        if let Some(node) = node.hide(false) {
            *state = State::On { node, memory };
            return false;
        }
        // No file has it open.
        self.memory.store(null_mut(), Ordering::Release);
        true
    }

    /// The disk goes: the node is there no more, open or not. What is returned is dropped
    /// when no reader is inside any more, nor comes. Sleeps.
    pub(crate) fn begin_end(&self) -> Option<KBox<DiskMemory>> {
        let mut state = self.state.lock();
        match core::mem::replace(&mut *state, State::Gone) {
            State::On { node, memory } => {
                let _ = node.hide(true);
                Some(memory)
            }
            State::Off | State::Gone => None,
        }
    }

    /// A file of the bytes of `bdev`, the disk's or a partition of it, for one that has it open as
    /// `mode` says: its number, or a negative errno. `EOPNOTSUPP`: the bytes are off. Sleeps.
    ///
    /// # Safety
    /// `bdev` is open, in the calling thread.
    pub(crate) unsafe fn open(
        &self,
        bdev: *mut block_device,
        mode: blk_mode_t,
        flags: c_ulong,
    ) -> kernel::error::Result<c_int> {
        let state = self.state.lock();
        let node = match &*state {
            State::On { node, .. } => node.0,
            State::Off => return Err(eopnotsupp()),
            State::Gone => return Err(ENODEV),
        };
        // SAFETY: shown, and hidden under the lock; open, by the caller's promise.
        Ok(unsafe { shims::hiops_bytes_file(node.as_ptr(), bdev, mode, flags) })
    }

    /// Takes a buffer of the queue that this CPU's commands go to. Sleeps until there is one, if it
    /// may; else `EAGAIN`.
    #[inline]
    pub(crate) fn take(&self, may_wait: bool) -> kernel::error::Result<Taken<'_>> {
        let lane = usize::from(*self.of_cpu.get(cpu()).ok_or(ENODEV)?);
        let room = self.rooms.get(lane).ok_or(ENODEV)?;
        Taken::of(room, lane, may_wait).ok_or(EAGAIN)
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

    /// No thread writes to those bytes until they are busy no more, nor another write; `None`: one
    /// does.
    pub(crate) fn make_busy(&self, offset: u64, len: usize) -> Option<Busied<'_>> {
        let regions = self.locks.as_ref()?.make_busy(offset, len)?;
        let busy = &self.busy;
        Some(Busied { busy, regions })
    }

    /// The buffers; `None`: there are none.
    #[inline]
    pub(crate) fn memory<'a>(&'a self, _entered: &'a Entered) -> Option<&'a DiskMemory> {
        // SAFETY: null, or set while the node could not be open, and freed when it can't be open
        // again, or when the disk is gone and no thread has entered it, nor will: see the header.
        unsafe { self.memory.load(Ordering::Acquire).as_ref() }
    }
}
