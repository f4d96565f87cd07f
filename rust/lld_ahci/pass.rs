// SPDX-License-Identifier: GPL-2.0
//! Commands of the operator's tools (IDENTIFY DEVICE, SMART, READ LOG EXT, ...), with data in
//! memory of the caller's.

use crate::fis::Taskfile;
use crate::port::{Occupant, Port, State};
use crate::prdt;
use crate::regs::{Reg, STATUS_DF, STATUS_ERR};
use crate::step::Step;
use hal::{Deadline, DmaMem, Error, Mmio, Platform};

/// ATA registers of a command, those of 48 bits with both halves (ACS-4 section 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtaCommand {
    /// The opcode.
    pub command: u8,
    /// Features.
    pub features: u16,
    /// Count.
    pub count: u16,
    /// LBA, 48 bits; of a 28-bit command the upper four are in `device`.
    pub lba: u64,
    /// Device.
    pub device: u8,
}

/// The registers afterwards. Where the device has sent none (it answers data with its status only),
/// `count` and `lba` are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtaReply {
    /// Status: see [`AtaReply::is_failure`].
    pub status: u8,
    /// Error.
    pub error: u8,
    /// Count.
    pub count: u16,
    /// LBA, 48 bits.
    pub lba: u64,
    /// Device.
    pub device: u8,
}

impl AtaReply {
    /// Whether the command failed (ACS-4 section 6.2: ERROR, DEVICE FAULT).
    pub fn is_failure(&self) -> bool {
        u32::from(self.status) & (STATUS_ERR | STATUS_DF) != 0
    }
}

/// The data of such a command: the first so many bytes of contiguous memory, an even number up to 4
/// MiB.
#[derive(Clone, Copy)]
pub enum Transfer<'a, D> {
    /// None.
    Nothing,
    /// The device writes to the memory.
    FromDevice(&'a D, u32),
    /// It reads from it.
    ToDevice(&'a D, u32),
}

/// How long a command may take whose caller says nothing.
const TIMEOUT_US: u64 = 30_000_000;

/// Opcodes that are the driver's own: what is queued, what resets the device or has it wait for a
/// reset.
const REFUSED: [u8; 9] = [0x08, 0x60, 0x61, 0x63, 0x64, 0x65, 0x90, 0x99, 0xe6];

impl<P: Platform, M: Mmio> Port<P, M> {
    /// See [`crate::AhciController::command`].
    pub(crate) fn pass(
        &self,
        state: &mut State,
        command: &AtaCommand,
        transfer: &Transfer<'_, P::Dma>,
        timeout_ms: u32,
        wanted: &dyn Fn() -> bool,
    ) -> Result<AtaReply, Error> {
        let Occupant::Drive(about) = state.occupant else {
            return Err(Error::Invalid);
        };
        if REFUSED.contains(&command.command) {
            return Err(Error::Invalid);
        }
        let (write, data) = self.data_of(transfer)?;
        let timeout_us = match timeout_ms {
            0 => TIMEOUT_US,
            ms => u64::from(ms).saturating_mul(1000),
        };
        let deadline = Deadline::unless(timeout_us, wanted);
        let taskfile = Taskfile {
            command: command.command,
            features: command.features,
            count: command.count,
            lba: command.lba,
            device: command.device,
            auxiliary: 0,
        };
        self.solo(state, |state| {
            self.memory.clear_rfis();
            let reply = match self.command(Step::PassThrough, taskfile, write, data, deadline) {
                Ok(()) => self.reply()?,
                Err(Error::Refused(tfd)) => self.failure(tfd)?,
                Err(why) => return Err(why),
            };
            if command.turns_cache() && !reply.is_failure() {
                state.occupant = Occupant::Drive(self.asked_again(about)?);
            }
            Ok(reply)
        })
    }

    /// Whether the memory is read, and where it is.
    fn data_of(
        &self,
        transfer: &Transfer<'_, P::Dma>,
    ) -> Result<(bool, Option<(u64, u32)>), Error> {
        let (write, memory, bytes) = match *transfer {
            Transfer::Nothing => return Ok((false, None)),
            Transfer::FromDevice(memory, bytes) => (false, memory, bytes),
            Transfer::ToDevice(memory, bytes) => (true, memory, bytes),
        };
        let fits = bytes as usize <= memory.len() && bytes <= prdt::ENTRY_MAX;
        let even = bytes & prdt::ALIGN == 0 && memory.bus_addr() & u64::from(prdt::ALIGN) == 0;
        let end = memory.bus_addr().saturating_add(u64::from(bytes));
        let near = self.plan.below == 0 || end <= self.plan.below;
        match bytes != 0 && fits && even && near {
            true => Ok((write, Some((memory.bus_addr(), bytes)))),
            false => Err(Error::Invalid),
        }
    }

    /// What the device answered to a command that did not fail.
    fn reply(&self) -> Result<AtaReply, Error> {
        let [first, second, third, fourth] = self.memory.rfis();
        let tfd = self.regs.get(Reg::Tfd)?;
        // CAST: bytes, and a word of 16 bits.
        let mut reply = AtaReply {
            status: tfd as u8,
            error: (tfd >> 8) as u8,
            ..AtaReply::default()
        };
        if crate::fis::ends_command(first) {
            reply.count = fourth as u16;
            reply.lba = u64::from(second & 0xff_ffff) | (u64::from(third & 0xff_ffff) << 24);
            reply.device = (second >> 24) as u8;
        }
        Ok(reply)
    }

    /// What it answered to one that did, with its status and its error in `tfd`.
    fn failure(&self, tfd: u16) -> Result<AtaReply, Error> {
        self.end_failure()?;
        let [status, error] = tfd.to_le_bytes();
        Ok(AtaReply {
            status,
            error,
            ..AtaReply::default()
        })
    }
}
