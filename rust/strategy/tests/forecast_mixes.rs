// SPDX-License-Identifier: GPL-2.0
//! The forecast against simulated mixes, beside the seed's predictor.
#![cfg(not(loom))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test states what it expects by failing loudly"
)]

mod simulated;

use engine::Seen;
use hal::mock::MockPlatform;
use hal::Op;
use simulated::{about, reader, Command, Device, Event, Mix, Record, Thread};
use std::collections::HashMap;
use strategy::{Class, Forecast};
use testkit::Dice;

const KIB: u64 = 1024;

/// Says when a command is over.
trait Predictor {
    fn due(&self, command: &Command) -> Option<u64>;
    fn saw(&mut self, command: &Command);
}

fn class(command: &Command) -> Class {
    Class::of(command.op, command.bytes, command.outstanding).expect("it reads or writes")
}

/// A forecast that knows nothing.
fn forecast() -> Forecast<MockPlatform> {
    Forecast::new(&MockPlatform::new()).expect("memory")
}

/// The forecast, told of all bytes outstanding,
struct OfAll(Forecast<MockPlatform>);

impl Predictor for OfAll {
    fn due(&self, command: &Command) -> Option<u64> {
        let due = self.0.due(class(command), command.all_bytes);
        due.map(|due| due.after_ns)
    }

    fn saw(&mut self, command: &Command) {
        let Command {
            all_bytes, took_ns, ..
        } = *command;
        self.0.saw(class(command), all_bytes, took_ns, Seen::Came);
    }
}

/// or of the command's own alone.
struct OfOwn(Forecast<MockPlatform>);

impl Predictor for OfOwn {
    fn due(&self, command: &Command) -> Option<u64> {
        let due = self.0.due(class(command), command.bytes);
        due.map(|due| due.after_ns)
    }

    fn saw(&mut self, command: &Command) {
        let Command { bytes, took_ns, .. } = *command;
        self.0.saw(class(command), bytes, took_ns, Seen::Came);
    }
}

/// The seed's: the average of the last three. It is given the forecast's classes.
#[derive(Default)]
struct ThreeValues(HashMap<String, Vec<u64>>);

impl Predictor for ThreeValues {
    fn due(&self, command: &Command) -> Option<u64> {
        let last = self.0.get(&class(command).to_string())?;
        Some(last.iter().sum::<u64>() / last.len() as u64)
    }

    fn saw(&mut self, command: &Command) {
        let last = self.0.entry(class(command).to_string()).or_default();
        if last.len() == 3 {
            last.remove(0);
        }
        last.push(command.took_ns);
    }
}

/// What each of the predictors is off by on average, in nanoseconds, from the 65th command on,
/// where all of them know. How soon each knows enough is not compared here: of what a mix begins
/// with the last three are rid sooner.
fn mean_errors<const N: usize>(record: &Record, mut all: [&mut dyn Predictor; N]) -> [u64; N] {
    let mut said = vec![[None; N]; record.commands.len()];
    let (mut off, mut of, mut over) = ([0; N], 0, 0);
    for event in &record.events {
        match *event {
            Event::Issued(n) => {
                for (said, predictor) in said[n].iter_mut().zip(&all) {
                    *said = predictor.due(&record.commands[n]);
                }
            }
            Event::Over(n) => {
                let command = &record.commands[n];
                over += 1;
                if over > 64 && said[n].iter().all(Option::is_some) {
                    of += 1;
                    for (off, said) in off.iter_mut().zip(said[n]) {
                        *off += said.map_or(0, |ns: u64| ns.abs_diff(command.took_ns));
                    }
                }
                for predictor in &mut all {
                    predictor.saw(command);
                }
            }
        }
    }
    assert!(
        of * 10 >= record.commands.len() * 9,
        "hardly anything is said"
    );
    off.map(|off| off / of as u64)
}

fn nvme(channels: usize, medium: fn(&mut Dice, usize, Op) -> u64) -> Device {
    Device {
        channels,
        medium,
        bytes_a_us: 3_000,
    }
}

fn sata(channels: usize, medium: fn(&mut Dice, usize, Op) -> u64) -> Device {
    Device {
        channels,
        medium,
        bytes_a_us: 200,
    }
}

fn small() -> Thread {
    reader(&[4 * KIB])
}

fn any() -> Thread {
    reader(&[4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB])
}

fn mix(name: &'static str, device: Device, threads: Vec<Thread>) -> Mix {
    Mix {
        name,
        device,
        threads,
        commands: 8_000,
    }
}

fn mixes() -> impl Iterator<Item = Mix> {
    mixes_of_one_reader().into_iter().chain(mixes_of_many())
}

/// The device changes how long it takes: from read to read, or as time goes by.
fn mixes_of_one_reader() -> Vec<Mix> {
    vec![
        mix(
            "one reader, narrow",
            nvme(8, |dice, _, _| about(dice, 80_000, 2_000)),
            vec![small()],
        ),
        mix(
            "one reader, one in 20 read again",
            nvme(8, |dice, _, _| {
                about(dice, 80_000, 2_000) + if dice.roll(20) == 0 { 150_000 } else { 0 }
            }),
            vec![small()],
        ),
        mix(
            "one reader, pages fast and slow",
            nvme(8, |dice, _, _| {
                let page = if dice.roll(3) == 0 { 95_000 } else { 60_000 };
                about(dice, page, 3_000)
            }),
            vec![small()],
        ),
        mix(
            "one reader, any size",
            sata(8, |dice, _, _| about(dice, 60_000, 3_000)),
            vec![any()],
        ),
        mix(
            "one reader, the device slows down at times",
            nvme(8, |dice, n, _| {
                let slow = n / 500 % 2 == 1;
                about(dice, if slow { 300_000 } else { 80_000 }, 5_000)
            }),
            vec![small()],
        ),
        mix(
            "one reader, 20 in 200 beside garbage collection",
            nvme(8, |dice, n, _| {
                let slow = n % 200 < 20;
                about(dice, if slow { 240_000 } else { 80_000 }, 3_000)
            }),
            vec![small()],
        ),
        mix(
            "one reader, it drifts",
            nvme(8, |dice, n, _| {
                let swing = (n as u64 % 2_000).abs_diff(1_000);
                about(dice, 60_000 + 40 * swing, 4_000)
            }),
            vec![small()],
        ),
        mix(
            "anything from 20 to 500 us",
            nvme(8, |dice, _, _| 20_000 + dice.roll(480_001)),
            vec![small()],
        ),
    ]
}

/// Threads wait for each other's commands, at the channels or at the link.
fn mixes_of_many() -> Vec<Mix> {
    let writer = || Thread {
        op: Op::Write,
        ..any()
    };
    vec![
        mix(
            "three readers of three sizes, 200 MB/s",
            sata(8, |dice, _, _| about(dice, 60_000, 3_000)),
            vec![small(), reader(&[16 * KIB]), reader(&[64 * KIB])],
        ),
        mix(
            "four readers of any size, 200 MB/s",
            sata(8, |dice, _, _| about(dice, 60_000, 3_000)),
            vec![any(); 4],
        ),
        mix(
            "16 readers, four channels",
            nvme(4, |dice, _, _| about(dice, 60_000, 4_000)),
            vec![small(); 16],
        ),
        mix(
            "readers and writers of any size",
            nvme(8, |dice, _, op| match op {
                Op::Read => about(dice, 70_000, 5_000),
                _ => about(dice, 20_000, 5_000) + if dice.roll(30) == 0 { 400_000 } else { 0 },
            }),
            [vec![any(); 4], vec![writer(); 4]].concat(),
        ),
    ]
}

/// So many records are made of each mix.
const SEEDS: u64 = 8;

#[test]
fn its_mean_error_is_below_that_of_the_last_three() {
    println!(
        "{:50} {:>7}   off by, in ns: {:>9} {:>9} {:>9}",
        "", "takes", "of all", "of own", "the last 3"
    );
    let mut worse = Vec::new();
    for mix in mixes() {
        let (mut took, mut sums) = (0, [0; 3]);
        for seed in 1..=SEEDS {
            let record = mix.record(seed);
            let mut all = OfAll(forecast());
            let mut own = OfOwn(forecast());
            let mut three = ThreeValues::default();
            let errors = mean_errors(&record, [&mut all, &mut own, &mut three]);
            for (sum, error) in sums.iter_mut().zip(errors) {
                *sum += error;
            }
            let all: u64 = record.commands.iter().map(|command| command.took_ns).sum();
            took += all / record.commands.len() as u64;
        }
        let [all, own, three] = sums.map(|sum| sum / SEEDS);
        println!(
            "{:50} {:7}                  {all:9} {own:9} {three:9}   {:.2} {:.2}",
            mix.name,
            took / SEEDS,
            all as f64 / three as f64,
            own as f64 / three as f64
        );
        if all >= three || own >= three {
            worse.push(mix.name);
        }
    }
    assert!(worse.is_empty(), "{worse:?}");
}

const SIZES: [u64; 3] = [4 * KIB, 16 * KIB, 64 * KIB];

/// By how much of the truth forecasts err for commands from the 65th on, in thousandths: for each
/// of three sizes at most, and of all on average.
fn errors(record: &Record, mut predictor: impl Predictor) -> ([u64; 3], u64) {
    let Record { commands, events } = record;
    let (mut said, mut over) = (vec![None; commands.len()], 0);
    let (mut most, mut sum, mut known) = ([0; 3], 0, 0);
    for event in events {
        match *event {
            Event::Issued(n) if over >= 64 => said[n] = predictor.due(&commands[n]),
            Event::Issued(_) => {}
            Event::Over(n) => {
                let command = &commands[n];
                if let Some(ns) = said[n] {
                    let off = ns.abs_diff(command.took_ns) * 1_000 / command.took_ns;
                    let of = SIZES.iter().position(|size| *size == command.bytes);
                    let most = &mut most[of.expect("it is one of the three")];
                    *most = off.max(*most);
                    sum += off;
                    known += 1;
                }
                predictor.saw(command);
                over += 1;
            }
        }
    }
    assert!(known + 70 >= commands.len(), "{known} are known");
    (most, sum / known as u64)
}

/// A slow link behind channels enough for all.
fn slow() -> Device {
    sata(4_096, |_, _, _| 80_000)
}

/// Three commands at a time, one of each size, in any order.
fn bursts() -> Record {
    let (mut commands, mut events) = (Vec::new(), Vec::new());
    let mut dice = Dice(11);
    for _ in 0..700 {
        let mut sizes = SIZES;
        sizes.rotate_left(dice.roll(3) as usize);
        sizes[1..].rotate_left(dice.roll(2) as usize);
        let first = commands.len();
        let mut all_bytes = 0;
        for (outstanding, bytes) in (1..).zip(sizes) {
            all_bytes += bytes;
            events.push(Event::Issued(commands.len()));
            commands.push(Command {
                op: Op::Read,
                bytes,
                outstanding,
                all_bytes,
                took_ns: 80_000 + slow().link_ns(all_bytes),
            });
        }
        events.extend((first..first + 3).map(Event::Over));
    }
    Record { commands, events }
}

fn of_three(name: &'static str, threads: Vec<Thread>) -> Record {
    let mix = Mix {
        name,
        device: slow(),
        threads,
        commands: 2_000,
    };
    mix.record(5)
}

#[test]
fn three_sizes_over_a_slow_link_are_foretold_after_64_reads() {
    let each = SIZES.map(|size| reader(&[size]));
    for (name, record) in [
        ("one after the other", of_three("", vec![reader(&SIZES)])),
        ("a reader of each", of_three("", each.to_vec())),
        ("three at a time in any order", bursts()),
    ] {
        let (most, mean) = errors(&record, OfAll(forecast()));
        println!("{name:30} off by, in thousandths: {most:?} at most, {mean} on average");
        assert!(most.iter().all(|most| *most <= 50), "{name}: {most:?}");
    }
}

/// What is left of a transfer that is under way nobody tells the forecast.
#[test]
fn readers_that_mix_sizes_are_foretold_on_average() {
    let record = of_three("", vec![reader(&SIZES); 3]);
    let (most, mean) = errors(&record, OfAll(forecast()));
    let (_, three) = errors(&record, ThreeValues::default());
    let name = "three readers of all three";
    println!("{name:30} off by, in thousandths: {most:?} at most, {mean} on average");
    println!("{name:30} the last three: {three} on average");
    assert!(mean <= three / 5, "{mean}, {three}");
}
