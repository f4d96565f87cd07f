// SPDX-License-Identifier: GPL-2.0
//! The mock must punish, or the tests above it prove nothing.
#![cfg(not(loom))]

use hal::mock::{BusFault, MockController, MockPlatform};
use hal::{Controller, DmaMem, Error, Platform, Refused, Shutdown};
use std::panic::{catch_unwind, AssertUnwindSafe};

#[test]
fn a_device_sees_what_the_driver_wrote_and_back() {
    let platform = MockPlatform::new();
    let dma = platform.dma(64).unwrap();
    let bus = platform.bus();
    assert!(dma.bus_addr() > u64::from(u32::MAX) && dma.bus_addr() % 4096 == 0);
    dma.write64(8, 0x0807_0605_0403_0201);
    let mut bytes = [0; 6];
    bus.read(dma.bus_addr() + 9, &mut bytes).unwrap();
    assert_eq!(bytes, [2, 3, 4, 5, 6, 7]);
    bus.write(dma.bus_addr() + 3, &[0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff])
        .unwrap();
    assert_eq!((dma.read32(0), dma.read32(4)), (0xaa00_0000, 0xeedd_ccbb));
    assert_eq!(dma.read64(8), 0x0807_0605_0403_02ff);
    let mut back = [0; 3];
    dma.read_bytes(3, &mut back);
    assert_eq!(back, [0xaa, 0xbb, 0xcc]);
    dma.write_words(16, [1, 2]);
    assert_eq!(
        (
            bus.read64(dma.bus_addr() + 16),
            bus.read32(dma.bus_addr() + 24)
        ),
        (Ok(1), Ok(2))
    );
    dma.zero(16, 8);
    assert_eq!((dma.read64(16), dma.read64(24)), (0, 2));
    assert_eq!(bus.faults(), 0);
}

#[test]
fn an_access_that_hits_nothing_is_a_counted_fault() {
    let platform = MockPlatform::new();
    let dma = platform.dma(4096).unwrap();
    let other = platform.dma(4096).unwrap();
    let bus = platform.bus();
    let end = dma.bus_addr() + 4096;
    assert!(other.bus_addr() > end, "there is a gap between blocks");
    assert_eq!(bus.read32(end - 4), Ok(0));
    for addr in [
        0,
        dma.bus_addr() - 1,
        end - 3,
        end,
        u64::MAX,
        dma.bus_addr() & 0xffff_ffff,
    ] {
        assert_eq!(bus.write32(addr, 1), Err(BusFault { addr, len: 4 }));
    }
    assert_eq!(bus.faults(), 6);
    let freed = other.bus_addr();
    drop(other);
    assert!(bus.read32(freed).is_err(), "freed memory is gone");
    assert_eq!(bus.blocks_alive(), 1);
}

#[test]
fn what_the_contract_forbids_the_driver_fails_the_test() {
    let dma = MockPlatform::new().dma(16).unwrap();
    let fails = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(f)).is_err();
    assert!(fails(&|| dma.write32(16, 0)), "past the end");
    assert!(fails(&|| dma.write32(2, 0)), "misaligned");
    assert!(
        fails(&|| {
            let _ = dma.read64(12);
        }),
        "half past the end"
    );
    assert!(
        fails(&|| {
            let _ = dma.read64(4);
        }),
        "64 bits on 4"
    );
    assert!(!fails(&|| dma.write64(8, 0)));
}

#[test]
fn a_mapping_is_bounced_until_it_is_unmapped() {
    let platform = MockPlatform::new();
    let bus = platform.bus();
    let data: Vec<u8> = (0..=255).cycle().take(600).collect();
    let mapping = platform.map(&data, 512, 256);
    let segments = mapping.segments();
    let lens: Vec<_> = segments.iter().map(|segment| segment.len).collect();
    assert_eq!(lens, [256, 256, 600 - 512]);
    let offsets: Vec<_> = segments.iter().map(|segment| segment.addr % 4096).collect();
    assert_eq!(offsets, [512, 0, 0]);
    bus.write(segments[1].addr, b"device").unwrap();
    let back = mapping.unmap();
    assert_eq!(
        (&back[..256], &back[256..262]),
        (&data[..256], &b"device"[..])
    );
    assert!(bus.write(segments[1].addr, b"late").is_err());
    assert_eq!(bus.blocks_alive(), 0);
    drop(platform.map(&[0; 8], 0, 0));
    assert_eq!(bus.blocks_alive(), 1, "a forgotten one is seen");
}

#[test]
fn time_passes_when_told() {
    let platform = MockPlatform::new();
    let same = platform.clone();
    platform.advance(5);
    same.sleep_us(10);
    same.sleep_us(0);
    assert_eq!(
        platform.now_us(),
        16,
        "a wait of nothing still moves it, so that no loop is endless"
    );
}

#[test]
fn allocations_fail_when_told() {
    let platform = MockPlatform::new();
    platform.fail_allocations_after(1);
    assert!(platform.table(3, |at| at).is_ok());
    assert_eq!(platform.dma(4).err(), Some(Error::NoMemory));
    assert_eq!(platform.table(3, |at| at).err(), Some(Error::NoMemory));
    platform.fail_allocations_after(usize::MAX);
    assert!(platform.dma(4).is_ok());
}

#[test]
fn the_controller_is_as_alive_as_told() {
    type Mock = MockController<MockPlatform>;
    let refused = Refused {
        id: 2,
        why: "metadata",
    };
    let units = vec![Ok(Mock::unit(1, 100)), Err(refused)];
    let controller = MockController::new(MockPlatform::new(), 1, 4, units.clone());
    assert_eq!(
        controller.create_queue(0, Some(0)).err(),
        Some(Error::Invalid),
        "not started"
    );
    controller.start().unwrap();
    assert_eq!(
        (controller.limits().queues, controller.limits().tags),
        (1, 4)
    );
    let mut found = Vec::new();
    controller.units(&mut |unit| found.push(unit)).unwrap();
    assert_eq!(found, units);
    assert!(controller.create_queue(0, Some(0)).is_ok());
    assert!(
        controller.create_queue(1, Some(0)).is_err(),
        "there is one queue"
    );
    assert!(controller.device(0).is_some() && controller.device(1).is_none());
    controller.set_alive(Err(Error::Gone));
    assert_eq!(
        (controller.alive(), controller.stop(), controller.start()),
        (Err(Error::Gone), Err(Error::Gone), Err(Error::Gone))
    );
    assert_eq!((controller.starts(), controller.was_shut_down()), (1, None));
    let _ = controller.shutdown(Shutdown::Dead);
    assert_eq!(controller.was_shut_down(), Some(Shutdown::Dead));
}
