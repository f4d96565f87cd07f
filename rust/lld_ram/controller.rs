// SPDX-License-Identifier: GPL-2.0
//! The device as a hal controller.

use crate::device::{Backing, Holes, Interface, MAX_SEGMENTS};
use crate::queue::RamQueue;
use hal::{
    Cause, Controller, Discard, Error, Limits, NewQueue, Platform, Refused, Shutdown, Topology,
    Unit, UnitIds, UnitKind,
};

/// Bytes that one command moves at most; that of a block is for a page.
const MAX_TRANSFER: u32 = 1 << 20;
const PAGE: u32 = 1 << 12;

/// A device made of a [`Backing`].
pub struct Ram<P: Platform, B: Backing> {
    platform: P,
    backing: B,
    /// Told apart from others by this.
    number: u32,
}

impl<P: Platform, B: Backing> Ram<P, B> {
    /// The device in `backing`, of which [`Backing::device`] is the common part. It does not run
    /// yet.
    pub fn new(platform: P, backing: B, number: u32) -> Self {
        Self {
            platform,
            backing,
            number,
        }
    }

    /// What the device is made of.
    pub fn backing(&self) -> &B {
        &self.backing
    }

    fn unit(&self) -> Unit {
        let config = &self.backing.device().config;
        let mut serial = [b' '; 20];
        let mut rest = self.number;
        // "RAM" and the number in decimal, from its last digit on.
        for (place, letter) in serial.iter_mut().zip(*b"RAM00000") {
            *place = letter;
        }
        for place in serial.iter_mut().take(8).skip(3).rev() {
            // CAST: a digit.
            *place = b'0'.wrapping_add((rest % 10) as u8);
            rest /= 10;
        }
        let mut model = [b' '; 40];
        for (place, letter) in model.iter_mut().zip(*b"hiops RAM device") {
            *place = letter;
        }
        let blocks = config
            .bytes
            .checked_shr(config.block_shift.into())
            .unwrap_or(0);
        Unit {
            kind: UnitKind::Ram,
            id: 1,
            block_shift: config.block_shift,
            physical_shift: config.block_shift,
            blocks,
            write_cache: false,
            fua: false,
            discard: Some(Discard {
                max_blocks: 1 << 11,
                max_ranges: MAX_SEGMENTS,
                granularity: 1,
            }),
            max_write_zeroes: 1 << 11,
            topology: Topology::default(),
            read_only: false,
            rotational: false,
            ids: UnitIds::default(),
            serial,
            model,
            firmware: *b"1       ",
        }
    }

    fn there(&self) -> Result<(), Error> {
        match self.backing.device().is_gone() {
            true => Err(Error::Gone),
            false => Ok(()),
        }
    }
}

impl<P: Platform, B: Backing> Controller for Ram<P, B> {
    type Queue = RamQueue<P, B>;

    fn start(&self) -> Result<(), Error> {
        self.there()?;
        let device = self.backing.device();
        device.run(false);
        (0..device.config.queues).for_each(|queue| device.fired(queue));
        device.link.clear();
        device.run(true);
        Ok(())
    }

    fn limits(&self) -> Limits {
        let config = &self.backing.device().config;
        Limits {
            queues: config.queues,
            tags: config.tags,
            max_transfer: match config.interface {
                Interface::Queue => MAX_TRANSFER,
                Interface::Blocks(_) => PAGE,
            },
            max_segments: MAX_SEGMENTS,
            max_segment: u32::MAX,
            virt_boundary: 0,
            dma_align: 0,
            hole_align: (config.holes != Holes::No).then_some(0),
            segment_boundary: u64::MAX,
        }
    }

    fn create_queue(
        &self,
        index: u16,
        vector: Option<u16>,
    ) -> Result<NewQueue<Self::Queue>, Error> {
        self.there()?;
        if index >= self.backing.device().config.queues {
            return Err(Error::Invalid);
        }
        // A vector has the number of its queue.
        self.backing.device().mask(index, vector.is_none());
        RamQueue::create(&self.platform, self.backing.clone(), index)
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        self.there()?;
        found(Ok(self.unit()));
        Ok(())
    }

    fn stop(&self) -> Result<(), Error> {
        // Also one that is gone: it is software, and does what it is told.
        self.backing.device().run(false);
        Ok(())
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        self.backing.device().run(false);
        match how {
            Shutdown::Normal => self.there(),
            Shutdown::Dead => Ok(()),
        }
    }

    const ABORTS: bool = true;

    fn abort(&self, queue: &Self::Queue, tag: usize, _limit_us: u64) -> Result<bool, Error> {
        self.there()?;
        Ok(queue.abort(tag))
    }

    fn alive(&self) -> Result<(), Error> {
        self.there()
    }

    fn interrupt(&self, vector: u16) -> Cause {
        // Each queue has a vector of its own number.
        self.backing.device().fired(vector);
        Cause::Queues
    }

    fn set_interrupt(&self, vector: u16, enabled: bool) {
        // A drain follows, which sets the timer for what is due.
        self.backing.device().mask(vector, !enabled);
    }
}
