// SPDX-License-Identifier: GPL-2.0
//! Logs that READ LOG EXT returns (ACS-4 section 9): which queued command failed, and which
//! commands can be sent queued.

use crate::memory::SECTOR_BYTES;

/// NCQ Command Error log (9.14).
pub(crate) const NCQ_ERROR: u8 = 0x10;
/// NCQ Send and Receive log (9.16).
pub(crate) const NCQ_SEND: u8 = 0x13;

/// The queued command that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NcqError {
    pub(crate) tag: u8,
    pub(crate) status: u8,
    pub(crate) error: u8,
}

/// Decodes log 10h. `None`: its check sum is wrong, or it is about no queued command.
pub(crate) fn ncq_error(sector: &[u8; SECTOR_BYTES]) -> Option<NcqError> {
    let sum = sector.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    let [first, _, status, error, ..] = *sector;
    // NQ: the error is of a command that was not queued.
    if sum != 0 || first & 0x80 != 0 {
        return None;
    }
    Some(NcqError {
        tag: first & 0x1f,
        status,
        error,
    })
}

/// Whether log 13h says that DATA SET MANAGEMENT, TRIM can be sent queued.
pub(crate) fn has_queued_trim(sector: &[u8; SECTOR_BYTES]) -> bool {
    let [subcommands, _, _, _, trim, ..] = *sector;
    subcommands & 1 != 0 && trim & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector(bytes: &[u8]) -> [u8; SECTOR_BYTES] {
        let mut sector = [0; SECTOR_BYTES];
        sector[..bytes.len()].copy_from_slice(bytes);
        let sum = sector.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        sector[511] = 0u8.wrapping_sub(sum);
        sector
    }

    #[test]
    fn log_10h_names_a_tag_or_nothing() {
        let named = NcqError {
            tag: 31,
            status: 0x41,
            error: 0x40,
        };
        assert_eq!(ncq_error(&sector(&[0x7f, 0, 0x41, 0x40])), Some(named));
        assert_eq!(ncq_error(&sector(&[0x9f, 0, 0x41, 0x40])), None, "NQ");
        let mut wrong = sector(&[0x1f, 0, 0x41, 0x40]);
        wrong[300] = 1;
        assert_eq!(ncq_error(&wrong), None, "check sum");
    }

    #[test]
    fn log_13h() {
        assert!(has_queued_trim(&sector(&[1, 0, 0, 0, 1])));
        assert!(!has_queued_trim(&sector(&[1, 0, 0, 0, 0])));
        assert!(!has_queued_trim(&sector(&[0, 0, 0, 0, 1])));
    }
}
