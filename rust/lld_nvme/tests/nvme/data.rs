// SPDX-License-Identifier: GPL-2.0
//! PRPs and SGLs: what the device reads from the command is what the segments were.

use crate::model::{Config, Namespace};
use crate::rig::{command, Rig};
use hal::{CmdError, Controller, Op, Segment};
use proptest::prelude::*;

const PAGE: u64 = 4096;

/// A controller whose memory is never reached: only addresses matter here.
fn rig(sgls: u32, mdts: u8) -> Rig {
    Rig::started(Config {
        sgls,
        mdts,
        namespaces: vec![Namespace::new(1, 9, 4096)],
        ..Config::default()
    })
}

/// Neighbours made one, in both the told and the walked form.
fn merged(pieces: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (addr, len) in pieces {
        match all.last_mut() {
            Some((last, bytes)) if last.checked_add(*bytes) == Some(addr) => *bytes += len,
            _ => all.push((addr, len)),
        }
    }
    all
}

/// Issues a read of `segments` and compares what the device found.
fn check(rig: &Rig, queue: &mut crate::rig::Line, segments: &[Segment]) -> Result<(), CmdError> {
    let bytes: u64 = segments.iter().map(|s| u64::from(s.len)).sum();
    assert_eq!(bytes % 512, 0);
    let cmd = command(Op::Read, 0, (bytes / 512) as u32);
    queue.start(&cmd, segments)?;
    // The transfer itself fails, as no memory is there; that is its own status.
    assert_eq!(queue.drain().len(), 1);
    let state = rig.model.state();
    let told = segments.iter().map(|s| (s.addr, u64::from(s.len)));
    let walked = state
        .pieces
        .iter()
        .map(|(addr, len)| (*addr, u64::from(*len)));
    assert_eq!(merged(walked), merged(told));
    assert_eq!(state.complaints, Vec::<String>::new());
    Ok(())
}

#[test]
fn edges_of_prps() {
    let rig = rig(0, 0);
    let mut queue = rig.queue(0);
    let max = rig.nvme.limits().max_transfer;
    for offset in [0, 4, 512, PAGE - 512, PAGE - 4] {
        for bytes in [
            512,
            3584,
            4096,
            4608,
            7680,
            8192,
            8704,
            12_288,
            max - 512,
            max,
        ] {
            let only = Segment {
                addr: 0x7_0000_0000 + offset,
                len: bytes,
            };
            assert_eq!(check(&rig, &mut queue, &[only]), Ok(()), "{only:x?}");
        }
        let over = Segment {
            addr: 0x7_0000_0000 + offset,
            len: max + 512,
        };
        assert_eq!(check(&rig, &mut queue, &[over]), Err(CmdError::Invalid));
    }
}

#[test]
fn edges_of_sgls() {
    let rig = rig(1, 0);
    let mut queue = rig.queue(0);
    let limits = rig.nvme.limits();
    for count in [1, 2, 3, limits.max_segments - 1, limits.max_segments] {
        for (addr, len) in [
            (0x7_0000_0001u64, 512u32),
            (0x7_0000_0fff, 1024),
            (0x7_0000_0000, 4096),
        ] {
            let segments: Vec<_> = (0..u64::from(count))
                .map(|n| Segment {
                    addr: addr + n * 0x10_0000,
                    len,
                })
                .collect();
            assert_eq!(
                check(&rig, &mut queue, &segments),
                Ok(()),
                "{count} of {len}"
            );
        }
    }
    let over: Vec<_> = (0..=u64::from(limits.max_segments))
        .map(|n| Segment {
            addr: 0x7_0000_0000 + n * 0x10_0000,
            len: 512,
        })
        .collect();
    assert_eq!(check(&rig, &mut queue, &over), Err(CmdError::Invalid));
}

/// How the data pointer of the last command was written: PSDT.
fn psdt(rig: &Rig) -> u64 {
    (rig.model.state().io_log.last().unwrap()[0] >> 14) & 3
}

#[test]
fn prps_are_chosen_where_they_need_no_list() {
    let rig = rig(1, 0);
    let mut queue = rig.queue(0);
    let at = |addr, len| Segment { addr, len };
    let base = 0x7_0000_0000;
    let cases: [(&[Segment], u64); 8] = [
        (&[at(base, 512)], 0),
        (&[at(base, 8192)], 0),
        (&[at(base + 512, 4096)], 0),
        (&[at(base + 512, 8192)], 1),
        (&[at(base + 1, 512)], 1),
        (&[at(base + 2048, 2048), at(base + 0x9000, 4096)], 0),
        (&[at(base, 2048), at(base + 0x9000, 2048)], 1),
        (
            &[
                at(base, 4096),
                at(base + 0x9000, 4096),
                at(base + 0xb000, 512),
            ],
            1,
        ),
    ];
    for (n, (segments, how)) in cases.into_iter().enumerate() {
        assert_eq!(check(&rig, &mut queue, segments), Ok(()));
        assert_eq!(psdt(&rig), how, "case {n}");
    }
}

#[test]
fn segments_that_prps_cannot_say_are_refused() {
    let rig = rig(0, 0);
    let mut queue = rig.queue(0);
    let at = |addr, len| Segment { addr, len };
    let bad: [&[Segment]; 6] = [
        &[at(0x7_0000_0001, 512)],
        &[at(0x7_0000_0000, 2048), at(0x8_0000_0000, 2048)],
        &[at(0x7_0000_0800, 2048), at(0x8_0000_0800, 2048)],
        &[
            at(0x7_0000_0000, 4096),
            at(0x8_0000_0000, 512),
            at(0x9_0000_0000, 512),
        ],
        &[at(u64::MAX - 1023, 1024), at(0, 3072)],
        &[at(u64::MAX & !4095, 8192)],
    ];
    for segments in bad {
        let refused = check(&rig, &mut queue, segments);
        assert_eq!(refused, Err(CmdError::Invalid), "{segments:x?}");
    }
}

#[test]
fn dword_sgls_keep_to_dwords() {
    let rig = rig(2, 0);
    let mut queue = rig.queue(0);
    let at = |addr, len| Segment { addr, len };
    for bad in [
        [at(0x7_0000_0002, 512), at(0x8_0000_0000, 512)],
        [at(0x7_0000_0000, 510), at(0x8_0000_0000, 514)],
    ] {
        assert_eq!(check(&rig, &mut queue, &bad), Err(CmdError::Invalid));
    }
    let good = [at(0x7_0000_0004, 516), at(0x8_0000_0008, 508)];
    assert_eq!(check(&rig, &mut queue, &good), Ok(()));
}

/// SGLS of a controller that takes bit buckets, with any lengths or whole dwords.
const BUCKETS: [(u32, u32); 2] = [(0x1_0001, 1), (0x1_0002, 4)];

/// Controllers that can't leave anything out: one with PRPs only, and such as have no bit buckets.
const NO_BUCKETS: [u32; 4] = [0, 1, 2, 0x1_0000];

#[test]
fn holes_are_as_the_controller_has_them() {
    for (sgls, grain) in BUCKETS {
        assert_eq!(rig(sgls, 0).nvme.limits().hole_align, Some(grain - 1));
    }
    for sgls in NO_BUCKETS {
        assert_eq!(rig(sgls, 0).nvme.limits().hole_align, None);
    }
}

#[test]
fn holes_are_bit_buckets() {
    let at = |addr, len| Segment { addr, len };
    let base = 0x7_0000_0000;
    for (sgls, grain) in BUCKETS {
        let rig = rig(sgls, 0);
        let mut queue = rig.queue(0);
        let all_but_one = [
            Segment::hole(512),
            at(base + 512, grain),
            Segment::hole(3584 - grain),
        ];
        let good: [&[Segment]; 6] = [
            &all_but_one,
            &[Segment::hole(512)],
            &[Segment::hole(508), at(base, 4)],
            &[at(base, 4), Segment::hole(4092)],
            &[at(base + 4096 - 8, 8), Segment::hole(504)],
            &[
                Segment::hole(4),
                at(base, 16),
                Segment::hole(8),
                at(base, 4),
                Segment::hole(480),
            ],
        ];
        for segments in good {
            assert_eq!(check(&rig, &mut queue, segments), Ok(()), "{segments:x?}");
            assert_eq!(psdt(&rig), 1);
        }
    }
    let rig = rig(BUCKETS[1].0, 0);
    let mut queue = rig.queue(0);
    let ragged = [Segment::hole(510), at(base, 2)];
    assert_eq!(check(&rig, &mut queue, &ragged), Err(CmdError::Invalid));
}

#[test]
fn a_hole_that_cannot_be_said_is_refused() {
    let at = |addr, len| Segment { addr, len };
    let base = 0x7_0000_0000;
    let holes: [&[Segment]; 4] = [
        &[Segment::hole(512)],
        &[Segment::hole(256), at(base, 256)],
        &[at(base, 2048), Segment::hole(2048)],
        &[at(base, 4096), at(base + 4096, 4096), Segment::hole(4096)],
    ];
    for sgls in NO_BUCKETS {
        let rig = rig(sgls, 0);
        let mut queue = rig.queue(0);
        for segments in holes {
            let refused = check(&rig, &mut queue, segments);
            assert_eq!(refused, Err(CmdError::Invalid), "{sgls:x}: {segments:x?}");
        }
    }
    let rig = rig(BUCKETS[0].0, 0);
    let mut queue = rig.queue(0);
    for segments in holes {
        let blocks = segments.iter().map(|s| s.len).sum::<u32>() / 512;
        let refused = queue.start(&command(Op::Write, 0, blocks), segments);
        assert_eq!(refused, Err(CmdError::Invalid), "a write: {segments:x?}");
    }
    assert_eq!(rig.model.state().complaints, Vec::<String>::new());
}

#[test]
fn what_is_wanted_comes_and_nothing_else() {
    let rig = Rig::started(Config {
        sgls: BUCKETS[0].0,
        namespaces: vec![Namespace::new(1, 12, 16)],
        ..Config::default()
    });
    let disk = testkit::pattern(16 << 12, 5);
    rig.model.state().config.namespaces[0]
        .data
        .copy_from_slice(&disk);
    let mut queue = rig.queue(0);
    let mut cmd = command(Op::Read, 3, 1);
    cmd.block_shift = 12;
    let spoilt = vec![0xa5; 4096];
    for (from, len) in [(0, 1), (100, 128), (1000, 3000), (4095, 1), (4000, 96)] {
        let mapping = rig.map(&spoilt, 64, 4096);
        let addr = mapping.segments()[0].addr;
        let pieces = [
            Segment::hole(from),
            Segment {
                addr: addr + u64::from(from),
                len,
            },
            Segment::hole(4096 - from - len),
        ];
        let pieces: Vec<_> = pieces.into_iter().filter(|piece| piece.len != 0).collect();
        assert_eq!(queue.run(&cmd, &pieces), Ok(()));
        let (from, len) = (from as usize, len as usize);
        let mut expected = spoilt.clone();
        expected[from..from + len].copy_from_slice(&disk[3 << 12..][from..from + len]);
        assert!(mapping.unmap() == expected, "{len} bytes at {from}");
    }
    rig.model.check();
}

/// Segments that meet at page boundaries, whole blocks in sum.
fn page_segments() -> impl Strategy<Value = Vec<Segment>> {
    let middle = prop::collection::vec((1u64..1 << 30, 1u32..5), 0..40);
    (0u64..1024, middle, 1u32..9, any::<bool>()).prop_map(|(dword, middle, tail, single)| {
        let offset = dword * 4;
        let mut segments = Vec::new();
        if single || middle.is_empty() {
            segments.push(Segment {
                addr: 0x1_0000_0000 + offset,
                len: tail * 512,
            });
            return segments;
        }
        let count = middle.len();
        for (n, (page, pages)) in middle.into_iter().enumerate() {
            let base = 0x1_0000_0000 + page * PAGE * 8;
            segments.push(if n == 0 {
                Segment {
                    addr: base + offset,
                    len: pages * 4096 - offset as u32,
                }
            } else if n + 1 == count {
                // What is missing to whole blocks, and some blocks more.
                Segment {
                    addr: base,
                    len: offset as u32 % 512 + tail * 512,
                }
            } else {
                Segment {
                    addr: base,
                    len: pages * 4096,
                }
            });
        }
        if count == 1 {
            segments[0].len -= segments[0].len % 512;
            segments[0].len = segments[0].len.max(512);
        }
        segments
    })
}

/// Any segments, whole blocks in sum.
fn any_segments() -> impl Strategy<Value = Vec<Segment>> {
    prop::collection::vec((0u64..1 << 40, 1u32..9000), 1..100).prop_map(|parts| {
        let mut segments: Vec<Segment> = parts
            .into_iter()
            .enumerate()
            .map(|(n, (addr, len))| Segment {
                // Never neighbours, so that each stays its own.
                addr: addr + ((n as u64) << 44),
                len,
            })
            .collect();
        let sum: u32 = segments.iter().map(|s| s.len).sum();
        if let Some(last) = segments.last_mut() {
            last.len += sum.next_multiple_of(512) - sum;
        }
        segments
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

    #[test]
    fn prps_say_what_the_segments_are(segments in page_segments()) {
        let rig = rig(0, 0);
        let mut queue = rig.queue(0);
        prop_assert_eq!(check(&rig, &mut queue, &segments), Ok(()));
    }

    #[test]
    fn sgls_say_what_the_segments_are(segments in any_segments()) {
        let rig = rig(1, 0);
        let mut queue = rig.queue(0);
        prop_assert_eq!(check(&rig, &mut queue, &segments), Ok(()));
    }

    #[test]
    fn sgls_say_which_segments_are_holes(segments in any_segments(), holes in any::<u64>()) {
        let rig = rig(BUCKETS[0].0, 0);
        let mut queue = rig.queue(0);
        let segments: Vec<_> = segments.iter().enumerate().map(|(n, s)| {
            match (holes >> (n % 64)) & 1 {
                0 => *s,
                _ => Segment::hole(s.len),
            }
        }).collect();
        prop_assert_eq!(check(&rig, &mut queue, &segments), Ok(()));
    }

    /// Both ways are open: whichever is chosen, it says the same.
    #[test]
    fn either_way_says_what_the_segments_are(segments in page_segments()) {
        let rig = rig(2, 0);
        let mut queue = rig.queue(0);
        prop_assert_eq!(check(&rig, &mut queue, &segments), Ok(()));
    }
}
