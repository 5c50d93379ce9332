// SPDX-License-Identifier: GPL-2.0-only
//! Cumulative distributions over a logarithmic axis.

use super::axis::Axis;
use super::svg::{self, WIDTH};
use super::{number, tick_label};
use crate::repro::draw::Curve;
use corun_events::export::html::escape;
use std::fmt::{self, Write as _};

const LEFT: f64 = 72.0;
const TOP: f64 = 12.0;
const PLOT: f64 = 260.0;

pub(super) fn write(out: &mut String, title: &str, curves: &[Curve]) -> fmt::Result {
    let bottom = TOP + PLOT;
    let legend = bottom + 44.0;
    let height = legend + curves.len().div_ceil(4) as f64 * 20.0 + 4.0;
    let values = || curves.iter().flat_map(|c| &c.points).map(|p| p.0);
    let largest = values().fold(1.0, f64::max);
    let smallest = values().filter(|v| *v > 0.0).fold(largest, f64::min);
    let x_axis = Axis::log(smallest, largest, LEFT, WIDTH - 12.0);
    let y_axis = Axis::linear(1.0, bottom, TOP);
    svg::figure(out, title, &describe(curves), height, |out| {
        for share in y_axis.ticks() {
            let y = y_axis.at(share);
            svg::line(out, "grid", (LEFT, y), (WIDTH - 12.0, y))?;
            let label = format!("{:.0} %", share * 100.0);
            svg::text(out, LEFT - 6.0, y + 4.0, "end", &label)?;
        }
        for value in x_axis.ticks() {
            let x = x_axis.at(value);
            svg::line(out, "grid", (x, TOP), (x, bottom))?;
            let anchor = if x > WIDTH - 40.0 { "end" } else { "middle" };
            svg::text(out, x, bottom + 16.0, anchor, &tick_label(value))?;
        }
        svg::text(out, WIDTH / 2.0, bottom + 34.0, "middle", "microseconds")?;
        for (i, curve) in curves.iter().enumerate() {
            draw(out, curve, svg::colour(i), &x_axis, &y_axis)?;
        }
        let names: Vec<String> = curves.iter().map(|c| c.label.clone()).collect();
        svg::legend(out, legend, &names).map(drop)
    })
}

fn draw(out: &mut String, curve: &Curve, colour: usize, x: &Axis, y: &Axis) -> fmt::Result {
    let mut path = String::new();
    let mut before = 0.0;
    for (value, share) in &curve.points {
        let at = x.at(*value);
        let start = if path.is_empty() { 'M' } else { 'L' };
        write!(
            path,
            "{start}{at:.1} {:.1}L{at:.1} {:.1}",
            y.at(before),
            y.at(*share)
        )?;
        before = *share;
    }
    writeln!(
        out,
        "<path class=\"curve s{colour}\" d=\"{path}\"><title>{}</title></path>",
        escape(&curve.label)
    )
}

fn describe(curves: &[Curve]) -> String {
    let at = |c: &Curve, share: f64| {
        let point = c.points.iter().find(|p| p.1 >= share);
        point.map_or_else(|| "none".to_owned(), |p| number(p.0))
    };
    let one = |c: &Curve| {
        let (p50, p90) = (at(c, 0.5), at(c, 0.9));
        format!("{}: median {p50} us, 90th percentile {p90} us", c.label)
    };
    curves.iter().map(one).collect::<Vec<_>>().join("; ")
}
