// SPDX-License-Identifier: GPL-2.0
//! `stat --watch` on a terminal: a pseudo-terminal, whose other end the test has. However it ends,
//! the screen of before is there again, with its cursor, and what is typed shows.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::Machine;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{fcntl_setfl, OFlags};
use rustix::process::{kill_process, Pid, Signal};
use rustix::pty::{grantpt, openpt, ptsname, unlockpt, OpenptFlags};
use rustix::termios::{tcgetattr, tcsetwinsize, LocalModes, Termios, Winsize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// A program on a terminal of its own.
struct Session {
    /// The end of who looks and types.
    user: File,
    /// The end of the program's, which stays open, so that all it has said can be read.
    own: File,
    child: Child,
    before: Termios,
    said: String,
}

/// So many columns and rows.
fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl Session {
    /// `hiopsctl ARGS` on a terminal of 80 columns and 24 rows.
    fn start(machine: &Machine, args: &[&str]) -> Self {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let name = ptsname(&user, Vec::new()).unwrap();
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let own = options
            .open(std::ffi::OsStr::from_bytes(name.to_bytes()))
            .unwrap();
        tcsetwinsize(&user, size(80, 24)).unwrap();
        let before = tcgetattr(&own).unwrap();
        // setsid(1) makes the terminal the one that controls the program, and becomes it.
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_hiopsctl")]);
        command
            .args(args)
            .env("HIOPS_ROOT", machine.root())
            .env("TERM", "xterm");
        let end = || own.try_clone().unwrap();
        let child = command.stdin(end()).stdout(end()).stderr(end());
        let child = child.spawn().unwrap();
        fcntl_setfl(&user, OFlags::RDWR | OFlags::NONBLOCK).unwrap();
        Self {
            user: File::from(user),
            own,
            child,
            before,
            said: String::new(),
        }
    }

    /// Reads until the program has said `words` after all that was waited for before.
    fn until(&mut self, words: &str) {
        while !self.said.contains(words) {
            let ended = self.child.try_wait().unwrap();
            let some = self.read();
            assert!(!some.is_empty() || ended.is_none(), "not said: {words:?}");
            self.said.push_str(&some);
        }
        let end = self.said.find(words).unwrap() + words.len();
        self.said.drain(..end);
    }

    /// What there is to read; nothing: there was none for a while.
    fn read(&mut self) -> String {
        let mut wait = [PollFd::new(&self.user, PollFlags::IN)];
        poll(&mut wait, 100).unwrap();
        let mut some = [0; 65536];
        match self.user.read(&mut some) {
            Ok(count) => String::from_utf8_lossy(&some[..count]).into_owned(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => String::new(),
            Err(error) => panic!("{error}"),
        }
    }

    fn types(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    fn is_raw(&self) -> bool {
        let now = tcgetattr(&self.own).unwrap();
        !now.local_modes
            .intersects(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end; what it has said since, and how it ended. The terminal is as before.
    fn ends(mut self) -> (String, ExitStatus) {
        let status = self.child.wait().unwrap();
        // All is there by now.
        let mut said = std::mem::take(&mut self.said);
        loop {
            let some = self.read();
            if some.is_empty() {
                break;
            }
            said.push_str(&some);
        }
        let now = tcgetattr(&self.own).unwrap();
        let modes = |of: &Termios| (of.input_modes, of.output_modes, of.local_modes);
        assert_eq!(modes(&now), modes(&self.before), "{said}");
        (said, status)
    }
}

/// On the screen, after its first look.
fn watching(machine: &Machine) -> Session {
    let mut session = Session::start(machine, &["stat", "--watch", "-i", "0.1"]);
    session.until(ENTER);
    session.until("3 disks of 2 controllers");
    assert!(session.is_raw());
    session
}

/// The screen was left, once, and the cursor shows; what was said after that.
fn left(said: &str) -> &str {
    let parts: Vec<&str> = said.split(LEAVE).collect();
    let [before, after] = parts[..] else {
        panic!("it was not left once: {said:?}");
    };
    let [shown, hidden] = [SHOW_CURSOR, HIDE_CURSOR].map(|what| before.rfind(what));
    assert!(shown > hidden, "no cursor: {said:?}");
    after
}

#[test]
fn q_leaves_it() {
    let machine = Machine::new();
    let mut session = watching(&machine);
    session.types("q");
    let (said, status) = session.ends();
    assert_eq!((left(&said), status.code()), ("", Some(0)));
}

#[test]
fn ctrl_c_leaves_it_as_an_interrupt_does() {
    let machine = Machine::new();
    let mut session = watching(&machine);
    session.types("\x03");
    let (said, status) = session.ends();
    assert_eq!((left(&said), status.signal()), ("", Some(2)));
}

#[test]
fn signals_leave_it_and_are_what_it_died_of() {
    let machine = Machine::new();
    for (signal, number) in [
        (Signal::Term, 15),
        (Signal::Hup, 1),
        (Signal::Int, 2),
        (Signal::Quit, 3),
    ] {
        let session = watching(&machine);
        session.signal(signal);
        let (said, status) = session.ends();
        assert_eq!((left(&said), status.signal()), ("", Some(number)));
    }
}

#[test]
fn an_error_leaves_it_and_is_said_on_the_screen_of_before() {
    let machine = Machine::new();
    let session = watching(&machine);
    machine.put("sys/block/hiops0n1/hiops/stats", "rubbish\n");
    let (said, status) = session.ends();
    let after = left(&said);
    assert!(
        after.starts_with("hiopsctl: ") && after.contains("'rubbish'"),
        "{after}"
    );
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_count_leaves_what_was_seen_last() {
    let machine = Machine::new();
    let mut session = Session::start(&machine, &["stat", "-i", "0.1", "-n", "2"]);
    session.until(ENTER);
    let (said, status) = session.ends();
    let after = left(&said);
    assert!(
        after.starts_with("DISK ") && after.contains("hiops_ram0 "),
        "{after}"
    );
    assert!(after.lines().all(|line| line.len() <= 80), "{after}");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn another_size_and_keys_are_drawn_at_once() {
    let machine = Machine::new();
    // No look comes meanwhile: what is drawn is drawn for the size and the keys.
    let mut session = Session::start(&machine, &["stat", "--watch", "-i", "3600"]);
    session.until("the first look, every 3600 s");
    tcsetwinsize(&session.user, size(40, 10)).unwrap();
    // The last line is the tenth now.
    session.until("\x1b[10;1H");
    session.types("q");
    let (said, status) = session.ends();
    assert_eq!((left(&said), status.code()), ("", Some(0)));
}

#[test]
fn a_terminal_that_can_not_be_drawn_on_has_lines() {
    let machine = Machine::new();
    let line = format!(
        "TERM=dumb exec {} stat -i 0.1 -n 1",
        env!("CARGO_BIN_EXE_hiopsctl")
    );
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    command.env("HIOPS_ROOT", machine.root());
    let ran = common::Ran::of(command.output().unwrap());
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(
        ran.out.starts_with("DISK ") && !ran.out.contains('\x1b'),
        "{}",
        ran.out
    );
}
