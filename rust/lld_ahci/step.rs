// SPDX-License-Identifier: GPL-2.0
//! What the control path of a port was last doing, so that a failure can be named.

use cell::sync::{AtomicU8, Ordering};

/// The control path's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    Probe,
    Halt,
    Link,
    Ready,
    Run,
    Identify,
    SetFeatures,
    ReadLog,
    OneByOne,
    LetFinish,
    PassThrough,
    Flush,
    Standby,
}

const NAMES: [&str; 13] = [
    "making the port",
    "stopping the port (PxCMD.ST, FRE = 0)",
    "waiting for the link (PxSSTS.DET)",
    "waiting for the drive (PxTFD.BSY, DRQ)",
    "starting the port (PxCMD.ST = 1)",
    "IDENTIFY DEVICE",
    "SET FEATURES",
    "READ LOG EXT",
    "telling the drive its commands one by one",
    "letting the drive finish before a command is passed through",
    "a command passed through",
    "FLUSH CACHE EXT",
    "STANDBY IMMEDIATE",
];

/// The step under way, or the one that failed.
pub(crate) struct Progress(AtomicU8);

impl Progress {
    pub(crate) fn new() -> Self {
        // CAST: the enum is a byte.
        Self(AtomicU8::new(Step::Probe as u8))
    }

    pub(crate) fn at(&self, step: Step) {
        // CAST: the enum is a byte.
        self.0.store(step as u8, Ordering::Relaxed);
    }

    pub(crate) fn name(&self) -> &'static str {
        let at = usize::from(self.0.load(Ordering::Relaxed));
        NAMES.get(at).copied().unwrap_or("nothing")
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_own_name() {
        assert_eq!(Step::Standby as usize + 1, NAMES.len());
        let progress = Progress::new();
        progress.at(Step::Identify);
        assert_eq!(progress.name(), "IDENTIFY DEVICE");
        progress.at(Step::Standby);
        assert_eq!(progress.name(), "STANDBY IMMEDIATE");
    }
}
