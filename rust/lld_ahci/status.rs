// SPDX-License-Identifier: GPL-2.0
//! Status and error bytes of a failed command (ACS-4 sections 6.2, 6.3), in the terms of the layer
//! above.
//!
//! Kinds, and what is tried again, are libata's in Linux 7.3: `ata_to_sense_error` in
//! drivers/ata/libata-scsi.c and `ata_eh_analyze_tf`, `ata_eh_worth_retry` in
//! drivers/ata/libata-eh.c. A block that can't be read is not read again: the drive has tried for
//! long enough. Everything else of a file system is: the link may have spoilt it.

use crate::decline::Trouble;
use crate::regs::{STATUS_DF, STATUS_ERR};
use hal::{CmdError, Failure, Outcome};

/// Error: interface CRC; without `ABRT`, on old drives, a block marked bad.
const ICRC: u8 = 1 << 7;
/// Error: uncorrectable.
const UNC: u8 = 1 << 6;
/// Error: the address was not found.
const IDNF: u8 = 1 << 4;
/// Error: aborted.
const ABRT: u8 = 1 << 2;
/// Error: no address mark, on old drives.
const AMNF: u8 = 1;

/// What `status` and `error` mean for a command that the device names as failed.
pub(crate) fn failure(status: u8, error: u8) -> Failure {
    let faulty = u32::from(status) & STATUS_DF != 0;
    match error {
        error if error & (UNC | AMNF) != 0 => CmdError::Medium.finally(),
        error if error & (ICRC | ABRT) == ICRC => CmdError::Medium.again(),
        error if error & IDNF != 0 => CmdError::Range.again(),
        0 if faulty => CmdError::Fault.again(),
        // Aborted, spoilt on the way, or nothing said: not known, or not possible now.
        _ => CmdError::Io.again(),
    }
}

/// What `error` says of queue and link, as `ata_eh_categorize_error` sees it.
pub(crate) fn trouble(error: u8) -> Option<Trouble> {
    match error {
        error if error & ICRC != 0 => Some(Trouble::Link),
        error if error & (UNC | AMNF | IDNF) != 0 => None,
        _ => Some(Trouble::Drive),
    }
}

/// `PxTFD`, with the status in its first byte and the error in its second, as an outcome.
pub(crate) fn outcome(tfd: u32) -> Outcome {
    match tfd & (STATUS_ERR | STATUS_DF) {
        0 => Ok(()),
        // CAST: the two bytes.
        _ => Err(failure(tfd as u8, (tfd >> 8) as u8)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn medium_and_address_speak_neither_against_queue_nor_link() {
        assert_eq!(trouble(ICRC | ABRT), Some(Trouble::Link));
        assert_eq!(trouble(ICRC | UNC), Some(Trouble::Link));
        assert_eq!([UNC, AMNF, IDNF, UNC | ABRT].map(trouble), [None; 4]);
        assert_eq!([0, ABRT].map(trouble), [Some(Trouble::Drive); 2]);
    }

    #[test]
    fn bytes_become_kinds() {
        let cases = [
            (0x50, Ok(())),
            (0x0450, Ok(())),
            (0x0451, Err(CmdError::Io.again())),
            (0x4051, Err(CmdError::Medium.finally())),
            (0x4451, Err(CmdError::Medium.finally())),
            (0x0151, Err(CmdError::Medium.finally())),
            (0xc451, Err(CmdError::Medium.finally())),
            (0x1051, Err(CmdError::Range.again())),
            (0x8451, Err(CmdError::Io.again())),
            (0x8051, Err(CmdError::Medium.again())),
            (0x4071, Err(CmdError::Medium.finally())),
            (0x0070, Err(CmdError::Fault.again())),
            (0x0471, Err(CmdError::Io.again())),
        ];
        for (tfd, expected) in cases {
            assert_eq!(outcome(tfd), expected, "{tfd:#x}");
        }
    }
}
