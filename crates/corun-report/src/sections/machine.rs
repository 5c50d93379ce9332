// SPDX-License-Identifier: GPL-2.0-only
//! How quiet the machine was while the lab measured.

use crate::latency::round;
use crate::model::{Block, Chart, Plot, Section, Series};
use crate::outcome::{Outcome, Window};

/// What was taken away from each window.
pub(super) fn section(outcome: &Outcome) -> Option<Section> {
    let windows = &outcome.windows;
    let percent = |of: fn(&Window) -> f64| -> Vec<Option<f64>> {
        windows.iter().map(|w| Some(round(of(w)) * 100.0)).collect()
    };
    let refused = windows.iter().map(|w| {
        let taken = round(w.steal.max(w.foreign)) * 100.0;
        (!w.accepted).then_some(taken)
    });
    let series = |name: &str, values| Series {
        name: name.to_owned(),
        values,
    };
    let mut all = vec![
        series(
            "stolen by the machine's own hypervisor",
            percent(|w| w.steal),
        ),
        series("used by its other programs", percent(|w| w.foreign)),
    ];
    if windows.iter().any(|w| !w.accepted) {
        all.push(series("window refused", refused.collect()));
    }
    let text = "Share of each window's CPU time that the machine under the lab lost. Windows with \
                too much of it are measured again.";
    let mut section = Section::new("machine", "How quiet the machine was", text);
    section.blocks.push(Block::Chart(Chart {
        id: "machine-chart".to_owned(),
        title: "Taken from each window".to_owned(),
        text: String::new(),
        plot: Plot::Lines {
            x_label: "window, in order".to_owned(),
            y_label: "% of its CPU time".to_owned(),
            x: (1..=windows.len()).map(|n| n as f64).collect(),
            series: all,
        },
    }));
    (!windows.is_empty()).then_some(section)
}
