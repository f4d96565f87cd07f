// SPDX-License-Identifier: GPL-2.0
//! What SATA drives and HBAs are known to do wrong, what some drives are known to do right, and
//! what follows.
//!
//! # Drives
//! | quirk | what is done |
//! | --- | --- |
//! | `disable` | it is no disk, and is left alone |
//! | `noncq`, `noncqonati` | commands are not queued; of the latter, behind an HBA of ATI's |
//! | `noncqtrim` | TRIM is not queued |
//! | `notrim` | there is no TRIM |
//! | `maxtrim128m` | a TRIM is of 128 MiB at most |
//! | `maxsec1024`, `maxsec8191` | a command is of that many sectors at most |
//! | `nofua` | no FUA, whatever `ahci_fua` says |
//! | `nolpm` | the link stays awake, whatever the firmware of the machine has set |
//! | `wdbrokenlpm` | the link of a drive of 1.5 Gbit/s stays awake |
//! | `nolpmonatiandamd` | the link stays awake behind an HBA of ATI's or AMD's |
//! | `1.5gbps` | the link is limited to that |
//!
//! Known good, and so trusted with more than an unlisted drive: `ncqtrim` may queue TRIM, if it
//! says that it can; `zeroaftertrim`, whose TRIM is known to do what it says, may be told of more
//! than 128 MiB at once. Both give way to what is known bad.
//!
//! *An unlisted drive* writes without FUA unless `ahci_fua` is 1, is not told to queue TRIM, and is
//! told of 128 MiB of it at most: firmwares have lost data by the first two and hung by the third.
//!
//! These have no effect, as what would trip over them is not done here; a drive that has them is
//! shown all the same. `brokenhpa`: a host protected area is never looked for. `brokenfpdmaaa`:
//! auto-activation is never enabled. `nodmalog`, `nologdir`: logs are read by PIO, and the
//! directory of logs is not. `firmwarewarn`: newer firmware is to be had, and needed.
//!
//! Which drive is known for what are facts of libata (`__ata_dev_quirks` and
//! `__ata_dev_max_sec_quirks` of Linux 7.3), in two tables of our own: of [`KNOWN_BAD`] all rows
//! count that match, of [`KNOWN_GOOD`] the first. What is not taken over is of PATA and ATAPI
//! devices, which are not served.
//!
//! # HBAs
//! Facts of `ahci.c` of Linux 7.3 (its boards and their flags).
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

use crate::identify::DriveId;
use crate::regs::{Cap, IS_IF};

hal::quirk_set! {
    /// What a drive is known for. The names are libata's, as far as it has them.
    pub(crate) struct DriveQuirks {
        /// It is no disk, but a box that shows itself as one.
        DISABLE = "disable",
        /// Native command queuing is broken, or slow.
        NO_NCQ = "noncq",
        /// Native command queuing is broken behind an HBA of ATI's.
        NO_NCQ_ON_ATI = "noncqonati",
        /// Newer firmware mends it.
        FIRMWARE_WARN = "firmwarewarn",
        /// Queued TRIM corrupts data, or hangs.
        NO_NCQ_TRIM = "noncqtrim",
        /// TRIM corrupts data, or hangs.
        NO_TRIM = "notrim",
        /// A long TRIM hangs it.
        MAX_TRIM_128M = "maxtrim128m",
        /// A longer command corrupts data, or is not answered.
        MAX_SEC_1024 = "maxsec1024",
        /// A longer command corrupts data, or is not answered.
        MAX_SEC_8191 = "maxsec8191",
        /// FUA is not honoured, or refused.
        NO_FUA = "nofua",
        /// It is lost when its link sleeps.
        NO_LPM = "nolpm",
        /// It is lost when its link sleeps, if it is one of 1.5 Gbit/s.
        WD_BROKEN_LPM = "wdbrokenlpm",
        /// It is lost when its link sleeps, behind an HBA of ATI's or AMD's.
        NO_LPM_ON_ATI_AND_AMD = "nolpmonatiandamd",
        /// It is lost at higher speeds of the link.
        GEN1 = "1.5gbps",
        /// READ NATIVE MAX hangs it, or unlocks what can't be read.
        BROKEN_HPA = "brokenhpa",
        /// Auto-activation of data transfers can't be enabled.
        BROKEN_FPDMA_AA = "brokenfpdmaaa",
        /// READ LOG DMA EXT hangs it.
        NO_DMA_LOG = "nodmalog",
        /// Reading the directory of logs hangs it.
        NO_LOG_DIR = "nologdir",
        /// Known good: what was trimmed reads as zeroes, if it says so.
        ZERO_AFTER_TRIM = "zeroaftertrim",
        /// Known good: queued TRIM.
        NCQ_TRIM = "ncqtrim",
    }
}

/// Bytes of a TRIM that every drive takes.
const TRIM_BYTES: u32 = 128 << 20;

/// What surrounds the drive, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuirkContext {
    /// The PCI vendor of the HBA.
    pub(crate) vendor: u16,
    /// The operator wants FUA.
    pub(crate) fua: bool,
    /// Most sectors of 512 bytes that the HBA gets right in one command; 0: no limit.
    pub(crate) sectors: u32,
}

impl DriveQuirks {
    /// What is known of the drive that names itself so (IDENTIFY DEVICE).
    pub(crate) fn of(model: &[u8], firmware: &[u8]) -> DriveQuirks {
        let (model, firmware) = (model.trim_ascii_end(), firmware.trim_ascii_end());
        let is = |row: &&DriveRow| {
            matches(row.0.as_bytes(), model) && matches(row.1.as_bytes(), firmware)
        };
        let good = KNOWN_GOOD
            .iter()
            .find(is)
            .map_or(DriveQuirks::NONE, |row| row.2);
        let bad = KNOWN_BAD.iter().filter(is);
        bad.fold(good, |sum, row| sum.with(row.2))
    }

    /// Whether the link has to stay awake.
    pub(crate) fn forbids_lpm(self, id: &DriveId, context: &QuirkContext) -> bool {
        self.has(Self::NO_LPM)
            || (self.has(Self::WD_BROKEN_LPM) && id.gen1_only)
            || (self.has(Self::NO_LPM_ON_ATI_AND_AMD) && matches!(context.vendor, ATI | AMD))
    }

    /// Most bytes of a command.
    fn max_transfer(self, context: &QuirkContext) -> u32 {
        let limit = |is: bool, sectors: u32| if is { sectors } else { u32::MAX };
        let hba = limit(context.sectors != 0, context.sectors);
        let drive = limit(self.has(Self::MAX_SEC_1024), 1024);
        let drive = drive.min(limit(self.has(Self::MAX_SEC_8191), 8191));
        hba.min(drive).saturating_mul(512)
    }
}

impl DriveId {
    /// What is left of what the drive says once `quirks` are known: all that it is used for.
    pub(crate) fn with_quirks(mut self, quirks: DriveQuirks, context: &QuirkContext) -> Self {
        let ati = quirks.has(DriveQuirks::NO_NCQ_ON_ATI) && context.vendor == ATI;
        if quirks.has(DriveQuirks::NO_NCQ) || ati {
            self.depth = None;
        }
        let good = quirks.has(DriveQuirks::NCQ_TRIM) && !quirks.has(DriveQuirks::NO_NCQ_TRIM);
        self.sends_queued &= good && self.depth.is_some();
        self.trim &= !quirks.has(DriveQuirks::NO_TRIM);
        if !quirks.has(DriveQuirks::ZERO_AFTER_TRIM) || quirks.has(DriveQuirks::MAX_TRIM_128M) {
            let most = TRIM_BYTES.wrapping_shr(u32::from(self.block_shift));
            self.trim_blocks = self.trim_blocks.min(most);
        }
        // Drives without queues are older than FUA that works.
        self.fua &= context.fua && self.depth.is_some() && !quirks.has(DriveQuirks::NO_FUA);
        // Whole blocks.
        let block = 1u32.wrapping_shl(u32::from(self.block_shift));
        let most = quirks.max_transfer(context) & !block.wrapping_sub(1);
        self.max_transfer = self.max_transfer.min(most);
        self
    }
}

/// Patterns of a model and of a firmware revision, and what that drive is known for.
type DriveRow = (&'static str, &'static str, DriveQuirks);

const ANY: &str = "*";

const NO_NCQ: DriveQuirks = DriveQuirks::NO_NCQ;
const NO_NCQ_TRIM: DriveQuirks = DriveQuirks::NO_NCQ_TRIM;
const NO_LPM: DriveQuirks = DriveQuirks::NO_LPM;
const WD_BROKEN_LPM: DriveQuirks = DriveQuirks::WD_BROKEN_LPM;
const NO_FUA: DriveQuirks = DriveQuirks::NO_FUA;
/// Seagate's firmware of 2008: queued commands and a flush between them.
const OUTDATED: DriveQuirks = NO_NCQ.with(DriveQuirks::FIRMWARE_WARN);
/// Samsung's: queued TRIM, and much beside HBAs of ATI's and AMD's.
const SAMSUNG: DriveQuirks = NO_NCQ_TRIM
    .with(DriveQuirks::NO_NCQ_ON_ATI)
    .with(DriveQuirks::NO_LPM_ON_ATI_AND_AMD);

const KNOWN_BAD: &[DriveRow] = &[
    // Boxes and port multipliers that show themselves.
    ("Config  Disk", ANY, DriveQuirks::DISABLE),
    ("ASMT109x- Config", ANY, DriveQuirks::DISABLE),
    // Long commands.
    ("ST380013AS", "3.20", DriveQuirks::MAX_SEC_1024),
    ("LITEON CX1-JB*-HP", ANY, DriveQuirks::MAX_SEC_1024),
    ("LITEON EP1-*", ANY, DriveQuirks::MAX_SEC_1024),
    ("DELLBOSS VD", "MV.R00-0", DriveQuirks::MAX_SEC_8191),
    ("INTEL SSDSC2KG480G8", "XCV10120", DriveQuirks::MAX_SEC_8191),
    // Queues.
    ("WDC WD740ADFD-00", ANY, NO_NCQ),
    ("WDC WD740ADFD-00NLR1", ANY, NO_NCQ),
    ("FUJITSU MHT2060BH", ANY, NO_NCQ),
    ("Maxtor *", "BANC*", NO_NCQ),
    ("Maxtor 7V300F0", "VA111630", NO_NCQ),
    ("ST380817AS", "3.42", NO_NCQ),
    ("ST3160023AS", "3.42", NO_NCQ),
    ("OCZ CORE_SSD", "02.10104", NO_NCQ),
    ("HTS541060G9SA00", "MB3OC60D", NO_NCQ),
    ("HTS541080G9SA00", "MB4OC60D", NO_NCQ),
    ("HTS541010G9SA00", "MBZOC60D", NO_NCQ),
    ("C300-CTFDDAC128MAG", "0001", NO_NCQ),
    ("ST31500341AS", "SD1[5-9]", OUTDATED),
    ("ST31000333AS", "SD1[5-9]", OUTDATED),
    ("ST3640[36]23AS", "SD1[5-9]", OUTDATED),
    ("ST3320[68]13AS", "SD1[5-9]", OUTDATED),
    // Queued TRIM.
    ("Micron_M500IT_*", "MU01", NO_NCQ_TRIM),
    ("Micron_M500_*", ANY, NO_NCQ_TRIM),
    ("Micron_M5[15]0_*", "MU01", NO_NCQ_TRIM),
    ("Micron_1100_*", ANY, NO_NCQ_TRIM),
    ("Crucial_CT*M500*", ANY, NO_NCQ_TRIM),
    ("Crucial_CT*M550*", "MU01", NO_NCQ_TRIM),
    ("Crucial_CT*MX100*", "MU01", NO_NCQ_TRIM),
    ("FCCT*M500*", ANY, NO_NCQ_TRIM),
    ("Samsung SSD 840*", ANY, NO_NCQ_TRIM),
    ("Samsung SSD 840 EVO*", ANY, DriveQuirks::NO_DMA_LOG),
    ("Samsung SSD 850*", ANY, NO_NCQ_TRIM),
    ("Samsung SSD 860*", ANY, SAMSUNG),
    ("Samsung SSD 870*", ANY, SAMSUNG),
    ("SAMSUNG*MZ7LH*", ANY, SAMSUNG),
    // TRIM.
    ("SuperSSpeed S238*", ANY, DriveQuirks::NO_TRIM),
    ("M88V29*", ANY, DriveQuirks::NO_TRIM),
    ("SanDisk SD[789]*", ANY, DriveQuirks::MAX_TRIM_128M),
    // FUA.
    ("Maxtor", "BANC1G10", NO_FUA),
    ("WDC*WD2500J*", ANY, NO_FUA),
    ("OCZ-VERTEX*", ANY, NO_FUA),
    ("INTEL*SSDSC2CT*", ANY, NO_FUA),
    // A link that sleeps.
    ("ADATA SU680", ANY, NO_LPM),
    ("ST1000DM010-2EP102", ANY, NO_LPM),
    ("ST2000DM008-2FR102", ANY, NO_LPM),
    ("ST1000LM024 HN-M101MBB", ANY, NO_LPM),
    ("CT*0BX*00SSD1", ANY, NO_LPM),
    ("Crucial_CT512MX100*", ANY, NO_LPM),
    ("Crucial_CT480M500*", ANY, NO_LPM),
    ("Crucial_CT960M500*", ANY, NO_LPM),
    ("R3SL240G", ANY, NO_LPM),
    ("Apacer AS340*", ANY, NO_LPM),
    ("PNY CS900 1TB SSD", ANY, NO_LPM),
    ("MD619HXCLDE3TC", "TCVAID", NO_LPM),
    ("MD619GXCLDE3TC", "TCV35D", NO_LPM),
    ("SAMSUNG MZMPC128HBFU-000MV", "CXM14M1Q", NO_LPM),
    ("SAMSUNG SSD PM830 mSATA *", "CXM13D1Q", NO_LPM),
    ("SAMSUNG MZ7TD256HAFV-000L9", ANY, NO_LPM),
    ("SAMSUNG MZ7TE512HMHP-000L1", "EXT06L0Q", NO_LPM),
    ("WDC WD100EFGX-68CPLN0", ANY, NO_LPM),
    ("WDC WD102KFBX-68M95N0", ANY, NO_LPM),
    ("WDC WD141KFGX-68FH9N0", ANY, NO_LPM),
    ("WD Green 2.5 480GB", ANY, NO_LPM),
    ("WDC WD800JD-*", ANY, WD_BROKEN_LPM),
    ("WDC WD1200JD-*", ANY, WD_BROKEN_LPM),
    ("WDC WD1600JD-*", ANY, WD_BROKEN_LPM),
    ("WDC WD2000JD-*", ANY, WD_BROKEN_LPM),
    ("WDC WD2500JD-*", ANY, WD_BROKEN_LPM),
    ("WDC WD3000JD-*", ANY, WD_BROKEN_LPM),
    ("WDC WD3200JD-*", ANY, WD_BROKEN_LPM),
    // A link that is too fast.
    ("WD My Book", ANY, DriveQuirks::GEN1),
    ("Seagate FreeAgent GoFlex", ANY, DriveQuirks::GEN1),
    // What is not asked of any drive.
    ("ST1000LM024 HN-M101MBB", ANY, DriveQuirks::BROKEN_FPDMA_AA),
    ("VB0250EAVER", "HPG7", DriveQuirks::BROKEN_FPDMA_AA),
    ("HDS724040KLSA80", "KFAOA20N", DriveQuirks::BROKEN_HPA),
    ("OCZ-VERTEX", "1.30", DriveQuirks::BROKEN_HPA),
    ("SATADOM-ML 3ME", ANY, DriveQuirks::NO_LOG_DIR),
];

const ZEROES: DriveQuirks = DriveQuirks::ZERO_AFTER_TRIM;
/// The families whose queued TRIM was mended by the firmware after the one that is known bad.
const MENDED: DriveQuirks = ZEROES.with(DriveQuirks::NCQ_TRIM);

const KNOWN_GOOD: &[DriveRow] = &[
    // The 510, unlike Intel's others.
    ("INTEL*SSDSC2MH*", ANY, DriveQuirks::NONE),
    ("Micron_M500IT_*", ANY, MENDED),
    ("Micron_M5[15]0_*", ANY, MENDED),
    ("Crucial_CT*M550*", ANY, MENDED),
    ("Crucial_CT*MX100*", ANY, MENDED),
    ("Micron*", ANY, ZEROES),
    ("Crucial*", ANY, ZEROES),
    ("FCCT*M500*", ANY, ZEROES),
    ("INTEL*SSD*", ANY, ZEROES),
    ("SSD*INTEL*", ANY, ZEROES),
    ("Samsung*SSD*", ANY, ZEROES),
    ("SAMSUNG*SSD*", ANY, ZEROES),
    ("SAMSUNG*MZ7KM*", ANY, ZEROES),
    ("SAMSUNG*MZ7LH*", ANY, ZEROES),
    ("ST[1248][0248]0[FH]*", ANY, ZEROES),
];

hal::quirk_set! {
    /// What an HBA is known to do wrong.
    pub struct HbaQuirks {
        /// Addresses of more than 32 bits come out wrong.
        DMA_32 = "dma32",
        /// Addresses of more than 43 bits come out wrong.
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
type BoardRow = (u16, u16, u16, HbaQuirks);

const ANY_DEVICE: (u16, u16) = (0, u16::MAX);

/// PCI vendors of HBAs.
const LOONGSON: u16 = 0x0014;
const ATI: u16 = 0x1002;
const AMD: u16 = 0x1022;
const ST_MICRO: u16 = 0x104a;
const NVIDIA: u16 = 0x10de;
const VIA: u16 = 0x1106;
const MARVELL: u16 = 0x11ab;
const SAMSUNG_PCI: u16 = 0x144d;
const CAVIUM: u16 = 0x177d;
const JMICRON: u16 = 0x197b;
const ASMEDIA: u16 = 0x1b21;
const ENMOTUS: u16 = 0x1c44;
const INTEL: u16 = 0x8086;

const MV: HbaQuirks = HbaQuirks::NO_NCQ
    .with(HbaQuirks::NO_MSI)
    .with(HbaQuirks::SATA_PORTS)
    .with(HbaQuirks::ACK_FIRST);

const MCP: HbaQuirks = HbaQuirks::YES_NCQ.with(HbaQuirks::NO_DIPM);

const ROWS: &[BoardRow] = &[
    // JMB582, JMB585; all of JMicron's
    (JMICRON, 0x0582, 0x0582, HbaQuirks::DMA_32),
    (JMICRON, 0x0585, 0x0585, HbaQuirks::DMA_32),
    (JMICRON, ANY_DEVICE.0, ANY_DEVICE.1, HbaQuirks::IGNORE_IFS),
    // ULi M5288
    (0x10b9, 0x5288, 0x5288, HbaQuirks::IGNORE_IFS),
    // ASM1060, ASM1061, ASM1062 and what is made of them
    (ASMEDIA, 0x0601, 0x0602, HbaQuirks::DMA_43),
    (ASMEDIA, 0x0611, 0x0612, HbaQuirks::DMA_43),
    (ASMEDIA, 0x0621, 0x0622, HbaQuirks::DMA_43),
    (ASMEDIA, 0x0624, 0x0624, HbaQuirks::DMA_43),
    // SB600
    (
        ATI,
        0x4380,
        0x4380,
        HbaQuirks::DMA_32
            .with(HbaQuirks::NO_MSI)
            .with(HbaQuirks::SECT_255),
    ),
    // 88SE6121, 88SE6145
    (MARVELL, 0x6121, 0x6121, MV),
    (MARVELL, 0x6145, 0x6145, MV),
    // VT8251
    (VIA, 0x3349, 0x3349, HbaQuirks::NEEDS_SRST),
    (VIA, 0x6287, 0x6287, HbaQuirks::NEEDS_SRST),
    // MCP65, MCP67, MCP73
    (NVIDIA, 0x044c, 0x044f, MCP),
    (NVIDIA, 0x045c, 0x045f, MCP),
    (NVIDIA, 0x0550, 0x055b, MCP),
    (NVIDIA, 0x0580, 0x058f, MCP),
    (NVIDIA, 0x07f0, 0x07fb, MCP),
    // Annapurna Labs; SSDs of Samsung's that are their own HBA
    (0x1c36, 0x0031, 0x0031, HbaQuirks::NO_MSI),
    (SAMSUNG_PCI, 0x1600, 0x1600, HbaQuirks::NO_MSI),
    (SAMSUNG_PCI, 0xa800, 0xa800, HbaQuirks::NO_MSI),
];

/// Intel's with [`HbaQuirks::PCS`], from ICH6 to Cannon Lake and some later; from the first ID to
/// the last.
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

impl HbaQuirks {
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

    /// The capabilities in truth, of one that says `cap`.
    pub(crate) const fn capabilities(self, cap: Cap) -> Cap {
        match (self.has(Self::NO_NCQ), self.has(Self::YES_NCQ)) {
            (true, _) => cap.with_ncq(false),
            (false, true) => cap.with_ncq(true),
            (false, false) => cap,
        }
    }

    /// Bits of `PxIS` that say nothing.
    pub(crate) const fn ignored_irqs(self) -> u32 {
        match self.has(Self::IGNORE_IFS) {
            true => IS_IF,
            false => 0,
        }
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

    /// The BAR with the registers of the function `ids` (ABAR, AHCI 1.3.1 section 2.1.11).
    pub fn bar(ids: &PciIds) -> u8 {
        match (ids.vendor, ids.device) {
            (ST_MICRO, 0xcc06) | (LOONGSON, 0x7a08) | (CAVIUM, 0xa01c) => 0,
            (ENMOTUS, 0x8000) => 2,
            (CAVIUM, 0xa084) => 4,
            _ => 5,
        }
    }
}

/// Whether all of `text` is what `pattern` says: `*` is any text, `?` any character, `[a-c5]` one
/// of some, everything else itself. An unclosed `[` is nobody's pattern: it matches nothing.
///
/// Bounded: each `*` begins anew only at the last one, so the steps are at most the product of the
/// two lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut rest, mut left) = (pattern, text);
    // The pattern after the last `*`, and the text that it was tried on last.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        let step = match (rest.split_first(), left.split_first()) {
            (None, None) => return true,
            (Some((b'*', after)), _) => {
                star = Some((after, left));
                Some((after, left))
            }
            (Some(_), Some((letter, tail))) => one(rest, *letter).map(|after| (after, tail)),
            _ => None,
        };
        (rest, left) = match (step, star) {
            (Some(step), _) => step,
            // The last `*` takes one more letter.
            (None, Some((after, [_, tail @ ..]))) => {
                star = Some((after, tail));
                (after, tail)
            }
            _ => return false,
        };
    }
}

/// What follows the first element of `pattern`, if that is `letter`.
fn one(pattern: &[u8], letter: u8) -> Option<&[u8]> {
    let (first, after) = pattern.split_first()?;
    match first {
        b'?' => Some(after),
        b'[' => {
            let end = after.iter().position(|byte| *byte == b']')?;
            let (set, after) = after.split_at_checked(end)?;
            let (_, after) = after.split_first()?;
            is_one_of(set, letter).then_some(after)
        }
        first => (*first == letter).then_some(after),
    }
}

/// Whether `letter` is in `set`, of letters and ranges.
fn is_one_of(set: &[u8], letter: u8) -> bool {
    let mut left = set;
    loop {
        left = match left {
            [] => return false,
            [from, b'-', to, ..] if (*from..=*to).contains(&letter) => return true,
            [_, b'-', _, rest @ ..] => rest,
            [only, rest @ ..] => {
                if *only == letter {
                    return true;
                }
                rest
            }
        };
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_of_whole_blocks_and_of_what_the_least_takes() {
        let most = |quirks: DriveQuirks, sectors, shift| {
            let mut sector = [0; 512];
            let mut put = |at: usize, word: u16| {
                sector[at * 2..at * 2 + 2].copy_from_slice(&word.to_le_bytes());
            };
            for (at, word) in [(49, 0x300), (83, 0x6400), (84, 0x4000), (100, 1)] {
                put(at, word);
            }
            if shift != 9 {
                put(106, 0x5000);
                put(117, 1u16 << (shift - 1));
            }
            let context = QuirkContext {
                vendor: 0,
                fua: false,
                sectors,
            };
            let id = DriveId::decode(&sector).unwrap().unwrap();
            id.with_quirks(quirks, &context).max_transfer
        };
        assert_eq!(most(DriveQuirks::NONE, 0, 9), 65_535 * 512);
        assert_eq!(most(DriveQuirks::MAX_SEC_8191, 0, 9), 8191 * 512);
        assert_eq!(most(DriveQuirks::NONE, 255, 9), 255 * 512);
        assert_eq!(most(DriveQuirks::NONE, 255, 12), 31 * 4096);
        assert_eq!(most(DriveQuirks::MAX_SEC_1024, 255, 9), 255 * 512);
        assert_eq!(most(DriveQuirks::MAX_SEC_1024, 0, 12), 512 << 10);
    }

    fn quirks(model: &str, firmware: &str) -> DriveQuirks {
        DriveQuirks::of(
            std::format!("{model:<40}").as_bytes(),
            std::format!("{firmware:<8}").as_bytes(),
        )
    }

    #[test]
    fn a_drive_has_all_that_is_known_of_it() {
        let evo = quirks("Samsung SSD 840 EVO 250GB", "EXT0BB0Q");
        assert_eq!(evo, NO_NCQ_TRIM.with(DriveQuirks::NO_DMA_LOG).with(ZEROES));
        let vertex = quirks("OCZ-VERTEX", "1.30");
        assert_eq!(vertex, NO_FUA.with(DriveQuirks::BROKEN_HPA));
        let crucial = quirks("Crucial_CT512MX100SSD1", "MU01");
        assert_eq!(crucial, MENDED.with(NO_NCQ_TRIM).with(NO_LPM));
    }

    #[test]
    fn firmware_matters_where_the_table_says_so() {
        assert!(quirks("ST31500341AS", "SD17").has(OUTDATED));
        assert_eq!(quirks("ST31500341AS", "SD1A"), DriveQuirks::NONE);
        assert!(!quirks("Micron_M510_MTFDDAK256", "MU02").has(NO_NCQ_TRIM));
        assert!(quirks("Micron_M510_MTFDDAK256", "MU02").has(MENDED));
    }

    #[test]
    fn the_exception_among_the_good_comes_first() {
        assert_eq!(quirks("INTEL SSDSC2MH120A2", "PPG4"), DriveQuirks::NONE);
        assert_eq!(quirks("INTEL SSDSC2BW240A4", "DC12"), ZEROES);
    }

    #[test]
    fn an_unlisted_drive_is_known_for_nothing() {
        for model in [
            "QEMU HARDDISK",
            "A model drive",
            "",
            "Samsung SS",
            "OCZ-VERTE",
        ] {
            assert_eq!(quirks(model, "2.5+"), DriveQuirks::NONE, "{model}");
        }
    }

    #[test]
    fn every_row_is_found() {
        // A pattern with its wildcards filled in is a drive of its row.
        let filled = |pattern: &str| -> std::string::String {
            let mut text = std::string::String::new();
            let mut letters = pattern.chars();
            while let Some(letter) = letters.next() {
                match letter {
                    '*' => text.push('x'),
                    '[' => {
                        text.extend(letters.next());
                        letters.by_ref().find(|letter| *letter == ']');
                    }
                    letter => text.push(letter),
                }
            }
            text
        };
        for row in KNOWN_BAD {
            let quirks = quirks(&filled(row.0), &filled(row.1));
            assert!(quirks.has(row.2) && row.2 != DriveQuirks::NONE, "{}", row.0);
        }
        for row in KNOWN_GOOD {
            assert!(quirks(&filled(row.0), "").has(row.2), "{}", row.0);
        }
    }

    fn ids(vendor: u16, device: u16) -> PciIds {
        PciIds {
            vendor,
            device,
            ..PciIds::default()
        }
    }

    #[test]
    fn addresses_and_commands_end_where_the_board_gets_them_wrong() {
        let bits = |vendor, device, said| HbaQuirks::of(&ids(vendor, device)).dma_bits(said);
        assert_eq!(bits(0x197b, 0x0585, 64), 32);
        assert_eq!(bits(0x197b, 0x0582, 64), 32);
        assert_eq!(bits(0x1002, 0x4380, 64), 32);
        assert_eq!(HbaQuirks::of(&ids(0x1002, 0x4380)).sectors(), 255);
        assert_eq!(HbaQuirks::of(&ids(0x1002, 0x4391)).sectors(), 0);
        assert_eq!(bits(0x1b21, 0x0612, 64), 43);
        assert_eq!(bits(0x1b21, 0x0612, 32), 32);
        for (vendor, device) in [(0x197b, 0x2363), (0x1b21, 0x1166), (0x8086, 0x2922)] {
            assert_eq!(bits(vendor, device, 64), 64);
        }
    }

    #[test]
    fn ranges_end_where_they_do() {
        let of = |vendor, device| HbaQuirks::of(&ids(vendor, device));
        assert_eq!(of(0x8086, 0x2922), HbaQuirks::PCS);
        assert_eq!(of(0x8086, 0x2928), HbaQuirks::NONE);
        assert_eq!(of(0x8086, 0x19b0), HbaQuirks::NONE);
        assert_eq!(of(0x10de, 0x0550), MCP);
        assert_eq!(of(0x10de, 0x055c), HbaQuirks::NONE);
        assert_eq!(of(0x1022, 0x7901), HbaQuirks::NONE);
        let late = PciIds {
            revision: 0xa2,
            ..ids(0x10de, 0x044c)
        };
        assert_eq!(HbaQuirks::of(&late).messages(), Messages::NONE);
        let good = PciIds {
            revision: 0xa3,
            ..late
        };
        assert_eq!(HbaQuirks::of(&good).messages(), Messages::ALL);
    }

    #[test]
    fn other_ports_than_those_of_sata_are_left_alone() {
        let ports = |device| {
            let ids = ids(0x11ab, device);
            HbaQuirks::of(&ids).sata_ports(0xff, &ids)
        };
        assert_eq!((ports(0x6121), ports(0x6145)), (0x3, 0xf));
        let other = ids(0x8086, 0x2922);
        assert_eq!(HbaQuirks::of(&other).sata_ports(0xff, &other), 0xff);
    }

    #[test]
    fn who_needs_what_is_not_there_is_refused_with_the_way_out() {
        let refused = |vendor, device| HbaQuirks::of(&ids(vendor, device)).refusal();
        assert!(refused(0x1106, 0x3349).is_some_and(|why| why.contains("leave")));
        assert_eq!(refused(0x8086, 0x2922), None);
    }

    #[test]
    fn the_registers_are_behind_bar_5_but_for_some() {
        assert_eq!(HbaQuirks::bar(&ids(0x8086, 0x2922)), 5);
        assert_eq!(HbaQuirks::bar(&ids(0x1c44, 0x8000)), 2);
        assert_eq!(HbaQuirks::bar(&ids(0x177d, 0xa084)), 4);
        assert_eq!(HbaQuirks::bar(&ids(0x0014, 0x7a08)), 0);
    }

    fn is(pattern: &str, text: &str) -> bool {
        matches(pattern.as_bytes(), text.as_bytes())
    }

    #[test]
    fn a_pattern_is_all_of_the_text() {
        assert!(is("", "") && is("ab", "ab"));
        assert!(!is("ab", "abc") && !is("ab", "a") && !is("", "a") && !is("a", ""));
    }

    #[test]
    fn stars_are_any_text_also_none() {
        assert!(is("*", "") && is("*", "abc") && is("a*", "a") && is("*c", "abc"));
        assert!(is("Crucial_CT*M500*", "Crucial_CT240M500SSD1"));
        assert!(!is("Crucial_CT*M500*", "Crucial_CT240M550SSD1"));
        // The last star begins anew.
        assert!(is("*aab", "aaaab") && is("a*b*c", "abbcbc"));
        assert!(!is("*aab", "aaaa"));
    }

    #[test]
    fn sets_have_letters_and_ranges() {
        assert!(is("SD1[5-9]", "SD15") && is("SD1[5-9]", "SD19") && !is("SD1[5-9]", "SD14"));
        assert!(is("ST[1248][0248]0[FH]*", "ST480HM000"));
        assert!(!is("ST[1248][0248]0[FH]*", "ST480GM000"));
        assert!(is("[a-c-]", "-") && is("[a-]", "-"));
        assert!(!is("[ab", "a") && !is("[]", "a") && !is("?", ""));
    }

    proptest::proptest! {
        /// Whatever it is, it ends, and a text is its own pattern.
        #[test]
        fn any_text_is_looked_at(pattern in "[a-c*?\\[\\]-]{0,12}", text in "[a-c]{0,24}") {
            let _ = is(&pattern, &text);
            assert!(is(&text, &text));
            let any = std::format!("*{text}*");
            assert!(is(&any, &text));
        }
    }
}
