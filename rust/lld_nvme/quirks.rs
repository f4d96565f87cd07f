// SPDX-License-Identifier: GPL-2.0
//! What NVMe controllers are known to do wrong, and what each is spared for it. Who has which:
//! `drives`.
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
//! | `dmapool_align_512` | nothing more: every list begins at a page, see `data` |
//!
//! These have no effect, as what would trip over them is not done here; who has them is shown all
//! the same. `ignore_dev_subnqn`: the subsystem's name is not read. `no_temp_thresh_change`,
//! `no_secondary_temp_thresh`: temperature thresholds stay as they are. `simple_suspend`: a drive
//! is never left to suspend itself.
//!
//! That a device may read a whole page of Dataset Management ranges, however few it is told of, is
//! said of no drive by name: all ranges are in a page of their own (`data`).
//!
//! Left out, of what in-tree nvme has: quirks of a drive in one make of machine (its `dmi_match`),
//! which are about APST that the host turns on, and about suspend.

use crate::controller::NvmeController;
use cell::sync::Ordering;
use hal::{Messages, Mmio, PciIds, Platform};

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
        crate::drives::of_function(ids)
    }

    /// What is known of a controller that names itself so (Identify Controller: VID, MN, FR).
    pub(crate) fn of_model(vendor: u16, model: &[u8], firmware: &[u8]) -> Self {
        crate::drives::of_model(vendor, model, firmware)
    }
}

const VERSION_1_0: u32 = 0x0001_0000;
const VERSION_1_2: u32 = 0x0001_0200;
impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// What it is spared. Any context.
    pub fn quirk_set(&self) -> Quirks {
        Quirks::from_bits(self.quirks.load(Ordering::Relaxed))
    }

    /// It has these, too.
    pub(crate) fn add_quirks(&self, more: Quirks) {
        self.quirks.fetch_or(more.bits(), Ordering::Relaxed);
    }
}
