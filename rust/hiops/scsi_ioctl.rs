// SPDX-License-Identifier: GPL-2.0
//! The ioctls of SCSI disks besides SG_IO (`scsi/sg.h`, `scsi/scsi_ioctl.h`), by which tools find
//! out what they speak to, as sd answers them.
//!
//! Tools look for the generic node (`/dev/sg*`) of a disk by host, channel, target and unit. These
//! disks have none, so they are on a host that no other disk is on.

use core::sync::atomic::{AtomicU32, Ordering};
use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;
use kglue::blk::ioctl::{OfDisk, Right};

use crate::sg::LEAST_MS;
use crate::user::{get, put, DATA_MAX};

const TEST_UNIT_READY: u32 = 0x0002;
const SET_TIMEOUT: u32 = 0x2201;
const GET_TIMEOUT: u32 = 0x2202;
const EMULATED_HOST: u32 = 0x2203;
const GET_RESERVED_SIZE: u32 = 0x2272;
const SET_RESERVED_SIZE: u32 = 0x2275;
const GET_VERSION_NUM: u32 = 0x2282;
const SCSI_RESET: u32 = 0x2284;
const DOORLOCK: u32 = 0x5380;
const DOORUNLOCK: u32 = 0x5381;
const GET_IDLUN: u32 = 0x5382;
const PROBE_HOST: u32 = 0x5385;
const GET_BUS_NUMBER: u32 = 0x5386;

/// The version of the interface, 3.5.27: the one that the kernel's SCSI disks say.
const VERSION: u32 = 30_527;
/// The host of all disks of hiops. The kernel counts its own from 0, the lowest free number first.
const HOST: u8 = 0xff;
/// What it is called.
const HOST_NAME: &[u8] = b"hiops_ahci\0";

/// SG_SCSI_RESET: nothing is to be reset, only whether that could be is asked.
const RESET_NOTHING: i32 = 0;
/// And where that fails, nothing larger either.
const NO_ESCALATE: i32 = 0x100;

/// How long a command may take that doesn't say so itself, in hundredths of a second; 0: as the
/// driver likes. For all who have the disk open, as for a disk of sd.
#[derive(Clone)]
pub(crate) struct Timeout(Arc<AtomicU32>);

impl Timeout {
    pub(crate) fn new() -> Result<Self, Error> {
        let ticks = Arc::new(AtomicU32::new(0), GFP_KERNEL);
        ticks.map(Self).map_err(|_| Error::NoMemory)
    }

    /// In milliseconds; no less than any command gets.
    pub(crate) fn ms(&self) -> u32 {
        match self.0.load(Ordering::Relaxed) {
            0 => 0,
            ticks => ticks.saturating_mul(10).max(LEAST_MS),
        }
    }
}

/// Where a disk is, by its number among those of hiops: unit 0 of a target of its own.
pub(crate) fn id_lun(number: u32) -> [u32; 2] {
    let [target, channel, ..] = number.to_le_bytes();
    let place = u32::from_le_bytes([target, 0, channel, HOST]);
    [place, number.wrapping_add(1)]
}

fn word(arg: usize) -> Result<i32> {
    let mut bytes = [0; 4];
    get(arg, &mut bytes)?;
    Ok(i32::from_le_bytes(bytes))
}

fn put_word(arg: usize, word: u32) -> Result<i32> {
    put(arg, 0, &word.to_le_bytes()).map(|()| 0)
}

/// Carries out `cmd` with its argument at `arg`, or ENOTTY: it is none of these.
pub(crate) fn ioctl(disk: OfDisk, timeout: &Timeout, cmd: u32, arg: usize) -> Result<i32> {
    match cmd {
        // A drive that is served is ready, and its medium stays where it is.
        TEST_UNIT_READY | DOORLOCK | DOORUNLOCK => Ok(0),
        GET_VERSION_NUM => put_word(arg, VERSION),
        EMULATED_HOST => put_word(arg, 1),
        SET_TIMEOUT => {
            let ticks = u32::try_from(word(arg)?).map_err(|_| EIO)?;
            timeout.0.store(ticks, Ordering::Relaxed);
            Ok(0)
        }
        // CAST: it was an int.
        GET_TIMEOUT => Ok(timeout.0.load(Ordering::Relaxed) as i32),
        // Memory is there for each command, as large as one may be; none is kept.
        // CAST: a small constant.
        GET_RESERVED_SIZE => put_word(arg, DATA_MAX as u32),
        SET_RESERVED_SIZE => match word(arg)? {
            0.. => Ok(0),
            _ => Err(EINVAL),
        },
        SCSI_RESET if !Right::Administer.is_held() || !Right::RawIo.is_held() => Err(EACCES),
        // As for a disk of libata's, which resets when it has a reason of its own.
        SCSI_RESET => match word(arg)? & !NO_ESCALATE {
            RESET_NOTHING => Ok(0),
            _ => Err(EIO),
        },
        GET_IDLUN => {
            let told = id_lun(disk.number).map(u32::to_le_bytes);
            put(arg, 0, told.as_flattened()).map(|()| 0)
        }
        GET_BUS_NUMBER => put_word(arg, HOST.into()),
        // Whether there is a host, and, for those who give room for it, its name.
        PROBE_HOST if arg == 0 => Ok(1),
        PROBE_HOST => {
            let room = usize::try_from(word(arg)?).unwrap_or(0);
            let name = HOST_NAME.get(..room).unwrap_or(HOST_NAME);
            put(arg, 0, name).map(|()| 1)
        }
        _ => Err(ENOTTY),
    }
}
