// SPDX-License-Identifier: GPL-2.0
//! NVMe's ioctls for I/O commands (`linux/nvme_ioctl.h`): nvme-cli's read, write, compare, dsm and
//! so on. They are for administrators, as all of our pass-through.

use kernel::prelude::*;
use kglue::blk::ioctl::{ControlPath, OfDisk, Way};
use kglue::errno::to_errno;
use lld_nvme::AdminReply;

use crate::nvme::Nvme;
use crate::nvme_passthru::{exchange, Request};
use crate::user::get;

/// `_IOW('N', 0x42, struct nvme_user_io)`: read, write or compare.
pub(crate) const SUBMIT: u32 = 0x4030_4e42;
/// `_IOWR('N', 0x43, struct nvme_passthru_cmd)`: any command, 32 bits of result.
pub(crate) const IO: u32 = 0xc048_4e43;
/// `_IOWR('N', 0x48, struct nvme_passthru_cmd64)`: the same with 64 bits of result.
pub(crate) const IO64: u32 = 0xc050_4e48;

/// Bytes of `struct nvme_user_io` that say something.
const USER_IO_BYTES: usize = 44;

const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const COMPARE: u8 = 0x05;

/// Carries out a `request` for `disk`.
pub(crate) fn pass(way: &impl Way<Nvme>, disk: OfDisk, request: &Request) -> Result<AdminReply> {
    if disk.read_only && lld_nvme::may_change(request.opcode) {
        return Err(EROFS);
    }
    exchange(way, request, |nvme, control, memory| {
        let (sqe, ms) = (request.sqe, request.timeout_ms);
        let wanted = || control.is_wanted();
        let send = || (nvme.controller).io(disk.unit, sqe, memory, ms, &wanted);
        control.hold(send).map_err(to_errno)
    })
}

/// Carries out the `struct nvme_user_io` at `arg`. Its length is in blocks, so it is asked first
/// how large these are.
pub(crate) fn submit(way: &impl Way<Nvme>, disk: OfDisk, arg: usize) -> Result<AdminReply> {
    let mut bytes = [0; USER_IO_BYTES];
    get(arg, &mut bytes)?;
    let shift = way.with(|nvme, control| {
        let shift = control.hold(|| nvme.controller.block_shift(disk.unit));
        shift.map_err(to_errno)
    })?;
    pass(way, disk, &user_io(&bytes, disk.unit, shift)?)
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
