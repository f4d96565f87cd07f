// SPDX-License-Identifier: GPL-2.0
//! What a SCSI command that did not simply work is answered with: sense data in descriptor format
//! (SPC-5 section 4.4.2), with the ATA registers in a descriptor (SAT-4 section 12.2.6).

use crate::pass::AtaReply;

/// Response code: current, in descriptor format. Tools read nothing else for ATA registers.
const DESCRIPTORS: u8 = 0x72;
/// Sense keys.
const RECOVERED_ERROR: u8 = 0x01;
const ILLEGAL_REQUEST: u8 = 0x05;
const ABORTED_COMMAND: u8 = 0x0b;
/// Additional sense: ATA PASS-THROUGH INFORMATION AVAILABLE.
const REGISTERS: [u8; 2] = [0x00, 0x1d];
/// The ATA Status Return descriptor, and what follows its first two bytes.
const STATUS_RETURN: u8 = 0x09;
const STATUS_RETURN_LEN: u8 = 12;

/// Bytes with and without that descriptor.
const LEN: usize = 22;
const HEADER: usize = 8;

/// Sense data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    bytes: [u8; LEN],
    len: usize,
}

impl Sense {
    /// The operation code is not known here.
    pub const UNKNOWN_COMMAND: Self = Self::illegal([0x20, 0x00]);
    /// A field of the command is not supported, or contradicts another or the data.
    pub const INVALID_FIELD: Self = Self::illegal([0x24, 0x00]);

    /// Mode pages are not saved.
    pub const NOT_SAVED: Self = Self::illegal([0x39, 0x00]);

    const fn illegal([asc, ascq]: [u8; 2]) -> Self {
        let mut bytes = [0; LEN];
        [bytes[0], bytes[1], bytes[2], bytes[3]] = [DESCRIPTORS, ILLEGAL_REQUEST, asc, ascq];
        Self { bytes, len: HEADER }
    }

    /// The registers after a command that failed, or whose caller wants them. `extend`: it was one
    /// of 48 bits.
    pub fn of_registers(reply: &AtaReply, extend: bool) -> Self {
        let (key, [asc, ascq]) = match reply.is_failure() {
            true => (ABORTED_COMMAND, [0, 0]),
            false => (RECOVERED_ERROR, REGISTERS),
        };
        let [count, count_hob] = reply.count.to_le_bytes();
        let [low, mid, high, low_hob, mid_hob, high_hob, ..] = reply.lba.to_le_bytes();
        let hob = |byte: u8| if extend { byte } else { 0 };
        Self {
            bytes: [
                DESCRIPTORS,
                key,
                asc,
                ascq,
                0,
                0,
                0,
                STATUS_RETURN_LEN + 2,
                STATUS_RETURN,
                STATUS_RETURN_LEN,
                u8::from(extend),
                reply.error,
                hob(count_hob),
                count,
                hob(low_hob),
                low,
                hob(mid_hob),
                mid,
                hob(high_hob),
                high,
                reply.device,
                reply.status,
            ],
            len: LEN,
        }
    }

    /// As it goes to the caller.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: AtaReply = AtaReply {
        status: 0x50,
        error: 0x01,
        count: 0x0203,
        lba: 0x0908_0706_0504,
        device: 0x40,
    };

    #[test]
    fn registers_are_where_the_standard_has_them() {
        assert_eq!(
            Sense::of_registers(&REPLY, true).as_bytes(),
            [
                0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 14, 0x09, 12, 1, 0x01, 0x02, 0x03, 0x07, 0x04,
                0x08, 0x05, 0x09, 0x06, 0x40, 0x50
            ]
        );
        assert_eq!(
            Sense::of_registers(&REPLY, false).as_bytes()[8..],
            [0x09, 12, 0, 0x01, 0, 0x03, 0, 0x04, 0, 0x05, 0, 0x06, 0x40, 0x50]
        );
    }

    #[test]
    fn a_failure_is_an_aborted_command() {
        for (status, key) in [(0x50, 0x01), (0x51, 0x0b), (0x70, 0x0b), (0x41, 0x0b)] {
            let reply = AtaReply { status, ..REPLY };
            let sense = Sense::of_registers(&reply, false);
            assert_eq!(sense.as_bytes()[1], key, "{status:#x}");
            assert_eq!(sense.as_bytes()[21], status);
        }
    }

    #[test]
    fn what_is_illegal_has_no_registers() {
        assert_eq!(
            Sense::UNKNOWN_COMMAND.as_bytes(),
            [0x72, 0x05, 0x20, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            Sense::INVALID_FIELD.as_bytes(),
            [0x72, 0x05, 0x24, 0, 0, 0, 0, 0]
        );
    }
}
