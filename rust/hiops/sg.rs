// SPDX-License-Identifier: GPL-2.0
//! `struct sg_io_hdr` of SG_IO, version 3 (`scsi/sg.h`), as the block layer of SCSI disks reads and
//! answers it.

use kernel::prelude::*;
use lld_ahci::sat::Data;

use crate::user::DATA_MAX;

/// Bytes of the structure that are read. What is written follows them.
pub(crate) const INPUT_BYTES: usize = 64;
/// Most and fewest bytes of a command descriptor block.
pub(crate) const CDB_MAX: usize = 32;
const CDB_MIN: usize = 6;

/// `dxfer_direction`; -4 stands for -3 with data that is copied in first, which nobody can tell.
const TO_DEVICE: i32 = -2;
const FROM_DEVICE: i32 = -3;
const TO_FROM_DEVICE: i32 = -4;

/// Shortest time that a command is given; tools ask for less than a drive takes to spin up.
pub(crate) const LEAST_MS: u32 = 7_000;

/// `status`, and what the older fields make of it.
const CHECK_CONDITION: u8 = 0x02;
const DRIVER_SENSE: u8 = 0x08;
const INFO_CHECK: u32 = 1;

/// What a caller asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Where the command descriptor block is, and how long.
    pub(crate) cdb: usize,
    pub(crate) cdb_len: usize,
    /// Where there is room for sense data, and for how much.
    pub(crate) sense: usize,
    pub(crate) sense_room: usize,
    pub(crate) data: Data,
    pub(crate) data_at: usize,
    /// 0: as the driver likes.
    pub(crate) timeout_ms: u32,
}

impl Header {
    pub(crate) fn parse(bytes: &[u8; INPUT_BYTES]) -> Result<Self> {
        let word = |at: usize| -> u32 {
            let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            word.copied().map_or(0, u32::from_le_bytes)
        };
        let pointer = |at: usize| -> usize {
            let [low, high] = [word(at), word(at.wrapping_add(4))];
            // CAST: a pointer of this machine's.
            (u64::from(low) | u64::from(high) << 32) as usize
        };
        let [_, _, _, _, _, _, _, _, cdb_len, sense_room, iovecs_low, iovecs_high, ..] = *bytes;
        let cdb_len = usize::from(cdb_len);
        let len = word(12);
        // CAST: a signed field.
        let data = match word(4) as i32 {
            _ if len == 0 => Data::Nothing,
            TO_DEVICE => Data::ToDevice(len),
            FROM_DEVICE | TO_FROM_DEVICE => Data::FromDevice(len),
            _ => return Err(EINVAL),
        };
        let scattered = [iovecs_low, iovecs_high] != [0, 0];
        if word(0) != u32::from(b'S') || scattered || cdb_len > CDB_MAX || len > DATA_MAX as u32 {
            return Err(EINVAL);
        }
        if cdb_len < CDB_MIN {
            return Err(EMSGSIZE);
        }
        Ok(Self {
            cdb: pointer(24),
            cdb_len,
            sense: pointer(32),
            sense_room: usize::from(sense_room),
            data,
            data_at: pointer(16),
            timeout_ms: match word(40) {
                0 => 0,
                ms => ms.max(LEAST_MS),
            },
        })
    }
}

/// What becomes of the command.
pub(crate) struct Answer {
    /// There is sense data; as many bytes of it were written.
    pub(crate) sense: Option<u8>,
    /// Bytes of the data that were not transferred.
    pub(crate) residue: u32,
    pub(crate) duration_ms: u32,
}

impl Answer {
    /// The rest of the structure, by words.
    pub(crate) fn encode(&self) -> [[u8; 4]; 5] {
        let (status, driver, info) = match self.sense {
            None => (0, 0, 0),
            Some(_) => (CHECK_CONDITION, DRIVER_SENSE, INFO_CHECK),
        };
        [
            // status, masked_status, msg_status, sb_len_wr
            [status, status >> 1, 0, self.sense.unwrap_or(0)],
            // host_status, driver_status
            [0, 0, driver, 0],
            // resid, duration, info
            self.residue.to_le_bytes(),
            self.duration_ms.to_le_bytes(),
            info.to_le_bytes(),
        ]
    }
}
