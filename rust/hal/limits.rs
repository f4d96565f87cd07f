// SPDX-License-Identifier: GPL-2.0
//! What a controller can do.

/// What a controller can do, known after [`crate::Controller::start`]. The engine and the layer
/// above keep to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queues that can be created, at least 1.
    pub queues: u16,
    /// Tags of each queue, at least 1.
    pub tags: u16,
    /// Most bytes that one command moves.
    pub max_transfer: u32,
    /// Most data segments of one command.
    pub max_segments: u16,
    /// Most bytes of one segment.
    pub max_segment: u32,
    /// No segment boundary inside a command may fall elsewhere than where `address & mask == 0`; 0:
    /// anywhere.
    pub virt_boundary: u64,
    /// Segments start and end where `address & mask == 0`.
    pub dma_align: u32,
    /// No segment goes on beyond an address of which `address & mask == mask`: a mask of low bits;
    /// all ones: there is no such boundary.
    pub segment_boundary: u64,
}

impl Limits {
    /// These limits on a machine that maps at most `bytes` at once for the device: where that is
    /// less, whole pages of it, and never less than one.
    pub fn within(self, bytes: u64) -> Self {
        let most = match u32::try_from(bytes) {
            Ok(bytes) => (bytes & !PAGE_MASK).max(PAGE_MASK.saturating_add(1)),
            Err(_) => u32::MAX,
        };
        Self {
            max_transfer: self.max_transfer.min(most),
            max_segment: self.max_segment.min(most),
            ..self
        }
    }
}

/// Of the least that every disk has to move at once, 4 KiB.
const PAGE_MASK: u32 = 0xfff;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_maps_less_makes_commands_smaller() {
        let limits = Limits {
            queues: 1,
            tags: 1,
            max_transfer: 1 << 20,
            max_segments: 33,
            max_segment: 1 << 19,
            virt_boundary: 4095,
            dma_align: 3,
            segment_boundary: u64::MAX,
        };
        let within = |bytes| {
            let limits = limits.within(bytes);
            (limits.max_transfer, limits.max_segment)
        };
        assert_eq!(within(u64::MAX), (1 << 20, 1 << 19));
        assert_eq!(within(1 << 20), (1 << 20, 1 << 19));
        assert_eq!(within((1 << 20) - 1), ((1 << 20) - 4096, 1 << 19));
        assert_eq!(within(252 << 10), (252 << 10, 252 << 10));
        assert_eq!(within(0), (4096, 4096), "a page has to go");
        assert_eq!(limits.within(4096).max_segments, 33);
        let any = Limits {
            max_segment: u32::MAX,
            ..limits
        };
        assert_eq!(any.within(u64::MAX), any, "nothing is rounded");
    }
}
