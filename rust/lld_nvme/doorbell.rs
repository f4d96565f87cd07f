// SPDX-License-Identifier: GPL-2.0
//! Doorbells: registers (PCIe Transport 1.0 section 3.1.2), or, where the controller has them,
//! words in memory that spare most of the register writes (Base 2.0 section 5.8 and annex B.5).

use crate::regs::DOORBELLS;
use cell::sync::{fence, Ordering};
use hal::{DmaMem, Mmio};

/// Shadow doorbells of all queues: as many bytes of values as there are of doorbells, then as many
/// of EventIdx.
#[derive(Clone)]
pub(crate) struct Shadow<D> {
    /// Both buffers.
    pub(crate) memory: D,
    /// Where the EventIdx buffer begins; also the length of each.
    pub(crate) events: usize,
}

/// What a queue rings.
pub(crate) struct Doorbells<D, M> {
    mmio: M,
    shadow: Option<Shadow<D>>,
}

impl<D: DmaMem, M: Mmio> Doorbells<D, M> {
    pub(crate) fn new(mmio: M, shadow: Option<Shadow<D>>) -> Self {
        Self { mmio, shadow }
    }

    /// The registers, for the interrupt mask.
    pub(crate) fn mmio(&self) -> &M {
        &self.mmio
    }

    /// Moves the doorbell at byte `at` of the doorbells from `old` to `new`. Returns how many
    /// registers were written: 0 or 1.
    #[inline]
    pub(crate) fn ring(&self, at: usize, old: u16, new: u16) -> usize {
        if let Some(shadow) = &self.shadow {
            // The entries are there before the doorbell that announces them.
            fence(Ordering::Release);
            shadow.memory.write32(at, u32::from(new));
            // Either this CPU sees the EventIdx that the device wrote before it looked for the last
            // time, or the device sees the value.
            fence(Ordering::SeqCst);
            let event = shadow.memory.read32(at.wrapping_add(shadow.events));
            // CAST: an index is 16 bits; what a device wrote above them changes nothing.
            if !crossed(event as u16, old, new) {
                return 0;
            }
        }
        self.mmio
            .write32(DOORBELLS.wrapping_add(at), u32::from(new));
        1
    }
}

/// The EventIdx rule: whether moving from `old` to `new` passed `event`, at which the device wants
/// the doorbell.
///
/// In 16-bit arithmetic, which also holds for a queue index that wraps earlier: the values it
/// leaves out are passed at once.
#[inline]
const fn crossed(event: u16, old: u16, new: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, step by step: some value in `old..new` of a ring of `entries` is `event`.
    fn passes(event: u16, old: u16, new: u16, entries: u16) -> bool {
        let mut at = old;
        while at != new {
            if at == event {
                return true;
            }
            at = (at + 1) % entries;
        }
        false
    }

    #[test]
    fn crossing_agrees_with_walking_the_ring() {
        for entries in [2, 3, 8, 13] {
            for (old, new, event) in (0..entries)
                .flat_map(|old| (0..entries).map(move |new| (old, new)))
                .flat_map(|(old, new)| (0..entries).map(move |event| (old, new, event)))
            {
                assert_eq!(
                    crossed(event, old, new),
                    passes(event, old, new, entries),
                    "event {event}, from {old} to {new} of {entries}"
                );
            }
        }
    }
}
