// SPDX-License-Identifier: GPL-2.0
//! Whatever is asked of a controller around another one gets to that one.
#![cfg(not(loom))]

use hal::mock::{MockController, MockPlatform, MockQueue};
use hal::{
    Cause, Controller, DeviceEvent, Error, EventAction, Limits, LinkPower, NewQueue, Queues,
    Refused, Reservations, Shutdown, Temperature, Unit, Wrapper,
};
use std::fmt;
use std::sync::{Mutex, PoisonError};

type Plain = MockController<MockPlatform>;

/// Notes the name of whatever it is asked, and answers otherwise than a trait's default.
struct Noting {
    plain: Plain,
    asked: Mutex<Vec<&'static str>>,
}

impl Noting {
    fn note(&self, what: &'static str) {
        let asked = self.asked.lock();
        asked.unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

impl Controller for Noting {
    type Queue = MockQueue<MockPlatform>;
    const SETS_WRITE_CACHE: bool = true;
    const ABORTS: bool = true;
    const ACKNOWLEDGES: bool = false;

    fn start(&self) -> Result<(), Error> {
        self.note("start");
        self.plain.start()
    }
    fn limits(&self) -> Limits {
        self.note("limits");
        self.plain.limits()
    }
    fn create_queue(&self, at: u16, vector: Option<u16>) -> Result<NewQueue<Self::Queue>, Error> {
        self.note("create_queue");
        self.plain.create_queue(at, vector)
    }
    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        self.note("units");
        self.plain.units(found)
    }
    fn stop(&self) -> Result<(), Error> {
        self.note("stop");
        self.plain.stop()
    }
    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        self.note("shutdown");
        self.plain.shutdown(how)
    }
    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        self.note("quirks");
        named("odd");
    }
    fn timeout_report(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        self.note("timeout_report");
        to.write_str("silent")
    }
    fn handle_events(
        &self,
        _: Queues,
        _: &mut dyn FnMut(DeviceEvent<'_>),
    ) -> Result<EventAction, Error> {
        self.note("handle_events");
        Ok(EventAction::Rescan)
    }
    fn temperature(&self) -> Result<Option<Temperature>, Error> {
        self.note("temperature");
        Err(Error::Fatal)
    }
    fn reservations(&self) -> Option<&dyn Reservations> {
        self.note("reservations");
        None
    }
    fn link_power(&self) -> Option<LinkPower> {
        self.note("link_power");
        LinkPower::from_number(1)
    }
    fn set_link_power(&self, _: LinkPower) -> Result<Result<(), &'static str>, Error> {
        self.note("set_link_power");
        Ok(Ok(()))
    }
    fn depth(&self) -> Option<u16> {
        self.note("depth");
        Some(7)
    }
    fn set_depth(&self, _: u16) -> Result<(), Error> {
        self.note("set_depth");
        Ok(())
    }
    fn set_write_cache(&self, _: bool) -> Result<Result<(), &'static str>, Error> {
        self.note("set_write_cache");
        Ok(Ok(()))
    }
    fn abort(&self, _: &Self::Queue, tag: usize, limit_us: u64) -> Result<bool, Error> {
        self.note("abort");
        Ok((tag, limit_us) == (3, 4))
    }
    fn alive(&self) -> Result<(), Error> {
        self.note("alive");
        self.plain.alive()
    }
    fn interrupt(&self, _: u16) -> Cause {
        self.note("interrupt");
        Cause::AsyncEvent
    }
    fn set_interrupt(&self, _: u16, _: bool) {
        self.note("set_interrupt");
    }
}

struct Shell(Noting);

impl Wrapper for Shell {
    type Inner = Noting;
    type Outer = MockQueue<MockPlatform>;

    fn inner(&self) -> &Noting {
        &self.0
    }
    fn wrap(&self, new: NewQueue<Self::Outer>) -> Result<NewQueue<Self::Outer>, Error> {
        self.0.note("wrap");
        Ok(new)
    }
    fn inner_queue(queue: &Self::Outer) -> &Self::Outer {
        queue
    }
}

#[test]
fn whatever_is_asked_gets_to_the_one_within() {
    let plain = Plain::new(MockPlatform::new(), 1, 8, vec![Ok(Plain::unit(1, 8))]);
    let shell = Shell(Noting {
        plain,
        asked: Mutex::default(),
    });
    let mut text = String::new();
    assert_eq!(shell.start(), Ok(()));
    assert_eq!(shell.limits().tags, 8);
    let new = shell.create_queue(0, None).ok().unwrap();
    assert_eq!(shell.units(&mut |unit| assert!(unit.is_ok())), Ok(()));
    shell.quirks(&mut |name| assert_eq!(name, "odd"));
    assert_eq!(shell.timeout_report(&mut text), Ok(()));
    assert_eq!(text, "silent");
    assert_eq!(
        shell.handle_events(Queues::Live, &mut |_| {}),
        Ok(EventAction::Rescan)
    );
    assert_eq!(shell.temperature(), Err(Error::Fatal));
    assert!(shell.reservations().is_none());
    let policy = shell.link_power().unwrap();
    assert_eq!(shell.set_link_power(policy), Ok(Ok(())));
    assert_eq!(shell.depth(), Some(7));
    assert_eq!(shell.set_depth(3), Ok(()));
    assert_eq!(shell.set_write_cache(true), Ok(Ok(())));
    assert_eq!(shell.abort(&new.queue, 3, 4), Ok(true));
    assert_eq!(shell.alive(), Ok(()));
    assert_eq!(shell.interrupt(0), Cause::AsyncEvent);
    shell.set_interrupt(0, true);
    assert_eq!(shell.shutdown(Shutdown::Normal), Ok(()));
    assert_eq!(shell.stop(), Ok(()));
    const { assert!(Shell::SETS_WRITE_CACHE && Shell::ABORTS && !Shell::ACKNOWLEDGES) };
    let asked = shell.0.asked.lock().unwrap();
    assert_eq!(
        *asked,
        [
            "start",
            "limits",
            "create_queue",
            "wrap",
            "units",
            "quirks",
            "timeout_report",
            "handle_events",
            "temperature",
            "reservations",
            "link_power",
            "set_link_power",
            "depth",
            "set_depth",
            "set_write_cache",
            "abort",
            "alive",
            "interrupt",
            "set_interrupt",
            "shutdown",
            "stop",
        ]
    );
}

/// A method with a default that is not forwarded would be one of the trait's that is not asked
/// above.
#[test]
fn no_method_of_a_controller_is_left_out() {
    let of = |source: &str, begin: &str| -> Vec<String> {
        let (_, body) = source.split_once(begin).unwrap();
        let (body, _) = body.split_once("\n}\n").unwrap();
        let lines = body.lines().map(str::trim_start);
        let named = lines.filter(|line| line.starts_with("fn ") || line.starts_with("const "));
        let name = |line: &str| line.split(['(', ':']).next().unwrap().to_owned();
        let mut names: Vec<String> = named.map(name).collect();
        names.sort();
        names
    };
    let wanted = of(include_str!("../controller.rs"), "pub trait Controller");
    let given = of(include_str!("../wrapper.rs"), "Controller for T {");
    assert!(wanted.len() > 18);
    assert_eq!(given, wanted);
}
