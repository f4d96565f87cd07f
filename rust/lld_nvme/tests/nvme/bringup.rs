// SPDX-License-Identifier: GPL-2.0
//! From reset to queues: what is agreed on, and how long anything may take.

use crate::model::{Config, Namespace};
use crate::rig::{command, Rig};
use hal::{Controller, Error, Limits, Op, PciIds, Platform, Queue, Shutdown};

/// What a controller says by default.
const PLAIN: Limits = Limits {
    queues: 4,
    tags: 1023,
    max_transfer: 512 << 10,
    max_segments: 129,
    max_segment: u32::MAX,
    virt_boundary: 4095,
    dma_align: 3,
    hole_align: None,
    segment_boundary: u64::MAX,
};

#[test]
fn limits_follow_from_what_the_device_says() {
    let rig = Rig::started(Config::default());
    assert_eq!(rig.nvme.limits(), PLAIN);
    let cases = [
        (
            Config {
                mdts: 0,
                ..Config::default()
            },
            Limits {
                max_transfer: 2 << 20,
                max_segments: 513,
                ..PLAIN
            },
        ),
        (
            Config {
                mdts: 255,
                sgls: 1,
                queues: 1,
                ..Config::default()
            },
            Limits {
                queues: 1,
                max_transfer: 2 << 20,
                max_segments: 256,
                virt_boundary: 0,
                dma_align: 0,
                ..PLAIN
            },
        ),
        (
            Config {
                mdts: 1,
                sgls: 2,
                mqes: 7,
                ..Config::default()
            },
            Limits {
                tags: 7,
                max_transfer: 8192,
                max_segments: 3,
                virt_boundary: 0,
                ..PLAIN
            },
        ),
    ];
    for (config, limits) in cases {
        let rig = Rig::started(config);
        assert_eq!(rig.nvme.limits(), limits);
        rig.model.check();
    }
}

#[test]
fn queues_are_as_many_as_granted_and_as_have_doorbells() {
    for (queues, bar, expected) in [
        (1, 0x4000, 1),
        (3, 0x4000, 3),
        (8, 0x1000 + 2 * 8, 1),
        (8, 0x1000 + 5 * 8 + 7, 4),
        (500, 0x10000, 128),
    ] {
        let rig = Rig::started(Config {
            queues,
            bar,
            ..Config::default()
        });
        assert_eq!(rig.nvme.limits().queues, expected);
        let lines: Vec<_> = (0..expected).map(|index| rig.queue(index)).collect();
        assert!(matches!(
            rig.nvme.create_queue(expected, Some(0)),
            Err(Error::Invalid)
        ));
        for (n, mut line) in lines.into_iter().enumerate() {
            assert_eq!(line.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
            // Vector n + 1, as `Rig::queue` has it.
            assert_eq!(rig.model.state().messages.get(&(n as u16 + 1)), Some(&1));
        }
        rig.model.check();
    }
}

#[test]
fn queues_come_in_order_and_after_the_start() {
    let rig = Rig::new(Config::default()).unwrap();
    assert!(matches!(
        rig.nvme.create_queue(0, Some(0)),
        Err(Error::Invalid)
    ));
    assert_eq!(rig.nvme.units(&mut |_| ()), Err(Error::Invalid));
    rig.nvme.start().unwrap();
    assert!(matches!(
        rig.nvme.create_queue(1, Some(0)),
        Err(Error::Invalid)
    ));
    rig.queue(0);
    assert!(matches!(
        rig.nvme.create_queue(0, Some(0)),
        Err(Error::Invalid)
    ));
}

/// A command that is held back is late, and one write more costs next to nothing.
#[test]
fn the_device_is_told_of_each_command_at_once() {
    let rig = Rig::started(Config {
        queues: 2,
        ..Config::default()
    });
    let batch = |index, vector| rig.nvme.create_queue(index, vector).unwrap().queue.batch();
    assert_eq!(batch(0, Some(1)), 1);
    assert_eq!(batch(1, None), 1);
}

#[test]
fn a_controller_that_never_gets_ready_is_a_timeout() {
    let config = Config {
        ready_us: None,
        to: 10,
        ..Config::default()
    };
    let rig = Rig::new(config).unwrap();
    assert_eq!(rig.nvme.start(), Err(Error::Timeout));
    assert_eq!(rig.nvme.step(), "enabling the controller (CC.EN = 1)");
    let waited = rig.machine.now_us();
    assert!((5_000_000..5_500_000).contains(&waited), "{waited} us");
    assert_eq!(rig.model.state().cc & 1, 0, "and it is left disabled");
    // Once more: the first wait is for an enable that does not end.
    assert_eq!(rig.nvme.start(), Err(Error::Timeout));
    rig.model.check();
}

#[test]
fn a_controller_that_never_stops_is_a_timeout() {
    let rig = Rig::started(Config::default());
    rig.model.state().config.ready_us = None;
    assert_eq!(rig.nvme.stop(), Err(Error::Timeout));
    assert_eq!(rig.nvme.step(), "disabling the controller (CC.EN = 0)");
    assert_eq!(rig.nvme.start(), Err(Error::Timeout));
    assert_eq!(rig.nvme.step(), "disabling the controller (CC.EN = 0)");
}

#[test]
fn a_slow_controller_is_waited_for() {
    let rig = Rig::started(Config {
        ready_us: Some(1_990_000),
        ..Config::default()
    });
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    rig.model.check();
}

#[test]
fn a_fatal_status_ends_the_wait_at_once() {
    let rig = Rig::new(Config {
        ready_us: None,
        ..Config::default()
    })
    .unwrap();
    rig.model.state().fatal = true;
    assert_eq!(rig.nvme.alive(), Err(Error::Fatal));
    assert_eq!(rig.nvme.start(), Err(Error::Fatal));
    assert!(rig.machine.now_us() < 1_000);
}

#[test]
fn a_fatal_controller_comes_back_by_a_reset() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    rig.model.state().fatal = true;
    assert_eq!(rig.nvme.alive(), Err(Error::Fatal));
    rig.nvme.stop().unwrap();
    queue.rewind();
    rig.nvme.start().unwrap();
    assert_eq!(rig.nvme.alive(), Ok(()));
    assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}

#[test]
fn a_controller_left_running_by_someone_else_is_reset_first() {
    let rig = Rig::started(Config::default());
    rig.queue(0);
    // Another driver finds it so.
    let other = crate::rig::Nvme::new(rig.machine.clone(), rig.model.clone(), &PciIds::default());
    let other = other.unwrap();
    other.start().unwrap();
    assert_eq!(rig.model.state().cqs.len(), 1, "only the admin queue");
    rig.model.check();
}

#[test]
fn capabilities_that_cannot_be_are_refused() {
    let bad = [
        (
            Config {
                mqes: 0,
                ..Config::default()
            },
            Error::Malformed,
        ),
        (
            Config {
                bar: 0x1000,
                ..Config::default()
            },
            Error::Malformed,
        ),
        (
            Config {
                bar: 0x1000 + 15,
                ..Config::default()
            },
            Error::Malformed,
        ),
        (
            Config {
                dstrd: 15,
                ..Config::default()
            },
            Error::Malformed,
        ),
        (
            Config {
                mpsmin: 5,
                mpsmax: 4,
                ..Config::default()
            },
            Error::Malformed,
        ),
        (
            Config {
                mpsmin: 9,
                mpsmax: 9,
                ..Config::default()
            },
            Error::Unsupported,
        ),
        (
            Config {
                css: 0x80,
                ..Config::default()
            },
            Error::Unsupported,
        ),
    ];
    for (config, why) in bad {
        let text = format!("{config:?}");
        assert_eq!(Rig::new(config).err(), Some(why), "{text}");
    }
}

#[test]
fn what_is_no_controller_of_ours_is_left_disabled() {
    let unsupported = [
        Config {
            kind: 2,
            ..Config::default()
        },
        Config {
            sqes: 0x77,
            ..Config::default()
        },
        Config {
            cqes: 0x33,
            ..Config::default()
        },
    ];
    for config in unsupported {
        let rig = Rig::new(config).unwrap();
        assert_eq!(rig.nvme.start(), Err(Error::Unsupported));
        assert_eq!(rig.model.state().cc & 1, 0, "and it is left disabled");
    }
}

#[test]
fn a_shutdown_waits_for_its_end_within_the_bound() {
    let rig = Rig::started(Config {
        shutdown_us: 9_000_000,
        rtd3e_us: 10_000_000,
        ..Config::default()
    });
    rig.nvme.shutdown(Shutdown::Normal).unwrap();
    assert!(rig.model.state().shut_down);
    // It takes no commands any more, and comes back by a reset.
    let mut sqe = [0; 8];
    sqe[0] = 6;
    assert!(rig.nvme.admin(sqe, None, 0, &|| false).is_err());
    rig.nvme.start().unwrap();
    rig.model.check();

    let rig = Rig::started(Config {
        shutdown_us: 9_000_000,
        ..Config::default()
    });
    let before = rig.machine.now_us();
    assert_eq!(rig.nvme.shutdown(Shutdown::Normal), Err(Error::Timeout));
    assert!((5_000_000..5_100_000).contains(&(rig.machine.now_us() - before)));
    let accesses = rig.model.state().accesses;
    assert_eq!(rig.nvme.shutdown(Shutdown::Dead), Ok(()));
    assert_eq!(
        rig.model.state().accesses,
        accesses,
        "a dead one is left alone"
    );
}

#[test]
fn doorbell_buffers_that_are_refused_are_done_without() {
    let rig = Rig::new(Config {
        doorbell_buffer: true,
        ..Config::default()
    })
    .unwrap();
    // Identify Controller, Number of Queues, Doorbell Buffer Config.
    rig.model.state().refuse = Some((2, 0x4006));
    rig.nvme.start().unwrap();
    assert_eq!(rig.model.state().admin_log[2].0, 0x7c);
    let mut queue = rig.queue(0);
    assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}

#[test]
fn an_old_controller_has_no_lists_and_no_descriptors() {
    let rig = Rig::started(Config {
        version: 0x0001_0000,
        css: 1,
        nn: 3,
        namespaces: vec![Namespace::new(1, 9, 8), Namespace::new(3, 12, 8)],
        ..Config::default()
    });
    let ids: Vec<u32> = rig.units().iter().map(|unit| unit.unwrap().id).collect();
    assert_eq!(ids, [1, 3]);
    let asked: Vec<u32> = rig
        .model
        .state()
        .admin_log
        .iter()
        .map(|log| log.1 & 0xff)
        .collect();
    assert!(
        !asked.iter().any(|cns| matches!(cns, 2 | 3 | 6)),
        "{asked:?}"
    );
    rig.model.check();
}
