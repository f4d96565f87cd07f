// SPDX-License-Identifier: GPL-2.0
//! Admin commands of the operator's tools (Identify, Get Log Page, ...), with data in memory of the
//! caller's.

use crate::admin::{AdminReply, TIMEOUT_US};
use crate::command::Sqe;
use crate::controller::NvmeController;
use crate::features;
use crate::identify;
use crate::step::Step;
use hal::{Deadline, DmaMem, Error, Mmio, Platform};

/// Bits 15:14 (PSDT) and 9:8 (FUSE) of the first dword, which are the driver's to say.
pub(crate) const DRIVERS_BITS: u64 = 0xc300;

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const FIRMWARE_DOWNLOAD: u8 = 0x11;
const SECURITY_SEND: u8 = 0x81;
const SECURITY_RECEIVE: u8 = 0x82;

/// Bytes that the device transfers for the admin command `sqe`, where that follows from the command
/// alone: with less room its data would go where nobody has said.
pub fn admin_bytes(sqe: &Sqe) -> Option<u64> {
    let [first, _, _, _, _, dwords, _, _] = *sqe;
    let (dword10, dword11) = (dwords & 0xffff_ffff, dwords >> 32);
    // CAST: bits 7:0 are the opcode.
    match first as u8 {
        IDENTIFY => Some(identify::BYTES as u64),
        GET_LOG_PAGE => {
            let dwords = (dword10 >> 16) | ((dword11 & 0xffff) << 16);
            Some(dwords.wrapping_add(1).wrapping_mul(4))
        }
        FIRMWARE_DOWNLOAD => Some(dword10.wrapping_add(1).wrapping_mul(4)),
        SECURITY_SEND | SECURITY_RECEIVE => Some(dword11),
        _ => None,
    }
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Sends the admin command `sqe`, all of whose `data` (a multiple of 4 bytes, up to 2 MiB) the
    /// device may read or write. CID, data pointer and metadata pointer are filled in. `timeout_ms`
    /// of 0 is the driver's own, a minute; it is up soon where `wanted` says that the control path
    /// is ([`Deadline::unless`]). Sleeps; under the same mutex as the control path.
    ///
    /// A status other than success is in the reply. [`Error::Invalid`]: a command that would take
    /// queues or memory from under the driver, or too much data. [`Error::Timeout`]: the controller
    /// has to be stopped and started again; until then it keeps a handle of `data`, which the
    /// device may still touch.
    pub fn admin(
        &self,
        mut sqe: Sqe,
        data: Option<&P::Dma>,
        timeout_ms: u32,
        wanted: &dyn Fn() -> bool,
    ) -> Result<AdminReply, Error> {
        let mut state = self.state()?;
        if !features::may_pass(&sqe) {
            return Err(Error::Invalid);
        }
        self.progress.at(Step::PassThrough);
        let [first, _, metadata, prp1, prp2, ..] = &mut sqe;
        *first &= !DRIVERS_BITS;
        *metadata = 0;
        [*prp1, *prp2] = match data {
            Some(data) => self.point_at(data)?,
            None => [0, 0],
        };
        let timeout_us = match timeout_ms {
            0 => TIMEOUT_US,
            ms => u64::from(ms).saturating_mul(1000),
        };
        let deadline = Deadline::unless(timeout_us, wanted);
        let reply = self.admin.submit(&self.platform, &self.mmio, sqe, deadline);
        if reply.is_err() && state.kept.data.is_none() {
            state.kept.data = data.cloned();
        }
        reply
    }

    /// PRP 1 and 2 of contiguous `data`, with the list in the third page.
    pub(crate) fn point_at(&self, data: &P::Dma) -> Result<[u64; 2], Error> {
        let page = self.page();
        let (bus, bytes) = (data.bus_addr(), data.len());
        let mask = page.wrapping_sub(1) as u64;
        if bus & mask != 0 || bytes % 4 != 0 {
            return Err(Error::Invalid);
        }
        // How many pages beyond the first.
        let shift = u32::from(self.cap.page_shift_min());
        let further = bytes.saturating_sub(1).wrapping_shr(shift);
        let address = |n: usize| bus.wrapping_add(n.saturating_mul(page) as u64);
        if further <= 1 {
            return Ok([bus, if further == 1 { address(1) } else { 0 }]);
        }
        if further > page / 8 {
            return Err(Error::Invalid);
        }
        let list = page.saturating_mul(2);
        for n in 0..further {
            let place = list.wrapping_add(n.wrapping_mul(8));
            self.pages.write64(place, address(n.wrapping_add(1)));
        }
        // The rest is the data's last page, and not what an earlier command has left there: a
        // device that transfers more than the tool has room for reaches nobody else's memory by it.
        for n in further..page / 8 {
            self.pages
                .write64(list.wrapping_add(n.wrapping_mul(8)), address(further));
        }
        Ok([bus, self.pages.bus_addr().wrapping_add(list as u64)])
    }
}
