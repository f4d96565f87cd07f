// SPDX-License-Identifier: GPL-2.0
//! NVMe's ioctls, as the kernel's in-tree driver defines them (`linux/nvme_ioctl.h`), so that nvme-cli and smartctl find what they know.

use hal::{DmaMem, Error, Platform};
use kernel::prelude::*;
use kernel::sync::Mutex;
use kernel::uaccess::{UserPtr, UserSlice};
use kglue::dma::DmaBlock;
use kglue::errno::to_errno;
use kglue::mmio::Window;
use kglue::platform::KernelPlatform;
use lld_nvme::{AdminReply, NvmeController};

/// `_IO('N', 0x40)`: the namespace's ID.
const ID: u32 = 0x4e40;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`: an admin command, 32 bits of result.
const ADMIN: u32 = 0xc048_4e41;
/// `_IOWR('N', 0x47, struct nvme_passthru_cmd64)`: the same with 64 bits of result.
const ADMIN64: u32 = 0xc050_4e47;

/// Bytes of `struct nvme_passthru_cmd` up to its result.
const COMMAND_BYTES: usize = 68;
/// Where the result is: `__u32` of the one structure, `__u64` of the other.
const RESULT32: usize = 68;
const RESULT64: usize = 72;
/// Most data of one command. What it needs is contiguous memory.
const DATA_MAX: usize = 1 << 20;
/// Copied at a time between user space and the device's memory.
const CHUNK: usize = 256;

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
pub(crate) struct Path<'a> {
    pub(crate) nvme: &'a NvmeController<KernelPlatform, Window>,
    pub(crate) platform: &'a KernelPlatform,
    /// Held across each call of the control path, and not across an access to user space: that may need a page of this very disk, whose
    /// recovery takes the same lock.
    pub(crate) control: &'a Mutex<()>,
}

impl Path<'_> {
    /// Carries out `cmd` with its argument at `arg` for namespace `nsid`, on behalf of an administrator. The status of an admin command that the device
    /// refused is a positive result.
    pub(crate) fn ioctl(&self, nsid: u32, cmd: u32, arg: usize) -> Result<i32> {
        match cmd {
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
            _ => self.unprivileged(nsid, cmd),
        }
    }

    /// What of that anyone may ask for who can open the disk.
    pub(crate) fn unprivileged(&self, nsid: u32, cmd: u32) -> Result<i32> {
        match cmd {
            // CAST: the value goes through an int, as in tree.
            ID => Ok(nsid as i32),
            ADMIN | ADMIN64 => Err(EACCES),
            _ => Err(ENOTTY),
        }
    }

    /// Runs the command described at `arg`.
    fn admin(&self, arg: usize) -> Result<AdminReply> {
        let mut bytes = [0; COMMAND_BYTES];
        slice(arg, COMMAND_BYTES).reader().read_slice(&mut bytes)?;
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
        let reply = {
            let _held = self.control.lock();
            (self.nvme).admin(request.sqe, memory.as_ref(), request.timeout_ms)
        };
        let reply = reply.map_err(|error| match error {
            // Not a command to be passed.
            Error::Invalid => EACCES,
            error => to_errno(error),
        })?;
        if let (Some(memory), false) = (&memory, to_device) {
            copy_out(memory, request.data, request.data_len)?;
        }
        Ok(reply)
    }
}

fn slice(at: usize, len: usize) -> UserSlice {
    UserSlice::new(UserPtr::from_addr(at), len)
}

/// Writes `bytes` at `offset` of the structure at `arg`.
fn put(arg: usize, offset: usize, bytes: &[u8]) -> Result {
    let at = arg.checked_add(offset).ok_or(EFAULT)?;
    slice(at, bytes.len()).writer().write_slice(bytes)
}

fn copy_in(memory: &DmaBlock, from: usize, len: usize) -> Result {
    let mut reader = slice(from, len).reader();
    for offset in (0..len).step_by(CHUNK) {
        let mut chunk = [0; CHUNK];
        let part = len.saturating_sub(offset).min(CHUNK);
        reader.read_slice(chunk.get_mut(..part).ok_or(EINVAL)?)?;
        let words = chunk.chunks_exact(4).take(part.div_ceil(4));
        for (at, word) in (offset..).step_by(4).zip(words) {
            let word = word.first_chunk::<4>().copied().unwrap_or_default();
            memory.write32(at, u32::from_le_bytes(word));
        }
    }
    Ok(())
}

fn copy_out(memory: &DmaBlock, to: usize, len: usize) -> Result {
    let mut writer = slice(to, len).writer();
    for offset in (0..len).step_by(CHUNK) {
        let mut chunk = [0; CHUNK];
        let part = len.saturating_sub(offset).min(CHUNK);
        let chunk = chunk.get_mut(..part).ok_or(EINVAL)?;
        memory.read_bytes(offset, chunk);
        writer.write_slice(chunk)?;
    }
    Ok(())
}
