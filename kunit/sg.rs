// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of what is decoded for SG_IO: its structure, in and out.

use kernel::prelude::*;
use lld_ahci::sat::Data;

#[kunit_tests(hiops_sg)]
mod sg_suite {
    use super::*;
    use crate::scsi_ioctl::id_lun;
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

    /// No two disks are at one place, and none is where a disk of the kernel's own could be: on a
    /// host whose number begins at 0.
    #[test]
    fn places_are_nobody_elses() {
        assert!(id_lun(0) == [0xff00_0000, 1]);
        assert!(id_lun(5) == [0xff00_0005, 6]);
        assert!(id_lun(0xfedc) == [0xfffe_00dc, 0xfedd]);
        assert!(id_lun(u32::MAX) == [0xffff_00ff, 0]);
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
        // The version; a direction that is none; scattered data; a block that is too long, or too
        // short.
        assert!(refused(0, b'Q') == Some(EINVAL));
        assert!(refused(4, 0xff) == Some(EINVAL));
        assert!(refused(10, 1) == Some(EINVAL));
        assert!(refused(11, 1) == Some(EINVAL));
        assert!(header(8, 32).is_ok());
        assert!(refused(8, 33) == Some(EINVAL));
        assert!(header(8, 6).is_ok());
        assert!(refused(8, 5) == Some(EMSGSIZE));
        // 0x20_0200 bytes of data, and 0x10_0200.
        assert!(refused(14, 0x20) == Some(EINVAL));
        assert!(header(14, 0x10).is_ok());
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
