// SPDX-License-Identifier: GPL-2.0
//! What a controller calls for beside its I/O: disks that come, go or change, warnings about its
//! health, firmware that it activates.
//!
//! [`crate::Cause::Attention`] calls; [`crate::Controller::attend`] sees to it, in a thread.

use core::fmt;

/// How the controller's queues are while it is attended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// I/O goes on.
    Live,
    /// Nothing is issued or drained; what was issued stays with the device.
    AtRest,
}

/// What a controller that was attended wishes of the layer above. Unless it is
/// [`EventAction::Nothing`] or [`EventAction::Later`] it is attended again afterwards: there may be
/// more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// Nothing.
    Nothing,
    /// The disks may have come, gone or changed: see [`crate::Controller::units`].
    LookAnew,
    /// It has to be attended with its queues at rest.
    Rest,
    /// It has to be recovered.
    Recover,
    /// It has called too often: it is attended in so many microseconds.
    Later(u32),
}

/// How much a [`DeviceEvent`] matters to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Good to know.
    Info,
    /// It should be looked after.
    Warning,
    /// Something has failed.
    Error,
}

/// Something that the device has said, for the operator's log.
#[derive(Clone, Copy)]
pub struct DeviceEvent<'a> {
    /// How much it matters.
    pub weight: Severity,
    /// One line, without its end.
    pub text: &'a dyn fmt::Display,
    /// Programs are told, too: by a variable of this name and value in a uevent of the device.
    pub uevent: Option<(&'static str, u32)>,
}
