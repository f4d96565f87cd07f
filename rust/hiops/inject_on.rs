// SPDX-License-Identifier: GPL-2.0
//! Faults on demand: `/sys/kernel/debug/hiops/ADDRESS`, one folder a device, one file a fault, and
//! what has them happen between the device's registers, its driver and the engine.

use core::fmt;
use core::ops::Deref;
use faulty::{Faults, Knob};
use hal::{Error, NewQueue};
use kernel::prelude::*;
use kernel::sync::{Arc, SetOnce};
use kernel::uaccess::UserSliceReader;
use kglue::faults::Alarm;
use kglue::faults::{self, Folder};
use kglue::platform::{KernelPlatform, Window};

pub(crate) type NvmeRegisters = faulty::nvme::Registers<Window, Handle>;
pub(crate) type AhciRegisters = faulty::ahci::Registers<Window, Handle>;
pub(crate) type Queue<Q> = faulty::Queue<Q, KernelPlatform, Handle, QueueAlarm>;
pub(crate) use kglue::faults::Root;

/// Longest text that a switch takes.
const TEXT: usize = 32;

/// The switches of a device, as files that go with the last handle.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Folder<Faults>>);

impl Handle {
    /// All of them off. Sleeps.
    pub(crate) fn new(platform: &KernelPlatform) -> Result<Self, Error> {
        let folder = faults::folder(platform, Faults::default(), |faults, folder| {
            let files: [(&CStr, &Knob); 8] = [
                (c"drop", &faults.drop),
                (c"delay_us", &faults.delay_us),
                (c"duplicate", &faults.duplicate),
                (c"fail_nth", &faults.fail_nth),
                (c"fail_as", &faults.fail_as),
                (c"deaf", &faults.deaf),
                (c"cfs", &faults.cfs),
                (c"all_ones", &faults.all_ones),
            ];
            for (name, knob) in files {
                folder.read_write_callback_file(name, knob, &show, &store);
            }
        })?;
        let folder = Arc::new(folder, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self(folder))
    }

    pub(crate) fn nvme(&self, window: Window) -> NvmeRegisters {
        faulty::nvme::Registers::new(window, self.clone())
    }

    pub(crate) fn ahci(&self, window: Window) -> AhciRegisters {
        faulty::ahci::Registers::new(window, self.clone())
    }

    pub(crate) fn queue<Q: hal::Queue>(
        &self,
        platform: &KernelPlatform,
        new: NewQueue<Q>,
    ) -> Result<NewQueue<Queue<Q>>, Error> {
        let alarm = QueueAlarm(SetOnce::new());
        faulty::Queue::around(new, platform.clone(), self.clone(), alarm)
    }
}

impl Deref for Handle {
    type Target = Faults;

    fn deref(&self) -> &Faults {
        &self.0
    }
}

fn show(knob: &Knob, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "{knob}")
}

fn store(knob: &Knob, from: &mut UserSliceReader) -> Result {
    let mut text = [0; TEXT];
    let text = text.get_mut(..from.len()).ok_or(EINVAL)?;
    from.read_slice(text)?;
    let text = core::str::from_utf8(text).map_err(|_| EINVAL)?;
    knob.set(text).map_err(|_| EINVAL)
}

/// What drains a queue when it asks for it, as soon as there is something.
pub(crate) struct QueueAlarm(SetOnce<Alarm>);

impl faulty::Alarm for QueueAlarm {
    fn wake_in(&self, us: u64) {
        if let Some(alarm) = self.0.as_ref() {
            alarm.wake_in(u32::try_from(us).unwrap_or(u32::MAX));
        }
    }
}

/// By which `registers` go.
pub(crate) fn handle(registers: &AhciRegisters) -> Handle {
    registers.faults().clone()
}

/// The driver's queue.
pub(crate) fn inner<Q: hal::Queue>(queue: &Queue<Q>) -> &Q {
    queue.inner()
}

/// From now on `queue` is drained by `alarm` when it asks for it.
pub(crate) fn wake_by<Q: hal::Queue>(queue: &Queue<Q>, alarm: Alarm) {
    let _ = queue.alarm().0.populate(alarm);
}
