// SPDX-License-Identifier: GPL-2.0
//! Which drive is known for what: facts of libata (`__ata_dev_quirks` and
//! `__ata_dev_max_sec_quirks` of Linux 7.3), in two tables of our own.
//!
//! Of [`KNOWN_BAD`] all rows count that match; of [`KNOWN_GOOD`] the first. What is not taken over
//! is of PATA and ATAPI devices, which are not served.

use crate::glob;
use crate::quirks::Quirks;

/// Model, firmware revision, and what that drive is known for; see [`crate::glob`].
type Row = (&'static str, &'static str, Quirks);

const ANY: &str = "*";

const NO_NCQ: Quirks = Quirks::NO_NCQ;
const NO_NCQ_TRIM: Quirks = Quirks::NO_NCQ_TRIM;
const NO_LPM: Quirks = Quirks::NO_LPM;
const WD_BROKEN_LPM: Quirks = Quirks::WD_BROKEN_LPM;
const NO_FUA: Quirks = Quirks::NO_FUA;
/// Seagate's firmware of 2008: queued commands and a flush between them.
const OUTDATED: Quirks = NO_NCQ.with(Quirks::FIRMWARE_WARN);
/// Samsung's: queued TRIM, and much beside HBAs of ATI's and AMD's.
const SAMSUNG: Quirks = NO_NCQ_TRIM
    .with(Quirks::NO_NCQ_ON_ATI)
    .with(Quirks::NO_LPM_ON_ATI_AND_AMD);

const KNOWN_BAD: &[Row] = &[
    // Boxes and port multipliers that show themselves.
    ("Config  Disk", ANY, Quirks::DISABLE),
    ("ASMT109x- Config", ANY, Quirks::DISABLE),
    // Long commands.
    ("ST380013AS", "3.20", Quirks::MAX_SEC_1024),
    ("LITEON CX1-JB*-HP", ANY, Quirks::MAX_SEC_1024),
    ("LITEON EP1-*", ANY, Quirks::MAX_SEC_1024),
    ("DELLBOSS VD", "MV.R00-0", Quirks::MAX_SEC_8191),
    ("INTEL SSDSC2KG480G8", "XCV10120", Quirks::MAX_SEC_8191),
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
    ("Samsung SSD 840 EVO*", ANY, Quirks::NO_DMA_LOG),
    ("Samsung SSD 850*", ANY, NO_NCQ_TRIM),
    ("Samsung SSD 860*", ANY, SAMSUNG),
    ("Samsung SSD 870*", ANY, SAMSUNG),
    ("SAMSUNG*MZ7LH*", ANY, SAMSUNG),
    // TRIM.
    ("SuperSSpeed S238*", ANY, Quirks::NO_TRIM),
    ("M88V29*", ANY, Quirks::NO_TRIM),
    ("SanDisk SD[789]*", ANY, Quirks::MAX_TRIM_128M),
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
    ("WD My Book", ANY, Quirks::GEN1),
    ("Seagate FreeAgent GoFlex", ANY, Quirks::GEN1),
    // What is not asked of any drive.
    ("ST1000LM024 HN-M101MBB", ANY, Quirks::BROKEN_FPDMA_AA),
    ("VB0250EAVER", "HPG7", Quirks::BROKEN_FPDMA_AA),
    ("HDS724040KLSA80", "KFAOA20N", Quirks::BROKEN_HPA),
    ("OCZ-VERTEX", "1.30", Quirks::BROKEN_HPA),
    ("SATADOM-ML 3ME", ANY, Quirks::NO_LOG_DIR),
];

const ZEROES: Quirks = Quirks::ZERO_AFTER_TRIM;
/// The families whose queued TRIM was mended by the firmware after the one that is known bad.
const MENDED: Quirks = ZEROES.with(Quirks::NCQ_TRIM);

const KNOWN_GOOD: &[Row] = &[
    // The 510, unlike Intel's others.
    ("INTEL*SSDSC2MH*", ANY, Quirks::NONE),
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

/// What is known of the drive that names itself so.
pub(crate) fn of(model: &[u8], firmware: &[u8]) -> Quirks {
    let (model, firmware) = (model.trim_ascii_end(), firmware.trim_ascii_end());
    let is = |row: &&Row| {
        glob::matches(row.0.as_bytes(), model) && glob::matches(row.1.as_bytes(), firmware)
    };
    let good = KNOWN_GOOD.iter().find(is).map_or(Quirks::NONE, |row| row.2);
    let bad = KNOWN_BAD.iter().filter(is);
    bad.fold(good, |sum, row| sum.with(row.2))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn quirks(model: &str, firmware: &str) -> Quirks {
        of(
            std::format!("{model:<40}").as_bytes(),
            std::format!("{firmware:<8}").as_bytes(),
        )
    }

    #[test]
    fn a_drive_has_all_that_is_known_of_it() {
        let evo = quirks("Samsung SSD 840 EVO 250GB", "EXT0BB0Q");
        assert_eq!(evo, NO_NCQ_TRIM.with(Quirks::NO_DMA_LOG).with(ZEROES));
        let vertex = quirks("OCZ-VERTEX", "1.30");
        assert_eq!(vertex, NO_FUA.with(Quirks::BROKEN_HPA));
        let crucial = quirks("Crucial_CT512MX100SSD1", "MU01");
        assert_eq!(crucial, MENDED.with(NO_NCQ_TRIM).with(NO_LPM));
    }

    #[test]
    fn firmware_matters_where_the_table_says_so() {
        assert!(quirks("ST31500341AS", "SD17").has(OUTDATED));
        assert_eq!(quirks("ST31500341AS", "SD1A"), Quirks::NONE);
        assert!(!quirks("Micron_M510_MTFDDAK256", "MU02").has(NO_NCQ_TRIM));
        assert!(quirks("Micron_M510_MTFDDAK256", "MU02").has(MENDED));
    }

    #[test]
    fn the_exception_among_the_good_comes_first() {
        assert_eq!(quirks("INTEL SSDSC2MH120A2", "PPG4"), Quirks::NONE);
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
            assert_eq!(quirks(model, "2.5+"), Quirks::NONE, "{model}");
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
            assert!(quirks.has(row.2) && row.2 != Quirks::NONE, "{}", row.0);
        }
        for row in KNOWN_GOOD {
            assert!(quirks(&filled(row.0), "").has(row.2), "{}", row.0);
        }
    }
}
