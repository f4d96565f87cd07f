// SPDX-License-Identifier: GPL-2.0
//! What a device's registers say and hear.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "it fails the test")]

use faulty::{ahci, nvme, Faults};
use hal::Mmio;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Registers that read as they were written.
#[derive(Clone, Default)]
struct Plain(Arc<Mutex<BTreeMap<usize, u32>>>);

impl Mmio for Plain {
    fn len(&self) -> usize {
        0x2000
    }

    fn read32(&self, offset: usize) -> u32 {
        self.0.lock().unwrap().get(&offset).copied().unwrap_or(0)
    }

    fn write32(&self, offset: usize, value: u32) {
        self.0.lock().unwrap().insert(offset, value);
    }
}

const CC: usize = 0x14;
const CSTS: usize = 0x1c;
const DOORBELL: usize = 0x1008;
/// Of port 1.
const IS: usize = 0x190;
const CMD: usize = 0x198;
const SACT: usize = 0x1b4;
const CI: usize = 0x1b8;
const GHC: usize = 0x04;

fn nvme() -> (Plain, Arc<Faults>, nvme::Registers<Plain, Arc<Faults>>) {
    let (plain, faults) = (Plain::default(), Arc::new(Faults::default()));
    let registers = nvme::Registers::new(plain.clone(), faults.clone());
    (plain, faults, registers)
}

fn ahci() -> (Plain, Arc<Faults>, ahci::Registers<Plain, Arc<Faults>>) {
    let (plain, faults) = (Plain::default(), Arc::new(Faults::default()));
    let registers = ahci::Registers::new(plain.clone(), faults.clone());
    (plain, faults, registers)
}

#[test]
fn without_a_fault_registers_are_the_device_s() {
    let (plain, _, registers) = nvme();
    for at in (0..0x2000).step_by(4) {
        registers.write32(at, at as u32);
        assert_eq!(
            (plain.read32(at), registers.read32(at)),
            (at as u32, at as u32)
        );
    }
    let (plain, _, registers) = ahci();
    for at in (0..0x2000).step_by(4) {
        registers.write32(at, at as u32 | 1);
        let value = at as u32 | 1;
        assert_eq!((plain.read32(at), registers.read32(at)), (value, value));
    }
    assert_eq!(registers.len(), 0x2000);
}

#[test]
fn an_absent_device_reads_as_ones_and_hears_nothing() {
    let (plain, faults, registers) = nvme();
    faults.all_ones.set("1").unwrap();
    registers.write32(CC, 1);
    assert_eq!((registers.read32(CSTS), plain.read32(CC)), (u32::MAX, 0));
    faults.all_ones.set("0").unwrap();
    assert_eq!(registers.read32(CSTS), 0);

    let (plain, faults, registers) = ahci();
    faults.all_ones.set("1").unwrap();
    registers.write32(CI, 1);
    registers.write32(GHC, 1);
    assert_eq!(
        (registers.read32(SACT), plain.read32(CI), plain.read32(GHC)),
        (u32::MAX, 0, 0)
    );
}

#[test]
fn a_deaf_controller_hears_no_doorbell() {
    let (plain, faults, registers) = nvme();
    faults.deaf.set("1").unwrap();
    registers.write32(DOORBELL, 5);
    registers.write32(CC, 3);
    assert_eq!((plain.read32(DOORBELL), plain.read32(CC)), (0, 3));
    faults.deaf.set("0").unwrap();
    registers.write32(DOORBELL, 6);
    assert_eq!(plain.read32(DOORBELL), 6);
}

#[test]
fn a_fatal_status_lasts_until_the_controller_is_reset() {
    let (plain, faults, registers) = nvme();
    plain.write32(CSTS, 1);
    faults.cfs.set("1").unwrap();
    assert_eq!(registers.read32(CSTS), 3);
    registers.write32(DOORBELL, 5);
    registers.write32(CC, 1);
    assert_eq!((registers.read32(CSTS), plain.read32(DOORBELL)), (3, 0));
    registers.write32(CC, 0);
    assert_eq!((registers.read32(CSTS), faults.cfs.get()), (1, 0));
    registers.write32(DOORBELL, 5);
    assert_eq!(plain.read32(DOORBELL), 5);
}

#[test]
fn a_deaf_port_has_what_it_was_told_until_it_is_stopped() {
    let (plain, faults, registers) = ahci();
    plain.write32(SACT, 1);
    faults.deaf.set("1").unwrap();
    registers.write32(SACT, 2);
    registers.write32(CI, 2);
    assert_eq!((registers.read32(SACT), registers.read32(CI)), (3, 2));
    assert_eq!((plain.read32(SACT), plain.read32(CI)), (1, 0));
    // What it was not told in time it does not learn later.
    faults.deaf.set("0").unwrap();
    assert_eq!(registers.read32(CI), 2);
    registers.write32(CMD, 1);
    assert_eq!(registers.read32(CI), 2);
    registers.write32(CMD, 0);
    assert_eq!((registers.read32(SACT), registers.read32(CI)), (1, 0));
    // Another port's are its own.
    faults.deaf.set("1").unwrap();
    registers.write32(CI, 4);
    registers.write32(CMD + 0x80, 0);
    assert_eq!((registers.read32(CI), registers.read32(CI + 0x80)), (4, 0));
    registers.write32(GHC, 1);
    assert_eq!(registers.read32(CI), 0);
}

#[test]
fn a_fatal_error_of_the_bus_lasts_until_the_port_is_stopped() {
    let (plain, faults, registers) = ahci();
    faults.cfs.set("1").unwrap();
    registers.write32(CI, 2);
    assert_eq!((registers.read32(IS), registers.read32(CI)), (1 << 29, 2));
    assert_eq!(plain.read32(CI), 0);
    registers.write32(IS, u32::MAX);
    plain.write32(IS, 0);
    assert_eq!(registers.read32(IS), 1 << 29, "the HBA is as it was");
    registers.write32(CMD, 0);
    assert_eq!((registers.read32(IS), registers.read32(CI)), (0, 0));
    assert_eq!(faults.cfs.get(), 0);
}
