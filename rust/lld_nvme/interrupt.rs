// SPDX-License-Identifier: GPL-2.0
//! The interrupt mask (Base 2.0 sections 3.1.3.3 and 3.1.3.4), which only pins need.
//!
//! A message is an edge: whoever gets one and can't drain loses nothing. A pin is a level that
//! stays up as long as any completion queue has entries, so a handler that can't drain at once
//! (another context holds the drain token) would be called for ever, on the very CPU whose
//! interrupted thread holds it. Therefore a pin is masked when it fires and unmasked when a drain
//! ends.
//!
//! With MSI-X these registers must not be touched.

use crate::regs::{INTMC, INTMS};
use hal::Mmio;

/// Silences `vector`.
pub(crate) fn mask(mmio: &impl Mmio, vector: u16) {
    mmio.write32(INTMS, bit(vector));
}

/// Lets `vector` interrupt.
pub(crate) fn unmask(mmio: &impl Mmio, vector: u16) {
    mmio.write32(INTMC, bit(vector));
}

fn bit(vector: u16) -> u32 {
    1u32.checked_shl(u32::from(vector)).unwrap_or(0)
}
