// SPDX-License-Identifier: GPL-2.0
//! Policies of link power management.

use crate::lpm::{is_phy_heeded, serves_asleep, state_of_link};
use crate::model::{Config, Drive, Model, State};
use crate::rig::Rig;
use crate::whole::run_eh;
use engine::Context;
use hal::mock::MockPlatform;
use hal::LinkPower::{self, *};
use hal::{Controller, Error, Queues};
use lld_ahci::EhOutcome;
use testkit::tries_until_well;

/// One that has all of it.
fn sleepy() -> Drive {
    Drive {
        has_dipm: true,
        ..Drive::new(9, 4096)
    }
}

fn set(rig: &Rig, policy: LinkPower) {
    assert_eq!(rig.ahci[0].set_link_power(policy), Ok(Ok(())));
    assert_eq!(rig.ahci[0].link_power(), Some(policy));
}

/// `PxSCTL.IPM`, `PxCMD.ALPE` and `ASP`, DIPM, and how deep the link sleeps.
fn found(rig: &Rig) -> (u32, u32, bool, u32) {
    let state = rig.model.state();
    let port = &state.ports[0];
    let dipm = port.drive.as_ref().unwrap().dipm;
    (port.sctl >> 8 & 0xf, port.cmd >> 26 & 3, dipm, port.sleep)
}

/// The subcommands of SET FEATURES so far.
fn features(rig: &Rig) -> Vec<u16> {
    let mut state = rig.model.state();
    let log = std::mem::take(&mut state.log).into_iter();
    log.filter(|taken| taken.command == 0xef)
        .inspect(|taken| assert_eq!(taken.count, 3))
        .map(|taken| taken.features)
        .collect()
}

#[test]
fn a_policy_is_obeyed_by_both_and_lasts() {
    for keeps_dipm in [false, true] {
        for (policy, wanted) in [
            (MaxPerformance, (3, 0, false, 1)),
            (MediumPower, (2, 1, false, 2)),
            (MediumPowerWithDipm, (0, 1, true, 2)),
            (MinPowerWithPartial, (0, 1, true, 2)),
            (MinPower, (0, 3, true, 6)),
        ] {
            let rig = Rig::started(Config::with(Drive {
                keeps_dipm,
                ..sleepy()
            }));
            assert_eq!(rig.ahci[0].link_power(), Some(Firmware));
            assert!(features(&rig).is_empty());
            let (host, queue) = rig.io();
            set(&rig, policy);
            let told: &[u16] = if wanted.2 { &[0x90, 0x10] } else { &[0x90] };
            assert_eq!(features(&rig), told);
            assert_eq!(found(&rig), wanted, "{policy:?}");
            assert_eq!(is_phy_heeded(&rig), wanted.3 == 1);
            serves_asleep(&rig, &host, &queue, wanted.3);
            // A link that breaks under a command.
            rig.model.state().config.breaks = Some((0, 1));
            queue.submit_many(crate::rig::reads(4));
            rig.interrupts(|_| {
                queue.drain(Context::Irq);
            });
            assert_eq!(rig.places[0].calls(), 1);
            assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Recovered));
            rig.interrupts(|_| {
                queue.drain(Context::Irq);
            });
            assert_eq!(host.outcomes().len(), 4);
            assert_eq!(found(&rig), wanted, "{policy:?}");
            serves_asleep(&rig, &host, &queue, wanted.3);
            // The controller's reset; a sleep of the machine, or a reset of all.
            for all in [false, true] {
                let mut quiesced = queue.quiesce(&rig.machine);
                rig.ahci[0].stop().unwrap();
                if all {
                    assert_eq!(rig.hba.restart(&rig.machine), Ok(()));
                    rig.hba.set_interrupt(true);
                }
                quiesced.rewind();
                rig.ahci[0].start().unwrap();
                quiesced.unquiesce();
                assert_eq!(rig.ahci[0].link_power(), Some(policy));
                assert_eq!(found(&rig), wanted, "{policy:?}, all: {all}");
                serves_asleep(&rig, &host, &queue, wanted.3);
            }
        }
    }
}

#[test]
fn one_policy_follows_another_with_io_before_and_after() {
    let rig = Rig::started(Config::with(sleepy()));
    let (host, queue) = rig.io();
    for (policy, sleep) in [
        (MinPower, 6),
        (MediumPower, 2),
        (MinPowerWithPartial, 2),
        (MaxPerformance, 1),
        (MediumPowerWithDipm, 2),
        (MinPower, 6),
        (MaxPerformance, 1),
    ] {
        let quiesced = queue.quiesce(&rig.machine);
        set(&rig, policy);
        quiesced.unquiesce();
        // Of what the drive was told to set the policy.
        rig.interrupts(|_| {
            queue.drain(Context::Irq);
        });
        serves_asleep(&rig, &host, &queue, sleep);
    }
    // It is awake: a drive that goes is noticed at once.
    rig.model.state().unplug(0);
    assert!(rig.model.line());
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    let _paused = queue.quiesce(&rig.machine);
    assert_eq!(rig.ahci[0].run_eh(), Ok(EhOutcome::Detached));
}

#[test]
fn what_hba_and_drive_lack_is_not_asked_of_them() {
    let rig = |config: Config, policy| {
        let rig = Rig::started(config);
        set(&rig, policy);
        rig.queue().moves_data(&rig.machine, 0, &[(512, 0, 0)]);
        rig.model.check();
        rig
    };
    let no_alpm = Config {
        salp: false,
        ..Config::with(sleepy())
    };
    assert_eq!(found(&rig(no_alpm.clone(), MediumPower)), (2, 0, false, 1));
    assert_eq!(found(&rig(no_alpm, MinPower)), (0, 0, true, 6));
    let no_slumber = Config {
        ssc: false,
        ..Config::with(sleepy())
    };
    assert_eq!(found(&rig(no_slumber, MinPower)), (2, 1, false, 2));
    let no_partial = Config {
        psc: false,
        ..Config::with(sleepy())
    };
    assert_eq!(found(&rig(no_partial, MinPower)), (1, 3, false, 6));
    let plain = Config::with(Drive::new(9, 64));
    let plain = rig(plain, MinPower);
    assert_eq!(found(&plain), (0, 3, false, 6));
    assert!(features(&plain).is_empty());
    let neither = Config::with(Drive {
        hipm: false,
        ..Drive::new(9, 64)
    });
    assert_eq!(found(&rig(neither, MinPower)), (0, 0, false, 1));
    // MCP65.
    let nvidia = Config {
        ids: hal::PciIds {
            vendor: 0x10de,
            device: 0x044c,
            ..hal::PciIds::default()
        },
        ..Config::with(sleepy())
    };
    assert_eq!(found(&rig(nvidia, MinPower)), (0, 3, false, 6));
}

#[test]
fn who_may_not_is_refused_with_the_reason_and_stays_awake() {
    let refused = |config: Config, cmd: u32| {
        let machine = MockPlatform::new();
        let model = Model::new(State::new(&machine, config));
        (model.state().ports[0].cmd, model.state().ports[0].sctl) = (cmd | 3 << 26, 0);
        let rig = Rig::on(machine, model).unwrap();
        rig.ahci[0].start().unwrap();
        let mut said = "";
        for policy in [MaxPerformance, MinPower] {
            said = rig.ahci[0].set_link_power(policy).unwrap().unwrap_err();
            assert_eq!(rig.ahci[0].link_power(), Some(MaxPerformance));
        }
        assert_eq!(found(&rig), (3, 0, false, 1));
        assert!(is_phy_heeded(&rig));
        rig.queue().moves_data(&rig.machine, 0, &[(512, 0, 0)]);
        rig.model.check();
        said
    };
    let neither = Config {
        psc: false,
        ssc: false,
        ..Config::with(sleepy())
    };
    assert!(refused(neither, 0).contains("CAP.PSC"));
    let esata = Config {
        sxs: true,
        ..Config::with(sleepy())
    };
    assert!(refused(esata, 1 << 21).contains("hot-plug"));
    assert!(refused(Config::with(sleepy()), 1 << 18).contains("hot-plug"));
    let lost = Drive {
        model: "ADATA SU680",
        sleepless: true,
        ..sleepy()
    };
    assert!(refused(Config::with(lost), 0).contains("known"));
    // ESP says nothing without CAP.SXS.
    let machine = MockPlatform::new();
    let model = Model::new(State::new(&machine, Config::with(sleepy())));
    model.state().ports[0].cmd = 1 << 21;
    let rig = Rig::on(machine, model).unwrap();
    rig.ahci[0].start().unwrap();
    set(&rig, MinPower);
}

#[test]
fn a_drive_that_went_while_its_link_slept_is_missed_when_that_is_woken() {
    let rig = Rig::started(Config::with(Drive::new(9, 64)));
    let (_host, queue) = rig.io();
    set(&rig, MinPower);
    assert_eq!(state_of_link(&rig), 6);
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    rig.model.state().unplug(0);
    assert!(!rig.model.line(), "that looks like sleep");
    let quiesced = queue.quiesce(&rig.machine);
    set(&rig, MaxPerformance);
    quiesced.unquiesce();
    assert!(rig.model.line());
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    assert_eq!(rig.places[0].calls(), 1);
    assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Detached));
    rig.model.check();
}

#[test]
fn nonsense_is_refused_and_changes_nothing() {
    let rig = Rig::started(Config::with(sleepy()));
    set(&rig, MediumPower);
    let before = rig.model.state().accesses;
    assert_eq!(rig.ahci[0].set_link_power(Firmware), Err(Error::Invalid));
    assert_eq!(rig.ahci[0].link_power(), Some(MediumPower));
    assert!(rig.model.state().accesses - before < 8);
    let empty = Rig::started(Config {
        drives: vec![None],
        ..Config::default()
    });
    assert_eq!(empty.ahci[0].set_link_power(MinPower), Err(Error::Invalid));
    rig.model.check();
}

#[test]
fn a_drive_that_refuses_to_ask_sleeps_as_the_hba_has_it() {
    let rig = Rig::started(Config::with(Drive {
        refuses_dipm: true,
        ..sleepy()
    }));
    set(&rig, MinPower);
    assert_eq!(found(&rig), (0, 3, false, 6));
    // Without an HBA that has the link sleep nobody does: a drive that goes is noticed.
    let rig = Rig::started(Config {
        salp: false,
        ..Config::with(Drive {
            refuses_dipm: true,
            ..sleepy()
        })
    });
    set(&rig, MinPower);
    assert_eq!(found(&rig), (0, 0, false, 1));
    assert!(is_phy_heeded(&rig));
    rig.model.check();
}

#[test]
fn a_drive_that_is_lost_by_it_keeps_what_it_had() {
    let rig = Rig::started(Config::with(Drive {
        dies_of_dipm: true,
        ..sleepy()
    }));
    set(&rig, MediumPower);
    assert_eq!(rig.ahci[0].set_link_power(MinPower), Err(Error::Timeout));
    assert_eq!(rig.ahci[0].link_power(), Some(MediumPower));
    // Nothing is with the device any more; what follows is a reset.
    assert_eq!(rig.model.state().ports[0].cmd & 0xc011, 0);
    rig.ahci[0].stop().unwrap();
    rig.ahci[0].start().unwrap();
    assert!(!found(&rig).2);
    assert_eq!(rig.ahci[0].link_power(), Some(MediumPower));
    rig.queue().moves_data(&rig.machine, 0, &[(512, 0, 0)]);
    rig.model.check();
}

#[test]
fn a_drive_that_is_lost_by_it_after_a_reset_is_served_awake_from_then_on() {
    let rig = Rig::started(Config::with(sleepy()));
    set(&rig, MinPower);
    let with = |dies| {
        let mut state = rig.model.state();
        state.ports[0].drive.as_mut().unwrap().dies_of_dipm = dies;
    };
    with(true);
    rig.ahci[0].stop().unwrap();
    assert_eq!(rig.ahci[0].start(), Ok(()));
    assert_eq!(rig.ahci[0].link_power(), Some(MaxPerformance));
    assert_eq!(found(&rig), (3, 0, false, 1));
    let mut told = Vec::new();
    let mut tell = |notice: hal::DeviceEvent<'_>| told.push(notice.text.to_string());
    Controller::handle_events(&rig.ahci[0], Queues::Live, &mut tell).unwrap();
    assert!(
        told.len() == 1 && told[0].contains("stays awake"),
        "{told:?}"
    );
    let mut names = Vec::new();
    rig.ahci[0].quirks(&mut |name| names.push(name));
    assert_eq!(names, ["nolpm"]);
    with(false);
    let said = rig.ahci[0].set_link_power(MinPower).unwrap();
    assert!(said.is_err_and(|why| why.contains("bind it anew")));
    rig.queue().moves_data(&rig.machine, 0, &[(512, 0, 0)]);
    rig.model.check();
}

#[test]
fn gone_at_every_register_access_of_a_change() {
    let total = tries_until_well(Error::Gone, |n| {
        let rig = Rig::started(Config::with(sleepy()));
        set(&rig, MinPower);
        let mut state = rig.model.state();
        state.vanish_at = Some(state.accesses + n as u64);
        drop(state);
        let changed = rig.ahci[0].set_link_power(MaxPerformance);
        let kept = if changed.is_ok() {
            MaxPerformance
        } else {
            MinPower
        };
        assert_eq!(rig.ahci[0].link_power(), Some(kept));
        rig.model.check();
        changed.map(|set| assert_eq!(set, Ok(())))
    });
    assert!(total > 8, "only {total} accesses");
}

#[test]
fn the_link_is_awake_while_it_is_reset() {
    let rig = Rig::started(Config::with(Drive {
        keeps_dipm: true,
        ..sleepy()
    }));
    set(&rig, MinPower);
    assert_eq!(state_of_link(&rig), 6);
    rig.ahci[0].stop().unwrap();
    // The drive does not come: what is there is what is left before it was asked.
    rig.model.state().config.deaf = true;
    assert_eq!(rig.ahci[0].start(), Err(Error::Timeout));
    let state = rig.model.state();
    assert_eq!(state.ports[0].sctl >> 8 & 0xf, 3);
    assert_eq!(state.ports[0].cmd >> 26 & 3, 0);
    drop(state);
    rig.model.state().config.deaf = false;
    rig.ahci[0].start().unwrap();
    assert_eq!(found(&rig), (0, 3, true, 6));
    rig.model.check();
}
