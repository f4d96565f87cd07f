// SPDX-License-Identifier: GPL-2.0
//! What SATA drives are known to do wrong, what some are known to do right, and what follows. Who
//! has which: `drives`. HBAs: `boards`.
//!
//! | quirk | what is done |
//! | --- | --- |
//! | `disable` | it is no disk, and is left alone |
//! | `noncq`, `noncqonati` | commands are not queued; of the latter, behind an HBA of ATI's |
//! | `noncqtrim` | TRIM is not queued |
//! | `notrim` | there is no TRIM |
//! | `maxtrim128m` | a TRIM is of 128 MiB at most |
//! | `maxsec1024`, `maxsec8191` | a command is of so many sectors at most |
//! | `nofua` | no FUA, whatever `ahci_fua` says |
//! | `nolpm` | the link stays awake, whatever the firmware of the machine has set |
//! | `wdbrokenlpm` | likewise, of a drive of 1.5 Gbit/s |
//! | `nolpmonatiandamd` | likewise, behind an HBA of ATI's or AMD's |
//! | `1.5gbps` | the link is limited to that |
//!
//! Known good, and so trusted with more than an unlisted drive: `ncqtrim` may queue TRIM, if it
//! says that it can; `zeroaftertrim`, whose TRIM is known to do what it says, may be told of more
//! than 128 MiB at once. Both give way to what is known bad.
//!
//! *An unlisted drive* writes without FUA unless `ahci_fua` is 1, is not told to queue TRIM, and is
//! told of 128 MiB of it at most: firmwares have lost data by the first two and hung by the third.
//!
//! These have no effect, as what would trip over them is not done here; who has them is shown all
//! the same. `brokenhpa`: a host protected area is never looked for. `brokenfpdmaaa`:
//! auto-activation is never enabled. `nodmalog`, `nologdir`: logs are read by PIO, and the
//! directory of logs is not.
//! `firmwarewarn`: newer firmware is to be had, and needed.

use crate::identify::DriveId;

hal::quirk_set! {
    /// What a drive is known for. The names are libata's, as far as it has them.
    pub(crate) struct Quirks {
        /// It is no disk, but a box that shows itself as one.
        DISABLE = "disable",
        /// Native command queuing is broken, or slow.
        NO_NCQ = "noncq",
        /// Likewise behind an HBA of ATI's.
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
        /// Likewise.
        MAX_SEC_8191 = "maxsec8191",
        /// FUA is not honoured, or refused.
        NO_FUA = "nofua",
        /// It is lost when its link sleeps.
        NO_LPM = "nolpm",
        /// Likewise, if it is one of 1.5 Gbit/s.
        WD_BROKEN_LPM = "wdbrokenlpm",
        /// Likewise, behind an HBA of ATI's or AMD's.
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

/// PCI vendors of HBAs.
const ATI: u16 = 0x1002;
const AMD: u16 = 0x1022;
/// Bytes of a TRIM that every drive takes.
const TRIM_BYTES: u32 = 128 << 20;

/// What surrounds the drive, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The PCI vendor of the HBA.
    pub(crate) vendor: u16,
    /// The operator wants FUA.
    pub(crate) fua: bool,
    /// Most sectors of 512 bytes that the HBA gets right in one command; 0: no limit.
    pub(crate) sectors: u32,
}

impl Quirks {
    /// What is known of the drive that names itself so (IDENTIFY DEVICE).
    pub(crate) fn of(model: &[u8], firmware: &[u8]) -> Self {
        crate::drives::of(model, firmware)
    }

    /// Whether the link has to stay awake.
    pub(crate) fn is_sleepless(self, id: &DriveId, around: &Surroundings) -> bool {
        self.has(Self::NO_LPM)
            || (self.has(Self::WD_BROKEN_LPM) && id.gen1_only)
            || (self.has(Self::NO_LPM_ON_ATI_AND_AMD) && matches!(around.vendor, ATI | AMD))
    }

    /// Most bytes of a command.
    fn max_transfer(self, around: &Surroundings) -> u32 {
        let limit = |is: bool, sectors: u32| if is { sectors } else { u32::MAX };
        let hba = limit(around.sectors != 0, around.sectors);
        let drive = limit(self.has(Self::MAX_SEC_1024), 1024);
        let drive = drive.min(limit(self.has(Self::MAX_SEC_8191), 8191));
        hba.min(drive).saturating_mul(512)
    }
}

impl DriveId {
    /// What is left of what the drive says once `quirks` are known: all that it is used for.
    pub(crate) fn spared(mut self, quirks: Quirks, around: &Surroundings) -> Self {
        let ati = quirks.has(Quirks::NO_NCQ_ON_ATI) && around.vendor == ATI;
        if quirks.has(Quirks::NO_NCQ) || ati {
            self.depth = None;
        }
        let good = quirks.has(Quirks::NCQ_TRIM) && !quirks.has(Quirks::NO_NCQ_TRIM);
        self.sends_queued &= good && self.depth.is_some();
        self.trim &= !quirks.has(Quirks::NO_TRIM);
        if !quirks.has(Quirks::ZERO_AFTER_TRIM) || quirks.has(Quirks::MAX_TRIM_128M) {
            let most = TRIM_BYTES.wrapping_shr(u32::from(self.block_shift));
            self.trim_blocks = self.trim_blocks.min(most);
        }
        // Drives without queues are older than FUA that works.
        self.fua &= around.fua && self.depth.is_some() && !quirks.has(Quirks::NO_FUA);
        // Whole blocks.
        let block = 1u32.wrapping_shl(u32::from(self.block_shift));
        let most = quirks.max_transfer(around) & !block.wrapping_sub(1);
        self.max_transfer = self.max_transfer.min(most);
        self
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_of_whole_blocks_and_of_what_the_least_takes() {
        let most = |quirks: Quirks, sectors, shift| {
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
            let around = Surroundings {
                vendor: 0,
                fua: false,
                sectors,
            };
            let id = DriveId::decode(&sector).unwrap().unwrap();
            id.spared(quirks, &around).max_transfer
        };
        assert_eq!(most(Quirks::NONE, 0, 9), 65_535 * 512);
        assert_eq!(most(Quirks::MAX_SEC_8191, 0, 9), 8191 * 512);
        assert_eq!(most(Quirks::NONE, 255, 9), 255 * 512);
        assert_eq!(most(Quirks::NONE, 255, 12), 31 * 4096);
        assert_eq!(most(Quirks::MAX_SEC_1024, 255, 9), 255 * 512);
        assert_eq!(most(Quirks::MAX_SEC_1024, 0, 12), 512 << 10);
    }
}
