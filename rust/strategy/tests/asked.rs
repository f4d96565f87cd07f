// SPDX-License-Identifier: GPL-2.0
//! What the engine asks, the strategy at work is asked. Each question has an answer by default, so
//! the compiler does not miss one that [`Selected`](strategy::Selected) keeps to itself.
#![cfg(not(loom))]

/// The names of the functions that begin in `source` after `begin`, up to the end of that item.
fn functions(source: &str, begin: &str) -> Vec<String> {
    let body = source.split_once(begin).map_or("", |(_, body)| body);
    let body = body.split_once("\n}\n").map_or("", |(body, _)| body);
    let named = body.lines().filter_map(|line| line.strip_prefix("    fn "));
    let name = |line: &str| line.split(['(', '<']).next().map(str::to_owned);
    let mut names: Vec<String> = named.filter_map(name).collect();
    names.sort();
    names
}

#[test]
fn no_question_is_kept_from_the_strategy_at_work() {
    let (asked, at_work) = (
        include_str!("../../engine/policy.rs"),
        include_str!("../strategy.rs"),
    );
    let pairs = [("pub trait Strategy", "Strategy for Selected<P> {", 9)];
    let predictors = [("pub trait Predictor", "Predictor for Selected<P> {", 2)];
    for (question, answer, least) in pairs.into_iter().chain(predictors) {
        let wanted = functions(asked, question);
        assert!(wanted.len() > least, "{wanted:?}");
        assert_eq!(functions(at_work, answer), wanted);
    }
}
