// SPDX-License-Identifier: GPL-2.0-only
//! The report as one HTML page that needs nothing else: no script, no font, no
//! request. Light and dark, and printable.

mod axis;
mod bars;
mod cdf;
mod profile;
mod svg;
mod table;

use super::draw::Chart;
use super::report::{Report, Score, Summary, TableReport};
use corun_events::export::html::escape;
use std::fmt::{self, Write as _};

const STYLE: &str = include_str!("style.css");

/// The page.
pub fn page(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_page(&mut out, report);
    out
}

fn write_page(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>corun: published and simulated</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>Published and simulated</h1>"
    )?;
    writeln!(
        out,
        "<p>Every table of the experiments, re-created by <code>corun sim repro</code> with {} \
         seed{} a run. A value passes within a factor of 1.25 where parameters were fitted to it \
         (<i>fit</i>), within 1.40 where nothing was (<i>predicted</i>). ± is the 95 % confidence \
         interval over seeds. A figure that was not counted is a failure.</p>",
        report.seeds,
        if report.seeds == 1 { "" } else { "s" }
    )?;
    write_summary(out, &report.summary)?;
    writeln!(
        out,
        "<nav aria-label=\"Tables\"><table><thead><tr><th scope=\"col\">Table</th><th scope=\"col\">Directions</th><th scope=\"col\">Ratio cells</th><th scope=\"col\">Other cells</th></tr></thead><tbody>"
    )?;
    for table in &report.tables {
        let s = &table.summary;
        writeln!(
            out,
            "<tr><th scope=\"row\"><a href=\"#{id}\">{id}</a> {}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&table.title),
            score(s.directions),
            score(s.ratios()),
            score(s.others_fit.plus(s.others_predicted)),
            id = escape(&table.id),
        )?;
    }
    writeln!(out, "</tbody></table></nav></header>\n<main>")?;
    for table in &report.tables {
        write_table(out, table)?;
    }
    writeln!(out, "</main>\n</body>\n</html>")
}

fn write_summary(out: &mut String, s: &Summary) -> fmt::Result {
    writeln!(out, "<dl class=\"scores\">")?;
    for (name, value) in [
        ("Directions right", s.directions),
        ("Ratio cells within tolerance", s.ratios()),
        ("of these, fit", s.ratios_fit),
        ("of these, predicted", s.ratios_predicted),
        ("Other cells, fit", s.others_fit),
        ("Other cells, predicted", s.others_predicted),
    ] {
        writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", score(value))?;
    }
    let reached = if s.reached() {
        "reached"
    } else {
        "not reached"
    };
    writeln!(
        out,
        "<div><dt>Without a simulated value</dt><dd>{}</dd></div></dl>\n\
         <p>The aim, all directions right and nine of ten ratio cells within tolerance, is \
         <strong>{reached}</strong>.</p>",
        s.missing
    )
}

fn score(s: Score) -> String {
    if s.of == 0 {
        return "–".to_owned();
    }
    format!("{} of {}", s.right, s.of)
}

fn write_table(out: &mut String, t: &TableReport) -> fmt::Result {
    let id = escape(&t.id);
    writeln!(
        out,
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{} <small>{id}</small></h2>\n\
         <p class=\"source\">{}</p>\n<p>{}</p>\n<p><b>Fitted:</b> {}.</p>",
        escape(&t.title),
        escape(&t.source),
        escape(&t.says),
        escape(t.fitted.trim_end_matches('.')),
    )?;
    if !t.notes.is_empty() {
        writeln!(out, "<ul class=\"notes\">")?;
        for note in &t.notes {
            writeln!(out, "<li>{}</li>", escape(note))?;
        }
        writeln!(out, "</ul>")?;
    }
    table::write_cells(out, &t.cells)?;
    table::write_claims(out, &t.claims)?;
    for chart in &t.charts {
        match chart {
            Chart::Bars {
                title,
                unit,
                log,
                series,
                groups,
            } => bars::write(out, title, unit, *log, series, groups)?,
            Chart::Profile { title, parts, bars } => profile::write(out, title, parts, bars)?,
            Chart::Cdf { title, curves } => cdf::write(out, title, curves)?,
        }
    }
    writeln!(out, "</section>")
}

/// A number with three or four digits that matter.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if size >= 1000.0 {
        let digits = format!("{size:.0}");
        let mut grouped = String::new();
        for (i, c) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(c);
        }
        return if value < 0.0 {
            format!("-{grouped}")
        } else {
            grouped
        };
    }
    let decimals = match size {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.01.. => 3,
        0.001.. => 5,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.decimals$}")
}

/// A round number, as short as it can be.
fn tick_label(value: f64) -> String {
    let text = number(value);
    if text.contains('.') && !text.contains('e') {
        let short = text.trim_end_matches('0').trim_end_matches('.');
        return short.to_owned();
    }
    text
}

#[cfg(test)]
mod tests;
