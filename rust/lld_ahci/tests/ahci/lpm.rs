// SPDX-License-Identifier: GPL-2.0
//! Links that go to sleep and wake up.

use crate::model::{Config, Drive, Model, State};
use crate::rig::{reads, Queue, Rig};
use engine::Context;
use hal::mock::MockPlatform;
use hal::Controller;
use lld_ahci::EhOutcome;
use testkit::Host;

const ALPE: u32 = 1 << 26;
const ASP: u32 = 1 << 27;
/// `PxIS.PRCS`.
const PHY_READY: u32 = 1 << 22;

/// A rig whose firmware has left `PxCMD` and `PxSCTL` of the first port so.
fn left_by_firmware(config: Config, cmd: u32, sctl: u32) -> Rig {
    let machine = MockPlatform::new();
    let model = Model::new(State::new(&machine, config));
    {
        let mut state = model.state();
        (state.ports[0].cmd, state.ports[0].sctl) = (cmd, sctl);
    }
    let rig = Rig::on(machine, model).unwrap();
    rig.ahci[0].start().unwrap();
    rig.hba.set_interrupt(true);
    rig.ahci[0].set_interrupt(0, true);
    rig
}

pub fn state_of_link(rig: &Rig) -> u32 {
    rig.model.state().ports[0].sleep
}

/// Whether a change of PhyRdy would interrupt.
pub fn is_phy_heeded(rig: &Rig) -> bool {
    rig.ahci[0].set_interrupt(0, true);
    rig.model.state().ports[0].ie & PHY_READY != 0
}

/// Reads that go well, with the link asleep as `sleep` says before and after; nobody is called.
#[track_caller]
pub fn serves_asleep(rig: &Rig, host: &Host, queue: &Queue, sleep: u32) {
    for _ in 0..3 {
        assert_eq!(state_of_link(rig), sleep);
        assert_eq!(rig.model.state().ports[0].serr & (1 << 16) != 0, sleep != 1);
        queue.submit_many(reads(5));
        rig.interrupts(|_| {
            queue.drain(Context::Irq);
        });
        let ended = host.outcomes();
        assert_eq!(ended.len(), 5);
        assert!(ended.iter().all(|(_, outcome)| *outcome == Ok(())));
        assert_eq!(state_of_link(rig), sleep);
        assert!(!rig.model.line());
    }
    assert_eq!(rig.places[0].calls(), 0, "sleep is nothing to attend to");
    assert_eq!(rig.ahci[0].alive(), Ok(()));
    let resets = rig.model.state().ports[0].resets;
    let quiesced = queue.quiesce(&rig.machine);
    assert_eq!(rig.ahci[0].run_eh(), Ok(EhOutcome::Nothing));
    quiesced.unquiesce();
    assert_eq!(rig.model.state().ports[0].resets, resets);
    rig.model.check();
}

#[test]
fn a_link_that_sleeps_as_the_firmware_has_set_it_is_not_taken_for_a_drive_that_goes() {
    for (cmd, sctl, sleep) in [
        (ALPE, 0x000, 2),
        (ALPE, 0x200, 2),
        (ALPE | ASP, 0x000, 6),
        (ALPE | ASP, 0x100, 6),
        // Forbidden, or wanted by nobody.
        (ALPE, 0x100, 1),
        (ALPE | ASP, 0x300, 1),
        (0, 0x000, 1),
    ] {
        let rig = left_by_firmware(Config::default(), cmd, sctl);
        let (host, queue) = rig.io();
        serves_asleep(&rig, &host, &queue, sleep);
        // After a reset, too.
        let mut quiesced = queue.quiesce(&rig.machine);
        rig.ahci[0].stop().unwrap();
        quiesced.rewind();
        rig.ahci[0].start().unwrap();
        quiesced.unquiesce();
        serves_asleep(&rig, &host, &queue, sleep);
    }
}

#[test]
fn where_no_link_sleeps_a_drive_that_goes_is_noticed_at_once() {
    // IPM forbids nothing, but nobody has the link sleep.
    let rig = left_by_firmware(Config::default(), 0, 0);
    assert!(is_phy_heeded(&rig));
    rig.model.state().unplug(0);
    assert!(rig.model.line());
    rig.interrupts(|_| ());
    assert_eq!(rig.places[0].calls(), 1);
    assert_eq!(rig.ahci[0].run_eh(), Ok(EhOutcome::Detached));
    rig.model.check();
}

#[test]
fn a_drive_that_comes_in_place_of_one_whose_link_sleeps_is_noticed() {
    let rig = left_by_firmware(Config::default(), ALPE, 0);
    assert_eq!(state_of_link(&rig), 2);
    assert!(!is_phy_heeded(&rig));
    rig.model.state().unplug(0);
    assert!(!rig.model.line(), "that looks like sleep");
    rig.model.state().plug(
        0,
        Drive {
            serial: "SERIAL-1",
            ..Drive::new(9, 4096)
        },
    );
    assert!(rig.model.line());
    rig.interrupts(|_| ());
    assert_eq!(rig.places[0].calls(), 1);
    assert_eq!(rig.ahci[0].run_eh(), Ok(EhOutcome::Replaced));
    rig.model.check();
}
