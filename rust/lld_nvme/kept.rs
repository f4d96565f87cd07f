// SPDX-License-Identifier: GPL-2.0
//! Memory that the device may touch though no layer above uses it. It is freed when the device is
//! next disabled, which proves that it touches none any more.

use crate::queue::NvmeQueue;
use crate::tool_queue::ToolQueue;
use hal::{Mmio, Platform};

/// What is kept until the controller is disabled.
pub(crate) struct Kept<P: Platform, M: Mmio> {
    /// Data of an admin command that was not answered.
    pub(crate) data: Option<P::Dma>,
    /// A queue that the controller was not seen to delete.
    pub(crate) queue: Option<NvmeQueue<P, M>>,
    /// The queue pair of I/O commands passed through, once there was one.
    pub(crate) tools: Option<ToolQueue<P, M>>,
}

impl<P: Platform, M: Mmio> Kept<P, M> {
    pub(crate) fn nothing() -> Self {
        Self {
            data: None,
            queue: None,
            tools: None,
        }
    }
}
