// SPDX-License-Identifier: GPL-2.0
//! NVMe's ioctls, as the kernel's in-tree driver defines them (`linux/nvme_ioctl.h`), so that
//! nvme-cli and smartctl find what they know: admin commands, and I/O commands (nvme-cli's read,
//! write, compare, dsm and so on).

use hal::{DmaMem, Error, Platform};
use kernel::prelude::*;
use kglue::blk::ioctl::{AdminPath, ControlPath, ControllerAccess, OfDisk, Right};
use kglue::errno::to_errno;
use kglue::platform::DmaBlock;
use lld_nvme::AdminReply;

use crate::nvme::Nvme;
use crate::user::{fetch, fill, get, put, room};

/// `_IO('N', 0x40)`: the namespace's ID.
const ID: u32 = 0x4e40;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`: an admin command, 32 bits of result.
const ADMIN: u32 = 0xc048_4e41;
/// `_IOWR('N', 0x47, struct nvme_passthru_cmd64)`: the same with 64 bits of result.
const ADMIN64: u32 = 0xc050_4e47;
/// `_IOW('N', 0x42, struct nvme_user_io)`: read, write or compare.
const SUBMIT: u32 = 0x4030_4e42;
/// `_IOWR('N', 0x43, struct nvme_passthru_cmd)`: any command, 32 bits of result.
const IO: u32 = 0xc048_4e43;
/// `_IOWR('N', 0x48, struct nvme_passthru_cmd64)`: the same with 64 bits of result.
const IO64: u32 = 0xc050_4e48;

/// `_IO('N', 0x44)`: reset the controller.
const RESET: u32 = 0x4e44;
/// `_IO('N', 0x46)`: look anew which namespaces there are, and what they are.
const RESCAN: u32 = 0x4e46;

/// Bytes of `struct nvme_passthru_cmd` up to its result.
const COMMAND_BYTES: usize = 68;
/// Where the result is: `__u32` of the one structure, `__u64` of the other.
const RESULT32: usize = 68;
const RESULT64: usize = 72;
/// Bytes of `struct nvme_user_io` that say something.
const USER_IO_BYTES: usize = 44;

/// Opcode bit 0: data goes to the device (Base 2.0, figure "Opcode").
const TO_DEVICE: u8 = 1;
/// Opcodes of the commands that a `struct nvme_user_io` may be.
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const COMPARE: u8 = 0x05;

/// What of `struct nvme_passthru_cmd` matters here.
struct Request {
    opcode: u8,
    /// The submission queue entry; the driver fills in the pointers.
    sqe: [u64; 8],
    data: usize,
    data_len: usize,
    timeout_ms: u32,
}

impl Request {
    fn parse(bytes: &[u8; COMMAND_BYTES]) -> Result<Self> {
        let dword = |at: usize| -> u64 {
            let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            u64::from(word.copied().map_or(0, u32::from_le_bytes))
        };
        let qword = |at: usize| dword(at) | dword(at.wrapping_add(4)) << 32;
        let [opcode, flags, ..] = *bytes;
        // No metadata and no fused commands.
        if flags != 0 || qword(16) != 0 || dword(32) != 0 {
            return Err(EINVAL);
        }
        // opcode, flags; nsid. cdw2, cdw3. Metadata and data pointers. cdw10 to cdw15.
        let sqe = [
            u64::from(opcode) | dword(4) << 32,
            qword(8),
            0,
            0,
            0,
            qword(40),
            qword(48),
            qword(56),
        ];
        Ok(Self {
            opcode,
            sqe,
            data: usize::try_from(qword(24))?,
            data_len: usize::try_from(dword(36))?,
            timeout_ms: u32::try_from(dword(64))?,
        })
    }
}

impl AdminPath for Nvme {
    fn ioctl(
        disk: Option<OfDisk>,
        cmd: u32,
        arg: usize,
        access: &impl ControllerAccess<Self>,
    ) -> Result<i32> {
        ioctl(access, disk, cmd, arg)
    }

    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    fn wake_by(queue: &Self::Queue, alarm: kglue::faults::Alarm) {
        crate::inject::wake_by(queue, alarm);
    }
}

/// Carries out `cmd` with its argument at `arg` for `disk`, or for the controller, which `access`
/// reaches. The status of a command that the device refused is a positive result. Commands are for
/// administrators, but for those by which anyone may ask what there is.
fn ioctl(
    access: &impl ControllerAccess<Nvme>,
    disk: Option<OfDisk>,
    cmd: u32,
    arg: usize,
) -> Result<i32> {
    match cmd {
        // CAST: the value goes through an int, as in tree.
        ID => disk.map(|disk| disk.unit as i32).ok_or(ENOTTY),
        // Of the controller's node alone, as in tree.
        RESET if disk.is_some() => Err(ENOTTY),
        // Of disks, too, unlike in tree; not of a part of one.
        RESCAN if disk.is_some_and(|disk| disk.is_partition) => Err(ENOTTY),
        SUBMIT | IO | IO64 | RESCAN | RESET if !Right::Administer.is_held() => Err(EACCES),
        RESET => {
            access.with(|_, control| control.reset().map_err(to_errno))?;
            Ok(0)
        }
        RESCAN => {
            access.with(|_, control| control.change(|| Ok(())).map_err(to_errno))?;
            Ok(0)
        }
        SUBMIT => {
            let reply = submit(access, disk.ok_or(ENOTTY)?, arg)?;
            Ok(i32::from(reply.status))
        }
        ADMIN | ADMIN64 | IO | IO64 => {
            let reply = match (cmd, disk) {
                (ADMIN | ADMIN64, _) => admin(access, read(arg)?)?,
                (_, Some(disk)) => pass(access, disk, &read(arg)?)?,
                // Of a controller's node none of its namespaces is meant.
                (_, None) => return Err(ENOTTY),
            };
            match cmd {
                // CAST: dword 0 of the completion, by this ioctl's definition.
                ADMIN | IO => put(arg, RESULT32, &(reply.result as u32).to_le_bytes())?,
                _ => put(arg, RESULT64, &reply.result.to_le_bytes())?,
            }
            Ok(i32::from(reply.status))
        }
        _ => Err(ENOTTY),
    }
}

/// The command described at `arg`.
fn read(arg: usize) -> Result<Request> {
    let mut bytes = [0; COMMAND_BYTES];
    get(arg, &mut bytes)?;
    Request::parse(&bytes)
}

/// Whether whoever can open a node may send the admin command: IDENTIFY, and what of it says how a
/// disk is used and nothing of others, by the in-tree driver's list (CNS; Base 2.0, figure
/// "Identify – CNS Values").
fn is_for_anyone(sqe: &[u64; 8]) -> bool {
    const IDENTIFY: u64 = 0x06;
    // Namespace, controller; both of a command set; namespace, whatever its command set.
    const CNS: [u64; 5] = [0x00, 0x01, 0x05, 0x06, 0x08];
    let [dword0, _, _, _, _, dword10, ..] = sqe;
    dword0 & 0xff == IDENTIFY && CNS.contains(&(dword10 & 0xff))
}

/// Runs an admin command.
fn admin(access: &impl ControllerAccess<Nvme>, mut request: Request) -> Result<AdminReply> {
    if !Right::Administer.is_held() {
        if !is_for_anyone(&request.sqe) {
            return Err(EACCES);
        }
        // What is late leads to a reset: when it is, is not for everyone to say.
        request.timeout_ms = 0;
    }
    let request = &request;
    let needed = lld_nvme::admin_bytes(&request.sqe).unwrap_or(0);
    if needed > request.data_len as u64 {
        return Err(EINVAL);
    }
    exchange(access, request, |nvme, control, memory| {
        run(nvme, control, request, memory).map_err(|error| match error {
            // Not a command to be passed.
            Error::Invalid => EACCES,
            error => to_errno(error),
        })
    })
}

/// Sends an admin command; where it changes what disks are, with no I/O under way.
fn run(
    nvme: &Nvme,
    control: &impl ControlPath,
    request: &Request,
    memory: Option<&DmaBlock>,
) -> Result<AdminReply, Error> {
    let nvme = &nvme.controller;
    let wanted = || control.is_wanted();
    let send = || nvme.admin(request.sqe, memory, request.timeout_ms, &wanted);
    let effects = control.hold(|| nvme.effects(&request.sqe))?;
    let reply = match effects.change_disks() {
        true => control.change(|| control.hold(send))?,
        false => control.hold(send)?,
    };
    if effects.capabilities && reply.status == 0 {
        pr_info!(
            "an NVMe command has changed what its controller can do: bind it again for that to \
             take effect\n"
        );
    }
    Ok(reply)
}

/// Runs an I/O command of `disk`.
fn pass(
    access: &impl ControllerAccess<Nvme>,
    disk: OfDisk,
    request: &Request,
) -> Result<AdminReply> {
    if disk.read_only && lld_nvme::may_change(request.opcode) {
        return Err(EROFS);
    }
    exchange(access, request, |nvme, control, memory| {
        let (sqe, ms) = (request.sqe, request.timeout_ms);
        let wanted = || control.is_wanted();
        let send = || (nvme.controller).io(disk.unit, sqe, memory, ms, &wanted);
        control.hold(send).map_err(to_errno)
    })
}

/// Carries out the `struct nvme_user_io` at `arg`. Its length is in blocks, so it is asked first
/// how large these are.
fn submit(access: &impl ControllerAccess<Nvme>, disk: OfDisk, arg: usize) -> Result<AdminReply> {
    let mut bytes = [0; USER_IO_BYTES];
    get(arg, &mut bytes)?;
    let shift = access.with(|nvme, control| {
        let shift = control.hold(|| nvme.controller.block_shift(disk.unit));
        shift.map_err(to_errno)
    })?;
    pass(access, disk, &user_io(&bytes, disk.unit, shift)?)
}

/// The command of a `struct nvme_user_io` for blocks of `1 << shift` bytes.
fn user_io(bytes: &[u8; USER_IO_BYTES], nsid: u32, shift: u8) -> Result<Request> {
    let dword = |at: usize| -> u64 {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        u64::from(word.copied().map_or(0, u32::from_le_bytes))
    };
    let qword = |at: usize| dword(at) | dword(at.wrapping_add(4)) << 32;
    let [opcode, flags, ..] = *bytes;
    if flags != 0 || !matches!(opcode, WRITE | READ | COMPARE) {
        return Err(EINVAL);
    }
    // control and nblocks change places in dword 12.
    let (control, blocks) = (dword(0) >> 16, dword(4) & 0xffff);
    let bytes = blocks.wrapping_add(1).wrapping_shl(u32::from(shift));
    Ok(Request {
        opcode,
        sqe: [
            u64::from(opcode) | u64::from(nsid) << 32,
            0,
            0,
            0,
            0,
            // slba; length, control and dsmgmt; reftag, apptag and appmask.
            qword(24),
            blocks | control << 16 | dword(32) << 32,
            qword(36),
        ],
        data: usize::try_from(qword(16))?,
        data_len: usize::try_from(bytes)?,
        timeout_ms: 0,
    })
}

/// Has `send` carry out a `request`, with its data in memory of the device's.
fn exchange<W: ControllerAccess<Nvme>>(
    access: &W,
    request: &Request,
    send: impl FnOnce(&Nvme, &W::Control, Option<&DmaBlock>) -> Result<AdminReply>,
) -> Result<AdminReply> {
    let to_device = request.opcode & TO_DEVICE != 0;
    let mut data = match to_device {
        true => fetch(request.data, request.data_len)?,
        false => room(request.data_len)?,
    };
    let reply = access.with(|nvme, control| {
        let memory = match data.len() {
            0 => None,
            len => Some((nvme.platform.dma(len.next_multiple_of(4))).map_err(to_errno)?),
        };
        if let (Some(memory), true) = (&memory, to_device) {
            fill(memory, &data);
        }
        let reply = send(nvme, control, memory.as_ref())?;
        if let (Some(memory), false) = (&memory, to_device) {
            memory.read_bytes(0, &mut data);
        }
        Ok(reply)
    })?;
    if !to_device {
        put(request.data, 0, &data)?;
    }
    Ok(reply)
}
