// SPDX-License-Identifier: GPL-2.0
//! The status field of a completion (Base 2.0 section 3.3.3.2; NVM Command Set 1.0 section 3.1), in the terms of the layer above.

use hal::{CmdError, Outcome};

/// `DNR`: the same command would fail again.
const DO_NOT_RETRY: u16 = 1 << 14;

/// Status code types, in bits 10:8.
const GENERIC: u16 = 0;
const COMMAND_SPECIFIC: u16 = 1;
const MEDIA: u16 = 2;
const PATH: u16 = 3;

/// What the 15 bits above the phase mean for a command of the data path.
#[inline]
pub(crate) fn outcome(status: u16) -> Outcome {
    // Success is code 0 of type 0, whatever the bits above say.
    if status & 0x7ff == 0 {
        return Ok(());
    }
    Err(failure(status))
}

#[cold]
fn failure(status: u16) -> CmdError {
    let error = match ((status >> 8) & 7, status & 0xff) {
        (GENERIC, code) => generic(code),
        // Conflicting Attributes, Command Size Limit Exceeded.
        (COMMAND_SPECIFIC, 0x80 | 0x83) => CmdError::Invalid,
        // Invalid Protection Information.
        (COMMAND_SPECIFIC, 0x81) => CmdError::Protection,
        // Attempted Write to Read Only Range.
        (COMMAND_SPECIFIC, 0x82) => CmdError::ReadOnly,
        // Write Fault, Unrecovered Read Error, Compare Failure, Deallocated or Unwritten Logical Block.
        (MEDIA, 0x80 | 0x81 | 0x85 | 0x87) => CmdError::Medium,
        // End-to-end Guard, Application Tag, Reference Tag, Storage Tag Check Error.
        (MEDIA, 0x82..=0x84 | 0x88) => CmdError::Protection,
        // Command Aborted By Host.
        (PATH, 0x71) => CmdError::Aborted,
        _ => CmdError::Io,
    };
    // "Later" is no advice when the device says that it would fail again.
    match error {
        CmdError::NotReady if status & DO_NOT_RETRY != 0 => CmdError::Io,
        error => error,
    }
}

fn generic(code: u16) -> CmdError {
    match code {
        // Invalid Command Opcode.
        0x01 => CmdError::Unsupported,
        // Invalid Field; PRP and SGL errors.
        0x02 | 0x0d..=0x13 | 0x16 => CmdError::Invalid,
        // Aborted: Power Loss Notification, Requested, SQ Deletion, Failed or Missing Fused, Preempt.
        0x05 | 0x07..=0x0a => CmdError::Aborted,
        // Invalid Namespace (detached meanwhile), LBA Out of Range.
        0x0b | 0x80 => CmdError::Range,
        // Sanitize In Progress, Command Interrupted, Namespace Not Ready, Format In Progress.
        0x1d | 0x21 | 0x82 | 0x84 => CmdError::NotReady,
        // Namespace is Write Protected.
        0x20 => CmdError::ReadOnly,
        // Capacity Exceeded.
        0x81 => CmdError::NoSpace,
        // Reservation Conflict.
        0x83 => CmdError::Reserved,
        _ => CmdError::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_become_kinds() {
        let cases = [
            (0x0000, Ok(())),
            (0x7800, Ok(())),
            (0x0001, Err(CmdError::Unsupported)),
            (0x4002, Err(CmdError::Invalid)),
            (0x0004, Err(CmdError::Io)),
            (0x0006, Err(CmdError::Io)),
            (0x0007, Err(CmdError::Aborted)),
            (0x400b, Err(CmdError::Range)),
            (0x0020, Err(CmdError::ReadOnly)),
            (0x4080, Err(CmdError::Range)),
            (0x0081, Err(CmdError::NoSpace)),
            (0x0082, Err(CmdError::NotReady)),
            (0x4082, Err(CmdError::Io)),
            (0x0083, Err(CmdError::Reserved)),
            (0x0182, Err(CmdError::ReadOnly)),
            (0x0280, Err(CmdError::Medium)),
            (0x0281, Err(CmdError::Medium)),
            (0x4281, Err(CmdError::Medium)),
            (0x0282, Err(CmdError::Protection)),
            (0x0370, Err(CmdError::Io)),
            (0x0371, Err(CmdError::Aborted)),
            (0x07ff, Err(CmdError::Io)),
        ];
        for (status, expected) in cases {
            assert_eq!(outcome(status), expected, "status {status:#06x}");
        }
    }
}
