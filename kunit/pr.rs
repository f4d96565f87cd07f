// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of reservations: what the block layer asks through the table, and is told, of a disk
//! whose owner answers as the test wants.

use super::owner::{Fake, KEYS};
use crate::blk::gendisk::DiskShared;
use crate::blk::ioctl::{Gate, Owner};
use crate::blk::pr::{TABLE, TYPES};
use crate::blk::request::{status, DiskStats};
use crate::bytes::switch::Bytes;
use crate::shims;
use crate::work::Pinned;
use core::ptr::from_ref;
use hal::{Answer, CmdError, Denied, Error, Holder, Reserve};
use kernel::bindings;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A disk that is nobody's but ours, with an open gate to a [`Fake`]. The test closes the gate
/// before that goes.
struct Rig {
    bdev: KBox<bindings::block_device>,
    _disk: KBox<bindings::gendisk>,
    shared: KBox<DiskShared>,
    fake: Arc<Fake>,
}

impl Rig {
    fn new() -> Result<Self> {
        let fake = Fake::new()?;
        let gate = Gate::new().map_err(crate::errno::to_errno)?;
        // SAFETY: the owner lives as long as the rig, which closes the gate before.
        let owner = unsafe { Pinned::new(&*fake) }.map::<dyn Owner>(|fake| fake);
        gate.open(owner);
        let stats = DiskStats::new().map_err(crate::errno::to_errno)?;
        let stats = Arc::new(stats, GFP_KERNEL)?;
        let bytes = Bytes::new(0, 0, KVec::new()).map_err(crate::errno::to_errno)?;
        let shared = DiskShared::new(super::unit::unit(), KVec::new(), stats, bytes, gate, owner)
            .map_err(crate::errno::to_errno)?;
        let mut disk: KBox<bindings::gendisk> = KBox::new(crate::compat::zeroed(), GFP_KERNEL)?;
        disk.private_data = from_ref(&*shared).cast_mut().cast();
        let mut bdev: KBox<bindings::block_device> =
            KBox::new(crate::compat::zeroed(), GFP_KERNEL)?;
        bdev.bd_disk = &raw mut *disk;
        Ok(Self {
            bdev,
            _disk: disk,
            shared,
            fake,
        })
    }

    fn bdev(&self) -> *mut bindings::block_device {
        from_ref(&*self.bdev).cast_mut()
    }

    fn answer(&self, answer: Result<Answer<()>, Error>) {
        self.fake.state.lock().answer = answer;
    }

    fn asked(&self) -> Option<Reserve> {
        self.fake.state.lock().asked.take()
    }

    fn times(&self) -> u32 {
        self.fake.state.lock().times
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.shared.gate.close();
    }
}

/// `struct pr_keys` with its array.
#[repr(C)]
struct List {
    head: shims::pr_keys,
    keys: [u64; 4],
}

#[kunit_tests(hiops_pr)]
mod pr_suite {
    use super::*;

    // All of the table's functions are called with the rig's own device, and the caller's memory.

    #[test]
    fn keys_come_as_they_are_meant() -> Result {
        let rig = Rig::new()?;
        let (ops, bdev) = (&TABLE.0, rig.bdev());
        for (flags, ignore) in [(0, false), (1, true)] {
            // SAFETY: see above.
            let done = ops.pr_register.map(|f| unsafe { f(bdev, 1, 2, flags) });
            assert!(done == Some(0));
            let (old, new) = (1, 2);
            assert!(rig.asked() == Some(Reserve::Register { old, new, ignore }));
        }
        // SAFETY: see above.
        assert!(ops.pr_clear.map(|f| unsafe { f(bdev, 7) }) == Some(0));
        assert!(rig.asked() == Some(Reserve::Clear { key: 7 }));
        Ok(())
    }

    #[test]
    fn types_come_as_they_are_meant() -> Result {
        let rig = Rig::new()?;
        let (ops, bdev) = (&TABLE.0, rig.bdev());
        for (n, (kind, access)) in (1..).zip(TYPES.map(|(kind, access)| (kind, Some(access)))) {
            assert!(kind == n);
            // SAFETY: see above.
            let done = ops.pr_reserve.map(|f| unsafe { f(bdev, 7, kind, 1) });
            let (key, ignore) = (7, true);
            assert!(done == Some(0));
            assert!(
                rig.asked()
                    == Some(Reserve::Acquire {
                        key,
                        access,
                        ignore
                    })
            );
            // SAFETY: see above.
            let done = ops.pr_release.map(|f| unsafe { f(bdev, 7, kind) });
            assert!(done == Some(0));
            assert!(rig.asked() == Some(Reserve::Release { key, access }));
            for abort in [false, true] {
                // SAFETY: see above.
                let done = (ops.pr_preempt).map(|f| unsafe { f(bdev, 7, 8, kind, abort) });
                assert!(done == Some(0));
                let victim = 8;
                let what = Reserve::Preempt {
                    key,
                    victim,
                    access,
                    abort,
                };
                assert!(rig.asked() == Some(what));
            }
        }
        // Types that are none.
        for kind in [0, 7, u32::MAX] {
            // SAFETY: see above.
            let done = ops.pr_release.map(|f| unsafe { f(bdev, 7, kind) });
            assert!(done == Some(0));
            let access = None;
            assert!(rig.asked() == Some(Reserve::Release { key: 7, access }));
        }
        Ok(())
    }

    #[test]
    fn flags_that_nobody_knows_are_refused() -> Result {
        let rig = Rig::new()?;
        let (ops, bdev) = (&TABLE.0, rig.bdev());
        let before = rig.times();
        for flags in [2, 3, 1 << 31] {
            // SAFETY: see above.
            let done = ops.pr_register.map(|f| unsafe { f(bdev, 1, 2, flags) });
            assert!(done == Some(crate::compat::eopnotsupp().to_errno()));
            // SAFETY: see above.
            let done = ops.pr_reserve.map(|f| unsafe { f(bdev, 7, 1, flags) });
            assert!(done == Some(crate::compat::eopnotsupp().to_errno()));
        }
        assert!(rig.times() == before);
        Ok(())
    }

    #[test]
    fn what_is_answered_is_told_as_in_tree() -> Result {
        let rig = Rig::new()?;
        let clear = || {
            // SAFETY: see above.
            (TABLE.0.pr_clear).map(|f| unsafe { f(rig.bdev(), 7) })
        };
        for (answer, told) in [
            (Ok(Ok(())), 0),
            (Ok(Err(Denied::Conflict)), 0x18),
            (Ok(Err(Denied::Path)), 0x10000),
            (Ok(Err(Denied::Failed)), 2),
            (Ok(Err(Denied::Invalid)), EINVAL.to_errno()),
            (
                Err(Error::Unsupported),
                crate::compat::eopnotsupp().to_errno(),
            ),
            (Err(Error::Gone), ENODEV.to_errno()),
            (Err(Error::Timeout), ETIMEDOUT.to_errno()),
        ] {
            rig.answer(answer);
            assert!(clear() == Some(told));
        }
        let before = rig.times();
        rig.shared.gate.close();
        assert!(clear() == Some(ENODEV.to_errno()));
        assert!(rig.times() == before);
        Ok(())
    }

    #[test]
    fn keys_are_told_as_far_as_there_is_room() -> Result {
        let rig = Rig::new()?;
        for room in 0..=4u32 {
            for denied in [false, true] {
                rig.answer(Ok(if denied {
                    Err(Denied::Conflict)
                } else {
                    Ok(())
                }));
                let mut list = List {
                    head: shims::pr_keys {
                        num_keys: room,
                        ..Default::default()
                    },
                    keys: [0; 4],
                };
                let head = (&raw mut list).cast::<shims::pr_keys>();
                // SAFETY: see above; there is room for 4.
                let done = (TABLE.0.pr_read_keys).map(|f| unsafe { f(rig.bdev(), head) });
                let (generation, keys) = (list.head.generation, list.head.num_keys);
                if denied {
                    assert!(done == Some(0x18));
                    assert!((generation, keys) == (0, room));
                } else {
                    assert!(done == Some(0));
                    assert!((generation, keys) == (9, 3));
                }
                for (n, key) in (0..).zip(list.keys) {
                    let there = KEYS.get(n).filter(|_| n < room as usize);
                    assert!(key == there.copied().unwrap_or(0));
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_conflict_of_io_has_a_status_of_its_own() {
        let conflict = status(Err(CmdError::Reserved.permanent()));
        assert!(conflict == shims::HIOPS_STS_RESV_CONFLICT);
        for other in [CmdError::Io, CmdError::Medium, CmdError::Unsupported] {
            assert!(status(Err(other.permanent())) != conflict);
        }
    }

    #[test]
    fn the_holder_is_told() -> Result {
        let rig = Rig::new()?;
        let kinds = TYPES.map(|(kind, access)| (kind, Some(access)));
        for (kind, access) in Iterator::chain(kinds.into_iter(), [(0, None)]) {
            let (generation, key) = (u32::MAX, 5);
            rig.fake.state.lock().holder = Holder {
                generation,
                access,
                key,
            };
            let mut held = shims::pr_held_reservation::default();
            // SAFETY: see above.
            let done = (TABLE.0.pr_read_reservation).map(|f| unsafe { f(rig.bdev(), &mut held) });
            assert!(done == Some(0));
            assert!((held.generation, held.key, held.type_) == (generation, key, kind));
        }
        Ok(())
    }
}
