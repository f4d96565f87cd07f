// SPDX-License-Identifier: GPL-2.0
//! How hot the controller is: the health log (Base 2.0 section 5.16.1.3) and the limits of Identify
//! Controller, in kelvins.

use crate::controller::NvmeController;
use crate::event::HEALTH_LOG;
use crate::features;
use crate::identify::View;
use crate::step::Step;
use hal::{DmaMem, Error, Heat, Mmio, Platform, SENSORS};

/// Bytes of the health log.
const BYTES: usize = 512;
/// In its first byte: a temperature is beyond a threshold.
const BEYOND: u8 = 1 << 1;
/// Where its temperatures are: of the whole, and of each sensor.
const COMPOSITE: usize = 1;
const SENSOR: usize = 200;

/// What Identify Controller says: WCTEMP and CCTEMP; 0: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) warning: u16,
    pub(crate) critical: u16,
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// See [`hal::Controller::heat`]. What the log says besides is reported all the same.
    pub(crate) fn read_heat(&self) -> Result<Option<Heat>, Error> {
        let state = self.state()?;
        let bounds = state.about.map_or(Bounds::default(), |about| about.id.heat);
        let base = self.page();
        let to = self.pages.bus_addr().wrapping_add(base as u64);
        let read = features::look_at_log(HEALTH_LOG, BYTES, to);
        match self.command(Step::HealthLog, read) {
            Ok(_) => {}
            Err(Error::Refused(_)) => return Ok(None),
            Err(why) => return Err(why),
        }
        let log = View {
            memory: &self.pages,
            base,
        };
        Ok(decode(&log, bounds))
    }
}

/// `None`: the composite temperature is not there.
fn decode<D: DmaMem>(log: &View<'_, D>, bounds: Bounds) -> Option<Heat> {
    let mut sensors = [None; SENSORS];
    for (at, sensor) in (SENSOR..).step_by(2).zip(sensors.iter_mut()) {
        *sensor = celsius(log.u16(at));
    }
    Some(Heat {
        composite: celsius(log.u16(COMPOSITE))?,
        warning: celsius(bounds.warning),
        critical: celsius(bounds.critical),
        alarm: log.u8(0) & BEYOND != 0,
        sensors,
    })
}

/// Kelvins in thousandths of a degree Celsius; 0: no temperature.
fn celsius(kelvins: u16) -> Option<i32> {
    let thousandths = i32::from(kelvins).saturating_mul(1000);
    (kelvins != 0).then(|| thousandths.saturating_sub(273_150))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::celsius;

    #[test]
    fn kelvins_as_in_tree() {
        assert_eq!(celsius(0), None);
        assert_eq!(celsius(323), Some(49_850));
        assert_eq!(celsius(1), Some(-272_150));
        assert_eq!(celsius(u16::MAX), Some(65_261_850));
    }
}
