// SPDX-License-Identifier: GPL-2.0
//! Data that a SCSI command is answered with, built from its beginning.

/// The longest: the page ATA Information.
const MOST: usize = 572;

/// The data. What is put beyond its end is dropped.
#[derive(Clone, Debug)]
pub struct Page {
    bytes: [u8; MOST],
    len: usize,
}

impl Page {
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; MOST],
            len: 0,
        }
    }

    /// `bytes` follow.
    pub(super) fn put(mut self, bytes: &[u8]) -> Self {
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        rest.iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        self.len = self.len.saturating_add(bytes.len()).min(MOST);
        self
    }

    /// Zeroes follow, up to a length of `len`.
    pub(super) fn zero_to(mut self, len: usize) -> Self {
        self.len = self.len.max(len).min(MOST);
        self
    }

    /// The big-endian word of `N` bytes at `at` says how many bytes follow it and the `beyond`
    /// bytes after it.
    pub(super) fn count<const N: usize>(mut self, at: usize, beyond: usize) -> Self {
        let follow = self
            .len
            .saturating_sub(at.saturating_add(N).saturating_add(beyond));
        let word = (follow as u64).to_be_bytes();
        let (_, low) = word.split_at(word.len().saturating_sub(N));
        let place = self.bytes.get_mut(at..).unwrap_or_default();
        place.iter_mut().zip(low).for_each(|(to, from)| *to = *from);
        self
    }

    /// The first of it, no more than `room` bytes.
    pub fn first(&self, room: u32) -> &[u8] {
        let all = self.bytes.get(..self.len).unwrap_or_default();
        all.get(..room as usize).unwrap_or(all)
    }
}
