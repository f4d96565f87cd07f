// SPDX-License-Identifier: GPL-2.0
//! The host memory buffer (HMB; Base 2.0 sections 5.27.1.10, 8.9): host memory in which a
//! controller without DRAM keeps its mapping tables. Such drives are slow without it.
//!
//! The controller owns the buffer from Set Features until it is disabled, and gets the same buffer
//! again (Memory Return) with each start. How much, and in what chunks, is as in tree
//! (`nvme_setup_host_mem`, Linux 7.3): what the controller prefers, up to a limit; the largest
//! chunks that the machine has.

use cell::sync::Ordering;
use core::fmt;
use hal::{DmaMem, Error, Mmio, Platform};

use crate::admin::AdminStep;
use crate::ctrl::{
    ControllerId, HmbOutcome, HmbRequirements, HostMemoryBuffer, NvmeController, State,
};
use crate::{admin, queue};

/// The largest and the smallest chunk, log2 of bytes: the page allocator's largest order, and what
/// is worth a descriptor.
const CHUNK_SHIFT: core::ops::RangeInclusive<u32> = 13..=22;
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;
/// Most descriptors: what the largest buffer takes in chunks of 64 KiB.
const DESCRIPTORS_MAX: u64 = 1 << 13;

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Limits the host memory buffer to `bytes`; 0 disables it. To be called before
    /// [`hal::Controller::start`].
    pub fn set_hmb_limit(&self, bytes: u64) {
        self.hmb_limit.store(bytes, Ordering::Relaxed);
    }

    /// Allocates the host memory buffer at the first start, and enables it. A controller that gets
    /// none is served all the same.
    pub(crate) fn setup_hmb(
        &self,
        state: &mut State<P, M>,
        id: &ControllerId,
    ) -> Result<(), Error> {
        let first = state.about.is_none();
        let before = state.hmb.is_some();
        if first && !before {
            match self.alloc_hmb(&id.hmb) {
                Ok(memory) => state.hmb = memory,
                Err(why) => {
                    state.hmb_outcome = Some(why);
                    return Ok(());
                }
            }
        }
        let Some(memory) = &state.hmb else {
            return Ok(());
        };
        let units = memory
            .bytes
            .wrapping_shr(u32::from(self.cap.page_shift_min()));
        // CAST: at most 2^22 pages.
        let sqe = admin::enable_hmb(units as u32, memory.list.bus_addr(), memory.count, before);
        match self.command(AdminStep::HostMemoryBuffer, sqe) {
            Ok(_) if before => {}
            Ok(_) => state.hmb_outcome = Some(HmbOutcome::Enabled(memory.bytes, memory.count)),
            Err(Error::Refused(status)) => {
                // It was never the controller's.
                state.hmb = None;
                state.hmb_outcome = Some(HmbOutcome::Refused(status));
            }
            Err(why) => return Err(why),
        }
        Ok(())
    }

    /// Allocates a buffer that meets `hmb` within the limit; `None`: the controller has no such
    /// feature, or the limit disables it.
    fn alloc_hmb(&self, hmb: &HmbRequirements) -> Result<Option<HostMemoryBuffer<P>>, HmbOutcome> {
        let limit = self.hmb_limit.load(Ordering::Relaxed);
        let page = self.page() as u64;
        let wanted = hmb.preferred.min(limit) & !page.wrapping_sub(1);
        if hmb.preferred == 0 || limit == 0 || wanted == 0 {
            return Ok(None);
        }
        if hmb.min > limit {
            return Err(HmbOutcome::OverLimit(hmb.min));
        }
        for shift in CHUNK_SHIFT.rev() {
            let chunk = 1u64.wrapping_shl(shift);
            if chunk < hmb.min_chunk || chunk < page {
                break;
            }
            // A smaller buffer than a chunk is one of its own size.
            if chunk >> 1 >= wanted && shift != *CHUNK_SHIFT.start() {
                continue;
            }
            match self.alloc_hmb_chunks(hmb, wanted, chunk) {
                Ok(memory) if memory.bytes >= hmb.min => return Ok(Some(memory)),
                // Smaller ones may add up to more.
                Ok(_) | Err(_) => {}
            }
        }
        Err(HmbOutcome::NoMemory(hmb.min))
    }

    /// Allocates up to `wanted` bytes in chunks of `chunk` bytes.
    fn alloc_hmb_chunks(
        &self,
        hmb: &HmbRequirements,
        wanted: u64,
        chunk: u64,
    ) -> Result<HostMemoryBuffer<P>, Error> {
        let most = match hmb.max_chunks {
            0 => DESCRIPTORS_MAX,
            chunks => u64::from(chunks).min(DESCRIPTORS_MAX),
        };
        let chunks =
            usize::try_from(wanted.div_ceil(chunk).min(most)).map_err(|_| Error::Invalid)?;
        let page = self.page();
        let shift = u32::from(self.cap.page_shift_min());
        let list = queue::paged(&self.platform, chunks.saturating_mul(DESCRIPTOR), page)?;
        let (mut bytes, mut count) = (0u64, 0u32);
        let mut over = false;
        let table = self.platform.table(chunks, |_| {
            let left = wanted.saturating_sub(bytes).min(chunk);
            let memory = match usize::try_from(left) {
                Ok(left) if !over => queue::paged(&self.platform, left, page).ok(),
                _ => None,
            };
            let Some(memory) = memory else {
                over = true;
                return None;
            };
            let at = (count as usize).wrapping_mul(DESCRIPTOR);
            list.write64(at, memory.bus_addr());
            list.write64(at.wrapping_add(8), left.wrapping_shr(shift));
            bytes = bytes.saturating_add(left);
            count = count.wrapping_add(1);
            Some(memory)
        })?;
        match count {
            0 => Err(Error::NoMemory),
            count => Ok(HostMemoryBuffer {
                _chunks: table,
                list,
                count,
                bytes,
            }),
        }
    }
}

impl fmt::Display for HmbOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1 << 20;
        match self {
            HmbOutcome::Enabled(bytes, chunks) => write!(
                f,
                "{} KiB of memory are lent to it, in {chunks} chunks (host memory buffer)",
                bytes >> 10
            ),
            HmbOutcome::OverLimit(min) => write!(
                f,
                "it wants {} MiB of memory at least (host memory buffer), and is slow without: \
                 nvme_hmb_mb has the limit",
                min.div_ceil(MIB)
            ),
            HmbOutcome::NoMemory(min) => write!(
                f,
                "the machine does not have the {} KiB of memory that it wants at least (host \
                 memory buffer), and it is slow without",
                min >> 10
            ),
            HmbOutcome::Refused(status) => write!(
                f,
                "it does not take the memory that it wants (host memory buffer, status \
                 {status:#x}), and may be slow"
            ),
        }
    }
}
