// SPDX-License-Identifier: GPL-2.0
//! ATA commands of the operator's tools, through the ioctls that hdparm, smartctl and udev's ata_id
//! know: SG_IO with ATA PASS-THROUGH, and the older HDIO_*. They take CAP_SYS_RAWIO; anyone who can
//! open the disk may ask what it is. Of a partition anything takes it, as in tree.

use hal::{Controller, DmaMem, Error, Platform};
use kernel::prelude::*;
use kernel::time::{Instant, Monotonic};
use kglue::blk::ioctl::{AdminPath, ControlPath, ControllerAccess, OfDisk, Right, SG_IO};
use kglue::errno::to_errno;
use kglue::platform::DmaBlock;
use lld_ahci::sat::{self, Data, Query, Request};
use lld_ahci::{AtaCommand, AtaReply, Identity, Sense, Transfer};

use crate::ahci::Ahci;
use crate::hdio::{self, HDIO_DRIVE_CMD, HDIO_DRIVE_TASK, HDIO_GET_IDENTITY};
use crate::scsi_ioctl;
use crate::sg::{Answer, Header, CDB_MAX, INPUT_BYTES};
use crate::user::{fetch, fill, get, put, room};

impl AdminPath for Ahci {
    fn ioctl(
        disk: Option<OfDisk>,
        cmd: u32,
        arg: usize,
        access: &impl ControllerAccess<Self>,
    ) -> Result<i32> {
        // A port has no node but its disk's.
        ioctl(access, disk.ok_or(ENOTTY)?, cmd, arg)
    }

    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    fn wake_by(queue: &Self::Queue, alarm: kglue::faults::Alarm) {
        crate::inject::wake_by(queue, alarm);
    }
}

/// Carries out `cmd` with its argument at `arg` for `disk`, whose controller `access` reaches.
fn ioctl(access: &impl ControllerAccess<Ahci>, disk: OfDisk, cmd: u32, arg: usize) -> Result<i32> {
    if disk.is_partition && !Right::RawIo.is_held() {
        return Err(ENOTTY);
    }
    let done = match cmd {
        SG_IO => sg_io(access, arg),
        HDIO_GET_IDENTITY => get_identity(access, arg),
        HDIO_DRIVE_CMD | HDIO_DRIVE_TASK
            if !Right::Administer.is_held() || !Right::RawIo.is_held() =>
        {
            Err(EACCES)
        }
        HDIO_DRIVE_CMD => drive_cmd(access, arg),
        HDIO_DRIVE_TASK => drive_task(access, arg),
        _ => {
            let timeout = access.with(|ahci, _| Ok(ahci.sg_timeout.clone()))?;
            return scsi_ioctl::ioctl(disk, &timeout, cmd, arg);
        }
    };
    done.map(|()| 0)
}

fn sg_io(access: &impl ControllerAccess<Ahci>, arg: usize) -> Result {
    let mut bytes = [0; INPUT_BYTES];
    get(arg, &mut bytes)?;
    let mut header = Header::parse(&bytes)?;
    if header.timeout_ms == 0 {
        header.timeout_ms = access.with(|ahci, _| Ok(ahci.sg_timeout.ms()))?;
    }
    let mut cdb = [0; CDB_MAX];
    let cdb = cdb.get_mut(..header.cdb_len).ok_or(EINVAL)?;
    get(header.cdb, cdb)?;
    let begin = Instant::<Monotonic>::now();
    let (sense, done) = scsi(access, &header, cdb)?;
    let took = begin.elapsed().as_millis();
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
        duration_ms: u32::try_from(took).unwrap_or(u32::MAX),
    };
    put(arg, INPUT_BYTES, answer.encode().as_flattened())
}

/// Carries out a SCSI command: what there is to say about it, and how much of the data was
/// transferred.
fn scsi(
    access: &impl ControllerAccess<Ahci>,
    header: &Header,
    cdb: &[u8],
) -> Result<(Option<Sense>, u32)> {
    match sat::decode(cdb, header.data) {
        Err(sense) => Ok((Some(sense), 0)),
        Ok(Request::Ready) => Ok((None, 0)),
        Ok(Request::Query { query, room }) => tell(access, header, &query, room),
        Ok(Request::Ata { .. } | Request::NonData(_)) if !Right::RawIo.is_held() => Err(EPERM),
        Ok(Request::NonData(command)) => {
            let Some(reply) = pass(access, &command, Data::Nothing, 0, header.timeout_ms)? else {
                return Ok((Some(Sense::INVALID_FIELD), 0));
            };
            let failed = reply.is_failure();
            Ok((failed.then(|| Sense::of_registers(&reply, true)), 0))
        }
        Ok(Request::Ata {
            command,
            extend,
            registers,
        }) => {
            let (data, timeout_ms) = (header.data, header.timeout_ms);
            let Some(reply) = pass(access, &command, data, header.data_at, timeout_ms)? else {
                return Ok((Some(Sense::INVALID_FIELD), 0));
            };
            let failed = reply.is_failure();
            let sense = (failed || registers).then(|| Sense::of_registers(&reply, extend));
            Ok((sense, if failed { 0 } else { data.bytes() }))
        }
    }
}

/// Copies out no more than `most` bytes of the answer to `query`, and says how many they are.
fn tell(
    access: &impl ControllerAccess<Ahci>,
    header: &Header,
    query: &Query,
    most: u32,
) -> Result<(Option<Sense>, u32)> {
    let mut unit = None;
    access.with(|ahci, control| {
        let asked = || (ahci.controller).units(&mut |found| unit = found.ok());
        control.hold(asked).map_err(to_errno)
    })?;
    let identity = Identity::new(identify(access)?);
    let page = match query.answer(&unit.ok_or(ENODEV)?, &identity) {
        Ok(page) => page,
        Err(sense) => return Ok((Some(sense), 0)),
    };
    let Data::FromDevice(bytes) = header.data else {
        return Ok((None, 0));
    };
    let part = page.first(bytes.min(most));
    put(header.data_at, 0, part)?;
    // CAST: less than a thousand bytes.
    Ok((None, part.len() as u32))
}

/// What the drive says of itself.
fn identify(access: &impl ControllerAccess<Ahci>) -> Result<[u8; hdio::BLOCK]> {
    let mut sector = [0; hdio::BLOCK];
    let reply = access.with(|ahci, control| {
        let memory = ahci.platform.dma(sector.len()).map_err(to_errno)?;
        // CAST: a constant.
        let transfer = Transfer::FromDevice(&memory, sector.len() as u32);
        let reply = run(ahci, control, &hdio::identify(), &transfer, 0).map_err(to_errno)?;
        memory.read_bytes(0, &mut sector);
        Ok(reply)
    })?;
    worked(&reply)?;
    Ok(sector)
}

fn get_identity(access: &impl ControllerAccess<Ahci>, arg: usize) -> Result {
    let mut sector = identify(access)?;
    hdio::identity(&mut sector);
    put(arg, 0, &sector)
}

fn drive_cmd(access: &impl ControllerAccess<Ahci>, arg: usize) -> Result {
    let mut args = [0; 4];
    get(arg, &mut args)?;
    let (command, blocks) = hdio::drive_cmd(args);
    let data = match blocks {
        0 => Data::Nothing,
        // CAST: at most 255 blocks.
        _ => Data::FromDevice(usize::from(blocks).wrapping_mul(hdio::BLOCK) as u32),
    };
    let data_at = arg.checked_add(args.len()).ok_or(EFAULT)?;
    let reply = pass(access, &command, data, data_at, 0)?.ok_or(EACCES)?;
    put(arg, 0, &hdio::drive_cmd_reply(&reply))?;
    worked(&reply)
}

fn drive_task(access: &impl ControllerAccess<Ahci>, arg: usize) -> Result {
    let mut registers = [0; 7];
    get(arg, &mut registers)?;
    let command = hdio::drive_task(registers);
    let reply = pass(access, &command, Data::Nothing, 0, 0)?.ok_or(EACCES)?;
    put(arg, 0, &hdio::drive_task_reply(&reply))?;
    worked(&reply)
}

/// Carries out `command` with the caller's `data` at `at`, which what failed leaves as it is.
/// `None`: no command to be passed.
fn pass(
    access: &impl ControllerAccess<Ahci>,
    command: &AtaCommand,
    data: Data,
    at: usize,
    timeout_ms: u32,
) -> Result<Option<AtaReply>> {
    let bytes = data.bytes();
    let mut copy = match data {
        Data::ToDevice(_) => fetch(at, bytes as usize)?,
        Data::Nothing | Data::FromDevice(_) => room(bytes as usize)?,
    };
    let reply = access.with(|ahci, control| {
        let memory = match copy.len() {
            0 => None,
            len => Some(ahci.platform.dma(len).map_err(to_errno)?),
        };
        let transfer = match (&memory, data) {
            (None, _) | (_, Data::Nothing) => Transfer::Nothing,
            (Some(memory), Data::ToDevice(_)) => {
                fill(memory, &copy);
                Transfer::ToDevice(memory, bytes)
            }
            (Some(memory), Data::FromDevice(_)) => Transfer::FromDevice(memory, bytes),
        };
        match run(ahci, control, command, &transfer, timeout_ms) {
            Ok(reply) => {
                if let Transfer::FromDevice(memory, _) = transfer {
                    memory.read_bytes(0, &mut copy);
                }
                Ok(Some(reply))
            }
            Err(Error::Invalid) => Ok(None),
            Err(error) => Err(to_errno(error)),
        }
    })?;
    if let (Data::FromDevice(_), Some(reply)) = (data, &reply) {
        if !reply.is_failure() {
            put(at, 0, &copy)?;
        }
    }
    Ok(reply)
}

fn run(
    ahci: &Ahci,
    control: &impl ControlPath,
    command: &AtaCommand,
    transfer: &Transfer<'_, DmaBlock>,
    timeout_ms: u32,
) -> Result<AtaReply, Error> {
    let wanted = || control.is_wanted();
    let send = || {
        control.hold_at_rest(|| (ahci.controller).command(command, transfer, timeout_ms, &wanted))
    };
    match command.sets_cache() {
        true => control.change(send),
        false => send(),
    }
}

fn worked(reply: &AtaReply) -> Result {
    match reply.is_failure() {
        true => Err(EIO),
        false => Ok(()),
    }
}
