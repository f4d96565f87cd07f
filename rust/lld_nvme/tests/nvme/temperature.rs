// SPDX-License-Identifier: GPL-2.0
//! How hot a controller is.

use crate::model::Config;
use crate::rig::Rig;
use hal::{Controller, Error, Temperature};

#[test]
fn as_the_health_log_says() {
    let rig = Rig::started(Config {
        kelvins: [323, 330, 0],
        ..Config::default()
    });
    let mut sensors = [None; 8];
    sensors[0] = Some(56_850);
    let expected = Temperature {
        composite: 49_850,
        warning: Some(69_850),
        critical: Some(99_850),
        alarm: false,
        sensors,
    };
    assert_eq!(rig.nvme.temperature(), Ok(Some(expected)));
    rig.model.state().config.warnings = 0b11;
    assert!(rig.nvme.temperature().unwrap().unwrap().alarm);
    rig.model.state().config.warnings = 0b1101;
    assert!(!rig.nvme.temperature().unwrap().unwrap().alarm);
    // Whoever waits for the page's events still gets them.
    let log = rig.model.state().admin_log.clone();
    let reads = log
        .iter()
        .filter(|(opcode, dword10)| (*opcode, dword10 & 0xff) == (0x02, 0x02));
    assert!(
        reads.clone().count() == 3 && reads.clone().all(|(_, dword10)| dword10 & (1 << 15) != 0)
    );
    rig.model.check();
}

#[test]
fn what_is_not_said_is_not_made_up() {
    let rig = Rig::started(Config {
        kelvins: [300, 0, 0],
        hot: (0, 0),
        ..Config::default()
    });
    let temperature = rig.nvme.temperature().unwrap().unwrap();
    assert_eq!(
        (
            temperature.warning,
            temperature.critical,
            temperature.sensors
        ),
        (None, None, [None; 8])
    );
    rig.model.state().config.kelvins = [0; 3];
    assert_eq!(rig.nvme.temperature(), Ok(None));
    let next = rig.model.state().admin_log.len();
    rig.model.state().refuse = Some((next, 0x4002));
    assert_eq!(rig.nvme.temperature(), Ok(None));
}

#[test]
fn a_controller_that_does_not_say_is_to_be_recovered() {
    let rig = Rig::started(Config::default());
    let next = rig.model.state().admin_log.len();
    rig.model.state().ignore = Some(next);
    assert_eq!(rig.nvme.temperature(), Err(Error::Timeout));
    assert_eq!(rig.nvme.step(), "Get Log Page, health");
    rig.model.vanish();
    assert_eq!(rig.nvme.temperature(), Err(Error::Gone));
}
