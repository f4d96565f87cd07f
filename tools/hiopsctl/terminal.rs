// SPDX-License-Identifier: GPL-2.0
//! The terminal that stdout is: how large it is, and its alternate screen, which is left however
//! the program ends: what was there before is there again, and what is typed shows.

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::terminal as raw;
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::Rect;
use ratatui::{Frame, TerminalOptions, Viewport};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag::{register_conditional_default, register_usize};
use std::io::{self, Stdout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So many columns and rows, where a terminal does not say.
const USUAL: (u16, u16) = (80, 24);
/// A signal is noticed that soon: the wait for keys goes on after it.
const SIGNAL_WAIT: Duration = Duration::from_millis(100);
/// Signals that end a program.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// What a wait for the terminal has ended with.
#[derive(Debug)]
pub(crate) enum Woken {
    /// The time has come.
    Due,
    /// Something was typed, or the window has another size.
    Event(Event),
    /// This signal is to end the program.
    Signal(i32),
}

/// The alternate screen.
pub(crate) struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Stdout>>,
    /// The last signal that came; 0: none.
    signal: Arc<AtomicUsize>,
    /// Whether signals do again what they always do.
    is_left: Arc<AtomicBool>,
}

/// The columns and rows that the terminal says it has.
fn told_size() -> Option<(u16, u16)> {
    let size = raw::window_size().ok()?;
    (size.columns > 0 && size.rows > 0).then_some((size.columns, size.rows))
}

/// The columns and rows of the terminal that stdout is.
pub(crate) fn size() -> (usize, usize) {
    let (columns, rows) = told_size().unwrap_or(USUAL);
    (columns.into(), rows.into())
}

/// Whether the terminal can be drawn on: one that calls itself dumb has no cursor to move.
pub(crate) fn can_draw() -> bool {
    std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb")
}

/// Leaves the alternate screen. Where the terminal has gone nothing is left to restore.
fn leave() {
    drop(execute!(
        io::stdout(),
        cursor::Show,
        raw::LeaveAlternateScreen
    ));
    drop(raw::disable_raw_mode());
}

impl Terminal {
    /// Enters the alternate screen: keys are read at once and do not show, Ctrl-C among them.
    ///
    /// # Errors
    /// There is no terminal to read from, or it can't be set; it is as it was.
    pub(crate) fn enter() -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        let is_left = Arc::new(AtomicBool::new(false));
        for number in ENDING {
            let value = usize::try_from(number).unwrap_or_default();
            register_conditional_default(number, Arc::clone(&is_left))?;
            register_usize(number, Arc::clone(&signal), value)?;
        }
        match Self::begin() {
            Ok(inner) => {
                says_panics_on_the_old_screen();
                Ok(Self {
                    inner,
                    signal,
                    is_left,
                })
            }
            Err(error) => {
                leave();
                is_left.store(true, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    fn begin() -> io::Result<ratatui::Terminal<CrosstermBackend<Stdout>>> {
        raw::enable_raw_mode()?;
        // From here on another size is told, before the first frame has one.
        event::poll(Duration::ZERO)?;
        execute!(io::stdout(), raw::EnterAlternateScreen, cursor::Hide)?;
        let viewport = match told_size() {
            Some(_) => Viewport::Fullscreen,
            None => Viewport::Fixed(Rect::new(0, 0, USUAL.0, USUAL.1)),
        };
        let options = TerminalOptions { viewport };
        ratatui::Terminal::with_options(CrosstermBackend::new(io::stdout()), options)
    }

    /// Draws a frame; of its cells those that have changed are sent.
    ///
    /// # Errors
    /// The terminal has gone.
    pub(crate) fn draw(&mut self, frame: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.inner.draw(frame).map(|_| ())
    }

    /// Waits for a key, another size, or a signal, until `due` at most.
    ///
    /// # Errors
    /// The terminal can't be read.
    pub(crate) fn wait(&self, due: Instant) -> io::Result<Woken> {
        loop {
            let signal = self.signal.load(Ordering::Relaxed);
            if let Some(signal) = i32::try_from(signal).ok().filter(|signal| *signal > 0) {
                return Ok(Woken::Signal(signal));
            }
            let left = due.saturating_duration_since(Instant::now());
            if event::poll(left.min(SIGNAL_WAIT))? {
                return event::read().map(Woken::Event);
            }
            if left <= SIGNAL_WAIT {
                return Ok(Woken::Due);
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It would do so later, on the screen of before.
        drop(self.inner.show_cursor());
        leave();
        self.is_left.store(true, Ordering::Relaxed);
    }
}

/// What is printed on the alternate screen is gone with it.
fn says_panics_on_the_old_screen() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        leave();
        say(info);
    }));
}

/// Ends the program as `signal` would have done, so that whoever has started it is told.
pub(crate) fn die_of(signal: i32) {
    drop(signal_hook::low_level::emulate_default_handler(signal));
}
