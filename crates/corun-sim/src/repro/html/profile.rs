// SPDX-License-Identifier: GPL-2.0-only
//! Stacked horizontal bars of shares.

use super::svg::{self, WIDTH};
use crate::repro::draw::Stack;
use std::fmt;

const LEFT: f64 = 190.0;
const ROW: f64 = 34.0;

pub(super) fn write(
    out: &mut String,
    title: &str,
    parts: &[String],
    bars: &[Stack],
) -> fmt::Result {
    let bottom = 10.0 + ROW * bars.len() as f64;
    let height = bottom + 60.0;
    svg::figure(out, title, &describe(parts, bars), height, |out| {
        for (i, bar) in bars.iter().enumerate() {
            let y = 10.0 + ROW * i as f64;
            svg::text(out, LEFT - 8.0, y + 16.0, "end", &bar.label)?;
            if bar.shares.is_empty() {
                svg::text(out, LEFT, y + 16.0, "start", "nothing was counted")?;
            }
            let mut x = LEFT;
            for (part, share) in bar.shares.iter().enumerate() {
                let width = share * (WIDTH - LEFT - 10.0);
                let name = parts.get(part).map_or("", String::as_str);
                let tip = format!("{}, {name}: {:.1} %", bar.label, share * 100.0);
                let class = format!("f{}", svg::colour(part));
                svg::rect(out, &class, (x, y), (width, ROW - 10.0), &tip)?;
                x += width;
            }
        }
        for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
            let x = LEFT + percent / 100.0 * (WIDTH - LEFT - 10.0);
            svg::line(out, "grid", (x, 4.0), (x, bottom))?;
            let anchor = if percent > 99.0 { "end" } else { "middle" };
            svg::text(out, x, bottom + 16.0, anchor, &format!("{percent} %"))?;
        }
        svg::legend(out, bottom + 30.0, parts).map(drop)
    })
}

fn describe(parts: &[String], bars: &[Stack]) -> String {
    let bar = |b: &Stack| {
        let shares = b.shares.iter().zip(parts);
        let shares: Vec<String> = shares
            .map(|(share, part)| format!("{part} {:.0} %", share * 100.0))
            .collect();
        format!("{}: {}", b.label, shares.join(", "))
    };
    bars.iter().map(bar).collect::<Vec<_>>().join("; ")
}
