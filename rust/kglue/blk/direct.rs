// SPDX-License-Identifier: GPL-2.0
//! Data for a controller made of software.

use super::map::MapKind;
use super::request::Rq;
use crate::shims;
use hal::{CmdError, Segment};

/// The controller is software and sees memory as the CPU does: addresses are the kernel's own.
pub struct DirectMap;

struct DirectSegments {
    iter: shims::hiops_vec_iter,
}

impl Iterator for DirectSegments {
    type Item = Result<Segment, CmdError>;
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut seg = shims::hiops_segment { addr: 0, len: 0 };
        // SAFETY: `iter` was started on a request that is still owned.
        let some = unsafe { shims::hiops_vec_next(&mut self.iter, &mut seg) };
        some.then_some(Ok(Segment {
            addr: seg.addr,
            len: seg.len,
        }))
    }
}

impl MapKind for DirectMap {
    type Mapped = ();

    #[inline]
    fn segments<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> impl Iterator<Item = Result<Segment, CmdError>> + 'a {
        let mut iter = shims::hiops_vec_iter::default();
        // SAFETY: the request is owned; the iterator lives no longer than the borrow of it.
        unsafe { shims::hiops_vec_start(rq.as_raw(), &mut iter) };
        DirectSegments { iter }
    }

    #[inline]
    fn unmap(&self, _rq: &Rq) {}
}
