// SPDX-License-Identifier: GPL-2.0
//! `hiopsctl trace`: `hiops-trace` takes the place of this program; for JSON its lines are read.

use crate::failure::Failure;
use crate::machine::served_disk;
use crate::out::{json, Out};
use crate::root::Root;
use crate::tools;
use regex::Regex;
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

/// A line of `hiops-trace`. A thread's name may have blanks in it; a step is one word.
const LINE: &str = r"^ *(\d+) +(\d+)  (.{12}) (.*)/(\d+) +([a-z-]+) ?(.*)$";

/// A step on an I/O's way.
#[derive(Debug, PartialEq, Serialize)]
struct Step<'a> {
    /// Since the beginning.
    us: u64,
    cpu: u64,
    /// What was on top of the thread: an interrupt, a timer, or nothing.
    on: Option<&'a str>,
    thread: &'a str,
    tid: u64,
    step: &'a str,
    more: &'a str,
}

/// Shows the steps of `count` I/Os of `disk`.
pub(crate) fn run(root: &Root, out: &Out, disk: &str, count: u32) -> Result<(), Failure> {
    let disk = served_disk(root, disk)?;
    let mut command = tools::command(root, "hiops-trace")?;
    command.args([disk, count.to_string()]);
    let failed = |error| Failure::io("hiops-trace can't be run", &error);
    if !out.is_json() {
        return Err(failed(command.exec()));
    }
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let form = Regex::new(LINE).map_err(|error| Failure::new(error.to_string(), "a bug"))?;
    // Dropped with the loop: a tracer whose reader has gone ends, too.
    let printed = child.stdout.take().map_or(Ok(()), |lines| {
        for line in BufReader::new(lines).lines() {
            let line = line.map_err(failed)?;
            if let Some(step) = step(&form, &line) {
                out.print(&format!("{}\n", json(&step)?))?;
            }
        }
        Ok(())
    });
    let status = child.wait().map_err(failed)?;
    printed?;
    if status.success() {
        return Ok(());
    }
    let what = format!("hiops-trace fails ({status})");
    Err(Failure::new(what, "what it says stands above, on stderr"))
}

/// What a line says; none: it is a headline, or something else.
fn step<'a>(form: &Regex, line: &'a str) -> Option<Step<'a>> {
    let parts = form.captures(line)?;
    let part = |at| parts.get(at).map(|part| part.as_str());
    Some(Step {
        us: part(1)?.parse().ok()?,
        cpu: part(2)?.parse().ok()?,
        on: Some(part(3)?.trim().trim_end_matches(" on")).filter(|on| !on.is_empty()),
        thread: part(4)?,
        tid: part(5)?.parse().ok()?,
        step: part(6)?,
        more: part(7)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read() {
        let form = Regex::new(LINE).unwrap();
        let line = "       812   1  interrupt on fio/812      hand-over to fio/813";
        let read = step(&form, line).unwrap();
        assert_eq!((read.us, read.cpu, read.on), (812, 1, Some("interrupt")));
        assert_eq!((read.thread, read.tid), ("fio", 812));
        assert_eq!((read.step, read.more), ("hand-over", "to fio/813"));
        let line = "        5   0               my prog/7        issue R of 8 sectors at 16";
        let read = step(&form, line).unwrap();
        assert_eq!((read.on, read.thread, read.tid), (None, "my prog", 7));
        assert_eq!((read.step, read.more), ("issue", "R of 8 sectors at 16"));
        let head = "        us CPU  context                  step";
        assert_eq!(step(&form, head), None);
    }
}
