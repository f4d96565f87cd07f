// SPDX-License-Identifier: GPL-2.0
//! Errors as kinds: of a command, and of the control path.

/// How a command ended.
pub type Outcome = Result<(), Failure>;

/// Why a command failed, and what another try is good for. The LLD alone knows both; the layer
/// above decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub error: CmdError,
    /// Whether the same command may succeed later.
    pub retry: RetryHint,
}

impl Failure {
    /// The same failure of a command that was never issued; one that is final stays so.
    pub const fn not_issued(self) -> Self {
        let retry = match self.retry {
            RetryHint::Never => RetryHint::Never,
            _ => RetryHint::NotIssued,
        };
        Self { retry, ..self }
    }
}

/// A failure of which nothing more is known is final.
impl From<CmdError> for Failure {
    fn from(error: CmdError) -> Self {
        error.permanent()
    }
}

/// Whether, and when, a command that failed is worth another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryHint {
    /// It would fail again.
    Never,
    /// At once.
    Now,
    /// After so many tenths of a second (the unit of NVMe's Command Retry Delay Times).
    After(u16),
    /// At once, and as often as it takes: the command was never issued, so nothing was tried.
    NotIssued,
}

/// Why a command failed, in the terms of the layer above. An LLD maps its device's status codes to
/// these once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmdError {
    /// The medium could not be read or written.
    Medium,
    /// The range is not, or no longer, on the disk.
    Range,
    /// The data's integrity check failed.
    Protection,
    /// The disk is not ready now; the same command may succeed later.
    NotReady,
    /// No capacity is left for the write (thin provisioning).
    NoSpace,
    /// A reservation held by another host forbids it.
    Reserved,
    /// The device does not know the command.
    Unsupported,
    /// The command could not be expressed for this device (segments, alignment, length).
    Invalid,
    /// The device did not answer in time; the command was in flight when the controller was
    /// stopped.
    Timeout,
    /// The command was taken back by a reset or a removal, unexecuted as far as is known.
    Aborted,
    /// The device is gone.
    Gone,
    /// The way to the device failed, not the device.
    Path,
    /// The device reports a fault of its own, of no block in particular.
    Fault,
    /// Any other failure that the device or the bus reported.
    Io,
}

impl CmdError {
    /// A failure of this kind that another try does not mend.
    pub const fn permanent(self) -> Failure {
        Failure {
            error: self,
            retry: RetryHint::Never,
        }
    }

    /// One that another try may mend.
    pub const fn retryable(self) -> Failure {
        Failure {
            error: self,
            retry: RetryHint::Now,
        }
    }
}

/// Why a control-path step failed. Each kind is a different advice to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Memory for tables or DMA could not be had.
    NoMemory,
    /// The device did not reach the state in the time its specification bounds.
    Timeout,
    /// The device reads as all ones: pulled, or powered down.
    Gone,
    /// The device reported a fatal status.
    Fatal,
    /// What the device says about itself contradicts the specification or this machine.
    Malformed,
    /// A feature that this driver needs is missing.
    Unsupported,
    /// The device refused an administrative command with this status code of its own.
    Refused(u16),
    /// A parameter is out of range.
    Invalid,
}
