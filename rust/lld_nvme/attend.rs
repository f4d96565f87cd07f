// SPDX-License-Identifier: GPL-2.0
//! What is done about the events that the controller reports: its log page is read, which has it
//! report the next of that kind, the operator is told, and the next request is sent.
//!
//! What the layer above has to do about it is its wish ([`Wish`]). What each event leads to is what
//! the in-tree driver makes of it (`nvme_complete_async_event`, Linux 7.3); beyond that the pages
//! of health and errors are read.

use crate::controller::NvmeController;
use crate::error_log::ErrorEntry;
use crate::event::{wanted, Event, Warnings, CHANGED_LOG, ERROR_LOG, FIRMWARE_LOG, HEALTH_LOG};
use crate::features;
use crate::host_memory::Lent;
use crate::identify::{ControllerId, View, BYTES};
use crate::pace::Pace;
use crate::regs::{self, CSTS, CSTS_PP};
use crate::state::State;
use crate::step::Step;
use core::fmt;
use hal::{DmaMem, Error, Mmio, Notice, Platform, Queues, Weight, Wish};

/// How programs know the event (`nvme_aen_uevent` in tree).
const UEVENT: &str = "NVME_AEN";
/// Between two looks whether new firmware runs, in microseconds.
const LOOK_US: u64 = 100_000;
/// How long that may take of a controller that does not say (MTFA).
const ACTIVATION_US: u64 = 60_000_000;
/// The longest that is granted, tenths of a second.
const MTFA_MAX: u16 = 6_000;
/// Bytes of the health log, of an entry of the error log, of the firmware log.
const HEALTH_BYTES: usize = 512;
const ERROR_BYTES: usize = 64;
const FIRMWARE_BYTES: usize = 512;

/// What is known of the events so far. It stays across resets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events {
    pace: Pace,
    /// It was started before.
    begun: bool,
    /// It was reset: what it would have reported was lost.
    missed: bool,
    /// The firmware's event, which waits for the queues to rest.
    firmware: bool,
    /// The critical warnings reported last.
    warnings: u8,
}

impl Events {
    /// The controller was started.
    pub(crate) fn begin_again(&mut self) {
        self.missed = core::mem::replace(&mut self.begun, true);
        self.firmware = false;
    }
}

/// Tells the operator.
type Tell<'a> = &'a mut dyn FnMut(Notice<'_>);

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Has the controller report events: what it offers, of what is of use here. That it refuses is
    /// no reason to do without it.
    pub(crate) fn listen(&self, id: &ControllerId) -> Result<(), Error> {
        let report = features::report(wanted(id.events));
        match self.command(Step::EventConfiguration, report) {
            Ok(_) | Err(Error::Refused(_)) => {}
            Err(why) => return Err(why),
        }
        self.request();
        Ok(())
    }

    /// The next event may come.
    fn request(&self) {
        self.admin.arm(&self.mmio, features::async_event());
    }

    /// Whether an interrupt on `vector`, a pin or the admin queue's, finds an event. Any context.
    #[inline]
    pub(crate) fn is_called(&self, vector: u16) -> bool {
        if self.is_pin() {
            // An entry that nobody takes keeps the line up.
            return self.admin.collect(&self.mmio) || self.admin.event.has_come();
        }
        vector == 0 && self.admin.is_called()
    }

    /// See [`hal::Controller::attend`].
    pub(crate) fn attend_events(
        &self,
        state: &mut State<P, M>,
        queues: Queues,
        tell: Tell<'_>,
    ) -> Result<Wish, Error> {
        self.admin.collect(&self.mmio);
        if let Some(lent) = state.lent.take() {
            let weight = match lent {
                Lent::Bytes(..) => Weight::Info,
                _ => Weight::Warning,
            };
            say(tell, weight, format_args!("{lent}"));
        }
        if core::mem::take(&mut state.events.missed) {
            return Ok(Wish::LookAnew);
        }
        if state.events.firmware {
            return self.attend_firmware(state, queues, tell);
        }
        if !self.admin.event.has_come() {
            return Ok(Wish::Nothing);
        }
        if let Err(us) = state.events.pace.admit(self.platform.now_us()) {
            return Ok(Wish::Later(us));
        }
        let Some((dword, status)) = self.admin.event.take() else {
            return Ok(Wish::Nothing);
        };
        if status != 0 {
            // Another one would fare no better.
            say(
                tell,
                Weight::Warning,
                format_args!(
                    "it takes no Asynchronous Event Request (status {status:#x}): what changes is \
                     not noticed until the controller is asked (hiops/rescan_controller)"
                ),
            );
            return Ok(Wish::Nothing);
        }
        let wish = self.attend_event(state, dword, tell)?;
        match wish {
            // The reset sends the next request. The firmware takes no commands.
            Wish::Recover => return Ok(wish),
            Wish::Rest => state.events.firmware = true,
            _ => self.request(),
        }
        Ok(wish)
    }

    fn attend_event(
        &self,
        state: &mut State<P, M>,
        dword: u32,
        tell: Tell<'_>,
    ) -> Result<Wish, Error> {
        let uevent = Some((UEVENT, dword));
        let mut warn = |text: fmt::Arguments<'_>| {
            tell(Notice {
                weight: Weight::Warning,
                text: &text,
                uevent,
            });
        };
        match Event::decode(dword) {
            Event::Namespaces => {
                // All of it is read, so that it is reported anew; the list itself is not needed.
                self.log_page(CHANGED_LOG, BYTES)?;
                return Ok(Wish::LookAnew);
            }
            Event::Firmware => return Ok(Wish::Rest),
            Event::Doorbell => {
                warn(format_args!("it reports a doorbell that is none"));
                return Ok(Wish::Recover);
            }
            Event::Persistent => {
                warn(format_args!("it reports an internal error that persists"));
                return Ok(Wish::Recover);
            }
            Event::Error(info) => match self.log_page(ERROR_LOG, ERROR_BYTES)? {
                Some(entry) => warn(format_args!("{}", ErrorEntry::decode(info, &entry))),
                None => warn(format_args!("it reports an error (kind {info})")),
            },
            Event::Health => {
                let said = self.log_page(HEALTH_LOG, HEALTH_BYTES)?;
                let warnings = said.map_or(0, |log| log.u8(0));
                let before = core::mem::replace(&mut state.events.warnings, warnings);
                match warnings {
                    0 => warn(format_args!(
                        "it reports on its health, and has no warning (nvme smart-log)"
                    )),
                    // Whatever else moved it, the operator knows.
                    same if same == before => {}
                    _ => warn(format_args!("critical warning: {}", Warnings(warnings))),
                }
            }
            Event::Other => warn(format_args!("it reports an event ({dword:#010x})")),
        }
        Ok(Wish::Nothing)
    }

    /// New firmware begins: no command is processed until it runs (Base 2.0 section 3.11).
    fn attend_firmware(
        &self,
        state: &mut State<P, M>,
        queues: Queues,
        tell: Tell<'_>,
    ) -> Result<Wish, Error> {
        if queues != Queues::AtRest {
            return Ok(Wish::Rest);
        }
        state.events.firmware = false;
        self.progress.at(Step::Activation);
        // TIMEOUT: MTFA, tenths of a second.
        let mtfa = state.about.map_or(0, |about| about.id.mtfa);
        let limit = match mtfa.min(MTFA_MAX) {
            0 => ACTIVATION_US,
            tenths => u64::from(tenths).saturating_mul(100_000),
        };
        let start = self.platform.now_us();
        loop {
            let waited = self.platform.now_us().saturating_sub(start);
            if regs::read(&self.mmio, CSTS)? & CSTS_PP == 0 {
                break;
            }
            if waited >= limit {
                say(
                    tell,
                    Weight::Error,
                    format_args!("its new firmware does not run within {} ms", limit / 1000),
                );
                return Ok(Wish::Recover);
            }
            self.platform.sleep_us(LOOK_US);
        }
        self.log_page(FIRMWARE_LOG, FIRMWARE_BYTES)?;
        state.effects = None;
        self.request();
        say(
            tell,
            Weight::Info,
            format_args!("it has activated new firmware; I/O goes on"),
        );
        Ok(Wish::LookAnew)
    }

    /// Reads the log page `id` into the second page, which has the controller report the next event
    /// about it. `None`: it has none.
    fn log_page(&self, id: u8, bytes: usize) -> Result<Option<View<'_, P::Dma>>, Error> {
        let base = self.page();
        let to = self.pages.bus_addr().wrapping_add(base as u64);
        match self.command(Step::EventLog, features::log_page(id, bytes, to)) {
            Ok(_) => Ok(Some(View {
                memory: &self.pages,
                base,
            })),
            Err(Error::Refused(_)) => Ok(None),
            Err(why) => Err(why),
        }
    }
}

fn say(tell: Tell<'_>, weight: Weight, text: fmt::Arguments<'_>) {
    tell(Notice {
        weight,
        text: &text,
        uevent: None,
    });
}
