// SPDX-License-Identifier: GPL-2.0
//! Reservations of a namespace on behalf of the layer above (Base 2.0 sections 7.2 to 7.5 and
//! 8.19): the commands that change them, the report of who is registered and who holds the
//! reservation, and what statuses mean. The commands go by the tools' queue pair (`passthru`), as
//! all I/O commands that carry words of their own.
//!
//! What is sent, and what is made of the answer, is as in tree (drivers/nvme/host/pr.c of Linux
//! 7.3), so that who shares a disk with hosts of either driver finds no difference. That goes for a
//! new key of 0, too: the old one is replaced by it.

use hal::{
    Access, Answer, Denied, DmaMem, Error, Holder, Mmio, Platform, Registered, Reservations,
    Reserve,
};

use crate::admin::{AdminStep, Cns};
use crate::ctrl::NvmeController;
use crate::ns::NamespaceId;
use crate::passthru::{ACQUIRE, KEYS_BYTES, KEY_BYTES, REGISTER, RELEASE, REPORT};
use crate::sqe::Sqe;

/// Registered controllers for which a report has room at first: it is a page then.
const PLACES: usize = 63;
/// How often a report is asked for that has become longer meanwhile. An honest one grows once in a
/// while; a device that says another number each time would be asked for ever.
const TRIES: usize = 4;

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
        Ok(verdict(reply.status))
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
        let view = self.identify(AdminStep::IdentifyNamespace, Cns::Namespace, nsid)?;
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
        let bytes = report_bytes(places);
        let about = self.state()?.about.ok_or(Error::Invalid)?;
        if bytes as u64 > u64::from(about.limits.max_transfer) {
            return Err(Error::Invalid);
        }
        let data = self.platform.dma(bytes)?;
        let mut form = Form::Extended;
        let sqe = report(nsid, bytes, form);
        let mut reply = self.io(nsid, sqe, Some(&data), 0, wanted)?;
        if Form::is_other(reply.status) {
            form = Form::Short;
            let sqe = report(nsid, bytes, form);
            reply = self.io(nsid, sqe, Some(&data), 0, wanted)?;
        }
        Ok(verdict(reply.status).map(|()| Report::decode(data, form)))
    }
}

/// What a `status` means, of one of these commands.
fn verdict(status: u16) -> Result<(), Denied> {
    match status & 0x7ff {
        0 => Ok(()),
        // Reservation Conflict.
        0x083 => Err(Denied::Conflict),
        // Invalid Command Opcode, Invalid Field, Invalid Namespace; Conflicting Attributes.
        0x001 | 0x002 | 0x00b | 0x180 => Err(Denied::Invalid),
        // Path Related Status.
        0x300..=0x3ff => Err(Denied::Path),
        _ => Err(Denied::Failed),
    }
}

/// RREGA, RACQA, RRELA: bits 2:0 of dword 10.
const REPLACE: u32 = 2;
const PREEMPT: u32 = 1;
const PREEMPT_AND_ABORT: u32 = 2;
const CLEAR: u32 = 1;
/// IEKEY: the key that the command brings is not compared.
const IGNORE_KEY: u32 = 1 << 3;
/// CPTPL of Register: keys and reservation outlive a loss of power.
const PERSIST: u32 = 3 << 30;
/// Where RTYPE is in Acquire and Release.
const TYPE_SHIFT: u32 = 8;

/// A command that changes something, with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    sqe: Sqe,
    /// CRKEY, and NRKEY or PRKEY.
    keys: [u64; 2],
    /// Bytes of that which the command transfers.
    bytes: usize,
}

impl Change {
    /// The command that has `what` done with namespace `nsid`.
    fn new(nsid: u32, what: &Reserve) -> Self {
        let ignoring = |ignore: bool| if ignore { IGNORE_KEY } else { 0 };
        let typed = |access| number(access).wrapping_shl(TYPE_SHIFT);
        let (opcode, dword10, keys) = match *what {
            Reserve::Register { old, new, ignore } => {
                let action = if old == 0 { 0 } else { REPLACE };
                (REGISTER, action | ignoring(ignore) | PERSIST, [old, new])
            }
            Reserve::Acquire {
                key,
                access,
                ignore,
            } => (ACQUIRE, typed(access) | ignoring(ignore), [key, 0]),
            Reserve::Preempt {
                key,
                victim,
                access,
                abort,
            } => {
                let action = if abort { PREEMPT_AND_ABORT } else { PREEMPT };
                (ACQUIRE, typed(access) | action, [key, victim])
            }
            Reserve::Release { key, access } => {
                (RELEASE, typed(access) | ignoring(key == 0), [key, 0])
            }
            Reserve::Clear { key } => (RELEASE, CLEAR | ignoring(key == 0), [key, 0]),
        };
        Self {
            sqe: sqe(opcode, nsid, u64::from(dword10)),
            keys,
            bytes: match opcode {
                RELEASE => KEY_BYTES,
                _ => KEYS_BYTES,
            },
        }
    }

    /// Puts its data into `memory`, which has [`Change::bytes`].
    fn fill<D: DmaMem>(&self, memory: &D) {
        let places = (0..self.bytes).step_by(KEY_BYTES);
        places
            .zip(self.keys)
            .for_each(|(at, key)| memory.write64(at, key));
    }
}

/// RTYPE.
const TYPES: [(u8, Access); 6] = [
    (1, Access::WriteExclusive),
    (2, Access::ExclusiveAccess),
    (3, Access::WriteExclusiveRegistrants),
    (4, Access::ExclusiveAccessRegistrants),
    (5, Access::WriteExclusiveAll),
    (6, Access::ExclusiveAccessAll),
];

/// RTYPE for `access`; 0, which is none, for what has none: the device refuses that.
fn number(access: Option<Access>) -> u32 {
    let found = (TYPES.iter()).find(|(_, known)| Some(*known) == access);
    found.map_or(0, |(number, _)| u32::from(*number))
}

/// What RTYPE `number` is; `None`: nothing.
fn access(number: u8) -> Option<Access> {
    let found = TYPES.iter().find(|(known, _)| *known == number);
    found.map(|(_, access)| *access)
}

/// EDS, in dword 11: host identifiers have 128 bits.
const EXTENDED: u64 = 1;

/// Which of its two forms a report has: by the length of host identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// 64 bits.
    Short,
    /// 128 bits.
    Extended,
}

impl Form {
    /// Bytes of the header, and as many of each registered controller.
    const fn bytes(self) -> usize {
        match self {
            Self::Short => 24,
            Self::Extended => 64,
        }
    }

    /// Where a registered controller's key is.
    const fn key_at(self) -> usize {
        match self {
            Self::Short => 16,
            Self::Extended => 8,
        }
    }

    /// Whether `status` says that the host's identifier is of the other length: Host Identifier
    /// Inconsistent Format.
    const fn is_other(status: u16) -> bool {
        status & 0x7ff == 0x018
    }
}

/// Bytes in which a report of `places` registered controllers fits, whatever its form.
const fn report_bytes(places: usize) -> usize {
    (places.saturating_add(1)).saturating_mul(Form::Extended.bytes())
}

/// Reservation Report of namespace `nsid` into `bytes`, a multiple of 4.
fn report(nsid: u32, bytes: usize, form: Form) -> Sqe {
    // CAST: no longer than a transfer, which has 20 bits.
    let dword10 = ((bytes / 4).saturating_sub(1) as u64) & 0xffff_ffff;
    let dword11 = match form {
        Form::Extended => EXTENDED,
        Form::Short => 0,
    };
    sqe(REPORT, nsid, dword10 | (dword11 << 32))
}

/// A report ("Reservation Status data structure"), in memory that the device has written, of
/// [`report_bytes`]: it is no longer than that, whatever it says.
struct Report<D> {
    memory: D,
    form: Form,
    /// GEN.
    generation: u32,
    /// REGCTL: how many controllers are registered, in the report or not.
    controllers: u16,
    /// RTYPE.
    access: Option<Access>,
}

impl<D: DmaMem> Report<D> {
    fn decode(memory: D, form: Form) -> Self {
        let mut header = [0; 8];
        memory.read_bytes(0, &mut header);
        let [g0, g1, g2, g3, kind, low, high, _] = header;
        Self {
            memory,
            form,
            generation: u32::from_le_bytes([g0, g1, g2, g3]),
            controllers: u16::from_le_bytes([low, high]),
            access: access(kind),
        }
    }

    /// How many the report has room for.
    fn places(&self) -> usize {
        let bytes = self.form.bytes();
        (self.memory.len().saturating_sub(bytes))
            .checked_div(bytes)
            .unwrap_or(0)
    }

    /// All that are registered are in it.
    fn is_whole(&self) -> bool {
        usize::from(self.controllers) <= self.places()
    }

    /// The registered controllers that are in it: whether each holds the reservation, and its key.
    fn registered(&self) -> impl Iterator<Item = (bool, u64)> + '_ {
        let there = usize::from(self.controllers).min(self.places());
        let bytes = self.form.bytes();
        (1..=there).map(move |at| {
            // The header is as long as each of them.
            let base = at.saturating_mul(bytes);
            let (mut status, mut key) = ([0], [0; KEY_BYTES]);
            // RCSTS.
            self.memory.read_bytes(base.saturating_add(2), &mut status);
            self.memory
                .read_bytes(base.saturating_add(self.form.key_at()), &mut key);
            (status != [0], u64::from_le_bytes(key))
        })
    }

    /// The keys that are in it.
    fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.registered().map(|(_, key)| key)
    }

    /// How the namespace is reserved, and the first holder's key, 0: there is none. Where nobody is
    /// registered nobody has reserved it.
    fn holder(&self) -> (Option<Access>, u64) {
        let holder = self.registered().find(|(holds, _)| *holds);
        let access = self.access.filter(|_| self.controllers != 0);
        (access, holder.map_or(0, |(_, key)| key))
    }
}

/// Command `opcode` of namespace `nsid`, with dwords 10 and 11.
fn sqe(opcode: u8, nsid: u32, dwords: u64) -> Sqe {
    let first = u64::from(opcode) | (u64::from(nsid) << 32);
    [first, 0, 0, 0, 0, dwords, 0, 0]
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    use hal::mock::{MockDma, MockPlatform};
    use hal::Platform;

    fn change(what: Reserve) -> (u8, u32, Vec<u64>) {
        let change = Change::new(7, &what);
        let memory = MockPlatform::new().dma(change.bytes).unwrap();
        change.fill(&memory);
        let keys = (0..change.bytes).step_by(8).map(|at| memory.read64(at));
        let [first, a, b, c, d, dwords, e, f] = change.sqe;
        assert_eq!((first >> 8, [a, b, c, d, e, f]), (7 << 24, [0; 6]));
        assert_eq!(dwords >> 32, 0, "dword 11");
        (first as u8, dwords as u32, keys.collect())
    }

    /// Opcode, dword 10 and data of each, as nvme of Linux 7.3 sends them.
    #[test]
    fn what_is_sent_is_what_is_sent_in_tree() {
        let access = Some(Access::ExclusiveAccess);
        let (key, victim) = (u64::MAX, 0x1122_3344_5566_7788);
        let register = |old, new, ignore| change(Reserve::Register { old, new, ignore });
        assert_eq!(
            register(0, key, false),
            (0x0d, 0xc000_0000, [0, key].into())
        );
        assert_eq!(
            register(1, key, false),
            (0x0d, 0xc000_0002, [1, key].into())
        );
        assert_eq!(register(0, key, true), (0x0d, 0xc000_0008, [0, key].into()));
        assert_eq!(register(key, 0, true), (0x0d, 0xc000_000a, [key, 0].into()));
        for (ignore, dword10) in [(false, 0x200), (true, 0x208)] {
            let acquire = Reserve::Acquire {
                key,
                access,
                ignore,
            };
            assert_eq!(change(acquire), (0x11, dword10, [key, 0].into()));
        }
        for (abort, dword10) in [(false, 0x201), (true, 0x202)] {
            let preempt = Reserve::Preempt {
                key,
                victim,
                access,
                abort,
            };
            assert_eq!(change(preempt), (0x11, dword10, [key, victim].into()));
        }
        for (key, release, clear) in [(key, 0x200, 1), (1, 0x200, 1), (0, 0x208, 9)] {
            let sent = change(Reserve::Release { key, access });
            assert_eq!(sent, (0x15, release, [key].into()));
            assert_eq!(change(Reserve::Clear { key }), (0x15, clear, [key].into()));
        }
    }

    #[test]
    fn types_go_there_and_come_back() {
        let numbers = TYPES.map(|(n, kind)| {
            assert_eq!((number(Some(kind)), access(n)), (u32::from(n), Some(kind)));
            n
        });
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert_eq!(
            (number(None), access(0), access(7), access(255)),
            (0, None, None, None)
        );
    }

    #[test]
    fn statuses_are_what_they_are_in_tree() {
        for flags in [0, 0x4000, 0x7800] {
            let denied = |status: u16| verdict(status | flags).err();
            assert_eq!(denied(0), None);
            assert_eq!(denied(0x083), Some(Denied::Conflict));
            for status in [0x001, 0x002, 0x00b, 0x180] {
                assert_eq!(denied(status), Some(Denied::Invalid), "{status:#x}");
            }
            for status in [0x300, 0x370, 0x371, 0x3ff] {
                assert_eq!(denied(status), Some(Denied::Path), "{status:#x}");
            }
            for status in [
                0x003, 0x018, 0x082, 0x084, 0x183, 0x281, 0x2ff, 0x400, 0x7ff,
            ] {
                assert_eq!(denied(status), Some(Denied::Failed), "{status:#x}");
            }
        }
    }

    #[test]
    fn a_report_is_asked_for_in_dwords_less_one() {
        assert_eq!(report_bytes(0), 64);
        assert_eq!(report_bytes(63), 4096);
        assert_eq!(report_bytes(usize::MAX), usize::MAX);
        let dwords = |bytes, form| report(1, bytes, form)[5];
        assert_eq!(dwords(64, Form::Extended), 0x1_0000_000f);
        assert_eq!(dwords(64, Form::Short), 0xf);
        assert_eq!(dwords(1 << 20, Form::Short), (1 << 18) - 1);
    }

    /// A report in so many bytes that says so many, each with its number as its key; the one
    /// numbered `holder` holds.
    fn said(form: Form, bytes: usize, controllers: u16, holder: u64) -> Report<MockDma> {
        let memory = MockPlatform::new().dma(bytes).unwrap();
        memory.write32(0, 0xdead_beef);
        memory.write32(4, 3 | (u32::from(controllers) << 8));
        let each = form.bytes();
        for (n, base) in (1u64..).zip((each..=bytes - each).step_by(each)) {
            memory.write32(base, u32::from(n == holder) << 16);
            memory.write64(base + form.key_at(), n);
        }
        Report::decode(memory, form)
    }

    #[test]
    fn as_many_are_read_as_there_are_and_there_is_room_for() {
        for form in [Form::Short, Form::Extended] {
            let each = form.bytes();
            // Those said, bytes of memory: those read, and whether these are all.
            for (controllers, bytes, read, whole) in [
                (0, each, 0, true),
                (0, 4096, 0, true),
                (1, each, 0, false),
                (1, 2 * each - 4, 0, false),
                (1, 2 * each, 1, true),
                (2, 2 * each, 1, false),
                (63, 64 * each, 63, true),
                (64, 64 * each, 63, false),
                (u16::MAX, 3 * each, 2, false),
                (u16::MAX, 0xffff * each, 0xfffe, false),
                (u16::MAX, 0x1_0000 * each, 0xffff, true),
            ] {
                let report = said(form, bytes, controllers, 2);
                let text = std::format!("{form:?} {controllers} {bytes}");
                assert!(report.keys().eq(1..=read), "{text}");
                assert_eq!(report.is_whole(), whole, "{text}");
                assert_eq!(report.generation, 0xdead_beef);
                assert_eq!(report.controllers, controllers);
                let key = if read >= 2 { 2 } else { 0 };
                let kind = Access::WriteExclusiveRegistrants;
                let access = (controllers != 0).then_some(kind);
                assert_eq!(report.holder(), (access, key), "{text}");
            }
        }
    }

    #[test]
    fn a_type_that_is_none_is_no_reservation() {
        for kind in [0, 7, 0xff] {
            let memory = MockPlatform::new().dma(128).unwrap();
            memory.write32(4, kind | (1 << 8));
            let report = Report::decode(memory, Form::Extended);
            assert_eq!(report.holder(), (None, 0));
        }
    }
}
