// SPDX-License-Identifier: GPL-2.0
//! SCSI commands by which tools speak to a SATA drive (SAT-4): ATA PASS-THROUGH (sections 12.2.2 and 12.2.3), and INQUIRY and TEST UNIT READY,
//! by which they find out what they speak to. Nothing else of SCSI is here: the disk is none.

use crate::pass::AtaCommand;
use crate::sense::Sense;
use hal::Unit;

/// Operation codes.
const TEST_UNIT_READY: u8 = 0x00;
const INQUIRY: u8 = 0x12;
const ATA_16: u8 = 0x85;
const ATA_12: u8 = 0xa1;

/// PROTOCOL, byte 1 bits 4:1.
const NON_DATA: u8 = 3;
const PIO_IN: u8 = 4;
const PIO_OUT: u8 = 5;
const DMA: u8 = 6;
const UDMA_IN: u8 = 10;
const UDMA_OUT: u8 = 11;
/// EXTEND, byte 1.
const EXTEND: u8 = 1;

/// Byte 2: where the length of the data is said,
const T_LENGTH: u8 = 0b11;
const IN_FEATURES: u8 = 1;
const IN_COUNT: u8 = 2;
/// that it is in blocks,
const BYT_BLOK: u8 = 1 << 2;
/// that the data comes from the drive,
const T_DIR: u8 = 1 << 3;
/// that the registers are wanted in any case.
const CK_COND: u8 = 1 << 5;

/// A block of [`BYT_BLOK`] has at least so many bytes.
const BLOCK: u32 = 512;
/// Device register: the second of two drives on a cable, which serial ATA does not have.
const SECOND: u8 = 1 << 4;

/// Bytes of standard INQUIRY data.
pub const INQUIRY_BYTES: usize = 36;

/// Data that a caller of tools gives or has room for, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// None.
    Nothing,
    /// It is to come from the drive.
    FromDevice(u32),
    /// It goes there.
    ToDevice(u32),
}

impl Data {
    /// How much it is.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::FromDevice(bytes) | Self::ToDevice(bytes) => bytes,
        }
    }
}

/// A SCSI command that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// TEST UNIT READY.
    Ready,
    /// INQUIRY, for [`inquiry`]: no more than so many bytes.
    Inquiry(u16),
    /// ATA PASS-THROUGH: all of the caller's data is the command's.
    Ata {
        /// The command.
        command: AtaCommand,
        /// It is one of 48 bits.
        extend: bool,
        /// The registers are wanted even if it did not fail ([`Sense::of_registers`]).
        registers: bool,
    },
}

/// What the command descriptor block `cdb` asks for, with the caller's `data`.
pub fn decode(cdb: &[u8], data: Data) -> Result<Request, Sense> {
    match *cdb {
        [TEST_UNIT_READY, ..] => Ok(Request::Ready),
        [INQUIRY, 0, 0, high, low, ..] => Ok(Request::Inquiry(u16::from_be_bytes([high, low]))),
        // Pages of vital product data: nobody asks for them who knows that the drive is an ATA one.
        [INQUIRY, ..] => Err(Sense::INVALID_FIELD),
        [ATA_12, how, what, features, count, low, mid, high, device, command, _, _, ..] => {
            let command = AtaCommand {
                command,
                features: features.into(),
                count: count.into(),
                lba: lba([low, mid, high, 0, 0, 0]),
                device,
            };
            // Bit 0 is reserved here.
            pass_through(how & !EXTEND, what, command, data)
        }
        [ATA_16, how, what, features_hob, features, count_hob, count, low_hob, low, mid_hob, mid, high_hob, high, device, command, _, ..] =>
        {
            let hob = |byte: u8| if how & EXTEND != 0 { byte } else { 0 };
            let command = AtaCommand {
                command,
                features: u16::from_be_bytes([hob(features_hob), features]),
                count: u16::from_be_bytes([hob(count_hob), count]),
                lba: lba([low, mid, high, hob(low_hob), hob(mid_hob), hob(high_hob)]),
                device,
            };
            pass_through(how, what, command, data)
        }
        _ => Err(Sense::UNKNOWN_COMMAND),
    }
}

fn lba([low, mid, high, low_hob, mid_hob, high_hob]: [u8; 6]) -> u64 {
    u64::from_le_bytes([low, mid, high, low_hob, mid_hob, high_hob, 0, 0])
}

/// `how` and `what` are bytes 1 and 2.
fn pass_through(how: u8, what: u8, command: AtaCommand, data: Data) -> Result<Request, Sense> {
    let from_device = what & T_DIR != 0;
    let bytes = match ((how >> 1) & 0xf, data) {
        (NON_DATA, Data::Nothing) => 0,
        (PIO_IN | DMA | UDMA_IN, Data::FromDevice(bytes)) if from_device => bytes,
        (PIO_OUT | DMA | UDMA_OUT, Data::ToDevice(bytes)) if !from_device => bytes,
        // Resets, queued commands, and what does not agree.
        _ => return Err(Sense::INVALID_FIELD),
    };
    // What the command says of the data's length: the drive may transfer as much, so there has to be room for it.
    let said = match what & T_LENGTH {
        0 if bytes != 0 => return Err(Sense::INVALID_FIELD),
        IN_FEATURES => u32::from(command.features),
        IN_COUNT => u32::from(command.count),
        // Nothing, or that it is as long as it is.
        _ => 0,
    };
    let unit = match what & BYT_BLOK {
        0 => 1,
        _ => BLOCK,
    };
    if said.saturating_mul(unit) > bytes {
        return Err(Sense::INVALID_FIELD);
    }
    Ok(Request::Ata {
        command: AtaCommand {
            device: command.device & !SECOND,
            ..command
        },
        extend: how & EXTEND != 0,
        registers: what & CK_COND != 0,
    })
}

/// The standard INQUIRY data of a drive (SAT-4 section 8.1.2, SPC-5 section 6.7.2).
pub fn inquiry(unit: &Unit) -> [u8; INQUIRY_BYTES] {
    let mut page = [0; INQUIRY_BYTES];
    // SPC-3; this response format; so many bytes follow; command queuing.
    let head = [0, 0, 5, 2, (INQUIRY_BYTES - 5) as u8, 0, 0, 2];
    // The last four characters of the revision say most of it, where there are any.
    let (first, last) = unit.firmware.split_at(4);
    let revision = match last.iter().all(|byte| matches!(byte, 0 | b' ')) {
        true => first,
        false => last,
    };
    let fields = head.iter().chain(b"ATA     ");
    let fields = fields.chain(unit.model.iter().take(16)).chain(revision);
    page.iter_mut()
        .zip(fields)
        .for_each(|(to, from)| *to = *from);
    page
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn ata(cdb: &[u8], data: Data) -> Result<(AtaCommand, bool, bool), Sense> {
        match decode(cdb, data)? {
            Request::Ata {
                command,
                extend,
                registers,
            } => Ok((command, extend, registers)),
            other => panic!("{other:?}"),
        }
    }

    const BAD: Result<(AtaCommand, bool, bool), Sense> = Err(Sense::INVALID_FIELD);
    const SECTOR: Data = Data::FromDevice(512);

    /// ATA PASS-THROUGH (16) with two blocks in its count.
    fn sixteen(how: u8, what: u8) -> [u8; 16] {
        [
            0x85, how, what, 1, 2, 0, 2, 5, 6, 7, 8, 9, 10, 0xff, 0x25, 0,
        ]
    }

    #[test]
    fn registers_of_16_bytes() {
        let data = Data::FromDevice(1024);
        let (command, extend, registers) = ata(&sixteen(0x09, 0x0e), data).unwrap();
        let expected = AtaCommand {
            command: 0x25,
            features: 0x0102,
            count: 2,
            lba: 0x0907_050a_0806,
            device: 0xef,
        };
        assert_eq!((command, extend, registers), (expected, true, false));
        let (command, extend, registers) = ata(&sixteen(0x08, 0x2e), data).unwrap();
        let expected = AtaCommand {
            features: 0x02,
            lba: 0x0a_0806,
            ..expected
        };
        assert_eq!((command, extend, registers), (expected, false, true));
    }

    #[test]
    fn registers_of_12_bytes() {
        // As udev's ata_id asks for IDENTIFY DEVICE.
        let cdb = [0xa1, 0x09, 0x2e, 1, 1, 3, 4, 5, 0xa0, 0xec, 0, 0];
        let expected = AtaCommand {
            command: 0xec,
            features: 1,
            count: 1,
            lba: 0x05_0403,
            device: 0xa0,
        };
        assert_eq!(ata(&cdb, SECTOR), Ok((expected, false, true)));
        assert_eq!(decode(&cdb[..11], SECTOR), Err(Sense::UNKNOWN_COMMAND));
    }

    #[test]
    fn protocol_direction_and_data_agree() {
        let data = [Data::Nothing, Data::FromDevice(1024), Data::ToDevice(1024)];
        for protocol in 0..16u8 {
            for (what, length) in [(0x0e, true), (0x06, true), (0x08, false), (0x00, false)] {
                for data in data {
                    let good = match (protocol, data) {
                        (3, Data::Nothing) => !length,
                        (4 | 6 | 10, Data::FromDevice(_)) => what == 0x0e,
                        (5 | 6 | 11, Data::ToDevice(_)) => what == 0x06,
                        _ => false,
                    };
                    let is = ata(&sixteen(protocol << 1, what), data);
                    assert_eq!(is.is_ok(), good, "{protocol} {what:#x} {data:?} {is:?}");
                }
            }
        }
    }

    #[test]
    fn there_is_room_for_what_the_command_says() {
        // Blocks and bytes, in the features and in the count; and what says nothing.
        for (what, least) in [(0x0e, 1024), (0x0a, 2), (0x0d, 1024), (0x09, 2), (0x0b, 1)] {
            for (bytes, good) in [(least - 1, false), (least, true), (least + 1, true)] {
                let mut cdb = sixteen(0x08, what);
                (cdb[3], cdb[4]) = (0, 2);
                let is = ata(&cdb, Data::FromDevice(bytes));
                assert_eq!(is.is_ok(), good || what == 0x0b, "{what:#x} {bytes}");
            }
        }
        // 65,535 blocks.
        let mut cdb = sixteen(0x09, 0x0e);
        (cdb[5], cdb[6]) = (0xff, 0xff);
        assert_eq!(ata(&cdb, Data::FromDevice(65_535 * 512 - 1)), BAD);
        assert!(ata(&cdb, Data::FromDevice(65_535 * 512)).is_ok());
    }

    #[test]
    fn other_commands() {
        let none = Data::Nothing;
        assert_eq!(decode(&[0; 6], none), Ok(Request::Ready));
        assert_eq!(
            decode(&[0x12, 0, 0, 1, 2, 0], SECTOR),
            Ok(Request::Inquiry(0x0102))
        );
        // A page of vital product data.
        assert_eq!(
            decode(&[0x12, 1, 0x80, 0, 36, 0], SECTOR),
            Err(Sense::INVALID_FIELD)
        );
        // READ (10), START STOP UNIT, ATA PASS-THROUGH (32), nothing at all.
        for opcode in [0x28, 0x1b, 0x7f] {
            assert_eq!(decode(&[opcode; 16], none), Err(Sense::UNKNOWN_COMMAND));
        }
        assert_eq!(decode(&[], none), Err(Sense::UNKNOWN_COMMAND));
    }

    #[test]
    fn a_drive_says_what_it_is() {
        let mut unit = Unit {
            id: 0,
            block_shift: 9,
            physical_shift: 9,
            blocks: 1,
            write_cache: false,
            fua: false,
            discard: None,
            max_write_zeroes: 0,
            stripe_blocks: 0,
            read_only: false,
            rotational: false,
            ids: hal::UnitIds::default(),
            serial: [b' '; 20],
            model: *b"A DRIVE WITH A LONG NAME                ",
            firmware: *b"2.5+    ",
        };
        let page = inquiry(&unit);
        assert_eq!(page[..8], [0, 0, 5, 2, 31, 0, 0, 2]);
        assert_eq!(page[8..], *b"ATA     A DRIVE WITH A L2.5+");
        unit.firmware = *b"FW 12345";
        assert_eq!(inquiry(&unit)[32..], *b"2345");
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 500 }))]
        #[test]
        fn any_command_is_decoded(cdb in proptest::collection::vec(proptest::num::u8::ANY, 0..33), pass in proptest::bool::ANY, bytes in 0u32..4096) {
            let mut cdb = cdb;
            if let (true, Some(opcode)) = (pass, cdb.first_mut()) {
                *opcode = 0x85;
            }
            for data in [Data::Nothing, Data::FromDevice(bytes), Data::ToDevice(bytes)] {
                if let Ok(Request::Ata { command, extend, .. }) = decode(&cdb, data) {
                    assert!(extend || command.count <= 0xff && command.lba < 1 << 24);
                    assert!(command.lba < 1 << 48);
                }
            }
        }
    }
}
