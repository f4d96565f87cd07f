// SPDX-License-Identifier: GPL-2.0
//! Data for a controller made of software.

use super::map::MapKind;
use super::request::bios::Vecs;
use super::request::Rq;
use hal::{CmdError, Segment};

/// The controller is software and sees memory as the CPU does: addresses are the kernel's own.
pub struct DirectMap;

impl MapKind for DirectMap {
    type Mapped = ();

    #[inline]
    fn segments<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> impl Iterator<Item = Result<Segment, CmdError>> + 'a {
        Vecs::new(rq.bios()).map(Ok)
    }

    #[inline]
    fn unmap(&self, _rq: &mut Rq) {}
}
