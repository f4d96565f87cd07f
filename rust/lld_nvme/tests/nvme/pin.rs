// SPDX-License-Identifier: GPL-2.0
//! An interrupt line that is a level: whoever interrupts whom, it comes down.

use crate::model::Config;
use crate::rig::{command, Line, Rig};
use hal::{Cause, Controller, Op};
use testkit::Device;

fn pinned() -> Rig {
    let rig = Rig::new(Config {
        pin: true,
        queues: 1,
        ..Config::default()
    })
    .unwrap();
    rig.nvme.use_pin(true);
    rig.nvme.start().unwrap();
    rig
}

#[test]
fn nothing_interrupts_before_it_is_let() {
    let rig = pinned();
    assert!(!rig.model.line());
    rig.queue(0);
    rig.model.state().cqs.get_mut(&0).unwrap().tail += 1;
    assert!(!rig.model.line(), "masked");
    rig.nvme.set_interrupt(0, true);
    assert!(rig.model.line());
    rig.nvme.set_interrupt(0, false);
    assert!(!rig.model.line());
}

#[test]
fn the_line_is_down_while_nobody_can_drain_and_up_again_after() {
    let rig = pinned();
    let mut queue = Line::of(&rig.nvme, 0, 0);
    rig.nvme.set_interrupt(0, true);
    queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    assert!(rig.model.line());
    // The handler runs, but someone else holds the drain token.
    assert_eq!(rig.nvme.interrupt(0), Cause::Queues);
    assert!(!rig.model.line(), "no storm");
    // A second one arrives before the holder, who was knocked at, drains.
    queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    assert!(!rig.model.line());
    assert_eq!(queue.drain().len(), 2);
    assert!(!rig.model.line(), "nothing is left");
    queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    assert!(rig.model.line(), "unmasked");
    rig.nvme.interrupt(0);
    assert_eq!(queue.drain().len(), 1);
    rig.model.check();
}

#[test]
fn the_handler_takes_admin_completions() {
    let rig = pinned();
    let mut queue = Line::of(&rig.nvme, 0, 0);
    rig.nvme.set_interrupt(0, true);
    // The thread has rung the doorbell and is interrupted before it looks: a completion that nobody
    // has taken.
    let model = rig.model.clone();
    let completion = crate::model::queues::Completion {
        result: 0,
        sq_head: 0,
        sq_id: 0,
        cid: 0xffff,
        status: 0,
    };
    {
        let mut state = model.state();
        state.finish(0, completion);
        state.work();
    }
    assert!(model.line());
    rig.nvme.interrupt(0);
    queue.drain();
    assert!(!model.line(), "taken, although it answered nothing");
    // Admin commands go on.
    assert_eq!(rig.units().len(), 1);
    model.check();
}

#[test]
fn messages_leave_the_mask_alone() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    rig.nvme.set_interrupt(1, false);
    rig.nvme.set_interrupt(1, true);
    let accesses = rig.model.state().accesses;
    assert_eq!(rig.nvme.interrupt(1), Cause::Queues);
    assert_eq!(rig.model.state().accesses, accesses);
    assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}
