// SPDX-License-Identifier: GPL-2.0
//! A thread that panics ends its test.
#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{together, Together};

/// What `body` panics with.
fn panics(body: impl for<'scope> FnOnce(&Together<'scope, 'static>)) -> String {
    let what = catch_unwind(AssertUnwindSafe(|| together(body))).unwrap_err();
    match what.downcast::<String>() {
        Ok(text) => *text,
        Err(what) => what.downcast::<&str>().unwrap().to_string(),
    }
}

#[test]
fn one_that_panics_ends_those_that_work_and_those_that_wait() {
    let text = panics(|threads| {
        threads.keep(|| false);
        threads.keep(|| panic!("planted"));
        threads.wait_for(1, || 0);
    });
    assert_eq!(text, "another thread has panicked");
}

#[test]
fn who_asks_whether_all_is_over_ends_with_another() {
    together(|threads| {
        let over = threads.over();
        let asks = threads.spawn(move || {
            while !over.is_set() {
                std::thread::yield_now();
            }
        });
        threads.spawn(|| panic!("planted")).join().unwrap_err();
        asks.join().unwrap();
    });
}

#[test]
fn the_body_that_panics_ends_all() {
    let text = panics(|threads| {
        threads.keep(|| false);
        panic!("planted");
    });
    assert_eq!(text, "planted");
}

#[test]
fn what_is_waited_for_comes() {
    let count = AtomicUsize::new(0);
    together(|threads| {
        threads.keep(|| {
            count.fetch_add(1, Ordering::Relaxed);
            true
        });
        threads.wait_for(1000, || count.load(Ordering::Relaxed));
    });
}
