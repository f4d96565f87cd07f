// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of a disk's files: what is written there, in whose words.

use super::unit::unit;
use crate::blk::request::{DiskStats, Sums};
use crate::sysfs::{mode_of, write_stats, write_wwid};
use crate::text::Text;
use hal::{Unit, UnitIds, UnitKind};
use kernel::prelude::*;

/// What `write` writes, compared with `wanted`.
fn writes(wanted: &str, write: impl FnOnce(&mut Text<'_>) -> core::fmt::Result) -> bool {
    let mut page = [0u8; 1024];
    let mut text = Text::new(&mut page);
    let written = write(&mut text);
    let len = text.len();
    written.is_ok() && page.get(..len) == Some(wanted.as_bytes())
}

#[kunit_tests(hiops_sysfs)]
mod sysfs_suite {
    use super::*;
    use crate::blk::ioctl::ControllerCounts;
    use engine::Context;

    #[test]
    fn completed_is_the_sum() -> Result<(), hal::Error> {
        let stats = DiskStats::new()?;
        stats.submitted(3);
        stats.not_submitted();
        for (n, by) in [
            (2, Context::Irq),
            (4, Context::Lazy),
            (6, Context::Coop),
            (8, Context::Poll),
            (10, Context::Sweep),
        ] {
            stats.completed(n, by);
        }
        (0..12).for_each(|_| stats.retried());
        stats.bytes_read(18);
        stats.bytes_written(19, false);
        stats.bytes_written(20, true);
        stats.bytes_moved(512);
        let sums = stats.sums();
        let counts = ControllerCounts {
            interrupts: 5,
            doorbell_writes: 6,
            resets: 7,
            asked: 3,
            max_irq_ns: 8,
            max_tick_ns: 9,
            ticks: 10,
            naps: [14, 15, 16, 17],
            turns: 11,
            missed: 12,
            aborts: 13,
        };
        assert!(writes(
            "submitted 2\ncompleted 30\ncompleted_irq 12\ncompleted_lazy 4\ncompleted_coop 6\n\
             completed_poll 8\nfifo_deferred 0\ninterrupts 5\ndoorbell_writes 6\nerrors 0\n\
             retried 12\ntimeouts 0\n\
             resets 7\nmax_irq_ns 8\nmax_tick_ns 9\nticks 10\nturns 11\n\
             missed_interrupts 12\naborts 13\nswept 10\n\
             naps 62\nnaps_hit 14\nnaps_late 15\nnaps_vain 16\nnaps_woken 17\nresets_asked 3\n\
             bytes_reads 1\nbytes_writes 2\nbytes_merged 1\nbytes_wanted 57\nbytes_moved 512\n",
            |text| write_stats(text, &sums, &counts)
        ));
        stats.reset();
        assert!(stats.sums() == Sums::default());
        Ok(())
    }

    #[test]
    fn modes_have_words_and_numbers() {
        use engine::Mode;
        let all: [(&[u8], &[u8], Mode); 3] = [
            (b"irq", b"0", Mode::Irq),
            (b"poll", b"1", Mode::Poll),
            (b"hybrid", b"2", Mode::Hybrid),
        ];
        for (word, number, mode) in all {
            assert!(mode_of(word) == Some(mode) && mode_of(number) == Some(mode));
        }
        for other in [&b""[..], b"3", b"-1", b"02", b"Irq", b"irq "] {
            assert!(mode_of(other).is_none());
        }
    }

    #[test]
    fn quirks_are_names_in_a_line() {
        use crate::text::write_quirks;
        let mut any = Ok(false);
        assert!(writes("one two", |text| {
            any = write_quirks(text, |named| {
                named("one");
                named("two");
            });
            any.map(|_| ())
        }));
        assert!(any == Ok(true));
        assert!(writes("", |text| {
            any = write_quirks(text, |_| {});
            any.map(|_| ())
        }));
        assert!(any == Ok(false));
        let mut short = [0u8; 4];
        let mut text = Text::new(&mut short);
        assert!(write_quirks(&mut text, |named| named("longer")).is_err());
    }

    #[test]
    fn the_strongest_name_wins() {
        let mut ids = UnitIds::default();
        let named = |is: &str, ids: &UnitIds| writes(is, |text| write_wwid(text, &unit(), ids));
        assert!(named("nvme.1b36-5331--00000003\n", &ids));
        ids.wwn = Some(0x5000_0000_0000_0001);
        assert!(named("naa.5000000000000001\n", &ids));
        ids.eui64 = Some([1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(named("eui.0102030405060708\n", &ids));
        ids.nguid = Some([0xab; 16]);
        assert!(named("eui.abababababababababababababababab\n", &ids));
        ids.uuid = Some(*b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff");
        assert!(named("uuid.00112233-4455-6677-8899-aabbccddeeff\n", &ids));
    }

    #[test]
    fn a_drive_without_a_name_goes_by_model_serial_and_port() {
        let mut model = [b' '; 40];
        (model.iter_mut().zip(b"A M\0")).for_each(|(to, from)| *to = *from);
        let drive = Unit {
            kind: UnitKind::Drive,
            model,
            ..unit()
        };
        assert!(writes("hiops.5331-41204d-00000003\n", |text| write_wwid(
            text, &drive, &drive.ids
        )));
    }

    /// As the in-tree driver's "%.*s": each byte, whatever it is, up to a zero.
    #[test]
    fn a_device_says_what_it_likes_byte_for_byte() {
        let wanted: [(&[u8], &[u8]); 5] = [
            (b"  S1\t\xe9\x1b  ", b"  S1\t\xe9\x1b  \n"),
            (b"ab\0cd", b"ab\n"),
            (b"\0\0", b"\n"),
            (b"    ", b"    \n"),
            (b"full", b"full\n"),
        ];
        for (said, shown) in wanted {
            let mut page = [0u8; 64];
            let mut text = Text::new(&mut page);
            assert!(text.identity(said).is_ok());
            let len = text.len();
            assert!(page.get(..len) == Some(shown));
        }
        let mut short = [0u8; 2];
        assert!(Text::new(&mut short).identity(b"abc").is_err());
    }

    #[test]
    fn text_is_cut_at_its_end() {
        use core::fmt::Write;
        let mut bytes = [b'x'; 4];
        let mut text = Text::new(&mut bytes);
        assert!(text.write_str("abcde").is_err());
        assert_eq!(text.len(), 4);
        text.terminate();
        assert_eq!(bytes, *b"abc\0");
    }
}
