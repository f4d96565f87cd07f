// SPDX-License-Identifier: GPL-2.0
//! What NVMe controllers are known to do wrong, what each is spared for it, and who has which.
//!
//! | quirk | what is done |
//! | --- | --- |
//! | `delay_before_chk_rdy` | 2.3 s pass after `CC.EN` was cleared before `CSTS.RDY` is looked at |
//! | `zero_mqes` | `CAP.MQES` of 0 is taken for queues of 64 entries |
//! | `identify_cns` | below version 1.2, no Identify but of a controller and of a namespace |
//! | `no_ns_desc_list` | no Identify of namespace identification descriptors |
//! | `bogus_nid` | EUI-64, NGUID and UUID are not believed: the disk is named by model and serial |
//! | `disable_write_zeroes` | the disk has no Write Zeroes |
//! | `deallocate_zeroes` | zeroes are written by deallocating |
//! | `stripe_size` | I/O does not cross multiples of the largest transfer |
//! | `no_apst`, `no_deepest_ps` | autonomous power state transitions are turned off |
//! | `qdepth_one` | one command at a time |
//! | `medium_prio_sq` | submission queues have medium priority |
//! | `128_bytes_sqes` | submission queue entries are 128 bytes apart |
//! | `shared_tags` | one I/O queue, whose CIDs are none of the admin queue's |
//! | `skip_cid_gen` | CIDs stay small: no generation in them |
//! | `single_vector`, `broken_msi` | one vector for all; no MSI |
//! | `dma_address_bits_48` | all memory is below 2^48 |
//! | `dmapool_align_512` | nothing more: every list begins at a multiple of 512 |
//!
//! These have no effect, as what would trip over them is not done here; who has them is shown all
//! the same. `ignore_dev_subnqn`: the subsystem's name is not read. `no_temp_thresh_change`,
//! `no_secondary_temp_thresh`: temperature thresholds stay as they are. `simple_suspend`: a drive
//! is never left to suspend itself.
//!
//! That a device may read a whole page of Dataset Management ranges, however few it is told of, is
//! said of no drive by name: all ranges are in a page of their own (`sqe`).
//!
//! Left out, of what in-tree nvme has: quirks of a drive in one make of machine (its `dmi_match`),
//! which are about APST that the host turns on, and about suspend.
//!
//! Who has which quirk ([`FUNCTIONS`], [`MODELS`]) are facts of in-tree nvme (`nvme_id_table`,
//! `core_quirks` and `nvme_pci_enable` of Linux 7.3). Where in-tree has two rows for one function
//! and heeds the first, both are heeded here.

use hal::{Messages, PciIds};

hal::quirk_set! {
    /// What a controller is known to do wrong. The names are those of in-tree nvme.
    pub struct Quirks {
        /// I/O that crosses a multiple of the largest transfer is slow.
        STRIPE_SIZE = "stripe_size",
        /// It says 1.1, and knows the Identify structures of 1.0.
        IDENTIFY_CNS = "identify_cns",
        /// Deallocated blocks read as zeroes, always.
        DEALLOCATE_ZEROES = "deallocate_zeroes",
        /// `CSTS` must not be read soon after `CC.EN` was cleared.
        DELAY_BEFORE_CHK_RDY = "delay_before_chk_rdy",
        /// It does not survive autonomous power state transitions.
        NO_APST = "no_apst",
        /// It does not wake up from its deepest power state.
        NO_DEEPEST_PS = "no_deepest_ps",
        /// Commands must not be with it at once.
        QDEPTH_ONE = "qdepth_one",
        /// It turns on arbitration by priorities, and urgent queues starve each other.
        MEDIUM_PRIO_SQ = "medium_prio_sq",
        /// The subsystem's name is another's, too.
        IGNORE_DEV_SUBNQN = "ignore_dev_subnqn",
        /// Write Zeroes is slow, or does something else.
        DISABLE_WRITE_ZEROES = "disable_write_zeroes",
        /// It is not to be left to suspend itself.
        SIMPLE_SUSPEND = "simple_suspend",
        /// All queues interrupt on the first vector.
        SINGLE_VECTOR = "single_vector",
        /// Its I/O submission queue entries have 128 bytes.
        SQES_128_BYTES = "128_bytes_sqes",
        /// A CID is one command's, whichever queue it is in.
        SHARED_TAGS = "shared_tags",
        /// Temperature thresholds must not be set.
        NO_TEMP_THRESH_CHANGE = "no_temp_thresh_change",
        /// It says 1.3, and does not know identification descriptors.
        NO_NS_DESC_LIST = "no_ns_desc_list",
        /// Addresses of more than 48 bits come out wrong.
        DMA_ADDRESS_BITS_48 = "dma_address_bits_48",
        /// CIDs are indices for it.
        SKIP_CID_GEN = "skip_cid_gen",
        /// EUI-64, NGUID and UUID are garbage, or every drive's.
        BOGUS_NID = "bogus_nid",
        /// Only the composite temperature has thresholds.
        NO_SECONDARY_TEMP_THRESH = "no_secondary_temp_thresh",
        /// MSI are never sent.
        BROKEN_MSI = "broken_msi",
        /// PRP lists that don't begin at 512 bytes are read wrong.
        DMAPOOL_ALIGN_512 = "dmapool_align_512",
        /// `CAP.MQES` is 0, which is no size of a queue.
        ZERO_MQES = "zero_mqes",
    }
}

/// How long after `CC.EN` was cleared a controller with [`Quirks::DELAY_BEFORE_CHK_RDY`] is left
/// alone, in microseconds.
const DELAY_US: u64 = 2_300_000;
/// `CAP.MQES` of a controller that says 0 and means more.
const MQES_MEANT: u16 = 63;
/// CIDs that are kept for admin commands where they share them with I/O commands.
pub(crate) const ADMIN_CIDS: u16 = 32;

/// Versions ([`VS`](crate::regs::VS)): what is asked of a controller goes by them.
const VERSION_1_0: u32 = 0x0001_0000;
const VERSION_1_2: u32 = 0x0001_0200;

impl Quirks {
    /// Whether the CIDs of admin commands are no larger than there are entries.
    pub(crate) const fn has_small_cids(self) -> bool {
        self.has(Self::SHARED_TAGS) || self.has(Self::SKIP_CID_GEN)
    }

    /// How many bits of an address the device gets right.
    pub const fn dma_bits(self) -> u8 {
        match self.has(Self::DMA_ADDRESS_BITS_48) {
            true => 48,
            false => 64,
        }
    }

    /// How it may interrupt.
    pub const fn messages(self) -> Messages {
        Messages {
            msi: !self.has(Self::BROKEN_MSI),
            msix: true,
            many: !self.has(Self::SINGLE_VECTOR),
        }
    }

    /// How long `CSTS` is not looked at after `CC.EN` was cleared, in microseconds.
    pub(crate) const fn delay_us(self) -> u64 {
        match self.has(Self::DELAY_BEFORE_CHK_RDY) {
            true => DELAY_US,
            false => 0,
        }
    }

    /// The most entries of an I/O queue, less one, of a device whose `CAP.MQES` is `said`.
    pub(crate) const fn mqes(self, said: u16) -> u16 {
        match said {
            0 if self.has(Self::ZERO_MQES) => MQES_MEANT,
            said => said,
        }
    }

    /// Commands that may be with an I/O queue at once, of `most`.
    pub(crate) fn tags(self, most: u16) -> u16 {
        match self.has(Self::QDEPTH_ONE) {
            true => 1,
            // A CID is no larger than the queue, whoever's it is.
            false => most.saturating_sub(self.first_cid()).max(1),
        }
    }

    /// The CID of an I/O queue's first tag.
    pub(crate) const fn first_cid(self) -> u16 {
        match self.has(Self::SHARED_TAGS) {
            true => ADMIN_CIDS,
            false => 0,
        }
    }

    /// Log2 of the bytes from one I/O submission queue entry to the next.
    pub(crate) const fn sqe_shift(self) -> u32 {
        match self.has(Self::SQES_128_BYTES) {
            true => 7,
            false => crate::regs::SQE_SHIFT as u32,
        }
    }

    /// I/O queues that may be made, of `most`.
    pub(crate) fn queues(self, most: u16) -> u16 {
        match self.has(Self::SHARED_TAGS) {
            true => most.min(1),
            false => most,
        }
    }

    /// The version to go by, where the device says `said`.
    pub(crate) const fn version(self, said: u32) -> u32 {
        match self.has(Self::IDENTIFY_CNS) && said < VERSION_1_2 {
            true => VERSION_1_0,
            false => said,
        }
    }

    /// Whether autonomous power state transitions are to be turned off.
    pub(crate) const fn stays_awake(self) -> bool {
        self.has(Self::NO_APST) || self.has(Self::NO_DEEPEST_PS)
    }

    /// What is known of the function `ids` before it is touched.
    pub fn of_function(ids: &PciIds) -> Self {
        of_function(ids)
    }

    /// What is known of a controller that names itself so (Identify Controller: VID, MN, FR).
    pub(crate) fn of_model(vendor: u16, model: &[u8], firmware: &[u8]) -> Self {
        of_model(vendor, model, firmware)
    }
}

/// A function, and what is known of it.
struct Function(u16, u16, Quirks);

/// What a controller calls itself, and what is known of it. An empty text is any.
struct Model {
    vendor: u16,
    model: &'static str,
    firmware: &'static str,
    quirks: Quirks,
}

const INTEL: u16 = 0x8086;
const SAMSUNG: u16 = 0x144d;
const SANDISK: u16 = 0x15b7;
const SILICON_MOTION: u16 = 0x126f;
const PHISON: u16 = 0x1987;
const MAXIO: u16 = 0x1e4b;
const KINGSTON: u16 = 0x2646;
const AMAZON: u16 = 0x1d0f;
const APPLE: u16 = 0x106b;
const ADATA: u16 = 0x1cc1;
const REALTEK: u16 = 0x10ec;
const MICRON: u16 = 0x1344;
const HYNIX: u16 = 0x1c5c;
const LEXAR: u16 = 0x1d97;

const STRIPE: Quirks = Quirks::STRIPE_SIZE;
const DEALLOCATE_ZEROES: Quirks = Quirks::DEALLOCATE_ZEROES;
const DELAY: Quirks = Quirks::DELAY_BEFORE_CHK_RDY;
const SHALLOW: Quirks = Quirks::NO_DEEPEST_PS;
const NO_SUBNQN: Quirks = Quirks::IGNORE_DEV_SUBNQN;
const NO_ZEROES: Quirks = Quirks::DISABLE_WRITE_ZEROES;
const NO_DESCRIPTORS: Quirks = Quirks::NO_NS_DESC_LIST;
const BITS_48: Quirks = Quirks::DMA_ADDRESS_BITS_48;
const BOGUS: Quirks = Quirks::BOGUS_NID;
const NO_MSI: Quirks = Quirks::BROKEN_MSI;
const ALIGN_512: Quirks = Quirks::DMAPOOL_ALIGN_512;
const COMPOSITE: Quirks = Quirks::NO_SECONDARY_TEMP_THRESH;

const FUNCTIONS: &[Function] = &[
    // 750, P3500, P3600, P3700; P3520; P4500, P4600; Dell's P4600
    Function(INTEL, 0x0953, STRIPE.with(DEALLOCATE_ZEROES)),
    Function(INTEL, 0x0a53, STRIPE.with(DEALLOCATE_ZEROES)),
    Function(INTEL, 0x0a54, STRIPE.with(NO_SUBNQN).with(BOGUS)),
    Function(INTEL, 0x0a55, STRIPE),
    // 600P, P3100; 760p, Pro 7600p
    Function(
        INTEL,
        0xf1a5,
        SHALLOW
            .with(Quirks::MEDIUM_PRIO_SQ)
            .with(Quirks::NO_TEMP_THRESH_CHANGE)
            .with(NO_ZEROES),
    ),
    Function(INTEL, 0xf1a6, NO_SUBNQN),
    // QEMU, of old and now
    Function(
        INTEL,
        0x5845,
        Quirks::IDENTIFY_CNS.with(NO_ZEROES).with(BOGUS),
    ),
    Function(0x1b36, 0x0010, BOGUS),
    // SOLIDIGM P44 Pro
    Function(0x025e, 0xf1ac, SHALLOW),
    // PM1725; PM1725a; PM9B1; MZALQ256HBJD; SM953
    Function(SAMSUNG, 0xa821, DELAY.with(Quirks::ZERO_MQES)),
    Function(
        SAMSUNG,
        0xa822,
        DELAY
            .with(NO_ZEROES)
            .with(NO_SUBNQN)
            .with(Quirks::ZERO_MQES),
    ),
    Function(SAMSUNG, 0xa80b, NO_ZEROES.with(BOGUS)),
    Function(SAMSUNG, 0xa809, NO_ZEROES),
    Function(SAMSUNG, 0xa802, BOGUS),
    // SN530; SN550; Skyhawk
    Function(SANDISK, 0x5008, NO_MSI),
    Function(SANDISK, 0x5009, NO_MSI.with(SHALLOW)),
    Function(SANDISK, 0x2001, NO_ZEROES),
    // Controllers in drives of many names; O2 Micro's of the Steam Deck
    Function(SILICON_MOTION, 0x1001, SHALLOW.with(NO_SUBNQN)),
    Function(SILICON_MOTION, 0x2262, SHALLOW.with(BOGUS)),
    Function(SILICON_MOTION, 0x2263, NO_DESCRIPTORS.with(BOGUS)),
    Function(0x1217, 0x8760, ALIGN_512),
    // E12, E16, E19, E21
    Function(PHISON, 0x5012, BOGUS),
    Function(PHISON, 0x5016, NO_SUBNQN.with(BOGUS)),
    Function(PHISON, 0x5019, NO_ZEROES),
    Function(PHISON, 0x5021, NO_ZEROES),
    // MAP1001, MAP1002, MAP1202, MAP1602
    Function(MAXIO, 0x1001, BOGUS),
    Function(MAXIO, 0x1002, BOGUS),
    Function(MAXIO, 0x1202, BOGUS),
    Function(MAXIO, 0x1602, BOGUS),
    // Seagate Nytro; HGST; WDC SN200; Memblaze PBlaze4 and 5
    Function(0x1bb1, 0x0100, DELAY.with(NO_DESCRIPTORS)),
    Function(0x1c58, 0x0003, DELAY),
    Function(0x1c58, 0x0023, DELAY),
    Function(0x1c5f, 0x0540, DELAY),
    Function(0x1c5f, 0x0555, NO_DESCRIPTORS),
    // IM2P33F8ABR1, SX8200PNP, XPG GAMMIX S50
    Function(ADATA, 0x33f8, BOGUS),
    Function(ADATA, 0x8201, SHALLOW.with(NO_SUBNQN)),
    Function(ADATA, 0x5350, BOGUS),
    // SX6000LNP; SX6000PNP, T-FORCE CARDEA ZERO Z330; MP33
    Function(REALTEK, 0x5762, NO_SUBNQN.with(BOGUS)),
    Function(REALTEK, 0x5763, BOGUS),
    Function(REALTEK, 0x5765, BOGUS),
    // An SSD without a name; Nitro; 4100AT; Crucial P2
    Function(MICRON, 0x5407, NO_SUBNQN),
    Function(MICRON, 0x6001, BOGUS),
    Function(MICRON, 0x6004, ALIGN_512),
    Function(0xc0a9, 0x540a, BOGUS),
    // PC400, P31, BC901
    Function(HYNIX, 0x1504, NO_ZEROES),
    Function(HYNIX, 0x174a, BOGUS),
    Function(HYNIX, 0x1d59, NO_ZEROES),
    // SPCC and NM610; NM620; NM760; Lexar's with a Marvell controller
    Function(LEXAR, 0x2263, NO_ZEROES.with(BOGUS)),
    Function(LEXAR, 0x1d97, BOGUS),
    Function(LEXAR, 0x2269, BOGUS.with(NO_SUBNQN)),
    Function(0x1b4b, 0x1092, NO_DESCRIPTORS.with(NO_SUBNQN)),
    // UMIS RPJTJ512MGE1QDY, RPJTJ256MGE1QDY
    Function(0x1cc4, 0x6303, NO_ZEROES),
    Function(0x1cc4, 0x6302, NO_ZEROES),
    // SKC2000, A2000; KC3000 and FURY Renegade; OM8SFP4, OM3PGP4, OM8PGP4, OM3SGP4
    Function(KINGSTON, 0x2262, SHALLOW),
    Function(KINGSTON, 0x2263, SHALLOW),
    Function(KINGSTON, 0x5013, COMPOSITE),
    Function(KINGSTON, 0x5018, NO_ZEROES),
    Function(KINGSTON, 0x5016, NO_ZEROES),
    Function(KINGSTON, 0x501a, NO_ZEROES),
    Function(KINGSTON, 0x501b, NO_ZEROES),
    Function(KINGSTON, 0x501e, NO_ZEROES),
    Function(KINGSTON, 0x502f, NO_ZEROES),
    // Netac NV3000, NV7000; Acer FA100; XPG GAMMIX S70
    Function(0x1f40, 0x1202, BOGUS),
    Function(0x1f40, 0x5236, BOGUS),
    Function(0x1dbe, 0x5216, BOGUS),
    Function(0x1dbe, 0x5236, BOGUS),
    // ZHITAI TiPro5000, TiPro7000; Wodposit WPBSNM8-256GTP
    Function(0x1e49, 0x0021, SHALLOW),
    Function(0x1e49, 0x0041, SHALLOW),
    Function(0x1fa0, 0x2283, COMPOSITE),
    // Of the cloud
    Function(AMAZON, 0x0061, BITS_48),
    Function(AMAZON, 0x0065, BITS_48),
    Function(AMAZON, 0x8061, BITS_48),
    Function(AMAZON, 0xcd00, BITS_48),
    Function(AMAZON, 0xcd01, BITS_48),
    Function(AMAZON, 0xcd02, BITS_48),
    // MacBook8,1; those with a T2
    Function(
        APPLE,
        0x2001,
        Quirks::SINGLE_VECTOR.with(Quirks::QDEPTH_ONE),
    ),
    Function(
        APPLE,
        0x2005,
        Quirks::SINGLE_VECTOR
            .with(Quirks::SQES_128_BYTES)
            .with(Quirks::SHARED_TAGS)
            .with(Quirks::SKIP_CID_GEN)
            .with(Quirks::IDENTIFY_CNS),
    ),
];

const MODELS: &[Model] = &[
    Model {
        vendor: 0x1179,
        model: "THNSF5256GPUK TOSHIBA",
        firmware: "",
        quirks: Quirks::NO_APST,
    },
    // Kioxia CD6-V, HPE PE8030: they lose I/O under load
    Model {
        vendor: 0x1e0f,
        model: "KCD6XVUL6T40",
        firmware: "",
        quirks: Quirks::NO_APST,
    },
    // LiteON CL1-3D*-Q11
    Model {
        vendor: 0x14a4,
        model: "",
        firmware: "22301111",
        quirks: Quirks::SIMPLE_SUSPEND,
    },
    // It has the function of the 970 EVO Plus, which has none of this.
    Model {
        vendor: SAMSUNG,
        model: "Samsung Portable SSD X5",
        firmware: "",
        quirks: DELAY.with(SHALLOW).with(NO_SUBNQN),
    },
];

fn of_function(ids: &PciIds) -> Quirks {
    let rows = FUNCTIONS.iter();
    rows.filter(|row| (row.0, row.1) == (ids.vendor, ids.device))
        .fold(Quirks::NONE, |sum, row| sum.with(row.2))
}

fn of_model(vendor: u16, model: &[u8], firmware: &[u8]) -> Quirks {
    let is =
        |wanted: &str, said: &[u8]| wanted.is_empty() || said.trim_ascii_end() == wanted.as_bytes();
    let rows = MODELS
        .iter()
        .filter(|row| row.vendor == vendor && is(row.model, model) && is(row.firmware, firmware));
    rows.fold(Quirks::NONE, |sum, row| sum.with(row.quirks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(vendor: u16, device: u16) -> Quirks {
        of_function(&PciIds {
            vendor,
            device,
            ..PciIds::default()
        })
    }

    #[test]
    fn a_function_has_its_own_quirks_and_an_unlisted_one_has_none() {
        assert_eq!(function(0x1b36, 0x0010), Quirks::BOGUS_NID);
        let lexar = function(0x1d97, 0x2263);
        assert!(lexar.has(Quirks::DISABLE_WRITE_ZEROES.with(Quirks::BOGUS_NID)));
        // The neighbours of a row.
        for (vendor, device) in [(0x1b36, 0x0011), (0x8086, 0x0010), (0, 0), (0xffff, 0xffff)] {
            assert_eq!(function(vendor, device), Quirks::NONE);
        }
    }

    #[test]
    fn a_function_is_in_the_table_once() {
        for (at, row) in FUNCTIONS.iter().enumerate() {
            let same = |other: &&Function| (other.0, other.1) == (row.0, row.1);
            assert_eq!(FUNCTIONS.iter().filter(same).count(), 1, "row {at}");
            assert_ne!(row.2, Quirks::NONE, "row {at}");
        }
    }

    #[test]
    fn a_model_is_its_whole_name_of_its_vendor() {
        let x5 = b"Samsung Portable SSD X5                 ";
        let quirks = of_model(SAMSUNG, x5, b"1.0     ");
        assert!(quirks.has(Quirks::DELAY_BEFORE_CHK_RDY.with(Quirks::NO_DEEPEST_PS)));
        assert_eq!(of_model(0x1179, x5, b"1.0     "), Quirks::NONE);
        let longer = b"Samsung Portable SSD X5 2               ";
        assert_eq!(of_model(SAMSUNG, longer, b"1.0     "), Quirks::NONE);
        let liteon = |firmware| of_model(0x14a4, b"CL1-3D256-Q11", firmware);
        assert_eq!(liteon(b"22301111"), Quirks::SIMPLE_SUSPEND);
        assert_eq!(liteon(b"22301112"), Quirks::NONE);
    }
}
