// SPDX-License-Identifier: GPL-2.0
//! Identify data structures.

use super::{Config, Namespace};

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

pub fn controller(config: &Config) -> Vec<u8> {
    let mut page = vec![0; 4096];
    put(&mut page, 4, b"SERIAL-0123456789   ");
    put(&mut page, 0, &config.vid.to_le_bytes());
    put(&mut page, 24, format!("{:<40}", config.model).as_bytes());
    put(&mut page, 64, format!("{:<8}", config.firmware).as_bytes());
    page[76] = config.cmic;
    page[77] = config.mdts;
    put(&mut page, 80, &config.version.to_le_bytes());
    put(&mut page, 88, &config.rtd3e_us.to_le_bytes());
    put(&mut page, 92, &config.oaes.to_le_bytes());
    put(&mut page, 266, &config.hot.0.to_le_bytes());
    put(&mut page, 268, &config.hot.1.to_le_bytes());
    put(&mut page, 270, &config.mtfa.to_le_bytes());
    page[111] = config.kind;
    for (at, delay) in (128..).step_by(2).zip(config.retry_delays) {
        put(&mut page, at, &delay.to_le_bytes());
    }
    let oacs = u16::from(config.doorbell_buffer) << 8;
    put(&mut page, 256, &oacs.to_le_bytes());
    page[261] = u8::from(config.effects.is_some()) << 1;
    page[265] = u8::from(config.apsta);
    let (preferred, least, piece, pieces) = config.host_memory;
    put(&mut page, 272, &preferred.to_le_bytes());
    put(&mut page, 276, &least.to_le_bytes());
    put(&mut page, 332, &piece.to_le_bytes());
    put(&mut page, 336, &pieces.to_le_bytes());
    page[512] = config.sqes;
    page[513] = config.cqes;
    put(&mut page, 516, &config.nn.to_le_bytes());
    put(&mut page, 520, &config.oncs.to_le_bytes());
    page[525] = config.vwc;
    put(&mut page, 536, &config.sgls.to_le_bytes());
    page
}

pub fn namespace(config: &Config, ns: &Namespace) -> Vec<u8> {
    let mut page = vec![0; 4096];
    for at in [0, 8, 16] {
        put(&mut page, at, &ns.blocks.to_le_bytes());
    }
    // Four formats, of which the third is in use.
    page[25] = 3;
    page[26] = 2;
    page[29] = ns.protection;
    page[30] = ns.nmic;
    page[31] = config.rescap;
    put(&mut page, 46, &ns.noiob.to_le_bytes());
    page[99] = u8::from(ns.write_protected);
    put(&mut page, 104, &[0xa5; 16]);
    for (at, format) in [
        9u32 << 16,
        12 << 16,
        (u32::from(ns.lbads) << 16) | u32::from(ns.metadata),
        9 << 16,
    ]
    .iter()
    .enumerate()
    {
        put(&mut page, 128 + at * 4, &format.to_le_bytes());
    }
    page
}

pub fn active(config: &Config, above: u32) -> Vec<u8> {
    let all: Vec<u32> = match &config.active {
        Some(lie) => lie.clone(),
        None => {
            let ids = config.namespaces.iter().map(|ns| ns.nsid);
            ids.filter(|&nsid| nsid > above).collect()
        }
    };
    let mut page = vec![0; 4096];
    for (at, nsid) in all.iter().take(1024).enumerate() {
        put(&mut page, at * 4, &nsid.to_le_bytes());
    }
    page
}

pub fn descriptors(ns: &Namespace) -> Vec<u8> {
    let mut page = vec![0; 4096];
    // UUID, then the command set, then an unknown one.
    put(&mut page, 0, &[3, 16, 0, 0]);
    put(&mut page, 4, &[ns.nsid as u8; 16]);
    put(&mut page, 20, &[4, 1, 0, 0, ns.command_set]);
    put(&mut page, 25, &[77, 3, 0, 0, 1, 2, 3]);
    page
}

pub fn nvm_limits(config: &Config) -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[1] = config.wzsl;
    put(&mut page, 4, &config.dmrsl.to_le_bytes());
    page
}
