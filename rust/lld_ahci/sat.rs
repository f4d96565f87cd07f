// SPDX-License-Identifier: GPL-2.0
//! SCSI commands by which tools speak to a SATA drive (SAT-4): ATA PASS-THROUGH, and what sg3-utils
//! and their like ask a disk for. Nothing that reads or writes the medium is here: the disk is
//! none.
//!
//! [`decode`] says what a command descriptor block asks for: a command of the drive's (ATA
//! PASS-THROUGH, SAT-4 sections 12.2.2 and 12.2.3, and what has an ATA command of its own), or
//! what is known of the drive, told by [`Query::answer`]. What did not simply work is answered with
//! [`Sense`] data in descriptor format (SPC-5 section 4.4.2), with the ATA registers in a
//! descriptor (SAT-4 section 12.2.6).

use crate::cmd::{FLUSH_CACHE_EXT, STANDBY_IMMEDIATE};
use crate::internal::{AtaCommand, AtaReply};

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
    /// No more than `room` bytes of the answer to `query`.
    Query {
        /// What it asks for.
        query: Query,
        /// Its allocation length.
        room: u32,
    },
    /// SYNCHRONIZE CACHE (the whole cache, whatever part of it is meant) or START STOP UNIT: by
    /// this command, which has no data.
    NonData(AtaCommand),
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

/// What a command wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// INQUIRY: the standard data, or a page of vital product data.
    Inquiry(Option<u8>),
    /// READ CAPACITY (10).
    Capacity,
    /// READ CAPACITY (16).
    Capacity16,
    /// MODE SENSE.
    Mode(Mode),
    /// REQUEST SENSE, in descriptor format or not.
    Sense(bool),
    /// REPORT LUNS.
    Luns,
}

/// What MODE SENSE asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// By the command of ten bytes, whose header is longer.
    pub(crate) long: bool,
    /// Without the block descriptor (DBD).
    pub(crate) bare: bool,
    /// Page control and page code.
    pub(crate) page: u8,
    pub(crate) subpage: u8,
}

/// Operation codes.
const TEST_UNIT_READY: u8 = 0x00;
const REQUEST_SENSE: u8 = 0x03;
const INQUIRY: u8 = 0x12;
const MODE_SENSE_6: u8 = 0x1a;
const START_STOP_UNIT: u8 = 0x1b;
const READ_CAPACITY_10: u8 = 0x25;
const SYNCHRONIZE_CACHE_10: u8 = 0x35;
const MODE_SENSE_10: u8 = 0x5a;
const ATA_16: u8 = 0x85;
const SYNCHRONIZE_CACHE_16: u8 = 0x91;
/// With READ CAPACITY (16) as its service action, in bits 4:0.
const SERVICE_ACTION_IN: u8 = 0x9e;
const READ_CAPACITY_16: u8 = 0x10;
const REPORT_LUNS: u8 = 0xa0;
const ATA_12: u8 = 0xa1;

/// Of MODE SENSE, byte 1: no block descriptor.
const DBD: u8 = 1 << 3;
/// Of START STOP UNIT, byte 4: spin up; the tray; a power condition by name.
const START: u8 = 1 << 0;
const LOEJ: u8 = 1 << 1;
const POWER_CONDITION: u8 = 0xf0;
/// By which a drive that sleeps wakes up (SAT-4 section 9.11).
const READ_VERIFY: u8 = 0x40;
/// Device register: the address is that of a block.
const LBA_MODE: u8 = 1 << 6;

/// What the command descriptor block `cdb` asks for, with the caller's `data`.
pub fn decode(cdb: &[u8], data: Data) -> Result<Request, Sense> {
    match *cdb {
        [TEST_UNIT_READY, ..] => Ok(Request::Ready),
        [SYNCHRONIZE_CACHE_10 | SYNCHRONIZE_CACHE_16, ..] => Ok(Request::NonData(AtaCommand {
            command: FLUSH_CACHE_EXT,
            device: LBA_MODE,
            ..AtaCommand::default()
        })),
        [START_STOP_UNIT, _, _, _, how, ..] => start_stop(how),
        [ATA_12 | ATA_16, ..] => {
            let (how, what, command) = registers(cdb).ok_or(Sense::UNKNOWN_COMMAND)?;
            pass_through(how, what, command, data)
        }
        _ => question(cdb),
    }
}

/// START STOP UNIT, whose byte 4 is `how`: the drive parks, or wakes up.
fn start_stop(how: u8) -> Result<Request, Sense> {
    if how & (LOEJ | POWER_CONDITION) != 0 {
        return Err(Sense::INVALID_FIELD);
    }
    Ok(Request::NonData(match how & START {
        0 => AtaCommand {
            command: STANDBY_IMMEDIATE,
            ..AtaCommand::default()
        },
        _ => AtaCommand {
            command: READ_VERIFY,
            count: 1,
            device: LBA_MODE,
            ..AtaCommand::default()
        },
    }))
}

/// A command that is answered from what is known of the drive.
fn question(cdb: &[u8]) -> Result<Request, Sense> {
    let tell = |query, room| Ok(Request::Query { query, room });
    let word = |high, low| u32::from(u16::from_be_bytes([high, low]));
    match *cdb {
        [REQUEST_SENSE, how, _, _, room, ..] => tell(Query::Sense(how & 1 != 0), room.into()),
        [INQUIRY, 0, 0, high, low, ..] => tell(Query::Inquiry(None), word(high, low)),
        [INQUIRY, 1, page, high, low, ..] => tell(Query::Inquiry(Some(page)), word(high, low)),
        // A page code without EVPD.
        [INQUIRY, ..] => Err(Sense::INVALID_FIELD),
        [MODE_SENSE_6, how, page, subpage, room, ..] => {
            let mode = Mode {
                long: false,
                bare: how & DBD != 0,
                page,
                subpage,
            };
            tell(Query::Mode(mode), room.into())
        }
        [MODE_SENSE_10, how, page, subpage, _, _, _, high, low, ..] => {
            let mode = Mode {
                long: true,
                bare: how & DBD != 0,
                page,
                subpage,
            };
            tell(Query::Mode(mode), word(high, low))
        }
        [READ_CAPACITY_10, _, _, _, _, _, _, _, _, _, ..] => tell(Query::Capacity, 8),
        [SERVICE_ACTION_IN, action, _, _, _, _, _, _, _, _, a, b, c, d, _, _, ..]
            if action & 0x1f == READ_CAPACITY_16 =>
        {
            tell(Query::Capacity16, u32::from_be_bytes([a, b, c, d]))
        }
        [SERVICE_ACTION_IN, ..] => Err(Sense::INVALID_FIELD),
        [REPORT_LUNS, _, _, _, _, _, a, b, c, d, ..] => {
            tell(Query::Luns, u32::from_be_bytes([a, b, c, d]))
        }
        _ => Err(Sense::UNKNOWN_COMMAND),
    }
}

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

/// How many bytes a block of [`BYT_BLOK`] has at least.
const BLOCK: u32 = 512;
/// Device register: the second of two drives on a cable, which serial ATA does not have.
const SECOND: u8 = 1 << 4;

/// Bytes 1 and 2 of ATA PASS-THROUGH (12) or (16), and the registers in it.
fn registers(cdb: &[u8]) -> Option<(u8, u8, AtaCommand)> {
    match *cdb {
        [ATA_12, how, what, features, count, low, mid, high, device, command, _, _, ..] => {
            let command = AtaCommand {
                command,
                features: features.into(),
                count: count.into(),
                lba: lba([low, mid, high, 0, 0, 0]),
                device,
            };
            // Bit 0 is reserved here.
            Some((how & !EXTEND, what, command))
        }
        #[rustfmt::skip]
        [
            ATA_16, how, what, features_hob, features, count_hob, count,
            low_hob, low, mid_hob, mid, high_hob, high, device, command, _, ..
        ] => {
            let hob = |byte: u8| if how & EXTEND != 0 { byte } else { 0 };
            let command = AtaCommand {
                command,
                features: u16::from_be_bytes([hob(features_hob), features]),
                count: u16::from_be_bytes([hob(count_hob), count]),
                lba: lba([low, mid, high, hob(low_hob), hob(mid_hob), hob(high_hob)]),
                device,
            };
            Some((how, what, command))
        }
        _ => None,
    }
}

fn lba([low, mid, high, low_hob, mid_hob, high_hob]: [u8; 6]) -> u64 {
    u64::from_le_bytes([low, mid, high, low_hob, mid_hob, high_hob, 0, 0])
}

/// ATA PASS-THROUGH with bytes 1 and 2, `how` and `what`: refused where protocol, direction and
/// length of the data do not agree with each other and with the `data` that there is.
fn pass_through(how: u8, what: u8, command: AtaCommand, data: Data) -> Result<Request, Sense> {
    let from_device = what & T_DIR != 0;
    let bytes = match ((how >> 1) & 0xf, data) {
        (NON_DATA, Data::Nothing) => 0,
        (PIO_IN | DMA | UDMA_IN, Data::FromDevice(bytes)) if from_device => bytes,
        (PIO_OUT | DMA | UDMA_OUT, Data::ToDevice(bytes)) if !from_device => bytes,
        // Resets, queued commands, and what does not agree.
        _ => return Err(Sense::INVALID_FIELD),
    };
    // What the command says of the data's length: the drive may transfer as much, so there has to
    // be room for it.
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
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::ProptestConfig;

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

    fn told(cdb: &[u8]) -> Result<(Query, u32), Sense> {
        match decode(cdb, SECTOR)? {
            Request::Query { query, room } => Ok((query, room)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_asked_for_and_how_much_of_it() {
        let mode = |long, bare, page, subpage| {
            Query::Mode(Mode {
                long,
                bare,
                page,
                subpage,
            })
        };
        assert_eq!(
            told(&[0x12, 0, 0, 1, 2, 0]),
            Ok((Query::Inquiry(None), 0x102))
        );
        assert_eq!(
            told(&[0x12, 1, 0x83, 0, 252, 0]),
            Ok((Query::Inquiry(Some(0x83)), 252))
        );
        assert_eq!(told(&[0x12, 0, 0x83, 0, 252, 0]), Err(Sense::INVALID_FIELD));
        assert_eq!(told(&[0x03, 1, 0, 0, 18, 0]), Ok((Query::Sense(true), 18)));
        assert_eq!(
            told(&[0x03, 0, 0, 0, 252, 0]),
            Ok((Query::Sense(false), 252))
        );
        assert_eq!(
            told(&[0x1a, 8, 0x3f, 0xff, 4, 0]),
            Ok((mode(false, true, 0x3f, 0xff), 4))
        );
        let long = [0x5a, 0x10, 0x48, 0, 0, 0, 0, 1, 2, 0];
        assert_eq!(told(&long), Ok((mode(true, false, 0x48, 0), 0x102)));
        assert_eq!(told(&long[..8]), Err(Sense::UNKNOWN_COMMAND));
        assert_eq!(
            told(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            Ok((Query::Capacity, 8))
        );
        let mut capacity = [0; 16];
        (capacity[0], capacity[1], capacity[12], capacity[13]) = (0x9e, 0x10, 1, 2);
        assert_eq!(told(&capacity), Ok((Query::Capacity16, 0x102)));
        capacity[1] = 0x12;
        assert_eq!(told(&capacity), Err(Sense::INVALID_FIELD));
    }

    #[test]
    fn other_commands() {
        let none = Data::Nothing;
        assert_eq!(decode(&[0; 6], none), Ok(Request::Ready));
        for opcode in [0x35, 0x91] {
            let Ok(Request::NonData(command)) = decode(&[opcode, 0, 0, 0, 0, 0], none) else {
                panic!("{opcode:#x}");
            };
            assert_eq!((command.command, command.device), (0xea, 0x40));
        }
        // Stop, start; with the tray, a power condition.
        for (how, is) in [(0, (0xe0, 0, 0)), (1, (0x40, 1, 0x40))] {
            let Ok(Request::NonData(command)) = decode(&[0x1b, 1, 0, 0, how, 0], none) else {
                panic!("{how:#x}");
            };
            assert_eq!((command.command, command.count, command.device), is);
        }
        for how in [2, 3, 0x10, 0xf1] {
            let refused = decode(&[0x1b, 0, 0, 0, how, 0], none);
            assert_eq!(refused, Err(Sense::INVALID_FIELD));
        }
        let luns = [0xa0, 0, 2, 0, 0, 0, 0, 0, 1, 2, 0, 0];
        assert_eq!(told(&luns), Ok((Query::Luns, 0x102)));
        // READ (10), LOG SENSE, ATA PASS-THROUGH (32), nothing at all.
        for opcode in [0x28, 0x4d, 0x7f] {
            assert_eq!(decode(&[opcode; 16], none), Err(Sense::UNKNOWN_COMMAND));
        }
        assert_eq!(decode(&[], none), Err(Sense::UNKNOWN_COMMAND));
    }

    proptest::proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 500 }))]
        #[test]
        fn any_command_is_decoded(
            cdb in proptest::collection::vec(proptest::num::u8::ANY, 0..33),
            pass in proptest::bool::ANY,
            bytes in 0u32..4096,
        ) {
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
