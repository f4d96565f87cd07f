// SPDX-License-Identifier: GPL-2.0
//! BIOS/OS hand-off (AHCI 1.3.1 section 10.6): a firmware that uses the HBA itself lets go of it.

use crate::regs::{self, BOHC, BOHC_BB, BOHC_BOS, BOHC_OOS, CAP2, CAP2_BOH};
use hal::{Error, Mmio, Platform};

/// How long the firmware may take to let go, or to say that it is busy doing so.
const HANDOFF_US: u64 = 25_000;
/// How long it may be busy.
const BUSY_US: u64 = 2_000_000;
/// The pause between two looks.
const PAUSE_US: u64 = 1_000;

/// Takes the HBA over. A firmware that does not let go in its time has lost it: the reset that
/// follows takes it away.
pub(crate) fn take_over<P: Platform>(platform: &P, mmio: &impl Mmio) -> Result<(), Error> {
    if regs::read(mmio, CAP2)? & CAP2_BOH == 0 {
        return Ok(());
    }
    let bohc = regs::read(mmio, BOHC)?;
    if bohc & BOHC_BOS == 0 {
        return Ok(());
    }
    mmio.write32(BOHC, bohc | BOHC_OOS);
    let start = platform.now_us();
    loop {
        let waited = platform.now_us().saturating_sub(start);
        let bohc = regs::read(mmio, BOHC)?;
        // TIMEOUT: 25 ms, and two seconds for one that says it is busy (10.6.3).
        let limit = match bohc & BOHC_BB {
            0 => HANDOFF_US,
            _ => BUSY_US,
        };
        if bohc & BOHC_BOS == 0 || waited >= limit {
            return Ok(());
        }
        platform.sleep_us(PAUSE_US);
    }
}
