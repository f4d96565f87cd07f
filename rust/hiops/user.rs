// SPDX-License-Identifier: GPL-2.0
//! Arguments of ioctls: structures and data in user space, which may change at any time and need not be there.

use hal::DmaMem;
use kernel::prelude::*;
use kernel::uaccess::{UserPtr, UserSlice};
use kglue::dma::DmaBlock;

/// Most data of one command. What it needs is contiguous memory.
pub(crate) const DATA_MAX: usize = 1 << 20;
/// Copied at a time between user space and the device's memory.
const CHUNK: usize = 256;

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

/// The first `len` bytes of `memory` become those at `from`.
pub(crate) fn copy_in(memory: &DmaBlock, from: usize, len: usize) -> Result {
    let mut reader = slice(from, len).reader();
    for offset in (0..len).step_by(CHUNK) {
        let mut chunk = [0; CHUNK];
        let part = len.saturating_sub(offset).min(CHUNK);
        reader.read_slice(chunk.get_mut(..part).ok_or(EINVAL)?)?;
        let words = chunk.chunks_exact(4).take(part.div_ceil(4));
        for (at, word) in (offset..).step_by(4).zip(words) {
            let word = word.first_chunk::<4>().copied().unwrap_or_default();
            memory.write32(at, u32::from_le_bytes(word));
        }
    }
    Ok(())
}

/// Those at `to` become the first `len` bytes of `memory`.
pub(crate) fn copy_out(memory: &DmaBlock, to: usize, len: usize) -> Result {
    let mut writer = slice(to, len).writer();
    for offset in (0..len).step_by(CHUNK) {
        let mut chunk = [0; CHUNK];
        let part = len.saturating_sub(offset).min(CHUNK);
        let chunk = chunk.get_mut(..part).ok_or(EINVAL)?;
        memory.read_bytes(offset, chunk);
        writer.write_slice(chunk)?;
    }
    Ok(())
}
