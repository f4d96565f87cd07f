// SPDX-License-Identifier: GPL-2.0
//! KUnit suites of what is decoded here: the structures of SG_IO and HDIO_*.

use kernel::prelude::*;
use lld_ahci::sat::Data;
use lld_ahci::{AtaCommand, AtaReply};

#[kunit_tests(hiops_sg)]
mod sg_suite {
    use super::*;
    use crate::sg::{Answer, Header, INPUT_BYTES};

    /// A header of 512 bytes from the device, with one byte changed for another.
    fn header(at: usize, byte: u8) -> Result<Header> {
        let mut bytes = [0; INPUT_BYTES];
        let fields: [(usize, &[u8]); 8] = [
            (0, b"S"),
            (4, &(-3i32).to_le_bytes()),
            (8, &[16, 32]),
            (12, &512u32.to_le_bytes()),
            (16, &0x1111_2222_3333u64.to_le_bytes()),
            (24, &0x4444_5555_6666u64.to_le_bytes()),
            (32, &0x7777_8888_9999u64.to_le_bytes()),
            (40, &60_000u32.to_le_bytes()),
        ];
        for (at, field) in fields {
            bytes
                .iter_mut()
                .skip(at)
                .zip(field)
                .for_each(|(to, from)| *to = *from);
        }
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        Header::parse(&bytes)
    }

    #[test]
    fn fields_are_where_the_kernel_has_them() {
        let expected = Header {
            cdb: 0x4444_5555_6666,
            cdb_len: 16,
            sense: 0x7777_8888_9999,
            sense_room: 32,
            data: Data::FromDevice(512),
            data_at: 0x1111_2222_3333,
            timeout_ms: 60_000,
        };
        assert!(header(usize::MAX, 0) == Ok(expected));
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        let refused = |at, byte| header(at, byte).err();
        // The version; a direction that is none; scattered data; a block that is too long, or too short.
        assert!(refused(0, b'Q') == Some(EINVAL));
        assert!(refused(4, 0xff) == Some(EINVAL));
        assert!(refused(10, 1) == Some(EINVAL));
        assert!(refused(11, 1) == Some(EINVAL));
        assert!(header(8, 32).is_ok());
        assert!(refused(8, 33) == Some(EINVAL));
        assert!(header(8, 6).is_ok());
        assert!(refused(8, 5) == Some(EMSGSIZE));
        // 0x10_0200 bytes of data, and 0x8_0200.
        assert!(refused(14, 0x10) == Some(EINVAL));
        assert!(header(14, 0x08).is_ok());
    }

    #[test]
    fn a_direction_matters_with_data_only() {
        let data = |at, byte| header(at, byte).map(|header| header.data);
        assert!(data(4, 0xfe) == Ok(Data::ToDevice(512)));
        assert!(data(4, 0xfc) == Ok(Data::FromDevice(512)));
        assert!(data(13, 0) == Ok(Data::Nothing));
    }

    #[test]
    fn a_command_has_some_time() {
        let timeout = |high| header(41, high).map(|header| header.timeout_ms);
        // 0x60 ms and 0x2060 ms.
        assert!(timeout(0) == Ok(7_000));
        assert!(timeout(0x20) == Ok(0x2060));
    }

    #[test]
    fn an_answer_is_where_the_kernel_has_it() {
        let mut answer = Answer {
            sense: None,
            residue: 0x0102,
            duration_ms: 3,
        };
        let [zero, residue, duration] = [[0; 4], [2, 1, 0, 0], [3, 0, 0, 0]];
        assert!(answer.encode() == [zero, zero, residue, duration, zero]);
        answer.sense = Some(22);
        let words = [[2, 1, 0, 22], [0, 0, 8, 0], residue, duration, [1, 0, 0, 0]];
        assert!(answer.encode() == words);
    }
}

#[kunit_tests(hiops_hdio)]
mod hdio_suite {
    use super::*;
    use crate::hdio;

    const REPLY: AtaReply = AtaReply {
        status: 0x50,
        error: 1,
        count: 2,
        lba: 0x05_0403,
        device: 0x46,
    };

    #[test]
    fn registers_of_a_command_with_data() {
        let (command, blocks) = hdio::drive_cmd([0xec, 7, 8, 1]);
        let expected = AtaCommand {
            command: 0xec,
            features: 8,
            count: 7,
            ..AtaCommand::default()
        };
        assert!((command, blocks) == (expected, 1));
        assert!(hdio::drive_cmd_reply(&REPLY) == [0x50, 1, 2]);
    }

    #[test]
    fn smart_has_its_own_order() {
        let (command, blocks) = hdio::drive_cmd([0xb0, 6, 0xd5, 2]);
        let expected = AtaCommand {
            command: 0xb0,
            features: 0xd5,
            count: 2,
            lba: 0xc2_4f06,
            device: 0,
        };
        assert!((command, blocks) == (expected, 2));
    }

    #[test]
    fn registers_of_a_command_without_data() {
        let command = hdio::drive_task([0xb0, 0xda, 2, 3, 4, 5, 0xf6]);
        let expected = AtaCommand {
            command: 0xb0,
            features: 0xda,
            count: 2,
            lba: 0x05_0403,
            device: 0x46,
        };
        assert!(command == expected);
        assert!(hdio::drive_task_reply(&REPLY) == [0x50, 1, 2, 3, 4, 5, 0x46]);
    }

    #[test]
    fn text_is_in_order_and_nothing_else_is_moved() {
        let mut sector = [0; hdio::BLOCK];
        // CAST: their low bytes.
        (0..)
            .zip(&mut sector)
            .for_each(|(at, byte)| *byte = at as u8);
        hdio::identity(&mut sector);
        for (at, byte) in (0u32..).zip(sector) {
            let text = (20..40).contains(&at) || (46..94).contains(&at);
            assert!(u32::from(byte) == (if text { at ^ 1 } else { at }) & 0xff);
        }
    }
}
