// SPDX-License-Identifier: GPL-2.0
//! A namespace's reservations on behalf of the layer above: their commands go by the tools' queue
//! pair, as all I/O commands that carry words of their own.

use crate::controller::NvmeController;
use crate::identify::Cns;
use crate::namespace::NamespaceId;
use crate::reservation::{self, Change};
use crate::reservation_report::{self, Form, Report};
use crate::step::Step;
use hal::{
    Answer, Controller, Denied, Error, Holder, Mmio, Platform, Registered, Reservations, Reserve,
};

/// Registered controllers for which a report has room at first: it is a page then.
const PLACES: usize = 63;
/// How often a report is asked for that has become longer meanwhile. An honest one grows once in a
/// while; a device that says another number each time would be asked for ever.
const TRIES: usize = 4;

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Whether controller and namespace say that they have reservations (ONCS, RESCAP). Those that
    /// do not are not asked: they would refuse the opcode.
    fn has_reservations(&self, nsid: u32) -> Result<bool, Error> {
        let state = self.state()?;
        let about = state.about.ok_or(Error::Invalid)?;
        if !about.id.has_reservations {
            return Ok(false);
        }
        let view = self.identify(Step::IdentifyNamespace, Cns::Namespace, nsid)?;
        Ok(NamespaceId::decode(&view).has_reservations)
    }

    /// A report with room for so many registered controllers. [`Error::Invalid`]: it would be more
    /// than a transfer.
    fn report(
        &self,
        nsid: u32,
        places: usize,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Answer<Report<P::Dma>>, Error> {
        if !self.has_reservations(nsid)? {
            return Ok(Err(Denied::Invalid));
        }
        let bytes = reservation_report::report_bytes(places);
        if bytes as u64 > u64::from(self.limits().max_transfer) {
            return Err(Error::Invalid);
        }
        let data = self.platform.dma(bytes)?;
        let mut form = Form::Extended;
        let sqe = reservation_report::report(nsid, bytes, form);
        let mut reply = self.io(nsid, sqe, Some(&data), 0, wanted)?;
        if Form::is_other(reply.status) {
            form = Form::Short;
            let sqe = reservation_report::report(nsid, bytes, form);
            reply = self.io(nsid, sqe, Some(&data), 0, wanted)?;
        }
        Ok(reservation::verdict(reply.status).map(|()| Report::decode(data, form)))
    }
}

impl<P: Platform, M: Mmio + Clone> Reservations for NvmeController<P, M>
where
    P::Dma: Clone,
{
    fn reserve(
        &self,
        unit: u32,
        what: &Reserve,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Answer<()>, Error> {
        if !self.has_reservations(unit)? {
            return Ok(Err(Denied::Invalid));
        }
        let change = Change::new(unit, what);
        let data = self.platform.dma(change.bytes)?;
        change.fill(&data);
        let reply = self.io(unit, change.sqe, Some(&data), 0, wanted)?;
        Ok(reservation::verdict(reply.status))
    }

    fn registered(
        &self,
        unit: u32,
        keys: &mut [u64],
        wanted: &dyn Fn() -> bool,
    ) -> Result<Answer<Registered>, Error> {
        let report = match self.report(unit, keys.len(), wanted)? {
            Ok(report) => report,
            Err(denied) => return Ok(Err(denied)),
        };
        (keys.iter_mut().zip(report.keys())).for_each(|(to, key)| *to = key);
        Ok(Ok(Registered {
            generation: report.generation,
            keys: u32::from(report.controllers),
        }))
    }

    fn holder(&self, unit: u32, wanted: &dyn Fn() -> bool) -> Result<Answer<Holder>, Error> {
        let mut places = PLACES;
        for _ in 0..TRIES {
            let report = match self.report(unit, places, wanted)? {
                Ok(report) => report,
                Err(denied) => return Ok(Err(denied)),
            };
            if report.is_whole() {
                let (access, key) = report.holder();
                return Ok(Ok(Holder {
                    generation: report.generation,
                    access,
                    key,
                }));
            }
            places = usize::from(report.controllers);
        }
        Err(Error::Malformed)
    }
}
