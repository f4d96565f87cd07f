// SPDX-License-Identifier: GPL-2.0
//! Status and error bytes of a failed command (ACS-4 sections 6.2, 6.3), in the terms of the layer above.

use crate::regs::{STATUS_DF, STATUS_ERR};
use hal::{CmdError, Outcome};

/// Error: interface CRC.
const ICRC: u8 = 1 << 7;
/// Error: uncorrectable.
const UNC: u8 = 1 << 6;
/// Error: the address was not found.
const IDNF: u8 = 1 << 4;

/// What `status` and `error` mean for a command that the device names as failed.
pub(crate) fn failure(status: u8, error: u8) -> CmdError {
    let faulty = u32::from(status) & STATUS_DF != 0;
    match error {
        _ if faulty => CmdError::Io,
        error if error & ICRC != 0 => CmdError::Io,
        error if error & UNC != 0 => CmdError::Medium,
        error if error & IDNF != 0 => CmdError::Range,
        // Aborted, or nothing said: not known, or not possible now.
        _ => CmdError::Io,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_kinds() {
        let cases = [
            (0x50, Ok(())),
            (0x0450, Ok(())),
            (0x0451, Err(CmdError::Io)),
            (0x4051, Err(CmdError::Medium)),
            (0x4451, Err(CmdError::Medium)),
            (0x1051, Err(CmdError::Range)),
            (0x8451, Err(CmdError::Io)),
            (0x4071, Err(CmdError::Io)),
            (0x0070, Err(CmdError::Io)),
        ];
        for (tfd, expected) in cases {
            assert_eq!(outcome(tfd), expected, "{tfd:#x}");
        }
    }
}
