// SPDX-License-Identifier: GPL-2.0
//! The RAM disks that the module's parameters ask for.

use crate::params::{self, in_range};
use hal::Error;
use kernel::prelude::*;
use kglue::adapter::Begin;
use kglue::params::numbers;
use kglue::ram::RamDisk;
use lld_ram::{Answers, Blocks, Config, Fill, Holes, Interface, Latency, MOST};

const US: u64 = 1000;

/// How they take commands in. Blocks have times of their own: those of the other protocol are
/// refused then.
fn interface() -> Result<Interface, Error> {
    if in_range("ram_protocol", numbers().ram_protocol, 0..=1)? == 0 {
        return Ok(Interface::Queue);
    }
    for (name, value) in [
        ("ram_latency_max_us", numbers().ram_latency_max_us),
        ("ram_write_latency_us", numbers().ram_write_latency_us),
        ("ram_link_mb_s", numbers().ram_link_mb_s),
    ] {
        if value != 0 {
            pr_err!(
                "{}={} is for ram_protocol=queue: blocks have ram_blocks_process_ns, \
                 ram_blocks_read_mb_s and ram_blocks_write_mb_s\n",
                name,
                value
            );
            return Err(Error::Invalid);
        }
    }
    let ns = |name, value| in_range(name, value, 0..=1_000_000_000);
    let mb_s = |name, value| in_range(name, value, 1..=1_000_000);
    let most = in_range(
        "ram_blocks_most",
        numbers().ram_blocks_most,
        1..=MOST.into(),
    )?;
    Ok(Interface::Blocks(Blocks {
        // CAST: at most 64.
        most: most as u16,
        fill: match in_range("ram_blocks_full", numbers().ram_blocks_full, 0..=1)? {
            0 => Fill::Any,
            _ => Fill::Full,
        },
        answers: match in_range("ram_blocks_answers", numbers().ram_blocks_answers, 0..=2)? {
            0 => Answers::Block,
            1 => Answers::Each,
            _ => Answers::EachByItsOwn,
        },
        fetch_ns: ns("ram_blocks_fetch_ns", numbers().ram_blocks_fetch_ns)?,
        fetch_each_ns: ns(
            "ram_blocks_fetch_each_ns",
            numbers().ram_blocks_fetch_each_ns,
        )?,
        process_ns: ns("ram_blocks_process_ns", numbers().ram_blocks_process_ns)?,
        dma_mb_s: [
            mb_s("ram_blocks_read_mb_s", numbers().ram_blocks_read_mb_s)?,
            mb_s("ram_blocks_write_mb_s", numbers().ram_blocks_write_mb_s)?,
        ],
        answer_ns: ns("ram_blocks_answer_ns", numbers().ram_blocks_answer_ns)?,
        answer_each_ns: ns(
            "ram_blocks_answer_each_ns",
            numbers().ram_blocks_answer_each_ns,
        )?,
        link_ns: ns("ram_blocks_link_ns", numbers().ram_blocks_link_ns)?,
    }))
}

fn config() -> Result<Config, Error> {
    let least = in_range("ram_latency_us", numbers().ram_latency_us, 0..=10_000_000)?;
    let most = in_range(
        "ram_latency_max_us",
        numbers().ram_latency_max_us,
        0..=10_000_000,
    )?;
    let write = in_range(
        "ram_write_latency_us",
        numbers().ram_write_latency_us,
        0..=10_000_000,
    )?;
    let link_mb_s = in_range("ram_link_mb_s", numbers().ram_link_mb_s, 0..=1_000_000)?;
    let size = in_range("ram_size_mb", numbers().ram_size_mb, 1..=1 << 20)?;
    let block: u32 = numbers().ram_block_size;
    if !block.is_power_of_two() {
        pr_err!("ram_block_size={} is not a power of two\n", block);
        return Err(Error::Invalid);
    }
    let block = in_range("ram_block_size", block, 512..=4096)?;
    let latency = if most > least {
        Latency::Between(
            u64::from(least).saturating_mul(US),
            u64::from(most).saturating_mul(US),
        )
    } else {
        Latency::Fixed(u64::from(least).saturating_mul(US))
    };
    // CAST: all of them are in ranges below 65,536.
    Ok(Config {
        queues: in_range("ram_queues", numbers().ram_queues, 1..=64)? as u16,
        tags: in_range("ram_tags", numbers().ram_tags, 1..=4096)? as u16,
        interface: interface()?,
        channels: in_range("ram_channels", numbers().ram_channels, 1..=4096)? as u16,
        latency,
        write_latency: (write != 0).then(|| Latency::Fixed(u64::from(write).saturating_mul(US))),
        link_mb_s,
        holes: match in_range("ram_holes", numbers().ram_holes, 0..=2)? {
            0 => Holes::No,
            1 => Holes::Left,
            _ => Holes::Shifted,
        },
        seed: numbers().ram_seed,
        bytes: u64::from(size) << 20,
        block_shift: block.trailing_zeros() as u8,
    })
}

/// Makes them.
pub(crate) fn disks(begin: Begin) -> Result<KVec<RamDisk>, Error> {
    let count = in_range("ram_disks", numbers().ram_disks, 0..=64)?;
    let timeout = in_range("ram_timeout_ms", numbers().ram_timeout_ms, 100..=3_600_000)?;
    let config = config()?;
    let poll_queues = params::poll_queues()?;
    let mut disks = KVec::with_capacity(count as usize, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
    for number in 0..count {
        let disk = RamDisk::new(number, config, timeout, begin, poll_queues)?;
        let faults = disk.faults();
        faults.fail.one_in(numbers().ram_fail);
        faults.drop.one_in(numbers().ram_drop);
        faults.hang.one_in(numbers().ram_stick);
        faults.duplicate.one_in(numbers().ram_duplicate);
        faults.lie.one_in(numbers().ram_lie);
        faults.reorder.one_in(numbers().ram_reorder);
        disks.push(disk, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
    }
    Ok(disks)
}
