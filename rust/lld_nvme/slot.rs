// SPDX-License-Identifier: GPL-2.0
//! What a queue knows of a slot: the CID of its command, and where that has its list.
//!
//! ```text
//!  31     16 15      0
//! +---------+---------+
//! |  page   |   CID   |
//! +---------+---------+
//! ```

use crate::lists::Page;
use cell::sync::{AtomicU32, Ordering};

/// A slot. Whoever has its tag changes it: the issuer until the command is issued, the drainer from
/// when it is proven finished; the tag table's Acquire and Release are between them.
#[derive(Debug)]
pub(crate) struct Slot(AtomicU32);

impl Slot {
    /// One whose first command has this CID.
    pub(crate) fn new(cid: u16) -> Self {
        Self(AtomicU32::new(u32::from(cid)))
    }

    /// The CID of its next or present command.
    #[inline]
    pub(crate) fn cid(&self) -> u16 {
        // CAST: bits 15:0.
        self.0.load(Ordering::Relaxed) as u16
    }

    /// Its command has its list in `page`. By the issuer.
    #[inline]
    pub(crate) fn keep(&self, page: Page) {
        if page != Page::default() {
            let cid = u32::from(self.cid());
            (self.0).store(cid | (u32::from(page.0) << 16), Ordering::Relaxed);
        }
    }

    /// Its command has ended, or was never issued: the next one has this CID, and no page. Returns
    /// where the list of the old one was.
    #[inline]
    pub(crate) fn end(&self, cid: u16) -> Page {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(u32::from(cid), Ordering::Relaxed);
        // CAST: bits 31:16.
        Page((before >> 16) as u16)
    }
}
