// SPDX-License-Identifier: GPL-2.0-only
//! Groups of bars: published (pale, dashed) beside simulated (full, with the
//! confidence interval as a whisker).

use super::axis::Axis;
use super::svg::{self, WIDTH};
use super::{number, tick_label};
use crate::repro::draw::{Group, Pair};
use std::fmt;

const LEFT: f64 = 72.0;
const TOP: f64 = 28.0;
const PLOT: f64 = 220.0;

pub(super) fn write(
    out: &mut String,
    title: &str,
    unit: &str,
    log: bool,
    series: &[String],
    groups: &[Group],
) -> fmt::Result {
    let bottom = TOP + PLOT;
    let legend = bottom + 36.0;
    let height = legend + series.len().div_ceil(4) as f64 * 20.0 + 22.0;
    let axis = axis(groups, log, bottom);
    svg::figure(out, title, &describe(series, groups), height, |out| {
        svg::text(out, 4.0, 14.0, "start", unit)?;
        for tick in axis.ticks() {
            let y = axis.at(tick);
            svg::line(out, "grid", (LEFT, y), (WIDTH, y))?;
            svg::text(out, LEFT - 6.0, y + 4.0, "end", &tick_label(tick))?;
        }
        let width = (WIDTH - LEFT) / groups.len().max(1) as f64;
        let published = groups
            .iter()
            .flat_map(|g| &g.bars)
            .any(|p| p.published.is_some());
        for (i, group) in groups.iter().enumerate() {
            let x = LEFT + width * i as f64;
            draw_group(out, &axis, bottom, (x, width), (group, series, published))?;
        }
        let used = svg::legend(out, legend, series)?;
        let key = "pale and dashed: published; full: simulated, with its 95 % confidence interval";
        svg::text(out, LEFT, legend + used + 12.0, "start", key)
    })
}

fn draw_group(
    out: &mut String,
    axis: &Axis,
    bottom: f64,
    (left, width): (f64, f64),
    (group, series, published): (&Group, &[String], bool),
) -> fmt::Result {
    // Where nothing was published, the bars need no second place.
    let places = if published { 2.0 } else { 1.0 };
    let slots = group.bars.len().max(1) as f64 * places;
    let bar = (width * 0.84 / slots).min(28.0);
    let start = left + (width - bar * slots) / 2.0;
    for (j, pair) in group.bars.iter().enumerate() {
        let x = start + bar * places * j as f64;
        let colour = svg::colour(j);
        let name = series.get(j).map_or("", String::as_str);
        if let Some(value) = pair.published {
            let y = axis.at(value);
            let tip = format!("{}, {name}: published {}", group.label, number(value));
            let class = format!("published f{colour} s{colour}");
            svg::rect(out, &class, (x, y), (bar - 1.0, bottom - y), &tip)?;
        }
        draw_simulated(
            out,
            axis,
            bottom,
            (x + bar * (places - 1.0), bar),
            (pair, group, name, colour),
        )?;
    }
    let y = bottom + 16.0;
    svg::text_within(out, left + width / 2.0, y, width, &group.label)
}

fn draw_simulated(
    out: &mut String,
    axis: &Axis,
    bottom: f64,
    (x, bar): (f64, f64),
    (pair, group, name, colour): (&Pair, &Group, &str, usize),
) -> fmt::Result {
    let Some(i) = pair.simulated else {
        return svg::text(out, x + bar / 2.0, bottom - 4.0, "middle", "–");
    };
    let y = axis.at(i.mean);
    let tip = format!("{}, {name}: simulated {}", group.label, number(i.mean));
    let class = format!("f{colour}");
    svg::rect(out, &class, (x, y), (bar - 1.0, bottom - y), &tip)?;
    if let Some(half) = i.half {
        let middle = x + (bar - 1.0) / 2.0;
        let (high, low) = (axis.at(i.mean + half), axis.at((i.mean - half).max(0.0)));
        svg::line(out, "whisker", (middle, high), (middle, low))?;
        for y in [high, low] {
            svg::line(out, "whisker", (middle - 3.0, y), (middle + 3.0, y))?;
        }
    }
    Ok(())
}

fn values(groups: &[Group]) -> impl Iterator<Item = f64> + '_ {
    let pairs = groups.iter().flat_map(|g| &g.bars);
    pairs.flat_map(|p| {
        [p.published, p.simulated.map(|i| i.mean)]
            .into_iter()
            .flatten()
    })
}

fn axis(groups: &[Group], log: bool, bottom: f64) -> Axis {
    let largest = values(groups).fold(0.0, f64::max);
    let smallest = values(groups).filter(|v| *v > 0.0).fold(largest, f64::min);
    if log && largest > 0.0 {
        // Bars that are as low as the axis would not be seen.
        Axis::log(smallest / 2.0, largest, bottom, TOP)
    } else {
        Axis::linear(if largest > 0.0 { largest } else { 1.0 }, bottom, TOP)
    }
}

fn describe(series: &[String], groups: &[Group]) -> String {
    let mut parts = Vec::new();
    for group in groups {
        for (pair, name) in group.bars.iter().zip(series) {
            let value = |v: Option<f64>| v.map_or_else(|| "none".to_owned(), number);
            parts.push(format!(
                "{} {name}: published {}, simulated {}",
                group.label,
                value(pair.published),
                value(pair.simulated.map(|i| i.mean))
            ));
        }
    }
    // Long ones are in the table too.
    parts.truncate(40);
    parts.join("; ")
}
