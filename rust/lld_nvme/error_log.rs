// SPDX-License-Identifier: GPL-2.0
//! The error log (Base 2.0 section 5.16.1.2), as far as the operator is told of it.

use crate::identify::View;
use core::fmt;
use hal::DmaMem;

/// The newest entry of the error log (figure "Error Information Log Entry").
pub(crate) struct ErrorEntry {
    info: u8,
    count: u64,
    queue: u16,
    cid: u16,
    status: u16,
    lba: u64,
    namespace: u32,
}

impl ErrorEntry {
    pub(crate) fn decode<D: DmaMem>(info: u8, at: &View<'_, D>) -> Self {
        Self {
            info,
            count: at.u64(0),
            queue: at.u16(8),
            cid: at.u16(10),
            // Bit 0 is the phase.
            status: at.u16(12) >> 1,
            lba: at.u64(16),
            namespace: at.u32(24),
        }
    }
}

impl fmt::Display for ErrorEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.info {
            2 => "its diagnosis found an error",
            4 => "it reports an internal error that has passed",
            5 => "it could not load its firmware",
            _ => "it reports an error",
        })?;
        write!(
            f,
            "; the newest of its log, number {}: queue {}, CID {:#x}, status {:#x}, LBA {}, \
             namespace {} (nvme error-log)",
            self.count, self.queue, self.cid, self.status, self.lba, self.namespace
        )
    }
}
