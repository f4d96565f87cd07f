// SPDX-License-Identifier: GPL-2.0
//! A request's data as the controller is to see it, mapped and undone exactly once.

use super::request::Rq;
use hal::{CmdError, Segment};

/// How data reaches the controller.
pub trait MapKind: Send + Sync + 'static {
    /// What is kept in the request for as long as it is mapped; all zeroes means "not mapped".
    type Mapped: 'static;

    /// Maps the data of `rq` and yields it piece by piece. [`MapKind::unmap`] undoes what was
    /// mapped so far, at any moment.
    fn segments<'a>(
        &'a self,
        rq: &'a mut Rq,
    ) -> impl Iterator<Item = Result<Segment, CmdError>> + 'a;

    /// Undoes the mapping, if there is one.
    fn unmap(&self, rq: &mut Rq);
}
