// SPDX-License-Identifier: GPL-2.0
//! What stands where, of many drives in a window of 80 columns and 24 rows.

use super::*;
use crate::blockstat::{BlockStat, Inflight};
use crate::counters::Counters;
use crate::learned::Learned;
use crate::sample::{ControllerSample, DiskSample, Sample};
use ratatui::backend::TestBackend;
use ratatui::Terminal;
use std::time::{Duration, Instant};

fn disk(number: u64, factor: u64) -> DiskSample {
    // The drive in the middle does most.
    let each = factor * 1_000 * (100 - number.abs_diff(12));
    let text = format!(
        "submitted {0}\ncompleted {0}\ncompleted_irq {1}\ncompleted_coop {1}\ninterrupts {1}\n\
         doorbell_writes {0}\nerrors 0\nmax_irq_ns {2}\nmax_tick_ns 999999\n",
        each * 2,
        each,
        900 * (number + 1)
    );
    DiskSample {
        name: format!("hiops{number}n1"),
        counters: Counters::parse(&text).unwrap(),
        block: BlockStat {
            in_queue_ms: factor * 31_700,
            read_bytes: each * 4096,
            written_bytes: each * 4096,
            ..BlockStat::default()
        },
        inflight: Inflight {
            reads: 31,
            writes: 1,
        },
    }
}

fn sample(at: Instant, drives: u64, factor: u64) -> Sample {
    let learned = "sleep_ns 4100 yield_ns 900 tick_ns 2000\n\
                   queue 0 interrupt_ns 1900 polled 1 polling 50000 napping -\n";
    let controller = |number| ControllerSample {
        address: format!("0000:{number:02x}:00.0"),
        driver: "hiops_nvme".into(),
        strategy: "coop".into(),
        mode: "hybrid".into(),
        learned: Learned::parse(learned),
        disks: vec![disk(number, factor)],
    };
    Sample {
        at,
        controllers: (0..drives).map(controller).collect(),
    }
}

fn view(drives: u64) -> View {
    let mut view = View::new(1.0);
    view.show(rates(drives));
    view
}

fn rates(drives: u64) -> Rates {
    let start = Instant::now();
    let before = sample(start, drives, 1);
    let now = sample(start + Duration::from_secs(1), drives, 2);
    Rates::between(&before, &now, &[])
}

/// The lines of a window of that size.
fn drawn(view: &mut View, (columns, rows): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| view.draw(frame.buffer_mut()))
        .unwrap();
    let buffer = terminal.backend().buffer().clone();
    let cells = buffer.content().chunks(usize::from(columns));
    let line = |cells: &[ratatui::buffer::Cell]| {
        let text: String = cells.iter().map(|cell| cell.symbol()).collect();
        text.trim_end().to_string()
    };
    cells.map(line).collect()
}

fn press(view: &mut View, keys: &[KeyCode]) {
    for key in keys {
        let asked = view.press(KeyEvent::new(*key, KeyModifiers::NONE));
        assert_eq!(asked, Ask::Nothing, "{key:?}");
    }
}

/// The first words of the table's rows.
fn names(lines: &[String]) -> Vec<&str> {
    let rows = lines
        .iter()
        .filter(|line| line.starts_with("hiops") && !line.contains(':'));
    rows.map(|line| line.split(' ').next().unwrap()).collect()
}

#[test]
fn of_24_drives_all_columns_have_room_in_80_by_24() {
    let mut view = view(24);
    let lines = drawn(&mut view, (80, 24));
    assert!(
        lines[0].starts_with("hiopsctl stat: 24 disks of 24 controllers, "),
        "{lines:#?}"
    );
    assert_eq!(lines[1], "                  READ WRITE");
    assert_eq!(
        lines[2],
        "DISK        IOPS  MB/s  MB/s IRQ LAZY COOP POLL FIFO DEPTH NOW ERRORS"
    );
    assert_eq!(
        lines[3],
        "hiops0n1  176000 360.4 360.4 50%   0%  50%   0%   0%  31.7  32      0"
    );
    assert!(
        lines[23].contains("q quit") && lines[23].ends_with("1-20 of 24"),
        "{lines:#?}"
    );
    assert_eq!(names(&lines).len(), 20);
    // Its controllers, one of which has the same width as the window.
    press(&mut view, &[KeyCode::Tab]);
    let lines = drawn(&mut view, (80, 24));
    assert_eq!(
        lines[2],
        "CONTROLLER   DRIVER     STRA MODE     /IO   /IO     /s   /s     IRQ      TICK"
    );
    assert!(
        lines[3].starts_with("0000:00:00.0 hiops_nvme coop hybrid 0.500 1.000"),
        "{lines:#?}"
    );
    assert!(lines[3].ends_with("1000.0 us"), "{lines:#?}");
    press(&mut view, &[KeyCode::Tab]);
    assert!(drawn(&mut view, (80, 24))[1].starts_with("0000:00:00.0 has learnt: sleep 4.1 us"));
}

#[test]
fn each_drive_comes_into_view() {
    let mut view = view(24);
    drawn(&mut view, (80, 24));
    press(&mut view, &[KeyCode::Down]);
    assert_eq!(names(&drawn(&mut view, (80, 24)))[0], "hiops1n1");
    press(&mut view, &[KeyCode::PageDown]);
    let lines = drawn(&mut view, (80, 24));
    assert_eq!(
        (names(&lines)[0], names(&lines)[19]),
        ("hiops4n1", "hiops23n1")
    );
    assert!(lines[23].ends_with("5-24 of 24"), "{lines:#?}");
    // No further, and the way back is as long.
    press(&mut view, &[KeyCode::End, KeyCode::Down, KeyCode::Down]);
    assert_eq!(names(&drawn(&mut view, (80, 24)))[0], "hiops4n1");
    press(&mut view, &[KeyCode::Up]);
    assert_eq!(names(&drawn(&mut view, (80, 24)))[0], "hiops3n1");
    press(&mut view, &[KeyCode::Home]);
    assert_eq!(names(&drawn(&mut view, (80, 24)))[0], "hiops0n1");
    // Of fewer drives than before there is no empty window.
    press(&mut view, &[KeyCode::End]);
    drawn(&mut view, (80, 24));
    view.show(rates(21));
    assert_eq!(names(&drawn(&mut view, (80, 24))).len(), 20);
}

#[test]
fn rows_are_sorted_by_the_chosen_column_and_stay_so() {
    let mut view = view(24);
    press(&mut view, &[KeyCode::Right, KeyCode::Right]);
    let lines = drawn(&mut view, (80, 24));
    assert_eq!(names(&lines)[..3], ["hiops12n1", "hiops11n1", "hiops13n1"]);
    assert!(lines[23].contains("IOPS ▼"), "{lines:#?}");
    view.show(rates(24));
    assert_eq!(names(&drawn(&mut view, (80, 24)))[0], "hiops12n1");
    press(&mut view, &[KeyCode::Char('r')]);
    let lines = drawn(&mut view, (80, 24));
    assert_eq!(names(&lines)[..2], ["hiops0n1", "hiops1n1"]);
    assert!(lines[23].contains("IOPS ▲"), "{lines:#?}");
    // Names by their numbers.
    press(&mut view, &[KeyCode::Left, KeyCode::Char('r')]);
    assert_eq!(
        names(&drawn(&mut view, (80, 24)))[..2],
        ["hiops23n1", "hiops22n1"]
    );
    // And none again: as they come.
    press(&mut view, &[KeyCode::Left]);
    assert!(!drawn(&mut view, (80, 24))[23].contains('▲'));
}

#[test]
fn another_size_has_what_fits_it() {
    let mut view = view(2);
    // All below each other, in one line each.
    let lines = drawn(&mut view, (120, 40));
    assert!(
        lines[1].starts_with("DISK      ") && lines[1].ends_with("ERRORS"),
        "{lines:#?}"
    );
    assert!(lines[5].starts_with("CONTROLLER"), "{lines:#?}");
    assert!(
        lines[9].starts_with("0000:00:00.0 has learnt"),
        "{lines:#?}"
    );
    assert_eq!(names(&drawn(&mut view, (120, 8))), ["hiops0n1", "hiops1n1"]);
    // A narrow one has the columns that the operator goes to, beside the name.
    let lines = drawn(&mut view, (20, 10));
    assert!(lines[2].starts_with("DISK       IOPS"), "{lines:#?}");
    assert!(!lines[2].contains("ERRORS"));
    press(&mut view, &[KeyCode::Left]);
    let lines = drawn(&mut view, (20, 10));
    assert!(
        lines[2].starts_with("DISK ") && lines[2].ends_with("ERRORS"),
        "{lines:#?}"
    );
    for size in [(1, 1), (2, 2), (5, 3), (80, 1), (80, 2), (300, 4)] {
        for _ in 0..3 {
            assert_eq!(drawn(&mut view, size).len(), usize::from(size.1));
            press(
                &mut view,
                &[KeyCode::Tab, KeyCode::PageDown, KeyCode::Right],
            );
        }
    }
}

#[test]
fn keys_that_end_it() {
    let mut view = View::new(0.5);
    assert!(drawn(&mut view, (80, 24))[0].ends_with("the first look, every 0.5 s"));
    press(
        &mut view,
        &[
            KeyCode::Tab,
            KeyCode::Right,
            KeyCode::Down,
            KeyCode::Char('c'),
        ],
    );
    let mut ends = |code, modifiers| view.press(KeyEvent::new(code, modifiers));
    let none = KeyModifiers::NONE;
    assert_eq!(ends(KeyCode::Char('q'), none), Ask::Quit);
    assert_eq!(ends(KeyCode::Esc, none), Ask::Quit);
    assert_eq!(
        ends(KeyCode::Char('c'), KeyModifiers::CONTROL),
        Ask::Interrupt
    );
}
