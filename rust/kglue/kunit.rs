// SPDX-License-Identifier: GPL-2.0
//! KUnit suites of the block half: limits, attributes, errors; and of the platform.

use crate::blk::lane::{LaneStats, Sums};
use crate::blk::limits::queue_limits;
use crate::errno::{status, to_errno};
use crate::platform::KernelPlatform;
use crate::sysfs_text::{write_stats, write_wwid};
use crate::text::{Padded, Text};
use hal::{CmdError, Discard, Limits, Shape, Unit, UnitIds};
use kernel::prelude::*;

pub(crate) fn unit() -> Unit {
    Unit {
        id: 3,
        block_shift: 12,
        physical_shift: 12,
        blocks: 1000,
        write_cache: true,
        fua: true,
        discard: None,
        max_write_zeroes: 0,
        shape: Shape::default(),
        read_only: false,
        rotational: false,
        ids: UnitIds::default(),
        serial: *b"S1                  ",
        model: [b' '; 40],
        firmware: *b"1\n\xff     ",
    }
}

fn limits() -> Limits {
    Limits {
        queues: 1,
        tags: 8,
        max_transfer: 1 << 20,
        max_segments: 33,
        max_segment: 65_536,
        segment_boundary: u64::MAX,
        virt_boundary: 4095,
        dma_align: 3,
    }
}

/// What `write` writes, compared with `wanted`.
fn writes(wanted: &str, write: impl FnOnce(&mut Text<'_>) -> core::fmt::Result) -> bool {
    let mut page = [0u8; 1024];
    let mut text = Text::new(&mut page);
    let written = write(&mut text);
    let len = text.len();
    written.is_ok() && page.get(..len) == Some(wanted.as_bytes())
}

#[kunit_tests(hiops_limits)]
mod limits_suite {
    use super::*;
    use crate::shims;

    #[test]
    fn blocks_become_sectors() {
        let queue = queue_limits(&limits(), &unit());
        assert_eq!(queue.logical_block_size, 4096);
        assert_eq!(queue.physical_block_size, 4096);
        assert_eq!(queue.max_hw_sectors, 2048);
        assert_eq!(queue.max_segments, 33);
        assert_eq!(crate::blk::limits::sectors(&unit(), 1000), 8000);
        assert_eq!(
            crate::blk::limits::sectors(&unit(), u64::MAX),
            u64::MAX >> 9
        );
    }

    #[test]
    fn a_virtual_boundary_lifts_the_segment_size() {
        assert_eq!(queue_limits(&limits(), &unit()).max_segment_size, u32::MAX);
        let free = Limits {
            virt_boundary: 0,
            ..limits()
        };
        assert_eq!(queue_limits(&free, &unit()).max_segment_size, 65_536);
    }

    #[test]
    fn features_follow_the_cache() {
        let both = shims::HIOPS_FEAT_WRITE_CACHE | shims::HIOPS_FEAT_FUA;
        assert_eq!(queue_limits(&limits(), &unit()).features & both, both);
        let mut plain = unit();
        plain.write_cache = false;
        assert_eq!(queue_limits(&limits(), &plain).features & both, 0);
        plain.rotational = true;
        let rotational = shims::HIOPS_FEAT_ROTATIONAL;
        assert_eq!(
            queue_limits(&limits(), &plain).features & rotational,
            rotational
        );
    }

    #[test]
    fn what_the_block_layer_cannot_take_is_refused() {
        use crate::blk::limits::check;
        assert!(check(&limits(), &unit()).is_ok());
        let with = |change: fn(&mut Limits, &mut Unit)| {
            let (mut limits, mut unit) = (limits(), unit());
            change(&mut limits, &mut unit);
            check(&limits, &unit).is_ok()
        };
        assert!(with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (9, 9)
        ));
        assert!(with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (16, 16)
        ));
        assert!(!with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (8, 9)
        ));
        assert!(!with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (17, 17)
        ));
        assert!(!with(
            |_, unit| (unit.block_shift, unit.physical_shift) = (255, 255)
        ));
        assert!(!with(|_, unit| unit.physical_shift = 11));
        assert!(with(|limits, _| limits.max_transfer = 4096));
        assert!(!with(|limits, _| limits.max_transfer = 4095));
        assert!(!with(|limits, _| limits.max_segments = 0));
    }

    #[test]
    fn what_is_best_for_a_disk() {
        let mut whole = unit();
        whole.max_write_zeroes = 8;
        whole.shape = Shape {
            atomic: 6,
            least: 2,
            best: 4,
            stripe: 32,
            aligned_at: 1,
            zeroes_unmap: true,
            ..Shape::default()
        };
        let mut queue = queue_limits(&limits(), &whole);
        assert_eq!(queue.atomic_write_hw_max, 24_576);
        assert_eq!(queue.atomic_write_hw_unit_min, 4096);
        assert_eq!(queue.atomic_write_hw_unit_max, 16_384);
        assert_eq!(queue.io_min, 8192);
        assert_eq!(queue.io_opt, 16_384);
        assert_eq!(queue.chunk_sectors, 256);
        assert_eq!(queue.alignment_offset, 4096);
        assert_eq!(queue.max_hw_wzeroes_unmap_sectors, 64);
        assert!(queue.features & shims::HIOPS_FEAT_ATOMIC_WRITES != 0);
        // What it loses is gone, what a user has set stays.
        queue.max_user_sectors = 8;
        crate::blk::limits::set_limits(&mut queue, &limits(), &unit());
        assert_eq!(queue.max_hw_wzeroes_unmap_sectors, 0);
        assert_eq!(queue.chunk_sectors, 0);
        assert_eq!(queue.max_user_sectors, 8);
        assert_eq!(queue.features & shims::HIOPS_FEAT_ATOMIC_WRITES, 0);
    }

    #[test]
    fn of_a_disk_that_is_not_known_every_request_is_none() {
        let format = crate::blk::lane::Format::new(&unit());
        assert_eq!(format.block_shift(), 12);
        format.forget();
        assert_eq!(
            u32::MAX
                .wrapping_shr(1)
                .wrapping_shr(format.block_shift().into()),
            0
        );
        let mut unmaps = unit();
        unmaps.shape.zeroes_unmap = true;
        format.set(&unmaps);
        assert_eq!(format.block_shift(), 12);
        assert!(format.unmaps());
    }

    #[test]
    fn discard_in_sectors_and_bytes() {
        assert_eq!(queue_limits(&limits(), &unit()).max_hw_discard_sectors, 0);
        let mut trims = unit();
        trims.discard = Some(Discard {
            max_blocks: 16,
            max_ranges: 256,
            granularity: 2,
        });
        let queue = queue_limits(&limits(), &trims);
        assert_eq!(queue.max_hw_discard_sectors, 128);
        assert_eq!(queue.discard_granularity, 8192);
        assert_eq!(queue.max_discard_segments, 256);
        trims.discard = Some(Discard {
            max_blocks: u32::MAX,
            max_ranges: 1,
            granularity: u32::MAX,
        });
        let queue = queue_limits(&limits(), &trims);
        assert_eq!(queue.max_hw_discard_sectors, u32::MAX);
        assert_eq!(queue.discard_granularity, u32::MAX);
    }
}

#[kunit_tests(hiops_sysfs)]
mod sysfs_suite {
    use super::*;
    use crate::blk::disk::ControllerCounts;
    use engine::Context;

    #[test]
    fn completed_is_the_sum() {
        let stats = LaneStats::default();
        stats.submitted(1);
        for (n, by) in [
            (1, Context::Irq),
            (2, Context::Lazy),
            (3, Context::Coop),
            (4, Context::Poll),
        ] {
            stats.completed(n, by);
        }
        (0..6).for_each(|_| stats.retried());
        let mut sums = Sums::default();
        stats.add_to(&mut sums);
        stats.add_to(&mut sums);
        let counts = ControllerCounts {
            interrupts: 5,
            doorbell_writes: 6,
            resets: 7,
            max_irq_ns: 8,
            max_tick_ns: 9,
            ticks: 10,
            turns: 11,
            missed: 12,
            aborts: 13,
        };
        assert!(writes(
            "submitted 2\ncompleted 20\ncompleted_irq 2\ncompleted_lazy 4\ncompleted_coop 6\n\
             completed_poll 8\nfifo_deferred 0\ninterrupts 5\ndoorbell_writes 6\nerrors 0\nretried 12\ntimeouts 0\n\
             resets 7\nmax_irq_ns 8\nmax_tick_ns 9\nticks 10\nturns 11\nmissed_interrupts 12\naborts 13\n",
            |text| write_stats(text, &sums, &counts)
        ));
        stats.reset();
        let mut sums = Sums::default();
        stats.add_to(&mut sums);
        assert!(sums == Sums::default());
    }

    #[test]
    fn quirks_are_names_in_a_line() {
        use crate::adapter_quirks::write_quirks;
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
        let mut named = unit();
        assert!(writes("hiops.5331--00000003\n", |text| write_wwid(
            text, &named
        )));
        named.ids.wwn = Some(0x5000_0000_0000_0001);
        assert!(writes("naa.5000000000000001\n", |text| write_wwid(
            text, &named
        )));
        named.ids.eui64 = Some([1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(writes("eui.0102030405060708\n", |text| write_wwid(
            text, &named
        )));
        named.ids.nguid = Some([0xab; 16]);
        assert!(writes("eui.abababababababababababababababab\n", |text| {
            write_wwid(text, &named)
        }));
        named.ids.uuid = Some(*b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff");
        assert!(writes(
            "uuid.00112233-4455-6677-8899-aabbccddeeff\n",
            |text| { write_wwid(text, &named) }
        ));
    }

    #[test]
    fn a_device_cannot_break_a_line() {
        use core::fmt::Write;
        assert!(writes("1??", |text| write!(
            text,
            "{}",
            Padded(&unit().firmware)
        )));
        assert!(writes("S1", |text| write!(
            text,
            "{}",
            Padded(&unit().serial)
        )));
        assert!(writes("", |text| write!(text, "{}", Padded(&unit().model))));
        assert!(writes("", |text| write!(text, "{}", Padded(b"\0\0"))));
        assert!(writes("a b", |text| write!(text, "{}", Padded(b" a b \0"))));
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

#[kunit_tests(hiops_errno)]
mod errno_suite {
    use super::*;

    #[test]
    fn no_failure_reads_as_success() {
        assert_eq!(status(Ok(())), 0);
        for error in [
            CmdError::Medium,
            CmdError::Range,
            CmdError::Protection,
            CmdError::NotReady,
            CmdError::NoSpace,
            CmdError::Reserved,
            CmdError::Unsupported,
            CmdError::Invalid,
            CmdError::Timeout,
            CmdError::Aborted,
            CmdError::Gone,
            CmdError::Path,
            CmdError::Fault,
            CmdError::Io,
        ] {
            assert!(status(Err(error.finally())) != 0);
            assert!(status(Err(error.finally())) == status(Err(error.again())));
        }
    }

    #[test]
    fn kinds_survive_the_way_back() {
        for error in [
            hal::Error::NoMemory,
            hal::Error::Timeout,
            hal::Error::Gone,
            hal::Error::Invalid,
        ] {
            assert!(crate::errno::from_errno(to_errno(error)) == error);
        }
    }
}

#[kunit_tests(hiops_platform)]
mod platform_suite {
    use super::*;
    use hal::Platform;

    #[test]
    fn tables_are_made_in_order() {
        let platform = KernelPlatform::without_device();
        for len in [0usize, 1, 4096, 100_000] {
            let table = platform.table(len, |at| at);
            assert!(table.is_ok());
            if let Ok(table) = table {
                assert_eq!(table.len(), len);
                assert!(table.iter().enumerate().all(|(at, value)| at == *value));
            }
        }
    }

    #[test]
    fn without_a_device_there_is_no_dma() {
        let dma = KernelPlatform::without_device().dma(4096);
        assert!(dma.err() == Some(hal::Error::Unsupported));
    }

    #[test]
    fn time_passes() {
        let platform = KernelPlatform::without_device();
        let before = platform.now_us();
        platform.sleep_us(1000);
        assert!(platform.now_us().wrapping_sub(before) >= 1000);
    }
}
