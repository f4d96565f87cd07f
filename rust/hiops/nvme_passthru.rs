// SPDX-License-Identifier: GPL-2.0
//! NVMe's ioctls, as the kernel's in-tree driver defines them (`linux/nvme_ioctl.h`), so that nvme-cli and smartctl find what they know.

use hal::{Error, Platform};
use kernel::prelude::*;
use kglue::blk::ioctl::{ControlPath, Right};
use kglue::dma::DmaBlock;
use kglue::errno::to_errno;
use kglue::mmio::Window;
use kglue::platform::KernelPlatform;
use lld_nvme::{AdminReply, NvmeController};

use crate::user::{copy_in, copy_out, get, put, DATA_MAX};

/// `_IO('N', 0x40)`: the namespace's ID.
const ID: u32 = 0x4e40;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`: an admin command, 32 bits of result.
const ADMIN: u32 = 0xc048_4e41;
/// `_IOWR('N', 0x47, struct nvme_passthru_cmd64)`: the same with 64 bits of result.
const ADMIN64: u32 = 0xc050_4e47;

/// `_IO('N', 0x46)`: look anew which namespaces there are, and what they are.
const RESCAN: u32 = 0x4e46;

/// Bytes of `struct nvme_passthru_cmd` up to its result.
const COMMAND_BYTES: usize = 68;
/// Where the result is: `__u32` of the one structure, `__u64` of the other.
const RESULT32: usize = 68;
const RESULT64: usize = 72;

/// Opcode bit 0: data goes to the device (Base 2.0, figure "Opcode").
const TO_DEVICE: u8 = 1;

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

/// The way to a controller's admin queue.
pub(crate) struct Path<'a, W> {
    pub(crate) nvme: &'a NvmeController<KernelPlatform, Window>,
    pub(crate) platform: &'a KernelPlatform,
    pub(crate) control: &'a W,
}

impl<W: ControlPath> Path<'_, W> {
    /// Carries out `cmd` with its argument at `arg` for namespace `nsid`. The status of an admin command that the device refused is a positive
    /// result. Admin commands are for administrators.
    pub(crate) fn ioctl(&self, nsid: u32, cmd: u32, arg: usize) -> Result<i32> {
        match cmd {
            // CAST: the value goes through an int, as in tree.
            ID => Ok(nsid as i32),
            ADMIN | ADMIN64 | RESCAN if !Right::Administer.is_held() => Err(EACCES),
            RESCAN => {
                self.control.change(|| Ok(())).map_err(to_errno)?;
                Ok(0)
            }
            ADMIN => {
                let reply = self.admin(arg)?;
                // CAST: dword 0 of the completion, by this ioctl's definition.
                put(arg, RESULT32, &(reply.result as u32).to_le_bytes())?;
                Ok(i32::from(reply.status))
            }
            ADMIN64 => {
                let reply = self.admin(arg)?;
                put(arg, RESULT64, &reply.result.to_le_bytes())?;
                Ok(i32::from(reply.status))
            }
            _ => Err(ENOTTY),
        }
    }

    /// Runs the command described at `arg`.
    fn admin(&self, arg: usize) -> Result<AdminReply> {
        let mut bytes = [0; COMMAND_BYTES];
        get(arg, &mut bytes)?;
        let request = Request::parse(&bytes)?;
        if request.data_len > DATA_MAX {
            return Err(EINVAL);
        }
        let memory = match request.data_len {
            0 => None,
            len => Some((self.platform.dma(len.next_multiple_of(4))).map_err(to_errno)?),
        };
        let to_device = request.opcode & TO_DEVICE != 0;
        if let (Some(memory), true) = (&memory, to_device) {
            copy_in(memory, request.data, request.data_len)?;
        }
        let reply = self
            .run(&request, memory.as_ref())
            .map_err(|error| match error {
                // Not a command to be passed.
                Error::Invalid => EACCES,
                error => to_errno(error),
            })?;
        if let (Some(memory), false) = (&memory, to_device) {
            copy_out(memory, request.data, request.data_len)?;
        }
        Ok(reply)
    }

    /// Sends it; where it changes what disks are, with no I/O under way.
    fn run(&self, request: &Request, memory: Option<&DmaBlock>) -> Result<AdminReply, Error> {
        let send = || (self.nvme).admin(request.sqe, memory, request.timeout_ms);
        let effects = self.control.hold(|| self.nvme.effects(&request.sqe))?;
        let reply = match effects.change_disks() {
            true => self.control.change(|| self.control.hold(send))?,
            false => self.control.hold(send)?,
        };
        if effects.capabilities && reply.status == 0 {
            pr_info!(
                "an NVMe command has changed what its controller can do: bind it again for that to \
                 take effect\n"
            );
        }
        Ok(reply)
    }
}
