// SPDX-License-Identifier: GPL-2.0
//! How hot a device is.

/// Places in a device that have a sensor of their own, at most.
pub const SENSORS: usize = 8;

/// Temperatures, in thousandths of a degree Celsius.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Temperature {
    /// The device as a whole.
    pub composite: i32,
    /// From where on that is too hot to work as it should, where the device says so.
    pub warning: Option<i32>,
    /// From where on it is too hot to work.
    pub critical: Option<i32>,
    /// The device itself says that it is too hot, or too cold.
    pub alarm: bool,
    /// The places that have a sensor.
    pub sensors: [Option<i32>; SENSORS],
}
