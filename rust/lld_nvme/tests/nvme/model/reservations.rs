// SPDX-License-Identifier: GPL-2.0
//! Reservations of a namespace (Base 2.0 section 8.19): who is registered, who holds it, and what
//! that leaves to others.

use super::State;

/// Invalid Field, Reservation Conflict, Host Identifier Inconsistent Format.
pub const FIELD: u16 = 0x4002;
pub const CONFLICT: u16 = 0x0083;
pub const OTHER_FORM: u16 = 0x4018;
const OPCODE: u16 = 0x4001;

/// The host that has the driver under test; any other number is another host.
pub const US: u64 = 1;

const IGNORE_KEY: u32 = 1 << 3;

/// What is kept.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    pub generation: u32,
    /// Host identifiers and keys, in the order in which they came.
    pub registrants: Vec<(u64, u64)>,
    /// The type, and who holds it; of types 5 and 6 all do.
    pub held: Option<(u8, u64)>,
    /// They outlive a loss of power.
    pub persists: bool,
    /// Hosts whose commands were aborted, beside losing their registration.
    pub aborted: Vec<u64>,
    /// Host identifiers have 64 bits.
    pub short_hosts: bool,
    /// What a report says in place of the truth, of twice as many controllers each time.
    pub lie: Option<Vec<u8>>,
}

/// A reservation command of a host's: opcode, dword 10 and the two keys of its data.
pub type Asked = (u8, u32, [u64; 2]);

impl Reservations {
    fn key_of(&self, host: u64) -> Option<u64> {
        let found = self.registrants.iter().find(|(who, _)| *who == host);
        found.map(|(_, key)| *key)
    }

    fn is_held_by(&self, host: u64) -> bool {
        match self.held {
            Some((5 | 6, _)) => self.key_of(host).is_some(),
            Some((_, holder)) => holder == host,
            None => false,
        }
    }

    /// Whether `host` may read or write.
    pub fn allows(&self, host: u64, write: bool) -> bool {
        let registered = self.key_of(host).is_some();
        match self.held {
            None => true,
            Some(_) if self.is_held_by(host) => true,
            Some((1, _)) => !write,
            Some((2, _)) => false,
            Some((3 | 5, _)) => !write || registered,
            Some(_) => registered,
        }
    }

    fn forget(&mut self, gone: impl Fn(u64, u64) -> bool) {
        self.registrants.retain(|(host, key)| !gone(*host, *key));
        self.held = self.held.filter(|(kind, host)| match kind {
            5 | 6 => !self.registrants.is_empty(),
            _ => self.registrants.iter().any(|(who, _)| who == host),
        });
    }

    /// Carries out what `host` asks.
    pub fn change(&mut self, host: u64, (opcode, dword10, keys): Asked) -> Result<(), u16> {
        let (action, kind) = (dword10 & 7, (dword10 >> 8) as u8);
        let ignore = dword10 & IGNORE_KEY != 0;
        let [key, other] = keys;
        if opcode == 0x0d {
            return self.register(host, action, ignore, key, other, dword10 >> 30);
        }
        // Since version 1.3 only Register takes it.
        if ignore {
            return Err(FIELD);
        }
        if self.key_of(host) != Some(key) {
            return Err(CONFLICT);
        }
        match (opcode, action) {
            (0x11, _) if !(1..=6).contains(&kind) => Err(FIELD),
            (0x11, 0) => match self.held {
                None => {
                    self.held = Some((kind, host));
                    Ok(())
                }
                Some((held, _)) if held == kind && self.is_held_by(host) => Ok(()),
                Some(_) => Err(CONFLICT),
            },
            (0x11, 1 | 2) => self.preempt(host, kind, other, action == 2),
            (0x15, 0) => match self.held {
                Some((held, _)) if self.is_held_by(host) && held != kind => Err(FIELD),
                Some(_) if self.is_held_by(host) => {
                    self.held = None;
                    Ok(())
                }
                _ => Ok(()),
            },
            (0x15, 1) => {
                self.forget(|_, _| true);
                self.generation += 1;
                Ok(())
            }
            _ => Err(FIELD),
        }
    }

    fn register(
        &mut self,
        host: u64,
        action: u32,
        ignore: bool,
        old: u64,
        new: u64,
        cptpl: u32,
    ) -> Result<(), u16> {
        let now = self.key_of(host);
        let fits = now == Some(old) || (ignore && now.is_some());
        match action {
            0 if now.is_some() && now != Some(new) => return Err(CONFLICT),
            1 if !fits => return Err(CONFLICT),
            2 if !fits && (!ignore || now.is_some()) => return Err(CONFLICT),
            0..=2 => {}
            _ => return Err(FIELD),
        }
        match (
            action,
            self.registrants.iter_mut().find(|(who, _)| *who == host),
        ) {
            (1, _) => self.forget(|who, _| who == host),
            (_, Some((_, key))) => *key = new,
            (_, None) => self.registrants.push((host, new)),
        }
        match cptpl {
            2 => self.persists = false,
            3 => self.persists = true,
            _ => {}
        }
        self.generation += 1;
        Ok(())
    }

    fn preempt(&mut self, host: u64, kind: u8, victim: u64, abort: bool) -> Result<(), u16> {
        let all = matches!(self.held, Some((5 | 6, _)));
        if victim == 0 && !all {
            return Err(FIELD);
        }
        let is_victim = |who: u64, key: u64| match victim {
            0 => who != host,
            victim => key == victim && who != host,
        };
        let victims: Vec<u64> = (self.registrants.iter())
            .filter(|(who, key)| is_victim(*who, *key))
            .map(|(who, _)| *who)
            .collect();
        let takes = match self.held {
            None => false,
            Some((5 | 6, _)) => victim == 0,
            Some((_, holder)) => self.key_of(holder) == Some(victim),
        };
        if victims.is_empty() && !takes {
            return Err(CONFLICT);
        }
        self.forget(is_victim);
        if takes {
            self.held = Some((kind, host));
        }
        if abort {
            self.aborted.extend(victims);
        }
        self.generation += 1;
        Ok(())
    }

    /// The report in one of its two forms; each host has one controller, of the same number.
    pub fn report(&mut self, extended: bool) -> Result<Vec<u8>, u16> {
        if extended == self.short_hosts {
            return Err(OTHER_FORM);
        }
        if let Some(lie) = &mut self.lie {
            let said = lie.clone();
            let count = u16::from_le_bytes([lie[5], lie[6]]);
            lie[5..7].copy_from_slice(&count.saturating_mul(2).to_le_bytes());
            return Ok(said);
        }
        let mut all = vec![0; if extended { 64 } else { 24 }];
        all[..4].copy_from_slice(&self.generation.to_le_bytes());
        all[4] = self.held.map_or(0, |(kind, _)| kind);
        all[5..7].copy_from_slice(&(self.registrants.len() as u16).to_le_bytes());
        all[9] = u8::from(self.persists);
        for (host, key) in &self.registrants {
            all.extend((*host as u16).to_le_bytes());
            all.extend([u8::from(self.is_held_by(*host)), 0, 0, 0, 0, 0]);
            match extended {
                true => {
                    all.extend(key.to_le_bytes());
                    all.extend(u128::from(*host).to_le_bytes());
                    all.extend([0; 32]);
                }
                false => {
                    all.extend(host.to_le_bytes());
                    all.extend(key.to_le_bytes());
                }
            }
        }
        Ok(all)
    }
}

impl State {
    /// A reservation command of ours; `None`: it is none.
    pub fn reservation(&mut self, sqe: &[u64; 8]) -> Option<Result<(), u16>> {
        let opcode = sqe[0] as u8;
        if !matches!(opcode, 0x0d | 0x0e | 0x11 | 0x15) {
            return None;
        }
        Some(match self.config.oncs & (1 << 5) {
            0 => Err(OPCODE),
            _ if opcode == 0x0e => self.send_report(sqe),
            _ => self.change_reservation(sqe),
        })
    }

    fn change_reservation(&mut self, sqe: &[u64; 8]) -> Result<(), u16> {
        let opcode = sqe[0] as u8;
        let bytes = if opcode == 0x15 { 8 } else { 16 };
        let data = self.gather(sqe, bytes)?;
        let mut keys = [0; 2];
        for (key, bytes) in keys.iter_mut().zip(data.chunks_exact(8)) {
            *key = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        let asked = (opcode, sqe[5] as u32, keys);
        self.reservations.change(US, asked)
    }

    fn send_report(&mut self, sqe: &[u64; 8]) -> Result<(), u16> {
        let bytes = ((sqe[5] & 0xffff_ffff) + 1) * 4;
        let mut data = self.reservations.report((sqe[5] >> 32) & 1 != 0)?;
        data.resize(bytes as usize, 0);
        self.limit(bytes)?;
        let bus = self.platform.bus();
        let mut left = data.as_slice();
        for (addr, len) in self.walk(sqe, bytes)? {
            let (now, rest) = left.split_at(len as usize);
            bus.write(addr, now).map_err(|_| 0x0004u16)?;
            left = rest;
        }
        Ok(())
    }
}
