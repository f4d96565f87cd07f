// SPDX-License-Identifier: GPL-2.0
//! What drives say about themselves.

use super::Drive;

fn seal(sector: &mut [u8; 512]) {
    let sum = sector.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    sector[511] = 0u8.wrapping_sub(sum);
}

/// IDENTIFY DEVICE.
pub fn device(drive: &Drive) -> [u8; 512] {
    let mut sector = [0; 512];
    let mut put = |at: usize, word: u16| {
        sector[at * 2..at * 2 + 2].copy_from_slice(&word.to_le_bytes());
    };
    let mut text = |at: usize, words: usize, text: &str| {
        let padded = format!("{text:<width$}", width = words * 2);
        for (n, pair) in padded.as_bytes().chunks(2).take(words).enumerate() {
            put(at + n, u16::from_be_bytes([pair[0], pair[1]]));
        }
    };
    text(10, 10, drive.serial);
    text(23, 4, drive.firmware);
    text(27, 20, drive.model);
    let flag = |on: bool, bit: u32| u16::from(on) << bit;
    put(49, 0x300);
    if let Some(depth) = drive.depth {
        put(75, u16::from(depth - 1));
        put(76, 0x100 | flag(drive.hipm, 9) | drive.speeds);
        put(77, flag(drive.queued_trim, 6));
    } else {
        put(76, flag(drive.hipm, 9) | drive.speeds);
    }
    put(78, flag(drive.has_dipm, 3));
    put(79, flag(drive.dipm, 3));
    put(82, flag(drive.write_cache, 5));
    put(83, 0x4000 | flag(drive.lba48, 10) | 1 << 13);
    put(84, 0x4000 | 1 << 5 | flag(drive.fua, 6) | 1 << 8);
    put(85, flag(drive.write_cache, 5));
    put(87, 0x4000 | 1 << 8);
    for n in 0..4 {
        put(100 + n, (drive.blocks >> (16 * n)) as u16);
        put(108 + n, 0x5000 + n as u16);
    }
    if drive.block_shift != 9 {
        put(106, 0x5000);
        put(117, 1 << (drive.block_shift - 1));
    }
    put(128, if drive.locked { 7 } else { 1 });
    put(169, u16::from(drive.trim));
    put(217, 1);
    put(255, 0xa5);
    seal(&mut sector);
    sector
}

/// Log 10h.
pub fn ncq_error(failed: Option<(u8, u16)>) -> [u8; 512] {
    let mut sector = [0; 512];
    match failed {
        Some((tag, tfd)) => {
            let [status, error] = tfd.to_le_bytes();
            sector[..4].copy_from_slice(&[tag, 0, status, error]);
        }
        None => sector[0] = 0x80,
    }
    seal(&mut sector);
    sector
}

/// Log 13h.
pub fn ncq_send() -> [u8; 512] {
    let mut sector = [0; 512];
    sector[0] = 1;
    sector[4] = 1;
    seal(&mut sector);
    sector
}
