// SPDX-License-Identifier: GPL-2.0
//! HBAs that are known to do something wrong, and what they are spared: facts of `ahci.c` of Linux
//! 7.3 (its boards and their flags).
//!
//! | quirk | what is done |
//! | --- | --- |
//! | `dma32`, `dma43` | all memory is below 2^32, 2^43, whatever `CAP.S64A` says |
//! | `nomsi` | it interrupts by its pin |
//! | `hbanoncq` | commands are not queued, whatever `CAP.SNCQ` says |
//! | `hbancq` | commands are queued, whatever `CAP.SNCQ` says |
//! | `hbanodipm` | drives do not have the link sleep by themselves (DIPM) |
//! | `sect255` | a command is of 255 sectors at most |
//! | `ignifserr` | errors of the interface (`PxIS.IFS`) are not heeded |
//! | `pcs` | its reset turns ports off in configuration space: they are turned on again |
//! | `sataports` | ports of other kinds than SATA are left alone |
//! | `ackfirst` | `IS` is acknowledged before the ports are asked |
//! | `srst` | its ports come up by a software reset only, which hiops has not: it is not served |
//!
//! Left out, as what would trip over it is not done here: port multipliers and FIS-based switching,
//! ATAPI, notifications, DevSleep, auto-activation, and `PxSERR.ERR.E`, which is not looked at.
//! Left out, too: quirks of one make of machine, by name; and the port of an Avoton that stays off
//! after a COMRESET (`DET` 1), which comes back with the next bind.

use hal::{Messages, PciIds};

hal::quirk_set! {
    /// What an HBA is known to do wrong.
    pub struct Boards {
        /// Addresses of more than 32 bits come out wrong.
        DMA_32 = "dma32",
        /// Likewise of more than 43 bits.
        DMA_43 = "dma43",
        /// Messages are lost, or never sent.
        NO_MSI = "nomsi",
        /// Queued commands go wrong.
        NO_NCQ = "hbanoncq",
        /// It can queue commands, and does not say so.
        YES_NCQ = "hbancq",
        /// Drives may not ask for the link to sleep.
        NO_DIPM = "hbanodipm",
        /// Longer commands go wrong.
        SECT_255 = "sect255",
        /// `PxIS.IFS` is set without an error.
        IGNORE_IFS = "ignifserr",
        /// Its ports have switches in configuration space.
        PCS = "pcs",
        /// Not all of its ports are for SATA drives.
        SATA_PORTS = "sataports",
        /// `IS` is an edge for it.
        ACK_FIRST = "ackfirst",
        /// Its ports need a software reset.
        NEEDS_SRST = "srst",
    }
}

/// Functions of one vendor from the first ID to the last, and what is known of them.
type Row = (u16, u16, u16, Boards);

const ANY: (u16, u16) = (0, u16::MAX);

const LOONGSON: u16 = 0x0014;
const ATI: u16 = 0x1002;
const ST_MICRO: u16 = 0x104a;
const NVIDIA: u16 = 0x10de;
const VIA: u16 = 0x1106;
const MARVELL: u16 = 0x11ab;
const SAMSUNG: u16 = 0x144d;
const CAVIUM: u16 = 0x177d;
const JMICRON: u16 = 0x197b;
const ASMEDIA: u16 = 0x1b21;
const ENMOTUS: u16 = 0x1c44;
const INTEL: u16 = 0x8086;

const MV: Boards = Boards::NO_NCQ
    .with(Boards::NO_MSI)
    .with(Boards::SATA_PORTS)
    .with(Boards::ACK_FIRST);

const MCP: Boards = Boards::YES_NCQ.with(Boards::NO_DIPM);

const ROWS: &[Row] = &[
    // JMB582, JMB585; all of JMicron's
    (JMICRON, 0x0582, 0x0582, Boards::DMA_32),
    (JMICRON, 0x0585, 0x0585, Boards::DMA_32),
    (JMICRON, ANY.0, ANY.1, Boards::IGNORE_IFS),
    // ULi M5288
    (0x10b9, 0x5288, 0x5288, Boards::IGNORE_IFS),
    // ASM1060, ASM1061, ASM1062 and what is made of them
    (ASMEDIA, 0x0601, 0x0602, Boards::DMA_43),
    (ASMEDIA, 0x0611, 0x0612, Boards::DMA_43),
    (ASMEDIA, 0x0621, 0x0622, Boards::DMA_43),
    (ASMEDIA, 0x0624, 0x0624, Boards::DMA_43),
    // SB600
    (
        ATI,
        0x4380,
        0x4380,
        Boards::DMA_32.with(Boards::NO_MSI).with(Boards::SECT_255),
    ),
    // 88SE6121, 88SE6145
    (MARVELL, 0x6121, 0x6121, MV),
    (MARVELL, 0x6145, 0x6145, MV),
    // VT8251
    (VIA, 0x3349, 0x3349, Boards::NEEDS_SRST),
    (VIA, 0x6287, 0x6287, Boards::NEEDS_SRST),
    // MCP65, MCP67, MCP73
    (NVIDIA, 0x044c, 0x044f, MCP),
    (NVIDIA, 0x045c, 0x045f, MCP),
    (NVIDIA, 0x0550, 0x055b, MCP),
    (NVIDIA, 0x0580, 0x058f, MCP),
    (NVIDIA, 0x07f0, 0x07fb, MCP),
    // Annapurna Labs; SSDs of Samsung's that are their own HBA
    (0x1c36, 0x0031, 0x0031, Boards::NO_MSI),
    (SAMSUNG, 0x1600, 0x1600, Boards::NO_MSI),
    (SAMSUNG, 0xa800, 0xa800, Boards::NO_MSI),
];

/// Intel's with [`Boards::PCS`], from ICH6 to Cannon Lake and some later; from the first ID to the
/// last.
const WITH_PCS: &[(u16, u16)] = &[
    (0x02d3, 0x02d3),
    (0x02d7, 0x02d7),
    (0x06d6, 0x06d7),
    (0x0f22, 0x0f23),
    (0x1c02, 0x1c07),
    (0x1d02, 0x1d02),
    (0x1d04, 0x1d04),
    (0x1d06, 0x1d06),
    (0x1e02, 0x1e07),
    (0x1e0e, 0x1e0e),
    (0x1f22, 0x1f27),
    (0x1f2e, 0x1f2f),
    (0x1f32, 0x1f37),
    (0x1f3e, 0x1f3f),
    (0x22a3, 0x22a3),
    (0x2323, 0x2323),
    (0x23a3, 0x23a3),
    (0x2652, 0x2653),
    (0x2681, 0x2683),
    (0x27c1, 0x27c1),
    (0x27c3, 0x27c3),
    (0x27c5, 0x27c6),
    (0x2821, 0x2824),
    (0x2826, 0x2827),
    (0x2829, 0x282a),
    (0x282f, 0x282f),
    (0x2922, 0x2925),
    (0x2927, 0x2927),
    (0x2929, 0x292c),
    (0x292f, 0x292f),
    (0x294d, 0x294e),
    (0x34d3, 0x34d3),
    (0x3a05, 0x3a05),
    (0x3a22, 0x3a22),
    (0x3a25, 0x3a25),
    (0x3b22, 0x3b25),
    (0x3b29, 0x3b29),
    (0x3b2b, 0x3b2c),
    (0x3b2f, 0x3b2f),
    (0x43d4, 0x43d7),
    (0x4b63, 0x4b63),
    (0x502a, 0x502b),
    (0x5ae3, 0x5ae3),
    (0x8c02, 0x8c07),
    (0x8c0e, 0x8c0f),
    (0x8c82, 0x8c87),
    (0x8c8e, 0x8c8f),
    (0x8d02, 0x8d02),
    (0x8d04, 0x8d04),
    (0x8d06, 0x8d06),
    (0x8d0e, 0x8d0e),
    (0x8d62, 0x8d62),
    (0x8d64, 0x8d64),
    (0x8d66, 0x8d66),
    (0x8d6e, 0x8d6e),
    (0x9c02, 0x9c07),
    (0x9c0e, 0x9c0f),
    (0x9c83, 0x9c83),
    (0x9c85, 0x9c85),
    (0x9c87, 0x9c87),
    (0x9c8f, 0x9c8f),
    (0x9d03, 0x9d03),
    (0x9d05, 0x9d05),
    (0x9d07, 0x9d07),
    (0x9dd3, 0x9dd3),
    (0xa102, 0xa103),
    (0xa105, 0xa107),
    (0xa10f, 0xa10f),
    (0xa182, 0xa182),
    (0xa186, 0xa186),
    (0xa1d2, 0xa1d2),
    (0xa1d6, 0xa1d6),
    (0xa202, 0xa202),
    (0xa206, 0xa206),
    (0xa252, 0xa252),
    (0xa256, 0xa256),
    (0xa356, 0xa356),
    (0xa386, 0xa386),
];

/// Revisions of NVIDIA's first AHCI function that lose messages.
const NVIDIA_WITHOUT_MSI: [u8; 2] = [0xa1, 0xa2];

impl Boards {
    /// What is known of the function `ids`.
    pub fn of(ids: &PciIds) -> Self {
        let rows = ROWS
            .iter()
            .filter(|row| row.0 == ids.vendor && (row.1..=row.2).contains(&ids.device))
            .fold(Self::NONE, |sum, row| sum.with(row.3));
        let mut pcs = WITH_PCS.iter();
        let has_pcs =
            ids.vendor == INTEL && pcs.any(|(first, last)| (*first..=*last).contains(&ids.device));
        let of_nvidia = rows.has(Self::YES_NCQ) && NVIDIA_WITHOUT_MSI.contains(&ids.revision);
        let more = |is: bool, board: Self| if is { board } else { Self::NONE };
        rows.with(more(has_pcs, Self::PCS))
            .with(more(of_nvidia, Self::NO_MSI))
    }

    /// How many bits of an address it gets right, of one that says that it takes `said`.
    pub(crate) fn dma_bits(self, said: u8) -> u8 {
        if self.has(Self::DMA_32) {
            said.min(32)
        } else if self.has(Self::DMA_43) {
            said.min(43)
        } else {
            said
        }
    }

    /// How it may interrupt.
    pub const fn messages(self) -> Messages {
        match self.has(Self::NO_MSI) {
            true => Messages::NONE,
            false => Messages::ALL,
        }
    }

    /// Most sectors of 512 bytes of a command; 0: no limit.
    pub(crate) const fn sectors(self) -> u32 {
        match self.has(Self::SECT_255) {
            true => 255,
            false => 0,
        }
    }

    /// Those of `ports` that are for SATA drives.
    pub(crate) fn sata_ports(self, ports: u32, ids: &PciIds) -> u32 {
        match (self.has(Self::SATA_PORTS), ids.device) {
            (false, _) => ports,
            // 88SE6121: two, and one for PATA.
            (true, 0x6121) => ports & 0x3,
            (true, _) => ports & 0xf,
        }
    }

    /// Why it is not served, and what to do.
    pub fn refusal(self) -> Option<&'static str> {
        self.has(Self::NEEDS_SRST).then_some(
            "serving ports that need a software reset (leave this controller to the driver ahci)",
        )
    }
}

/// The BAR with the registers of the function `ids` (ABAR, AHCI 1.3.1 section 2.1.11).
pub fn bar(ids: &PciIds) -> u8 {
    match (ids.vendor, ids.device) {
        (ST_MICRO, 0xcc06) | (LOONGSON, 0x7a08) | (CAVIUM, 0xa01c) => 0,
        (ENMOTUS, 0x8000) => 2,
        (CAVIUM, 0xa084) => 4,
        _ => 5,
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn ids(vendor: u16, device: u16) -> PciIds {
        PciIds {
            vendor,
            device,
            ..PciIds::default()
        }
    }

    #[test]
    fn addresses_and_commands_end_where_the_board_gets_them_wrong() {
        let bits = |vendor, device, said| Boards::of(&ids(vendor, device)).dma_bits(said);
        assert_eq!(bits(0x197b, 0x0585, 64), 32);
        assert_eq!(bits(0x197b, 0x0582, 64), 32);
        assert_eq!(bits(0x1002, 0x4380, 64), 32);
        assert_eq!(Boards::of(&ids(0x1002, 0x4380)).sectors(), 255);
        assert_eq!(Boards::of(&ids(0x1002, 0x4391)).sectors(), 0);
        assert_eq!(bits(0x1b21, 0x0612, 64), 43);
        assert_eq!(bits(0x1b21, 0x0612, 32), 32);
        for (vendor, device) in [(0x197b, 0x2363), (0x1b21, 0x1166), (0x8086, 0x2922)] {
            assert_eq!(bits(vendor, device, 64), 64);
        }
    }

    #[test]
    fn ranges_end_where_they_do() {
        let of = |vendor, device| Boards::of(&ids(vendor, device));
        assert_eq!(of(0x8086, 0x2922), Boards::PCS);
        assert_eq!(of(0x8086, 0x2928), Boards::NONE);
        assert_eq!(of(0x8086, 0x19b0), Boards::NONE);
        assert_eq!(of(0x10de, 0x0550), MCP);
        assert_eq!(of(0x10de, 0x055c), Boards::NONE);
        assert_eq!(of(0x1022, 0x7901), Boards::NONE);
        let late = PciIds {
            revision: 0xa2,
            ..ids(0x10de, 0x044c)
        };
        assert_eq!(Boards::of(&late).messages(), Messages::NONE);
        let good = PciIds {
            revision: 0xa3,
            ..late
        };
        assert_eq!(Boards::of(&good).messages(), Messages::ALL);
    }

    #[test]
    fn other_ports_than_those_of_sata_are_left_alone() {
        let ports = |device| {
            let ids = ids(0x11ab, device);
            Boards::of(&ids).sata_ports(0xff, &ids)
        };
        assert_eq!((ports(0x6121), ports(0x6145)), (0x3, 0xf));
        let other = ids(0x8086, 0x2922);
        assert_eq!(Boards::of(&other).sata_ports(0xff, &other), 0xff);
    }

    #[test]
    fn who_needs_what_is_not_there_is_refused_with_the_way_out() {
        let refused = |vendor, device| Boards::of(&ids(vendor, device)).refusal();
        assert!(refused(0x1106, 0x3349).is_some_and(|why| why.contains("leave")));
        assert_eq!(refused(0x8086, 0x2922), None);
    }

    #[test]
    fn the_registers_are_behind_bar_5_but_for_some() {
        assert_eq!(bar(&ids(0x8086, 0x2922)), 5);
        assert_eq!(bar(&ids(0x1c44, 0x8000)), 2);
        assert_eq!(bar(&ids(0x177d, 0xa084)), 4);
        assert_eq!(bar(&ids(0x0014, 0x7a08)), 0);
    }
}
