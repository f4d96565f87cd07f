// SPDX-License-Identifier: GPL-2.0
//! What the control path was last doing, so that a failure can be named.

use cell::sync::{AtomicU8, Ordering};

/// The control path's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    Probe,
    Disable,
    Enable,
    IdentifyController,
    PowerStates,
    HostBehavior,
    HostMemory,
    NumberOfQueues,
    DoorbellBuffer,
    CreateCompletionQueue,
    CreateSubmissionQueue,
    DeleteCompletionQueue,
    ActiveNamespaces,
    IdentifyNamespace,
    NamespaceDescriptors,
    NvmLimits,
    EffectsLog,
    EventConfiguration,
    EventLog,
    HealthLog,
    Activation,
    Abort,
    PassThrough,
    IoPassThrough,
    Shutdown,
}

const NAMES: [&str; 25] = [
    "reading the capabilities (CAP)",
    "disabling the controller (CC.EN = 0)",
    "enabling the controller (CC.EN = 1)",
    "Identify Controller",
    "Set Features, Autonomous Power State Transition",
    "Set Features, Host Behavior Support",
    "Set Features, Host Memory Buffer",
    "Set Features, Number of Queues",
    "Doorbell Buffer Config",
    "Create I/O Completion Queue",
    "Create I/O Submission Queue",
    "Delete I/O Completion Queue",
    "Identify, active namespaces",
    "Identify Namespace",
    "Identify, namespace descriptors",
    "Identify, NVM command set limits",
    "Get Log Page, commands supported and effects",
    "Set Features, Asynchronous Event Configuration",
    "Get Log Page, for an asynchronous event",
    "Get Log Page, health",
    "waiting for new firmware to be active (CSTS.PP)",
    "Abort",
    "an admin command passed through",
    "an I/O command passed through",
    "shutting down (CC.SHN)",
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
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_own_name() {
        assert_eq!(Step::Shutdown as usize + 1, NAMES.len());
        let progress = Progress::new();
        progress.at(Step::Shutdown);
        assert_eq!(progress.name(), "shutting down (CC.SHN)");
        progress.at(Step::PassThrough);
        assert_eq!(progress.name(), "an admin command passed through");
    }
}
