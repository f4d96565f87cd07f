// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of the strategy on the kernel's face of cell and hal: the host tests the rest.

use kernel::prelude::*;

#[kunit_tests(hiops_engine)]
mod engine_suite {
    use crate::platform::KernelPlatform;
    use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use engine::{Context, Cpu, Data, IoQueue, Upper};
    use hal::{CmdError, Command, Controller, Op, Outcome, Segment};
    use kernel::prelude::*;
    use kernel::sync::Arc;
    use lld_ram::{Backing, Config, Device, Interface, Latency, Ram};
    use strategy::Plain;

    /// A device without a medium, whose clock is turned by hand.
    struct Parts {
        device: Device,
        now: AtomicU64,
    }

    #[derive(Clone)]
    struct Hand(Arc<Parts>);

    impl Backing for Hand {
        fn device(&self) -> &Device {
            &self.0.device
        }
        fn now_ns(&self) -> u64 {
            self.0.now.load(Ordering::Relaxed)
        }
        fn arm(&self, _: u16, _: u64) {}
        fn read(&self, _: u64, _: Segment) {}
        fn write(&self, _: u64, _: Segment) {}
        fn zero(&self, _: u64, _: u64) {}
    }

    /// Requests are numbers, which must end in order.
    #[derive(Default)]
    struct Order {
        next: AtomicUsize,
        failed: AtomicUsize,
        deferred: AtomicUsize,
        wrong: AtomicUsize,
    }

    struct Upside(Arc<Order>);

    impl Upper for Upside {
        type Request = usize;
        type Ended = usize;

        fn command(&self, _: &usize) -> Command {
            Command {
                op: Op::Flush,
                unit: 1,
                lba: 0,
                blocks: 0,
                block_shift: 9,
                fua: false,
                unmap: false,
            }
        }
        fn data<'a>(
            &'a self,
            _: &'a mut usize,
        ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
            Data::Many(core::iter::empty())
        }
        fn begin_cmd(&self, _: &mut usize) {}
        fn unmap(&self, _: &mut usize) {}
        fn deferred(&self, _: &usize) {
            self.0.deferred.fetch_add(1, Ordering::Relaxed);
        }
        fn end_cmd(&self, ended: &mut usize, rq: usize, outcome: Outcome) {
            *ended = ended.wrapping_add(1);
            if outcome.is_err() {
                self.0.failed.fetch_add(1, Ordering::Relaxed);
            }
            if self.0.next.fetch_add(1, Ordering::Relaxed) != rq {
                self.0.wrong.fetch_add(1, Ordering::Relaxed);
            }
        }
        fn finish(&self, _: &mut usize, _: Context) {}
        fn retry_later(&self) {}
    }

    impl Cpu for Upside {
        fn now_ms(&self) -> u64 {
            0
        }
        fn now_ns(&self) -> u64 {
            0
        }
    }

    type Io = IoQueue<KernelPlatform, lld_ram::RamQueue<KernelPlatform, Hand>, Upside, Plain>;

    struct Rig {
        hand: Hand,
        ram: Ram<KernelPlatform, Hand>,
        io: Io,
        order: Arc<Order>,
    }

    fn rig() -> Result<Rig, hal::Error> {
        let no_memory = |_| hal::Error::NoMemory;
        let parts = Parts {
            device: Device::new(Config {
                queues: 1,
                tags: 4,
                interface: Interface::Queue,
                channels: 4,
                latency: Latency::Fixed(100),
                write_latency: None,
                link_mb_s: 0,
                holes: lld_ram::Holes::No,
                seed: 1,
                bytes: 4096,
                block_shift: 9,
            })?,
            now: AtomicU64::new(0),
        };
        let hand = Hand(Arc::new(parts, GFP_KERNEL).map_err(no_memory)?);
        let platform = KernelPlatform::without_device();
        let ram = Ram::new(platform.clone(), hand.clone(), 0);
        ram.start()?;
        let order = Arc::new(Order::default(), GFP_KERNEL).map_err(no_memory)?;
        let upper = Upside(order.clone());
        let io = IoQueue::new(&platform, ram.create_queue(0, Some(0))?, upper, Plain, 64)?;
        Ok(Rig {
            hand,
            ram,
            io,
            order,
        })
    }

    fn get(counter: &AtomicUsize) -> usize {
        counter.load(Ordering::Relaxed)
    }

    #[test]
    fn the_fifo_keeps_the_order() {
        let rig = rig();
        assert!(rig.is_ok());
        if let Ok(rig) = rig {
            (0..50).for_each(|n| rig.io.submit(n, true));
            assert_eq!(rig.io.in_flight(), 4);
            assert_eq!(rig.io.queued(), 46);
            assert_eq!(get(&rig.order.deferred), 46);
            for _ in 0..13 {
                rig.hand.0.now.fetch_add(100, Ordering::Relaxed);
                rig.ram.interrupt(0);
                rig.io.drain(Context::Irq);
            }
            assert_eq!(get(&rig.order.next), 50);
            assert_eq!(get(&rig.order.wrong), 0);
            assert_eq!(get(&rig.order.failed), 0);
            assert_eq!(rig.io.in_flight(), 0);
        }
    }

    #[test]
    fn the_gate_closes_for_good() {
        let rig = rig();
        assert!(rig.is_ok());
        if let Ok(rig) = rig {
            (0..10).for_each(|n| rig.io.submit(n, true));
            let mut quiesced = rig.io.quiesce(&KernelPlatform::without_device());
            rig.io.submit(10, true);
            assert_eq!(get(&rig.order.next), 0);
            assert!(rig.ram.stop().is_ok());
            quiesced.reap(CmdError::Gone.permanent());
            quiesced.kill();
            rig.io.submit(11, true);
            // In no promised order: what held tags ends by tag.
            assert_eq!(get(&rig.order.next), 12);
            assert_eq!(get(&rig.order.failed), 12);
        }
    }
}
