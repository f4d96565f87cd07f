// SPDX-License-Identifier: GPL-2.0
//! Arguments of ioctls: structures and data in user space, which may change at any time and need
//! not be there. Data is copied by way of the kernel's own memory: a page of the caller's may never
//! come, and memory of a device's is to be given back when its driver goes.

use hal::DmaMem;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::uaccess::{UserPtr, UserSlice};
use kglue::platform::DmaBlock;

/// Most data of one command. What it needs is contiguous memory.
pub(crate) const DATA_MAX: usize = 2 << 20;

fn slice(at: usize, len: usize) -> UserSlice {
    UserSlice::new(UserPtr::from_addr(at), len)
}

/// The first `bytes.len()` bytes at `arg`. They are read once: what they were checked for holds.
pub(crate) fn get(arg: usize, bytes: &mut [u8]) -> Result {
    slice(arg, bytes.len()).reader().read_slice(bytes)
}

/// Writes `bytes` at `offset` of the structure at `arg`.
pub(crate) fn put(arg: usize, offset: usize, bytes: &[u8]) -> Result {
    let at = arg.checked_add(offset).ok_or(EFAULT)?;
    slice(at, bytes.len()).writer().write_slice(bytes)
}

/// Room for `len` bytes, at most [`DATA_MAX`], with zeroes in it.
pub(crate) fn room(len: usize) -> Result<KVVec<u8>> {
    match len {
        0..=DATA_MAX => Ok(kglue::zeroes(len)?),
        _ => Err(EINVAL),
    }
}

/// The `len` bytes at `from`, at most [`DATA_MAX`].
pub(crate) fn fetch(from: usize, len: usize) -> Result<KVVec<u8>> {
    let mut data = room(len)?;
    get(from, data.as_mut_slice())?;
    Ok(data)
}

/// The first bytes of `memory` become `data`.
pub(crate) fn fill(memory: &DmaBlock, data: &[u8]) {
    for (at, part) in (0..).step_by(4).zip(data.chunks(4)) {
        let mut word = [0; 4];
        word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
        memory.write32(at, u32::from_le_bytes(word));
    }
}
