// SPDX-License-Identifier: GPL-2.0-only
//! The live screen: reads, draws, listens to keys; leaves the terminal as it was.

use super::state::{Asked, State};
use super::view::{Choice, Row};
use super::{Args, Intervals, POLL, render};
use anyhow::{Context, Result};
use corun_events::account::Snapshot;
use corun_host::accounts::Accounts;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::Rect;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Gives the terminal back, whatever ends the loop.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

pub(super) fn run(args: &Args, accounts: &mut Accounts, stop: &AtomicBool) -> Result<()> {
    let mut terminal = ratatui::try_init().context("taking over the terminal (try --batch)")?;
    let _restore = Restore;
    Screen {
        state: State::new(Choice::new(args.sort, &args.filter, args.vcpus)),
        interval: None,
        rows: Vec::new(),
        left: args.iterations,
    }
    .run(&mut terminal, args, accounts, stop)
}

struct Screen {
    state: State,
    interval: Option<Snapshot>,
    rows: Vec<Row>,
    /// Updates until the end.
    left: Option<u64>,
}

impl Screen {
    fn run(
        mut self,
        terminal: &mut DefaultTerminal,
        args: &Args,
        accounts: &mut Accounts,
        stop: &AtomicBool,
    ) -> Result<()> {
        let mut intervals = Intervals::begin(accounts)?;
        let mut due = Instant::now() + args.interval;
        let mut changed = true;
        while !stop.load(Ordering::Relaxed) && self.left != Some(0) {
            if Instant::now() >= due {
                due += args.interval;
                let interval = intervals.next(accounts)?;
                if !self.state.paused {
                    self.interval = Some(interval);
                    self.arrange();
                    self.left = self.left.map(|n| n - 1);
                    changed = true;
                }
            }
            if changed {
                terminal
                    .draw(|frame| {
                        render::draw(frame, self.interval.as_ref(), &self.rows, &self.state);
                    })
                    .context("drawing")?;
            }
            let wait = due.saturating_duration_since(Instant::now()).min(POLL);
            changed = event::poll(wait).context("waiting for keys")?;
            if changed && self.listen(terminal)? == Asked::Quit {
                break;
            }
        }
        Ok(())
    }

    /// Takes one event; a resize only asks to draw again.
    fn listen(&mut self, terminal: &DefaultTerminal) -> Result<Asked> {
        let Event::Key(key) = event::read().context("reading keys")? else {
            return Ok(Asked::Nothing);
        };
        if key.kind == KeyEventKind::Release {
            return Ok(Asked::Nothing);
        }
        let size = terminal.size().context("asking for the terminal's size")?;
        let head = self.interval.as_ref().map_or(0, |i| render::head(i).len());
        let page = render::page(Rect::from(((0, 0).into(), size)), head);
        let asked = self.state.press(key, &self.rows, page);
        self.arrange();
        Ok(asked)
    }

    fn arrange(&mut self) {
        if let Some(interval) = &self.interval {
            self.rows = self.state.choice.rows(interval);
        }
    }
}
