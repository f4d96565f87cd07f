// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of slots: drives that come and go, and ports that hang, with real disks in the block
//! layer.

use super::test_host::{test_host, TestHost};
use super::test_port::has;
use crate::adapter::Suspend;
use crate::blk::ioctl::Owner;
use crate::caller::TakeOff;
use crate::hotplug::SlotAdapter;
use crate::hotplug::Slots;
use crate::platform::KernelPlatform;
use core::sync::atomic::Ordering;
use hal::{Error, Platform};
use kernel::prelude::*;

/// Waits until `what` is so, for half a minute at most.
pub(crate) fn becomes(what: impl Fn() -> bool) -> bool {
    let platform = KernelPlatform::without_device();
    for _ in 0..30_000 {
        if what() {
            return true;
        }
        platform.sleep_us(1_000);
    }
    false
}

/// Whether the drive in slot `number` is served, and was asked to leave.
fn takes_off(slots: &Slots<TestHost>, number: u8) -> bool {
    let leave = |adapter: &SlotAdapter<TestHost>| adapter.take_off().map(TakeOff::leave);
    slots.of(number, leave).flatten().is_some()
}

#[kunit_tests(hiops_slots)]
mod slots_suite {
    use super::*;

    #[test]
    fn a_drive_that_comes_is_served_beside_the_others() -> Result<(), Error> {
        let (drives, slots) = test_host(0b01)?;
        assert_eq!(slots.served(), 0b01);
        assert_eq!(slots.open()?, 1);
        assert_eq!(drives.listening.load(Ordering::SeqCst), 0b10);
        drives.there.store(0b11, Ordering::SeqCst);
        // The other port's drive stays, whatever was called for.
        slots.want(0);
        slots.call(1);
        assert!(becomes(|| slots.disks() == 2));
        assert_eq!(slots.served(), 0b11);
        assert_eq!(drives.made.load(Ordering::SeqCst), 3);
        slots.remove();
        assert_eq!(drives.listening.load(Ordering::SeqCst), 0);
        drop(slots);
        assert_eq!(drives.ports.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[test]
    fn a_drive_that_goes_makes_room_for_another() -> Result<(), Error> {
        let (drives, slots) = test_host(0b11)?;
        assert_eq!(slots.open()?, 2);
        for _ in 0..3 {
            drives.there.store(0b10, Ordering::SeqCst);
            slots.call(0);
            assert!(becomes(|| slots.disks() == 1));
            assert!(becomes(|| has(&drives.listening, 0)));
            assert_eq!(slots.served(), 0b10);
            drives.there.store(0b11, Ordering::SeqCst);
            slots.call(0);
            assert!(becomes(|| slots.disks() == 2));
            assert_eq!(slots.served(), 0b11);
        }
        assert_eq!(drives.ports.load(Ordering::SeqCst), 2);
        slots.remove();
        drop(slots);
        assert_eq!(drives.ports.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[test]
    fn a_drive_that_is_taken_off_stays_away_until_it_is_looked_for() -> Result<(), Error> {
        let (drives, slots) = test_host(0b11)?;
        assert_eq!(slots.open()?, 2);
        for _ in 0..2 {
            assert!(takes_off(&slots, 0));
            assert!(becomes(|| slots.disks() == 1));
            assert!(becomes(|| has(&drives.listening, 0)));
            assert_eq!(slots.served(), 0b10);
            // Neither a sleep nor another's coming and going brings it back.
            assert!(slots.suspend(Suspend::Sleep) && slots.resume().is_ok());
            drives.there.store(0b01, Ordering::SeqCst);
            slots.call(1);
            assert!(becomes(|| slots.disks() == 0 && has(&drives.listening, 1)));
            drives.there.store(0b11, Ordering::SeqCst);
            slots.call(1);
            assert!(becomes(|| slots.disks() == 1));
            assert!(slots.zeroes(1));
            assert_eq!(slots.served(), 0b10);
            let _ = slots.of(1, |adapter| adapter.rescan());
            assert!(becomes(|| slots.disks() == 2));
            assert_eq!(slots.served(), 0b11);
            assert!(slots.zeroes(0) && slots.zeroes(1));
        }
        slots.remove();
        drop(slots);
        assert_eq!(drives.ports.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[test]
    fn another_drive_in_the_place_of_one_that_was_taken_off_is_served() -> Result<(), Error> {
        let (drives, slots) = test_host(0b11)?;
        assert_eq!(slots.open()?, 2);
        assert!(takes_off(&slots, 0));
        assert!(becomes(|| slots.disks() == 1));
        assert!(becomes(|| has(&drives.listening, 0)));
        slots.call(0);
        assert!(becomes(|| slots.disks() == 2));
        slots.remove();
        Ok(())
    }

    #[test]
    fn a_bay_whose_drive_does_not_start_waits_for_another() -> Result<(), Error> {
        let (drives, slots) = test_host(0b01)?;
        slots.open()?;
        drives.broken.store(0b10, Ordering::SeqCst);
        drives.there.store(0b11, Ordering::SeqCst);
        slots.call(1);
        assert!(becomes(|| drives.made.load(Ordering::SeqCst) == 3));
        assert!(becomes(|| has(&drives.listening, 1)));
        assert_eq!(slots.served(), 0b01);
        drives.broken.store(0, Ordering::SeqCst);
        slots.call(1);
        assert!(becomes(|| slots.disks() == 2));
        Ok(())
    }

    #[test]
    fn a_port_that_hangs_is_reset_with_all_and_nothing_is_lost() -> Result<(), Error> {
        let (drives, slots) = test_host(0b11)?;
        assert_eq!(slots.open()?, 2);
        drives.stuck.store(0b01, Ordering::SeqCst);
        slots.call(0);
        // I/O of both, from before the reset until after it.
        assert!(becomes(|| {
            assert!(slots.zeroes(1) && slots.zeroes(0));
            drives.restarts.load(Ordering::SeqCst) == 1
        }));
        assert!(slots.zeroes(1) && slots.zeroes(0));
        assert_eq!(slots.live(), 0b11);
        slots.remove();
        assert_eq!(drives.strays.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[test]
    fn a_port_that_hangs_again_is_given_up_alone() -> Result<(), Error> {
        let (drives, slots) = test_host(0b11)?;
        assert_eq!(slots.open()?, 2);
        for (round, live) in [(1, 0b11), (2, 0b10)] {
            drives.stuck.store(0b01, Ordering::SeqCst);
            slots.call(0);
            assert!(becomes(|| drives.restarts.load(Ordering::SeqCst) == round));
            assert!(becomes(|| slots.live() == live));
            assert!(slots.zeroes(1));
        }
        assert!(!slots.zeroes(0));
        slots.remove();
        assert_eq!(drives.strays.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[test]
    fn a_port_that_hangs_after_all_were_reset_makes_room() -> Result<(), Error> {
        let (drives, slots) = test_host(0b11)?;
        assert_eq!(slots.open()?, 2);
        drives.stays_stuck.store(0b01, Ordering::SeqCst);
        drives.stuck.store(0b01, Ordering::SeqCst);
        slots.call(0);
        assert!(becomes(|| drives.restarts.load(Ordering::SeqCst) == 1));
        assert!(becomes(|| slots.disks() == 1));
        assert!(slots.zeroes(1));
        // Its memory stays, and so it keeps the bus from nobody.
        assert!(!drives.cut.load(Ordering::SeqCst));
        assert_eq!(drives.ports.load(Ordering::SeqCst), 2);
        slots.remove();
        assert_eq!(drives.listening.load(Ordering::SeqCst), 0);
        drop(slots);
        assert_eq!(drives.ports.load(Ordering::SeqCst), 0);
        assert!(drives.cut.load(Ordering::SeqCst));
        assert_eq!(drives.strays.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[test]
    fn who_waits_for_a_reset_does_not_hold_up_the_end() -> Result<(), Error> {
        for round in 0..8u32 {
            let (drives, slots) = test_host(0b11)?;
            slots.open()?;
            drives.stuck.store(0b11, Ordering::SeqCst);
            slots.call(0);
            slots.call(1);
            // At one point or another of the reset.
            KernelPlatform::without_device().sleep_us(u64::from(round.wrapping_mul(300)));
            slots.remove();
            drop(slots);
            assert_eq!(drives.ports.load(Ordering::SeqCst), 0);
        }
        Ok(())
    }

    #[test]
    fn a_suspension_ends_once_and_only_if_it_began() -> Result<(), Error> {
        let (drives, slots) = test_host(0b11)?;
        assert_eq!(slots.open()?, 2);
        slots.resume()?;
        assert_eq!(drives.restarts.load(Ordering::SeqCst), 0);
        for _ in 0..2 {
            slots.suspend(Suspend::Reset);
            slots.suspend(Suspend::Frozen);
            assert_eq!(slots.live(), 0);
            slots.resume()?;
            slots.resume()?;
            assert!(slots.zeroes(0) && slots.zeroes(1));
        }
        assert_eq!(drives.restarts.load(Ordering::SeqCst), 2);
        // Who comes and who calls is heard again.
        drives.there.store(0b10, Ordering::SeqCst);
        slots.call(0);
        assert!(becomes(|| slots.disks() == 1));
        slots.remove();
        Ok(())
    }

    #[test]
    fn what_comes_and_goes_while_all_goes_is_not_left_behind() -> Result<(), Error> {
        for round in 0..8u32 {
            let (drives, slots) = test_host(0b01)?;
            slots.open()?;
            drives.there.store(0b10, Ordering::SeqCst);
            slots.call(0);
            slots.call(1);
            // At one point or another of the hot-plug work.
            KernelPlatform::without_device().sleep_us(u64::from(round.wrapping_mul(500)));
            slots.remove();
            assert_eq!(drives.listening.load(Ordering::SeqCst), 0);
            drop(slots);
            assert_eq!(drives.ports.load(Ordering::SeqCst), 0);
        }
        Ok(())
    }
}
