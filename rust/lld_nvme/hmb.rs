// SPDX-License-Identifier: GPL-2.0
//! The host memory buffer (Base 2.0 sections 5.27.1.10, 8.9): memory of the machine that a
//! controller without much of its own keeps its tables in. Such drives are slow without.
//!
//! It is the controller's alone from the moment that it is lent until the controller is disabled,
//! and is lent again, as it was, with each start. How much, and in what pieces, is as in tree
//! (`nvme_setup_host_mem`, Linux 7.3): what the controller prefers, up to a limit; the largest
//! pieces that the machine has.

use cell::sync::Ordering;
use core::fmt;
use hal::{DmaMem, Error, Mmio, Platform};

use crate::admin::Step;
use crate::ctrl::{Appetite, ControllerId, HostMemory, Lent, NvmeController, State};
use crate::{admin, queue};

/// The largest and the smallest piece, log2 of bytes: what a page allocator has in one piece, and
/// what is worth a descriptor.
const PIECE_SHIFT: core::ops::RangeInclusive<u32> = 13..=22;
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;
/// Most descriptors: what the largest buffer takes in pieces of 64 KiB.
const DESCRIPTORS_MAX: u64 = 1 << 13;

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Has it borrow `bytes` at most; 0: none. Before it is started.
    pub fn lend_at_most(&self, bytes: u64) {
        self.lendable.store(bytes, Ordering::Relaxed);
    }

    /// Lends it the memory that it wants. That it gets none is no reason to do without the drive.
    pub(crate) fn lend(&self, state: &mut State<P, M>, id: &ControllerId) -> Result<(), Error> {
        let first = state.about.is_none();
        let before = state.host_memory.is_some();
        if first && !before {
            match self.borrow_memory(&id.appetite) {
                Ok(memory) => state.host_memory = memory,
                Err(why) => {
                    state.lent = Some(why);
                    return Ok(());
                }
            }
        }
        let Some(memory) = &state.host_memory else {
            return Ok(());
        };
        let units = memory
            .bytes
            .wrapping_shr(u32::from(self.cap.page_shift_min()));
        // CAST: at most 2^22 pages.
        let sqe = admin::lend(units as u32, memory.list.bus_addr(), memory.count, before);
        match self.command(Step::HostMemory, sqe) {
            Ok(_) if before => {}
            Ok(_) => state.lent = Some(Lent::Bytes(memory.bytes, memory.count)),
            Err(Error::Refused(status)) => {
                // It was never the controller's.
                state.host_memory = None;
                state.lent = Some(Lent::Refused(status));
            }
            Err(why) => return Err(why),
        }
        Ok(())
    }

    /// Memory for `wish`, within the limit; `None`: it wants none, or gets none.
    fn borrow_memory(&self, wish: &Appetite) -> Result<Option<HostMemory<P>>, Lent> {
        let limit = self.lendable.load(Ordering::Relaxed);
        let page = self.page() as u64;
        let wanted = wish.preferred.min(limit) & !page.wrapping_sub(1);
        if wish.preferred == 0 || limit == 0 || wanted == 0 {
            return Ok(None);
        }
        if wish.least > limit {
            return Err(Lent::Limited(wish.least));
        }
        for shift in PIECE_SHIFT.rev() {
            let piece = 1u64.wrapping_shl(shift);
            if piece < wish.least_piece || piece < page {
                break;
            }
            // A smaller buffer than a piece is one of its own size.
            if piece >> 1 >= wanted && shift != *PIECE_SHIFT.start() {
                continue;
            }
            match self.borrow_pieces(wish, wanted, piece) {
                Ok(memory) if memory.bytes >= wish.least => return Ok(Some(memory)),
                // Smaller ones may add up to more.
                Ok(_) | Err(_) => {}
            }
        }
        Err(Lent::Short(wish.least))
    }

    /// As much of `wanted` bytes as there is in pieces of `piece`.
    fn borrow_pieces(
        &self,
        wish: &Appetite,
        wanted: u64,
        piece: u64,
    ) -> Result<HostMemory<P>, Error> {
        let most = match wish.pieces {
            0 => DESCRIPTORS_MAX,
            pieces => u64::from(pieces).min(DESCRIPTORS_MAX),
        };
        let pieces =
            usize::try_from(wanted.div_ceil(piece).min(most)).map_err(|_| Error::Invalid)?;
        let page = self.page();
        let shift = u32::from(self.cap.page_shift_min());
        let list = queue::paged(&self.platform, pieces.saturating_mul(DESCRIPTOR), page)?;
        let (mut bytes, mut count) = (0u64, 0u32);
        let mut over = false;
        let table = self.platform.table(pieces, |_| {
            let left = wanted.saturating_sub(bytes).min(piece);
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
            count => Ok(HostMemory {
                _pieces: table,
                list,
                count,
                bytes,
            }),
        }
    }
}

impl fmt::Display for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1 << 20;
        match self {
            Lent::Bytes(bytes, pieces) => write!(
                f,
                "{} KiB of memory are lent to it, in {pieces} pieces (host memory buffer)",
                bytes >> 10
            ),
            Lent::Limited(least) => write!(
                f,
                "it wants {} MiB of memory at least (host memory buffer), and is slow without: \
                 nvme_hmb_mb has the limit",
                least.div_ceil(MIB)
            ),
            Lent::Short(least) => write!(
                f,
                "the machine does not have the {} KiB of memory that it wants at least (host \
                 memory buffer), and it is slow without",
                least >> 10
            ),
            Lent::Refused(status) => write!(
                f,
                "it does not take the memory that it wants (host memory buffer, status \
                 {status:#x}), and may be slow"
            ),
        }
    }
}
