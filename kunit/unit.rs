// SPDX-License-Identifier: GPL-2.0
//! What several KUnit suites have for a disk.

use hal::{Topology, Unit, UnitIds, UnitKind};

/// A disk of blocks of 4 KiB with a write cache.
pub(crate) fn unit() -> Unit {
    Unit {
        kind: UnitKind::Namespace { vendor: 0x1b36 },
        id: 3,
        block_shift: 12,
        physical_shift: 12,
        blocks: 1000,
        write_cache: true,
        fua: true,
        discard: None,
        max_write_zeroes: 0,
        topology: Topology::default(),
        read_only: false,
        rotational: false,
        ids: UnitIds::default(),
        serial: *b"S1                  ",
        model: [b' '; 40],
        firmware: *b"1\n\xff     ",
    }
}
