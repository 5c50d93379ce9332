// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use crate::top::synthetic;
use crate::top::view::Choice;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::path::Path;

fn state() -> State {
    State::new(Choice::new(Column::Ready, "", false))
}

/// The screen as text, without white space at the ends of lines.
fn screen(size: (u16, u16), interval: Option<&Snapshot>, state: &State) -> String {
    let rows = interval.map_or_else(Vec::new, |i| state.choice.rows(i));
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal");
    terminal
        .draw(|frame| draw(frame, interval, &rows, state))
        .expect("draws");
    let buffer = terminal.backend().buffer();
    let lines = (0..size.1).map(|y| {
        let cells = (0..size.0).filter_map(|x| buffer.cell((x, y)));
        let line: String = cells.map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// Compares with a file; `CORUN_BLESS=1` writes it.
fn golden(name: &str, screen: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top/render/golden");
    let path = folder.join(name);
    if std::env::var_os("CORUN_BLESS").is_some() {
        std::fs::write(&path, screen).expect("writes");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(screen, expected, "{name} is:\n{screen}");
}

#[test]
fn a_narrow_screen() {
    golden(
        "80x24.txt",
        &screen((80, 24), Some(&synthetic::interval(3, 4)), &state()),
    );
}

#[test]
fn a_wide_screen_with_vcpus() {
    let mut state = state();
    state.choice.expanded.insert(1);
    let mut interval = synthetic::interval(5, 6);
    interval.host.scheduler = "corun_0.1.0".to_owned();
    interval.host.corun = [
        ("urgent_slices".to_owned(), 120),
        ("deferrals".to_owned(), 4),
    ]
    .into();
    interval.drops.vcpus = 2;
    interval.missing = vec!["kvm_exit: no exits by reason".to_owned()];
    golden("160x50.txt", &screen((160, 50), Some(&interval), &state));
}

#[test]
fn help_is_over_the_table() {
    let mut state = state();
    state.help = true;
    golden(
        "help.txt",
        &screen((80, 24), Some(&synthetic::interval(3, 4)), &state),
    );
}

#[test]
fn no_vm_no_match_no_interval_and_no_room_are_told() {
    let empty = synthetic::interval(0, 0);
    assert!(screen((80, 24), Some(&empty), &state()).contains("No VM has run since"));
    let mut filtered = state();
    filtered.choice.filter = "db".to_owned();
    let some = synthetic::interval(3, 1);
    let text = screen((80, 24), Some(&some), &filtered);
    assert!(text.contains("None of 3 VMs has \"db\""), "{text}");
    assert!(text.contains("filter \"db\""), "{text}");
    assert!(screen((80, 24), None, &state()).contains("first interval"));
    assert!(screen((70, 24), Some(&some), &state()).contains("needs 80 x 12; this is 70 x 24"));
}

#[test]
fn any_size_can_be_drawn() {
    let interval = synthetic::interval(3, 4);
    for width in [1, 20, 79, 80, 81, 200] {
        for height in [1, 5, 12, 19, 20, 60] {
            let text = screen((width, height), Some(&interval), &state());
            assert_eq!(text.lines().count(), usize::from(height));
        }
    }
}

#[test]
fn the_selected_of_1000_vcpus_is_on_the_screen() {
    for (vms, vcpus) in [(125, 8), (500, 2)] {
        let interval = synthetic::interval(vms, vcpus);
        let mut state = state();
        state.choice.all_expanded = true;
        let rows = state.choice.rows(&interval);
        assert_eq!(rows.len(), 1000 + usize::try_from(vms).unwrap_or(0));
        state.selected = rows.last().map(|r| r.key);
        let text = screen((80, 24), Some(&interval), &state);
        let (table, details) = text.split_once("\n-- ").expect("details");
        let last = format!("vCPU {}", vcpus - 1);
        assert!(
            table.lines().last().is_some_and(|l| l.contains(&last)),
            "{text}"
        );
        assert!(details.starts_with(&format!("{last} ")), "{text}");
    }
}
