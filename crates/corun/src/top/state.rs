// SPDX-License-Identifier: GPL-2.0-only
//! What the screen is set to, and what keys do to it.

use super::column::Column;
use super::view::{Choice, Key, Row};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The screen's settings.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) choice: Choice,
    /// The row that the details are of; one that is gone stands for the first.
    pub(super) selected: Option<Key>,
    pub(super) paused: bool,
    pub(super) help: bool,
    /// The filter is being typed; what it was before.
    pub(super) typing: Option<String>,
}

/// What a key asks for beyond the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    Quit,
}

impl State {
    pub(super) fn new(choice: Choice) -> Self {
        Self {
            choice,
            selected: None,
            paused: false,
            help: false,
            typing: None,
        }
    }

    /// Index of the selected row of `rows`.
    pub(super) fn position(&self, rows: &[Row]) -> usize {
        self.selected
            .and_then(|key| rows.iter().position(|r| r.key == key))
            .unwrap_or(0)
    }

    /// A key was pressed while `rows` were shown, `page` of them at once.
    pub(super) fn press(&mut self, key: KeyEvent, rows: &[Row], page: usize) -> Asked {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Asked::Quit;
        }
        if self.typing.is_some() {
            self.type_filter(key.code);
            return Asked::Nothing;
        }
        if self.help {
            self.help = false;
            return Asked::Nothing;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Asked::Quit,
            KeyCode::Char('h' | '?') => self.help = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typing = Some(self.choice.filter.clone()),
            KeyCode::Char('r') => self.choice.reversed = !self.choice.reversed,
            KeyCode::Char('<') | KeyCode::Left => self.sort_by(-1),
            KeyCode::Char('>' | 's') | KeyCode::Right => self.sort_by(1),
            KeyCode::Char('e') => self.expand_all(),
            KeyCode::Enter => self.expand(rows),
            code => self.move_to(code, rows, page),
        }
        Asked::Nothing
    }

    fn sort_by(&mut self, by: isize) {
        self.choice.sort = self.choice.sort.moved(by);
        // What is the same as another column is no order of its own.
        if self.choice.sort == Column::Cause {
            self.choice.sort = self.choice.sort.moved(by);
        }
    }

    fn expand_all(&mut self) {
        self.choice.all_expanded = !self.choice.all_expanded;
        self.choice.expanded.clear();
    }

    /// Shows the vCPUs of the selected VM, or hides them.
    fn expand(&mut self, rows: &[Row]) {
        let Some(row) = rows.get(self.position(rows)) else {
            return;
        };
        let vm = row.key.vm;
        if !self.choice.expanded.remove(&vm) {
            self.choice.expanded.insert(vm);
        }
        self.selected = Some(Key { vm, vcpu: None });
    }

    fn move_to(&mut self, code: KeyCode, rows: &[Row], page: usize) {
        let at = self.position(rows);
        let last = rows.len().saturating_sub(1);
        let to = match code {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => at + 1,
            KeyCode::PageUp => at.saturating_sub(page),
            KeyCode::PageDown => at + page,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => return,
        };
        self.selected = rows.get(to.min(last)).map(|r| r.key);
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = None,
            KeyCode::Esc => self.choice.filter = self.typing.take().unwrap_or_default(),
            KeyCode::Backspace => {
                self.choice.filter.pop();
            }
            KeyCode::Char(c) => self.choice.filter.push(c),
            _ => {}
        }
    }
}
