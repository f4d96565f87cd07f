// SPDX-License-Identifier: GPL-2.0
//! What is kept of a queue so that it can be made again after a reset.

/// A queue as the controller knows it, with handles of its memory: whatever becomes of the queue,
/// the device knows of no memory that is gone.
pub(crate) struct Made<D> {
    pub(crate) sq: D,
    pub(crate) cq: D,
    pub(crate) entries: u16,
    /// `None`: it never interrupts.
    pub(crate) vector: Option<u16>,
}
