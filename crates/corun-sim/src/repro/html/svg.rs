// SPDX-License-Identifier: GPL-2.0-only
//! The frame that all figures have.

use corun_events::export::html::escape;
use std::fmt::{self, Write as _};

/// Width of every drawing.
pub(super) const WIDTH: f64 = 900.0;
/// How many colours there are.
const COLOURS: usize = 6;

/// The class number of the colour of a series.
pub(super) fn colour(series: usize) -> usize {
    series % COLOURS
}

/// A figure with its caption. `description` is read to those who do not see it.
pub(super) fn figure(
    out: &mut String,
    title: &str,
    description: &str,
    height: f64,
    draw: impl FnOnce(&mut String) -> fmt::Result,
) -> fmt::Result {
    writeln!(
        out,
        "<figure>\n<figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"{}: {}\">",
        escape(title),
        escape(title),
        escape(description)
    )?;
    draw(out)?;
    writeln!(out, "</svg>\n</figure>")
}

/// Text at a place; `anchor` is start, middle or end.
pub(super) fn text(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) -> fmt::Result {
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(text)
    )
}

/// Centred text that is set smaller if `width` asks for it.
pub(super) fn text_within(out: &mut String, x: f64, y: f64, width: f64, text: &str) -> fmt::Result {
    // About 6.4 pixels a letter at the usual size.
    let fits = width / (text.chars().count().max(1) as f64 * 6.4 + 6.0);
    let size = (12.0 * fits).clamp(8.0, 12.0);
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" style=\"font-size:{size:.1}px\">{}</text>",
        escape(text)
    )
}

/// A line.
pub(super) fn line(
    out: &mut String,
    class: &str,
    (x1, y1): (f64, f64),
    (x2, y2): (f64, f64),
) -> fmt::Result {
    writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    )
}

/// A filled rectangle with a tooltip.
pub(super) fn rect(
    out: &mut String,
    class: &str,
    (x, y): (f64, f64),
    (width, height): (f64, f64),
    tip: &str,
) -> fmt::Result {
    writeln!(
        out,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\">\
         <title>{}</title></rect>",
        height.max(0.0),
        escape(tip)
    )
}

/// Names of colours in rows of four; returns the height that it took.
pub(super) fn legend(out: &mut String, top: f64, names: &[String]) -> Result<f64, fmt::Error> {
    for (i, name) in names.iter().enumerate() {
        let (column, row) = ((i % 4) as f64, (i / 4) as f64);
        let (x, y) = (72.0 + column * 203.0, top + row * 20.0);
        let class = format!("f{}", colour(i));
        rect(out, &class, (x, y), (12.0, 12.0), name)?;
        text(out, x + 18.0, y + 11.0, "start", name)?;
    }
    Ok(names.len().div_ceil(4) as f64 * 20.0)
}
