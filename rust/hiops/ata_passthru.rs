// SPDX-License-Identifier: GPL-2.0
//! ATA commands of the operator's tools, through the ioctls that hdparm, smartctl and udev's ata_id know: SG_IO with ATA PASS-THROUGH, and the older
//! HDIO_*. They take CAP_SYS_RAWIO; anyone who can open the disk may ask what it is.

use hal::{Controller, DmaMem, Error, Platform};
use kernel::prelude::*;
use kglue::blk::ioctl::{ControlPath, Right, SG_IO};
use kglue::dma::DmaBlock;
use kglue::errno::to_errno;
use kglue::platform::KernelPlatform;
use lld_ahci::sat::{self, Data, Request};
use lld_ahci::{AhciController, AtaCommand, AtaReply, Sense, Transfer};

use crate::ahci::Place;
use crate::hdio::{self, HDIO_DRIVE_CMD, HDIO_DRIVE_TASK, HDIO_GET_IDENTITY};
use crate::sg::{Answer, Header, CDB_MAX, INPUT_BYTES};
use crate::user::{copy_in, copy_out, get, put};

/// The way to a port's drive.
pub(crate) struct Path<'a, W> {
    pub(crate) ahci: &'a AhciController<Place>,
    pub(crate) platform: &'a KernelPlatform,
    pub(crate) control: &'a W,
}

impl<W: ControlPath> Path<'_, W> {
    /// Carries out `cmd` with its argument at `arg`.
    pub(crate) fn ioctl(&self, cmd: u32, arg: usize) -> Result {
        match cmd {
            SG_IO => self.sg_io(arg),
            HDIO_GET_IDENTITY => self.get_identity(arg),
            HDIO_DRIVE_CMD | HDIO_DRIVE_TASK if !Right::RawIo.is_held() => Err(EACCES),
            HDIO_DRIVE_CMD => self.drive_cmd(arg),
            HDIO_DRIVE_TASK => self.drive_task(arg),
            _ => Err(ENOTTY),
        }
    }

    fn sg_io(&self, arg: usize) -> Result {
        let mut bytes = [0; INPUT_BYTES];
        get(arg, &mut bytes)?;
        let header = Header::parse(&bytes)?;
        let mut cdb = [0; CDB_MAX];
        let cdb = cdb.get_mut(..header.cdb_len).ok_or(EINVAL)?;
        get(header.cdb, cdb)?;
        let begin = self.platform.now_us();
        let (sense, done) = self.scsi(&header, cdb)?;
        let took = self.platform.now_us().saturating_sub(begin);
        let room = match header.sense {
            0 => 0,
            _ => header.sense_room,
        };
        let sense = sense
            .as_ref()
            .map(|sense| sense.as_bytes().get(..room).unwrap_or(sense.as_bytes()));
        if let Some(sense) = sense {
            put(header.sense, 0, sense)?;
        }
        let answer = Answer {
            // CAST: no longer than its room, which a byte says.
            sense: sense.map(|sense| sense.len() as u8),
            residue: header.data.bytes().saturating_sub(done),
            duration_ms: u32::try_from(took / 1000).unwrap_or(u32::MAX),
        };
        put(arg, INPUT_BYTES, answer.encode().as_flattened())
    }

    /// Carries out a SCSI command: what there is to say about it, and how much of the data was transferred.
    fn scsi(&self, header: &Header, cdb: &[u8]) -> Result<(Option<Sense>, u32)> {
        match sat::decode(cdb, header.data) {
            Err(sense) => Ok((Some(sense), 0)),
            Ok(Request::Ready) => Ok((None, 0)),
            Ok(Request::Inquiry(room)) => Ok((None, self.inquiry(header, room)?)),
            Ok(Request::Ata { .. }) if !Right::RawIo.is_held() => Err(EPERM),
            Ok(Request::Ata {
                command,
                extend,
                registers,
            }) => {
                let (data, timeout_ms) = (header.data, header.timeout_ms);
                let Some(reply) = self.pass(&command, data, header.data_at, timeout_ms)? else {
                    return Ok((Some(Sense::INVALID_FIELD), 0));
                };
                let failed = reply.is_failure();
                let sense = (failed || registers).then(|| Sense::of_registers(&reply, extend));
                Ok((sense, if failed { 0 } else { data.bytes() }))
            }
        }
    }

    /// Copies out what an INQUIRY with an allocation length of `room` returns, and says how much that is.
    fn inquiry(&self, header: &Header, room: u16) -> Result<u32> {
        let mut unit = None;
        let asked = || (self.ahci).units(&mut |found| unit = found.ok());
        self.control.hold(asked).map_err(to_errno)?;
        let page = sat::inquiry(&unit.ok_or(ENODEV)?);
        let Data::FromDevice(bytes) = header.data else {
            return Ok(0);
        };
        let most = bytes.min(room.into());
        let part = page.get(..most as usize).unwrap_or(&page);
        put(header.data_at, 0, part)?;
        // CAST: a few bytes.
        Ok(part.len() as u32)
    }

    fn get_identity(&self, arg: usize) -> Result {
        let mut sector = [0; hdio::BLOCK];
        let memory = self.platform.dma(sector.len()).map_err(to_errno)?;
        // CAST: a constant.
        let transfer = Transfer::FromDevice(&memory, sector.len() as u32);
        let reply = self.run(&hdio::identify(), &transfer, 0);
        if reply.map_err(to_errno)?.is_failure() {
            return Err(EIO);
        }
        memory.read_bytes(0, &mut sector);
        hdio::identity(&mut sector);
        put(arg, 0, &sector)
    }

    fn drive_cmd(&self, arg: usize) -> Result {
        let mut args = [0; 4];
        get(arg, &mut args)?;
        let (command, blocks) = hdio::drive_cmd(args);
        let data = match blocks {
            0 => Data::Nothing,
            // CAST: at most 255 blocks.
            _ => Data::FromDevice(usize::from(blocks).wrapping_mul(hdio::BLOCK) as u32),
        };
        let data_at = arg.checked_add(args.len()).ok_or(EFAULT)?;
        let reply = self.pass(&command, data, data_at, 0)?.ok_or(EACCES)?;
        put(arg, 0, &hdio::drive_cmd_reply(&reply))?;
        worked(&reply)
    }

    fn drive_task(&self, arg: usize) -> Result {
        let mut registers = [0; 7];
        get(arg, &mut registers)?;
        let command = hdio::drive_task(registers);
        let reply = (self.pass(&command, Data::Nothing, 0, 0)?).ok_or(EACCES)?;
        put(arg, 0, &hdio::drive_task_reply(&reply))?;
        worked(&reply)
    }

    /// Carries out `command` with the caller's `data` at `at`, which what failed leaves as it is. `None`: no command to be passed.
    fn pass(
        &self,
        command: &AtaCommand,
        data: Data,
        at: usize,
        timeout_ms: u32,
    ) -> Result<Option<AtaReply>> {
        let memory = |bytes: u32| self.platform.dma(bytes as usize).map_err(to_errno);
        let reply = match data {
            Data::Nothing => self.run(command, &Transfer::Nothing, timeout_ms),
            Data::ToDevice(bytes) => {
                let memory = memory(bytes)?;
                copy_in(&memory, at, bytes as usize)?;
                self.run(command, &Transfer::ToDevice(&memory, bytes), timeout_ms)
            }
            Data::FromDevice(bytes) => {
                let memory = memory(bytes)?;
                let reply = self.run(command, &Transfer::FromDevice(&memory, bytes), timeout_ms);
                if reply.is_ok_and(|reply| !reply.is_failure()) {
                    copy_out(&memory, at, bytes as usize)?;
                }
                reply
            }
        };
        match reply {
            Ok(reply) => Ok(Some(reply)),
            Err(Error::Invalid) => Ok(None),
            Err(error) => Err(to_errno(error)),
        }
    }

    fn run(
        &self,
        command: &AtaCommand,
        transfer: &Transfer<'_, DmaBlock>,
        timeout_ms: u32,
    ) -> Result<AtaReply, Error> {
        let send =
            || (self.control).hold_at_rest(|| self.ahci.command(command, transfer, timeout_ms));
        match command.turns_cache() {
            true => self.control.change(send),
            false => send(),
        }
    }
}

fn worked(reply: &AtaReply) -> Result {
    match reply.is_failure() {
        true => Err(EIO),
        false => Ok(()),
    }
}
