// SPDX-License-Identifier: GPL-2.0
//! What some of a disk's attributes say, word for word.

use crate::blk::lane::Sums;
use crate::blk::owner::ControllerCounts;
use crate::text::Hex;
use core::fmt::{self, Write};
use engine::Mode;
use hal::{Unit, UnitIds, UnitKind};

/// The mode of that word, or of the number that it has as the module's parameter.
pub(crate) fn mode_of(text: &[u8]) -> Option<Mode> {
    match text {
        b"irq" | b"0" => Some(Mode::Irq),
        b"poll" | b"1" => Some(Mode::Poll),
        b"hybrid" | b"2" => Some(Mode::Hybrid),
        _ => None,
    }
}

/// The lines of `stats`: name, blank, value.
pub(crate) fn write_stats(
    to: &mut impl Write,
    sums: &Sums,
    counts: &ControllerCounts,
) -> fmt::Result {
    let [irq, lazy, coop, poll, swept] = sums.completed;
    // What nobody came for would have been the interrupt's, or is for want of an answer.
    let irq = irq.wrapping_add(swept);
    let completed = irq.wrapping_add(lazy).wrapping_add(coop).wrapping_add(poll);
    let [hit, late, vain, woken] = counts.naps;
    let naps = hit
        .wrapping_add(late)
        .wrapping_add(vain)
        .wrapping_add(woken);
    let lines: [(&str, u64); 26] = [
        ("submitted", sums.submitted),
        ("completed", completed),
        ("completed_irq", irq),
        ("completed_lazy", lazy),
        ("completed_coop", coop),
        ("completed_poll", poll),
        ("fifo_deferred", sums.deferred),
        ("interrupts", counts.interrupts),
        ("doorbell_writes", counts.doorbell_writes),
        ("errors", sums.errors),
        ("retried", sums.retried),
        ("timeouts", sums.timeouts),
        ("resets", counts.resets),
        ("max_irq_ns", counts.max_irq_ns),
        ("max_tick_ns", counts.max_tick_ns),
        ("ticks", counts.ticks),
        ("turns", counts.turns),
        ("missed_interrupts", counts.missed),
        ("aborts", counts.aborts),
        ("swept", swept),
        ("naps", naps),
        ("naps_hit", hit),
        ("naps_late", late),
        ("naps_vain", vain),
        ("naps_woken", woken),
        ("resets_asked", counts.asked),
    ];
    (lines.iter()).try_for_each(|(name, value)| writeln!(to, "{name} {value}"))
}

/// What is left of a name that blanks and zeroes pad.
fn trimmed(mut name: &[u8]) -> &[u8] {
    while let Some((b' ' | 0, before)) = name.split_last() {
        name = before;
    }
    name
}

/// The name of a disk that no other has, as the in-tree NVMe driver writes it: the strongest of its
/// `ids`, or what it is called and numbered.
pub(crate) fn write_wwid(to: &mut impl Write, unit: &Unit, ids: &UnitIds) -> fmt::Result {
    if let Some(uuid) = &ids.uuid {
        let part = |from: usize, to: usize| Hex(uuid.get(from..to).unwrap_or_default());
        let (a, b, c, d, e) = (
            part(0, 4),
            part(4, 6),
            part(6, 8),
            part(8, 10),
            part(10, 16),
        );
        writeln!(to, "uuid.{a}-{b}-{c}-{d}-{e}")
    } else if let Some(nguid) = &ids.nguid {
        writeln!(to, "eui.{}", Hex(nguid))
    } else if let Some(eui64) = &ids.eui64 {
        writeln!(to, "eui.{}", Hex(eui64))
    } else if let Some(wwn) = ids.wwn {
        writeln!(to, "naa.{wwn:016x}")
    } else {
        match unit.kind {
            UnitKind::Namespace { vendor } => write!(to, "nvme.{vendor:04x}-")?,
            UnitKind::Drive | UnitKind::Ram => to.write_str("hiops.")?,
        }
        let (serial, model) = (Hex(trimmed(&unit.serial)), Hex(trimmed(&unit.model)));
        writeln!(to, "{serial}-{model}-{:08x}", unit.id)
    }
}
