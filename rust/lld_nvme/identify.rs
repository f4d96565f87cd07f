// SPDX-License-Identifier: GPL-2.0
//! What Identify returns (Base 2.0 section 5.17, NVM Command Set 1.0 section 4.1.5), decoded field
//! by field from memory that the device wrote. Each field is read once.

use crate::heat::Bounds;
use crate::host_memory::Appetite;
use crate::status::RetryDelays;
use hal::{DmaMem, UnitIds};

/// Bytes of every Identify data structure.
pub(crate) const BYTES: usize = 4096;
// It fits the smallest page.
const _: () = assert!(BYTES <= 4096);
/// Most namespaces of an active list.
pub(crate) const LIST_LEN: usize = BYTES / 4;

/// Controller or Namespace Structure: which structure is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cns {
    Namespace = 0x00,
    Controller = 0x01,
    ActiveNamespaces = 0x02,
    NamespaceDescriptors = 0x03,
    CommandSetController = 0x06,
}

/// A structure in DMA memory.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, D> {
    pub(crate) memory: &'a D,
    /// Where it begins.
    pub(crate) base: usize,
}

impl<D: DmaMem> View<'_, D> {
    pub(crate) fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory
            .read_bytes(self.base.wrapping_add(at), &mut bytes);
        bytes
    }

    pub(crate) fn u8(&self, at: usize) -> u8 {
        u8::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }
}

/// How a controller takes SGLs (SGLS, bits 1:0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sgls {
    No,
    Any,
    Dword,
}

impl Sgls {
    /// Bits that a segment's address and length must not have; `None`: no SGLs.
    pub(crate) const fn align(self) -> Option<u64> {
        match self {
            Self::No => None,
            Self::Any => Some(0),
            Self::Dword => Some(3),
        }
    }
}

/// Identify Controller (figure 275), as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ControllerId {
    /// The PCI vendor, as the controller says.
    pub(crate) vendor: u16,
    pub(crate) serial: [u8; 20],
    pub(crate) model: [u8; 40],
    pub(crate) firmware: [u8; 8],
    /// The NVM subsystem has more than one port, or more than one controller (CMIC).
    pub(crate) has_siblings: bool,
    /// Most data of a command, log2 of smallest pages; 0: no limit.
    pub(crate) mdts: u8,
    /// Microseconds that a shutdown may take; 0: not said.
    pub(crate) rtd3e_us: u32,
    /// The optional events that it reports (OAES).
    pub(crate) events: u32,
    /// Most tenths of a second for which it takes no commands while it activates firmware; 0: not
    /// said.
    pub(crate) mtfa: u16,
    /// Autonomous power state transitions are there.
    pub(crate) has_apst: bool,
    /// 0 (not said) or 1: an I/O controller.
    pub(crate) kind: u8,
    /// How hot it may be.
    pub(crate) heat: Bounds,
    /// The memory that it wants.
    pub(crate) appetite: Appetite,
    /// CRDT1 to CRDT3; all zero: it asks for no delays.
    pub(crate) retry_delays: RetryDelays,
    pub(crate) has_doorbell_buffer: bool,
    /// The log page Commands Supported and Effects is there (LPA).
    pub(crate) has_effects_log: bool,
    /// Submission and completion entries of 64 and 16 bytes are taken.
    pub(crate) has_entry_sizes: bool,
    /// The largest NSID.
    pub(crate) namespaces: u32,
    pub(crate) has_discard: bool,
    pub(crate) has_write_zeroes: bool,
    pub(crate) has_reservations: bool,
    pub(crate) write_cache: bool,
    pub(crate) sgls: Sgls,
}

impl ControllerId {
    pub(crate) fn decode<D: DmaMem>(at: &View<'_, D>) -> Self {
        let (sqes, cqes) = (at.u8(512), at.u8(513));
        let oncs = at.u16(520);
        Self {
            vendor: at.u16(0),
            serial: at.bytes(4),
            model: at.bytes(24),
            firmware: at.bytes(64),
            has_siblings: at.u8(76) & 0b11 != 0,
            mdts: at.u8(77),
            rtd3e_us: at.u32(88),
            events: at.u32(92),
            mtfa: at.u16(270),
            has_apst: at.u8(265) & 1 != 0,
            kind: at.u8(111),
            heat: Bounds {
                warning: at.u16(266),
                critical: at.u16(268),
            },
            appetite: Appetite::new(at.u32(272), at.u32(276), at.u32(332), at.u16(336)),
            retry_delays: [at.u16(128), at.u16(130), at.u16(132)],
            has_doorbell_buffer: at.u16(256) & (1 << 8) != 0,
            has_effects_log: at.u8(261) & (1 << 1) != 0,
            has_entry_sizes: (sqes & 0xf) <= 6
                && (sqes >> 4) >= 6
                && (cqes & 0xf) <= 4
                && (cqes >> 4) >= 4,
            namespaces: at.u32(516),
            has_discard: oncs & (1 << 2) != 0,
            has_write_zeroes: oncs & (1 << 3) != 0,
            has_reservations: oncs & (1 << 5) != 0,
            write_cache: at.u8(525) & 1 != 0,
            sgls: match at.u32(536) & 3 {
                1 => Sgls::Any,
                2 => Sgls::Dword,
                _ => Sgls::No,
            },
        }
    }
}

/// Limits of commands without data (Identify I/O Command Set specific Controller, NVM: figure 118);
/// 0: not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NvmLimits {
    /// Most ranges of a Dataset Management.
    pub(crate) dmrl: u8,
    /// Most blocks of one Dataset Management range.
    pub(crate) dmrsl: u32,
    /// Most data of a Write Zeroes, log2 of smallest pages.
    pub(crate) wzsl: u8,
}

impl NvmLimits {
    pub(crate) fn decode<D: DmaMem>(at: &View<'_, D>) -> Self {
        Self {
            wzsl: at.u8(1),
            dmrl: at.u8(3),
            dmrsl: at.u32(4),
        }
    }
}

/// An identifier, unless it is all zeroes, which means that there is none.
pub(crate) fn named<const N: usize>(id: [u8; N]) -> Option<[u8; N]> {
    (id != [0; N]).then_some(id)
}

/// What the Namespace Identification Descriptors say (Base 2.0 figure 282).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptors {
    pub(crate) ids: UnitIds,
    /// Command Set Identifier; 0 is NVM.
    pub(crate) command_set: u8,
}

impl Descriptors {
    /// Walks the list: each descriptor is type, length, two reserved bytes, then its value; length
    /// 0 ends it.
    pub(crate) fn decode<D: DmaMem>(at: &View<'_, D>) -> Self {
        let mut found = Self::default();
        let mut place = 0usize;
        while place <= BYTES - 4 {
            let (kind, length) = (at.u8(place), usize::from(at.u8(place.wrapping_add(1))));
            let value = place.wrapping_add(4);
            let next = value.wrapping_add(length);
            if length == 0 || next > BYTES {
                break;
            }
            match (kind, length) {
                (1, 8) => found.ids.eui64 = named(at.bytes(value)),
                (2, 16) => found.ids.nguid = named(at.bytes(value)),
                (3, 16) => found.ids.uuid = named(at.bytes(value)),
                (4, 1) => found.command_set = at.u8(value),
                _ => {}
            }
            place = next;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    use hal::mock::{MockDma, MockPlatform};
    use hal::Platform;

    /// A structure with these 32-bit words at these places.
    fn structure(words: &[(usize, u32)]) -> MockDma {
        let memory = MockPlatform::new().dma(2 * BYTES).unwrap();
        for (at, word) in words {
            memory.write32(BYTES + at, *word);
        }
        memory
    }

    #[test]
    fn descriptors_end_where_the_structure_does() {
        let decode = |words: &[(usize, u32)]| {
            let memory = structure(words);
            Descriptors::decode(&View {
                memory: &memory,
                base: BYTES,
            })
        };
        assert_eq!(decode(&[]), Descriptors::default());
        // EUI-64 of wrong length, then a command set.
        let found = decode(&[(0, (4 << 8) | 1), (4, 7), (8, (1 << 8) | 4), (12, 2)]);
        assert_eq!((found.ids.eui64, found.command_set), (None, 2));
        // A value that would reach beyond.
        let mut words: Vec<(usize, u32)> = Vec::new();
        words.extend((0..15).map(|n| (n * 256, (252 << 8) | 9)));
        words.push((15 * 256, (248 << 8) | 9));
        words.push((4092, (1 << 8) | 4));
        assert_eq!(decode(&words).command_set, 0);
    }
}
