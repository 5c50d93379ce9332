// SPDX-License-Identifier: GPL-2.0-only
//! The screen: what is drawn is worked out from an interval and the settings alone.

mod details;
mod text;

pub(super) use text::{head, nothing};

use super::column::Column;
use super::state::State;
use super::view::{self, Row};
use corun_events::account::Snapshot;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph};
use std::fmt::Write as _;

/// Smallest screen that holds the table.
const SMALLEST: (u16, u16) = (80, 12);
/// Lines of the details, where the screen is high enough.
const DETAILS: u16 = 10;
/// A share of ready time that deserves attention, and one that is a problem. Per cent.
const READY_WARN: f64 = 10.0;
const READY_BAD: f64 = 30.0;

/// Draws the screen. `interval` is `None` until the first one is over.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    interval: Option<&Snapshot>,
    rows: &[Row],
    state: &State,
) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!(
            "corun top needs {} x {}; this is {} x {}",
            SMALLEST.0, SMALLEST.1, area.width, area.height
        );
        return frame.render_widget(Paragraph::new(text), area);
    }
    let Some(interval) = interval else {
        return frame.render_widget(Paragraph::new("corun top: the first interval runs"), area);
    };
    let head_lines = head(interval);
    let height = u16::try_from(head_lines.len()).unwrap_or(4);
    let areas = areas(area, height);
    frame.render_widget(Paragraph::new(lines(&head_lines)), areas.head);
    table(frame, areas.table, interval, rows, state);
    if let Some(row) = rows.get(state.position(rows)) {
        let text = details::lines(row, usize::from(areas.details.width));
        frame.render_widget(Paragraph::new(lines(&text)), areas.details);
    }
    frame.render_widget(foot(state), areas.foot);
    if state.help {
        help(frame, area);
    }
}

/// Rows of the table that a screen of `area` shows under a head of `head` lines.
pub(super) fn page(area: Rect, head: usize) -> usize {
    let head = u16::try_from(head).unwrap_or(u16::MAX);
    usize::from(areas(area, head).table.height.saturating_sub(1))
}

struct Areas {
    head: Rect,
    table: Rect,
    details: Rect,
    foot: Rect,
}

fn areas(area: Rect, head: u16) -> Areas {
    let details = if area.height >= 24 { DETAILS } else { 0 };
    let [head, table, details, foot] = Layout::vertical([
        Constraint::Length(head),
        Constraint::Min(2),
        Constraint::Length(details),
        Constraint::Length(1),
    ])
    .areas(area);
    Areas {
        head,
        table,
        details,
        foot,
    }
}

fn lines(all: &[String]) -> Text<'static> {
    all.iter().map(|l| Line::from(l.clone())).collect()
}

fn table(frame: &mut Frame<'_>, area: Rect, interval: &Snapshot, rows: &[Row], state: &State) {
    let width = usize::from(area.width);
    let columns = Column::fitting(width);
    let page = usize::from(area.height.saturating_sub(1));
    let selected = state.position(rows);
    // The selected row is on the screen, and the last page is full.
    let top = (selected + 1).saturating_sub(page);
    let headings = view::line(&columns, None, width);
    let reverse = Style::new().add_modifier(Modifier::REVERSED);
    let mut text = vec![Line::styled(format!("{headings:<width$}"), reverse)];
    for (at, row) in rows.iter().enumerate().skip(top).take(page) {
        let line = view::line(&columns, Some(row), width);
        let mut style = style(row);
        if at == selected {
            style = style.add_modifier(Modifier::REVERSED);
        }
        text.push(Line::styled(format!("{line:<width$}"), style));
    }
    if rows.is_empty() {
        text.push(Line::from(nothing(interval, &state.choice)));
    }
    frame.render_widget(Paragraph::new(text), area);
}

/// VMs stand out, and those that wait much even more.
fn style(row: &Row) -> Style {
    let ready = row
        .figures
        .percent(row.figures.account.times.ready.total_ns());
    let style = match ready {
        r if r >= READY_BAD => Style::new().fg(Color::Red),
        r if r >= READY_WARN => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    };
    if row.key.vcpu.is_none() {
        style.add_modifier(Modifier::BOLD)
    } else {
        style
    }
}

fn foot(state: &State) -> Line<'static> {
    if state.typing.is_some() {
        return Line::from(format!(
            "filter: {}_   Enter: keep  Esc: as before",
            state.choice.filter
        ));
    }
    let mut text = format!(
        "sorted by {}{}",
        state.choice.sort.title(),
        if state.choice.reversed {
            " (reversed)"
        } else {
            ""
        }
    );
    if !state.choice.filter.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(text, "  filter {:?}", state.choice.filter);
    }
    if state.paused {
        text.push_str("  PAUSED");
    }
    text.push_str("   h help  Enter vCPUs  <> sort  / filter  p pause  q quit");
    Line::from(text)
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let text = text::HELP;
    let height = u16::try_from(text.lines().count()).unwrap_or(u16::MAX) + 2;
    let popup = Rect {
        x: area.width.saturating_sub(78) / 2,
        y: area.height.saturating_sub(height) / 2,
        width: area.width.min(78),
        height: area.height.min(height),
    };
    let block = Block::bordered().title(" help: any key closes it ");
    frame.render_widget(Clear, popup);
    frame.render_widget(Paragraph::new(text).block(block), popup);
}

#[cfg(test)]
mod tests;
