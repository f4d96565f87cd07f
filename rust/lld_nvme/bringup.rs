// SPDX-License-Identifier: GPL-2.0
//! Disabling, enabling and shutting down (Base 2.0 sections 3.5 and 3.6), each bounded by what the
//! controller says it needs.

use crate::regs::{
    self, Cap, ACQ, AQA, ASQ, CC, CC_EN, CC_SHN, CC_SHN_NORMAL, CRTO, CSTS, CSTS_CFS, CSTS_RDY,
    CSTS_SHST, CSTS_SHST_DONE,
};
use hal::{Error, Mmio, Platform};

/// The first and the longest pause between two looks at a register, in microseconds.
const PAUSE_US: (u64, u64) = (50, 5_000);
/// The least time that anything is given: `CAP.TO` counts half seconds, and 0 of them is nobody's
/// truth.
const LEAST_US: u64 = 500_000;
/// Bounds of a shutdown, whatever RTD3E says.
const SHUTDOWN_US: (u64, u64) = (5_000_000, 60_000_000);

/// The admin queues, as registers want them.
pub(crate) struct AdminBase {
    pub(crate) sq: u64,
    pub(crate) cq: u64,
    /// Entries of each.
    pub(crate) entries: u16,
}

/// Whether a controller that is being enabled gets its time to be ready before it is disabled: what
/// clearing EN does before RDY is set is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It gets its time; one that never gets there is disabled all the same.
    Full,
    /// It has had it.
    Over,
}

/// `CC.EN = 0`, until `CSTS.RDY` says so: afterwards the controller touches no memory. For
/// `delay_us` it is not even asked.
pub(crate) fn disable<P: Platform>(
    platform: &P,
    mmio: &impl Mmio,
    cap: Cap,
    patience: Patience,
    delay_us: u64,
) -> Result<(), Error> {
    let limit = ready_us(mmio, cap)?;
    let cc = regs::read(mmio, CC)?;
    if cc & CC_EN != 0 {
        let csts = regs::read(mmio, CSTS)?;
        let settled = csts & (CSTS_RDY | CSTS_CFS | CSTS_SHST) != 0;
        if patience == Patience::Full && !settled {
            if let Err(Error::Gone) = wait(platform, mmio, CSTS_RDY, CSTS_RDY, limit) {
                return Err(Error::Gone);
            }
        }
        mmio.write32(CC, cc & !(CC_EN | CC_SHN));
    }
    // Whoever cleared it, a moment ago perhaps.
    if delay_us != 0 {
        platform.sleep_us(delay_us);
    }
    wait(platform, mmio, CSTS_RDY, 0, limit)?;
    // Zeroes, as of a device whose memory space is off, would have said the same of one that runs.
    match Cap::read(mmio)? {
        Cap(0) => Err(Error::Gone),
        _ => Ok(()),
    }
}

/// Gives a disabled controller its admin queues and enables it.
pub(crate) fn enable<P: Platform>(
    platform: &P,
    mmio: &impl Mmio,
    cap: Cap,
    page_shift: u8,
    admin: &AdminBase,
) -> Result<(), Error> {
    let limit = ready_us(mmio, cap)?;
    let size = u32::from(admin.entries.saturating_sub(1));
    mmio.write32(AQA, (size << 16) | size);
    mmio.write64(ASQ, admin.sq);
    mmio.write64(ACQ, admin.cq);
    mmio.write32(CC, regs::cc_enabled(page_shift, cap.has_command_sets()));
    wait(platform, mmio, CSTS_RDY, CSTS_RDY, limit)
}

/// A normal shutdown: the device makes its data and its tables durable.
pub(crate) fn shutdown<P: Platform>(
    platform: &P,
    mmio: &impl Mmio,
    rtd3e_us: u32,
) -> Result<(), Error> {
    let cc = regs::read(mmio, CC)?;
    mmio.write32(CC, (cc & !CC_SHN) | CC_SHN_NORMAL);
    // TIMEOUT: RTD3E, which many devices don't report and some underestimate.
    let limit = u64::from(rtd3e_us).clamp(SHUTDOWN_US.0, SHUTDOWN_US.1);
    wait(platform, mmio, CSTS_SHST, CSTS_SHST_DONE, limit)
}

/// The status as an answer: is it there, and well?
pub(crate) fn alive(mmio: &impl Mmio) -> Result<(), Error> {
    match regs::read(mmio, CSTS)? {
        csts if csts & CSTS_CFS != 0 => Err(Error::Fatal),
        _ => Ok(()),
    }
}

/// How long `CSTS.RDY` may take to change.
fn ready_us(mmio: &impl Mmio, cap: Cap) -> Result<u64, Error> {
    let mut limit = cap.timeout_us().max(LEAST_US);
    if cap.has_crto() {
        // CRWMT, the time until it is ready with media: half seconds in 16 bits. TO stops at 127 s,
        // this one goes on.
        let crwmt = regs::read(mmio, CRTO)? & 0xffff;
        limit = limit.max(u64::from(crwmt).saturating_mul(500_000));
    }
    Ok(limit)
}

/// Sleeps until `CSTS & mask == value`, for `limit_us` at most.
fn wait<P: Platform>(
    platform: &P,
    mmio: &impl Mmio,
    mask: u32,
    value: u32,
    limit_us: u64,
) -> Result<(), Error> {
    let start = platform.now_us();
    let mut pause = PAUSE_US.0;
    loop {
        // The clock before the register: a late wake-up is not the device's fault.
        let waited = platform.now_us().saturating_sub(start);
        let csts = regs::read(mmio, CSTS)?;
        if csts & mask == value {
            return Ok(());
        }
        // Waiting for RDY to rise is vain after a fatal error; for it to fall it is what helps.
        if csts & CSTS_CFS != 0 && value & CSTS_RDY != 0 {
            return Err(Error::Fatal);
        }
        if waited >= limit_us {
            return Err(Error::Timeout);
        }
        platform.sleep_us(pause);
        pause = pause.saturating_mul(2).min(PAUSE_US.1);
    }
}
