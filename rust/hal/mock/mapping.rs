// SPDX-License-Identifier: GPL-2.0
//! The data of a request, as mapped for a device.

use crate::mock::bus::Block;
use crate::mock::MockBus;
use crate::Segment;
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

/// Data bounced into memory that the device reaches, until it is unmapped.
///
/// What the device writes is seen only in what [`MockMapping::unmap`] returns, and what it writes
/// later is a fault. A mapping that is dropped instead stays on the bus: [`MockBus::blocks_alive`]
/// gives it away.
#[derive(Debug)]
#[must_use = "forgotten, it stays on the bus"]
pub struct MockMapping {
    bus: Arc<MockBus>,
    pieces: Vec<(Arc<Block>, usize)>,
}

impl MockMapping {
    /// Maps `data`: its first byte lies `offset` bytes into a page (a multiple of 4), and each
    /// piece has at most `piece` bytes (0: it is all one). Pieces after the first start at a page;
    /// no two are neighbours.
    pub fn new(bus: Arc<MockBus>, data: &[u8], offset: usize, piece: usize) -> Self {
        let piece = if piece == 0 { data.len().max(1) } else { piece };
        let mut offset = offset;
        let mut pieces = Vec::new();
        for part in data.chunks(piece) {
            let block = bus.insert(part.len(), core::mem::take(&mut offset));
            // The block was made for it.
            let _ = bus.write(block.addr, part);
            pieces.push((block, part.len()));
        }
        Self { bus, pieces }
    }

    /// The pieces in order, as the device is given them.
    pub fn segments(&self) -> Vec<Segment> {
        (self.pieces.iter())
            .map(|(block, len)| Segment {
                addr: block.addr,
                // CAST: a test's data is far below 4 GiB.
                len: *len as u32,
            })
            .collect()
    }

    /// Takes the data off the bus and returns it as the device left it.
    pub fn unmap(self) -> Vec<u8> {
        let mut data = Vec::new();
        for (block, len) in self.pieces {
            let mut part = vec![0; len];
            let _ = self.bus.read(block.addr, &mut part);
            data.append(&mut part);
            self.bus.remove(block.addr);
        }
        data
    }
}
