// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of what is decoded for HDIO_*: a command's registers, and the text of an identity.

use kernel::prelude::*;
use lld_ahci::{AtaCommand, AtaReply};

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
