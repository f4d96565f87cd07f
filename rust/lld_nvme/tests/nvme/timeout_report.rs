// SPDX-License-Identifier: GPL-2.0
//! What the log says of an answer that was missed: a controller that is late, a completion that was
//! lost.

use crate::model::Config;
use crate::rig::{command, flush, Rig};
use engine::Context;
use hal::{Controller, Error, Op, Queue};

fn says(rig: &Rig) -> String {
    let mut line = String::new();
    rig.nvme.timeout_report(&mut line).unwrap();
    line
}

#[test]
fn a_queue_whose_controller_is_late() {
    let rig = Rig::started(Config::default());
    let whole = rig.whole(1);
    let queue = &whole.queues[0];
    for id in 0..2 {
        queue.submit(flush(id), true);
    }
    while queue.drain(Context::Irq) != 0 {}
    rig.model.state().hold = true;
    for id in 2..5 {
        queue.submit(flush(id), true);
    }
    let quiesced = queue.quiesce(&rig.machine);
    let mut line = String::new();
    quiesced.timeout_report(&mut line).unwrap();
    assert_eq!(
        line,
        "queue 1: no completion is there: it is late, or has not heard of all that it was told; \
         tail 5, fetched up to 2, head 2, phase 1, entry 0x0000000000000000"
    );
    assert_eq!(says(&rig), "it says that it is well: CSTS 0x1, CC 0x460061");
    quiesced.unquiesce();
}

#[test]
fn a_queue_with_completions_that_nobody_has_taken() {
    let rig = Rig::started(Config::default());
    let whole = rig.whole(1);
    let queue = &whole.queues[0];
    for id in 0..3 {
        queue.submit(flush(id), true);
    }
    let quiesced = queue.quiesce(&rig.machine);
    let mut line = String::new();
    quiesced.timeout_report(&mut line).unwrap();
    assert!(
        line.starts_with(
            "queue 1: a completion is there that nobody has taken: its interrupt was lost; \
             tail 3, none was answered before, head 0"
        ),
        "{line}"
    );
    quiesced.unquiesce();
}

#[test]
fn a_queue_without_commands_says_nothing() {
    let rig = Rig::started(Config::default());
    let whole = rig.whole(1);
    let quiesced = whole.queues[0].quiesce(&rig.machine);
    let mut line = String::new();
    quiesced.timeout_report(&mut line).unwrap();
    assert_eq!(line, "");
    quiesced.unquiesce();
}

#[test]
fn the_last_completion_is_found_in_every_pass() {
    let rig = Rig::started(Config {
        // Four tags, five entries.
        mqes: 4,
        ..Config::default()
    });
    let mut line = rig.queue(0);
    for round in 1u16..30 {
        assert_eq!(line.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
        let mut text = String::new();
        let new = &line.0;
        new.queue
            .timeout_report(&new.issue, &new.drain, &mut text)
            .unwrap();
        let at = round % 5;
        let fetched = format!("tail {at}, fetched up to {at}, head {at},");
        assert!(text.contains(&fetched), "{round}: {text}");
    }
}

#[test]
fn an_admin_command_that_is_not_answered() {
    let rig = Rig::started(Config::default());
    let next = rig.model.state().admin_log.len();
    rig.model.state().ignore = Some(next);
    assert_eq!(rig.nvme.units(&mut |_| ()), Err(Error::Timeout));
    let line = says(&rig);
    assert!(
        line.contains("CSTS 0x1, CC 0x460061; queue 0: no completion is there"),
        "{line}"
    );
    rig.model.vanish();
    assert!(says(&rig).starts_with("it is gone: CSTS 0xffffffff"));
}
