// SPDX-License-Identifier: GPL-2.0
//! What `stat --watch` shows on a terminal, and what its keys do. Nothing is read or written here.
//!
//! A *pane* is one of `stat`'s tables, or what was learnt. Where all have room they stand one below
//! the other; else the chosen one has the window to itself. In a table rows are sorted by the
//! chosen column, and columns that have no room come into view as they are chosen.

use crate::rates::Rates;
use crate::screen::{learnt_lines, tables};
use crate::table::Table;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// A head is not cut to fewer letters.
const SHORTEST: usize = 4;

/// What a key asks for beyond another look of the screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ask {
    /// Nothing.
    Nothing,
    /// The end.
    Quit,
    /// The end, as by SIGINT.
    Interrupt,
}

/// A table, or lines, with what the operator has chosen of it.
#[derive(Debug, Default)]
struct Pane {
    name: &'static str,
    table: Option<Table>,
    lines: Vec<String>,
    /// The column that rows are sorted by; none: as they come.
    sorted_by: Option<usize>,
    descending: bool,
    /// The first row that is shown.
    top: usize,
}

/// The screen.
#[derive(Debug)]
pub(crate) struct View {
    seconds: f64,
    panes: Vec<Pane>,
    /// The pane that keys are for.
    chosen: usize,
    /// How many rows of it had room in the last frame: so far a page goes.
    page: usize,
    /// Of the last rates, for what has to be folded to another width.
    rates: Option<Rates>,
}

impl View {
    /// A screen that will be told of a look every so many seconds.
    pub(crate) fn new(seconds: f64) -> Self {
        Self {
            seconds,
            panes: Vec::new(),
            chosen: 0,
            page: 1,
            rates: None,
        }
    }

    /// Shows `rates` from the next frame on.
    pub(crate) fn show(&mut self, rates: Rates) {
        let mut panes = Vec::new();
        for (name, table) in tables(&rates) {
            panes.push(Pane {
                name,
                table: Some(table),
                ..Pane::default()
            });
        }
        panes.push(Pane {
            name: "learnt",
            ..Pane::default()
        });
        for (pane, old) in panes.iter_mut().zip(&self.panes) {
            (pane.sorted_by, pane.descending) = (old.sorted_by, old.descending);
            pane.top = old.top;
            pane.sort();
        }
        self.panes = panes;
        self.rates = Some(rates);
    }

    /// What was shown last.
    pub(crate) fn rates(&self) -> Option<&Rates> {
        self.rates.as_ref()
    }

    /// Does what a key is for.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Ask {
        if key.kind == KeyEventKind::Release {
            return Ask::Nothing;
        }
        let page = self.page.max(1);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Ask::Interrupt;
            }
            KeyCode::Char('q') | KeyCode::Esc => return Ask::Quit,
            KeyCode::Tab => self.choose(1),
            KeyCode::BackTab => self.choose(self.panes.len().saturating_sub(1)),
            _ => {}
        }
        let Some(pane) = self.panes.get_mut(self.chosen) else {
            return Ask::Nothing;
        };
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => pane.top = pane.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => pane.top = pane.top.saturating_add(1),
            KeyCode::PageUp => pane.top = pane.top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => pane.top = pane.top.saturating_add(page),
            KeyCode::Home => pane.top = 0,
            KeyCode::End => pane.top = usize::MAX,
            KeyCode::Left | KeyCode::Char('<') => pane.sort_beside(false),
            KeyCode::Right | KeyCode::Char('>') => pane.sort_beside(true),
            KeyCode::Char('r') => {
                pane.descending = !pane.descending;
                pane.sort();
            }
            _ => {}
        }
        Ask::Nothing
    }

    fn choose(&mut self, further: usize) {
        let next = self.chosen.saturating_add(further);
        self.chosen = next.checked_rem(self.panes.len()).unwrap_or(0);
    }

    /// Draws all of it.
    pub(crate) fn draw(&mut self, to: &mut Buffer) {
        let area = to.area;
        let width = usize::from(area.width);
        if let (Some(rates), Some(pane)) = (&self.rates, self.panes.last_mut()) {
            pane.lines = learnt_lines(rates, width.saturating_add(1));
        }
        let body = usize::from(area.height).saturating_sub(2);
        let head = format!("hiopsctl stat: {}", self.summary());
        line(to, 0, &head, Style::new().add_modifier(Modifier::REVERSED));
        let needed: usize = self.panes.iter().map(|pane| pane.height(width)).sum();
        let gaps = self.panes.len().saturating_sub(1);
        let (mut y, mut shown) = (1u16, String::new());
        let whole = needed.saturating_add(gaps) <= body;
        for (at, pane) in self.panes.iter_mut().enumerate() {
            let is_chosen = at == self.chosen;
            if !whole && !is_chosen {
                continue;
            }
            let room = if whole { pane.height(width) } else { body };
            let room: u16 = room.try_into().unwrap_or(u16::MAX);
            let area = Rect::new(0, y, area.width, room);
            let rows = pane.draw(to, area, is_chosen);
            y = y.saturating_add(room).saturating_add(1);
            if is_chosen {
                self.page = rows;
                shown = pane.shown(rows);
            }
        }
        let next = self.panes.get(match self.chosen.saturating_add(1) {
            next if next < self.panes.len() => next,
            _ => 0,
        });
        let next = next.map_or("next", |pane| pane.name);
        let keys = format!("q quit  Tab {next}  ←→ sort  r reverse  ↑↓ scroll  {shown}");
        let last = area.height.saturating_sub(1);
        line(
            to,
            last,
            &keys,
            Style::new().add_modifier(Modifier::REVERSED),
        );
    }

    fn summary(&self) -> String {
        let every = format!("every {} s", self.seconds);
        let Some(rates) = &self.rates else {
            return format!("the first look, {every}");
        };
        let iops: f64 = rates.disks.iter().map(|disk| disk.iops).sum();
        let many = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let disks = many(rates.disks.len(), "disk");
        let controllers = many(rates.controllers.len(), "controller");
        format!("{disks} of {controllers}, {iops:.0} IOPS, {every}")
    }
}

impl Pane {
    /// Sorts by the column beside the one that it is sorted by.
    fn sort_beside(&mut self, further: bool) {
        let count = self.table.as_ref().map_or(0, |table| table.heads().len());
        let next = match (self.sorted_by, further) {
            (None, true) => Some(0),
            (None, false) => count.checked_sub(1),
            (Some(at), true) => Some(at.saturating_add(1)).filter(|at| *at < count),
            (Some(at), false) => at.checked_sub(1),
        };
        self.sorted_by = next.filter(|_| count > 0);
        // Of numbers the greatest are looked for, of names the first.
        let numbers = |table: &Table| next.is_some_and(|at| table.is_numbers(at));
        self.descending = self.table.as_ref().is_some_and(numbers);
        self.sort();
    }

    fn sort(&mut self) {
        if let (Some(table), Some(at)) = (&mut self.table, self.sorted_by) {
            table.sort(at, self.descending);
        }
    }

    fn rows(&self) -> usize {
        (self.table.as_ref()).map_or(self.lines.len(), |table| table.rows().len())
    }

    /// So many lines hold all of it.
    fn height(&self, width: usize) -> usize {
        match &self.table {
            Some(table) => self.rows().saturating_add(Columns::of(table, width).heads),
            None => self.rows(),
        }
    }

    /// Which rows of how many are in view, and what they are sorted by.
    fn shown(&self, rows: usize) -> String {
        let all = self.rows();
        let last = self.top.saturating_add(rows).min(all);
        let first = self.top.saturating_add(1).min(all);
        let head = self
            .sorted_by
            .and_then(|at| self.table.as_ref()?.heads().get(at));
        let arrow = if self.descending { '▼' } else { '▲' };
        let by = head.map_or_else(String::new, |head| format!("{head} {arrow}  "));
        format!("{by}{first}-{last} of {all}")
    }

    /// Draws it into `area`; how many rows had room.
    fn draw(&mut self, to: &mut Buffer, area: Rect, is_chosen: bool) -> usize {
        let width = usize::from(area.width);
        let heads = self
            .table
            .as_ref()
            .map(|table| Columns::of(table, width).heads);
        let room = usize::from(area.height).saturating_sub(heads.unwrap_or(0));
        self.top = self.top.min(self.rows().saturating_sub(room));
        let mut ys = area.y..area.bottom().min(to.area.bottom());
        let Some(table) = &self.table else {
            for (text, y) in self.lines.iter().skip(self.top).zip(ys) {
                line(to, y, text, Style::new());
            }
            return room;
        };
        let columns = Columns::of(table, width);
        let shown = columns.shown(width, self.sorted_by);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        for (at, y) in (0..columns.heads).zip(&mut ys) {
            let head = |column: usize| table.heads().get(column).map(|h| columns.head(h, at));
            let marked = self.sorted_by.filter(|_| is_chosen);
            columns.draw(to, y, &shown, table, &head, (bold, marked));
        }
        for (row, y) in table.rows().iter().skip(self.top).zip(ys) {
            let cell = |column: usize| row.get(column).cloned();
            columns.draw(to, y, &shown, table, &cell, (Style::new(), None));
        }
        room
    }
}

/// How a table's columns are laid out in a window.
struct Columns {
    widths: Vec<usize>,
    gap: usize,
    /// Lines of the headline: in two a head's words stand below each other.
    heads: usize,
}

impl Columns {
    /// As a pipe has it, if that has room; else as narrow as the cells allow, with heads in two
    /// lines that are cut where they are still longer.
    fn of(table: &Table, width: usize) -> Self {
        let length = |text: &String| text.chars().count();
        let cells = |at: usize| {
            let cells = table.rows().iter().filter_map(|row| row.get(at));
            cells.map(length).max().unwrap_or(0)
        };
        let heads = table.heads().iter().enumerate();
        let plain: Vec<usize> = heads
            .map(|(at, head)| cells(at).max(length(head)))
            .collect();
        let roomy = Self {
            widths: plain,
            gap: 2,
            heads: 1,
        };
        if roomy.whole() <= width {
            return roomy;
        }
        let folded = table.heads().iter().enumerate().map(|(at, head)| {
            let (above, below) = halves(head);
            cells(at).max(length(&above)).max(length(&below))
        });
        let folded = Self {
            widths: folded.collect(),
            gap: 1,
            heads: 2,
        };
        if folded.whole() <= width {
            return folded;
        }
        let narrow = folded.widths.iter().enumerate();
        let narrow = Self {
            widths: narrow
                .map(|(at, own)| (*own).min(cells(at).max(SHORTEST)))
                .collect(),
            gap: 1,
            heads: 2,
        };
        // Where not even that has room heads need not be cut.
        if narrow.whole() <= width {
            narrow
        } else {
            folded
        }
    }

    fn whole(&self) -> usize {
        let gaps = self.gap.saturating_mul(self.widths.len().saturating_sub(1));
        self.widths.iter().sum::<usize>().saturating_add(gaps)
    }

    /// The columns that have room: the first, which names the row, and as many others, the one at
    /// `wanted` among them.
    fn shown(&self, width: usize, wanted: Option<usize>) -> Vec<usize> {
        let own = |at: usize| self.widths.get(at).copied().unwrap_or(0);
        let from = |first: usize| {
            let mut left = width.saturating_sub(own(0));
            let mut shown = vec![0];
            for at in first..self.widths.len() {
                let needed = own(at).saturating_add(self.gap);
                let Some(rest) = left.checked_sub(needed) else {
                    break;
                };
                left = rest;
                shown.push(at);
            }
            shown
        };
        let wanted = wanted.unwrap_or(0);
        let mut all = (1..self.widths.len()).map(from);
        all.find(|shown| shown.contains(&wanted))
            .unwrap_or_else(|| from(wanted.max(1)))
    }

    /// Line `at` of a head.
    fn head(&self, head: &str, at: usize) -> String {
        let (above, below) = halves(head);
        match (self.heads, at) {
            (1, _) => head.to_string(),
            (_, 0) => above,
            _ => below,
        }
    }

    /// Draws a row's cells; the one of the column that `marked` names in reverse.
    fn draw(
        &self,
        to: &mut Buffer,
        y: u16,
        shown: &[usize],
        table: &Table,
        cell: &dyn Fn(usize) -> Option<String>,
        (style, marked): (Style, Option<usize>),
    ) {
        let mut x = 0usize;
        for at in shown {
            let width = self.widths.get(*at).copied().unwrap_or(0);
            let text: String = cell(*at).unwrap_or_default().chars().take(width).collect();
            let text = match table.is_numbers(*at) {
                true => format!("{text:>width$}"),
                false => format!("{text:<width$}"),
            };
            let style = match marked == Some(*at) {
                true => style.add_modifier(Modifier::REVERSED),
                false => style,
            };
            let left = to
                .area
                .width
                .saturating_sub(x.try_into().unwrap_or(u16::MAX));
            if left > 0 {
                let x = x.try_into().unwrap_or(u16::MAX);
                to.set_stringn(x, y, text, usize::from(left), style);
            }
            x = x.saturating_add(width).saturating_add(self.gap);
        }
    }
}

/// A head in two lines, the lower one never empty: `READ MB/s`, `IRQS/IO`.
fn halves(head: &str) -> (String, String) {
    match (head.split_once(' '), head.find('/')) {
        (Some((above, below)), _) => (above.into(), below.into()),
        (None, Some(at)) => {
            let (above, below) = head.split_at(at);
            (above.into(), below.into())
        }
        (None, None) => (String::new(), head.into()),
    }
}

/// Writes `text` from the left edge on, all of the line in `style`.
fn line(to: &mut Buffer, y: u16, text: &str, style: Style) {
    let width = to.area.width;
    if y < to.area.height {
        to.set_style(Rect::new(0, y, width, 1), style);
        to.set_stringn(0, y, text, usize::from(width), style);
    }
}

#[cfg(test)]
#[path = "view/tests.rs"]
mod tests;
