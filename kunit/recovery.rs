// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of adapters that are recovered, given up, or at rest, with real disks in the block
//! layer.

use super::slots::becomes;
use super::test_host::{test_host, test_host_of};
use super::test_port::{has, Drives};
use crate::adapter::{Reason, Suspend};
use crate::blk::ioctl::Owner;
use core::sync::atomic::Ordering;
use hal::{Error, Unit};
use kernel::prelude::*;

#[kunit_tests(hiops_recovery)]
mod recovery_suite {
    use super::*;

    #[test]
    fn a_port_gets_no_bus_that_another_would_write_to_memory_by() -> Result<(), Error> {
        let (drives, slots) = test_host(0b11)?;
        assert_eq!(slots.open()?, 2);
        // Torn out, and it does not stop: what it had is given back, and its bus is cut.
        drives.stuck.store(0b01, Ordering::SeqCst);
        drives.torn_out.store(0b01, Ordering::SeqCst);
        slots.call(0);
        assert!(becomes(|| drives.made.load(Ordering::SeqCst) == 3));
        assert!(becomes(|| drives.ports.load(Ordering::SeqCst) == 1));
        assert!(has(&drives.loose, 0) && drives.cut.load(Ordering::SeqCst));
        // Its neighbour wants the bus back.
        slots.of(1, |adapter| adapter.recover_from(Reason::Asked));
        assert!(becomes(|| drives.restarts.load(Ordering::SeqCst) == 1));
        assert!(becomes(|| slots.live() == 0b10));
        assert!(slots.zeroes(1));
        assert!(!drives.cut.load(Ordering::SeqCst));
        slots.remove();
        assert_eq!(drives.strays.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[test]
    fn who_has_its_tokens_kept_is_not_paused() -> Result<(), Error> {
        let (drives, slots) = test_host(0b01)?;
        assert_eq!(slots.open()?, 1);
        slots.suspend(Suspend::Reset);
        // As far as a drive is that is lost while it is suspended.
        slots.of(0, |adapter| adapter.set_dead());
        let awake = slots.of(0, |adapter| adapter.at_rest_if_awake(|_| ()).is_some());
        assert_eq!(awake, Some(false));
        drives.host_broken.store(true, Ordering::SeqCst);
        assert!(slots.resume().is_err());
        let awake = slots.of(0, |adapter| adapter.at_rest_if_awake(|_| ()).is_some());
        assert_eq!(awake, Some(true));
        assert!(!slots.zeroes(0));
        slots.remove();
        Ok(())
    }

    #[test]
    fn what_nobody_brings_back_fails_and_hangs_nobody() -> Result<(), Error> {
        let (_drives, slots) = test_host(0b11)?;
        assert_eq!(slots.open()?, 2);
        // One that was left to serve answers, and is served on.
        slots.give_up();
        assert_eq!(slots.live(), 0b11);
        assert!(slots.zeroes(0) && slots.zeroes(1));
        slots.suspend(Suspend::Frozen);
        slots.give_up();
        assert_eq!(slots.live(), 0);
        assert!(!slots.zeroes(0) && !slots.zeroes(1));
        slots.give_up();
        slots.remove();
        Ok(())
    }

    #[test]
    fn a_rest_that_takes_long_is_no_reason_for_a_reset() -> Result<(), Error> {
        let (drives, slots) = test_host_of(Drives {
            there: 0b01.into(),
            hurries: true.into(),
            ..Default::default()
        })?;
        assert_eq!(slots.open()?, 1);
        drives.slow.store(0b01, Ordering::SeqCst);
        slots.call(0);
        assert!(becomes(|| drives.attended.load(Ordering::SeqCst) == 1));
        // Its time is over long before it can be issued.
        assert!(slots.zeroes(0));
        let resets = slots.of(0, |adapter| adapter.counts().resets);
        assert_eq!(resets, Some(0));
        slots.remove();
        Ok(())
    }

    #[test]
    fn a_disk_that_comes_during_a_reset_is_as_the_others() -> Result<(), Error> {
        let (drives, slots) = test_host(0b01)?;
        assert_eq!(slots.open()?, 1);
        drives.slow.store(0b01, Ordering::SeqCst);
        let starts = drives.starts.load(Ordering::SeqCst);
        slots.of(0, |adapter| adapter.recover_from(Reason::Asked));
        assert!(becomes(|| drives.starts.load(Ordering::SeqCst) != starts));
        let added = slots.of(0, |adapter| {
            let unit = *adapter.disks().lock().first().map(|disk| disk.unit())?;
            Some(adapter.add_disk(Unit { id: 7, ..unit }).is_ok())
        });
        assert_eq!(added.flatten(), Some(true));
        assert_eq!(slots.disks(), 2);
        assert!(becomes(|| slots.quiesced() == 0));
        assert!(slots.zeroes(0));
        slots.remove();
        Ok(())
    }
}
