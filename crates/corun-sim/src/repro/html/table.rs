// SPDX-License-Identifier: GPL-2.0-only
//! Values and claims as tables.

use super::number;
use crate::repro::report::{CellReport, ClaimReport};
use crate::repro::stats::Interval;
use corun_events::export::html::escape;
use std::fmt::{self, Write as _};

pub(super) fn write_cells(out: &mut String, cells: &[CellReport]) -> fmt::Result {
    if cells.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<div class=\"scroll\"><table><caption>Values</caption><thead><tr><th scope=\"col\">Row</th>\
         <th scope=\"col\">Column</th><th scope=\"col\">Kind</th><th scope=\"col\" class=\"n\">Published</th>\
         <th scope=\"col\" class=\"n\">Simulated</th><th scope=\"col\" class=\"n\">Factor</th>\
         <th scope=\"col\">Verdict</th></tr></thead><tbody>"
    )?;
    for cell in cells {
        write_cell(out, cell)?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn write_cell(out: &mut String, c: &CellReport) -> fmt::Result {
    let row = escape(&c.row);
    write!(out, "<tr><th scope=\"row\">{row}")?;
    if let Some(over) = &c.over {
        write!(out, "<br><span class=\"over\">by {}</span>", escape(over))?;
    }
    if !c.note.is_empty() {
        write!(out, "<br><span class=\"note\">{}</span>", escape(&c.note))?;
    }
    let kind = c.kind.name();
    let kind = if c.ratio {
        format!("{kind}, ratio")
    } else {
        kind.to_owned()
    };
    write!(
        out,
        "</th><td>{}</td><td>{kind}</td><td class=\"n\">{}</td>",
        escape(&c.column),
        published(c),
    )?;
    match (&c.simulated, &c.problem) {
        (Some(interval), _) => write!(
            out,
            "<td class=\"n\">{} {}</td><td class=\"n\">{}</td>",
            with_ci(interval),
            escape(&c.unit),
            c.factor
                .map_or_else(|| "–".to_owned(), |f| format!("{f:.2}"))
        )?,
        (None, problem) => write!(
            out,
            "<td colspan=\"2\" class=\"problem\">{}</td>",
            escape(problem.as_deref().unwrap_or("nothing was counted"))
        )?,
    }
    writeln!(out, "<td>{}</td></tr>", verdict(c.pass))
}

/// The published value, and what it is compared as where that differs.
fn published(c: &CellReport) -> String {
    let target = c.published;
    let same = (target.high - target.low).abs() < f64::EPSILON;
    let compared = if same {
        number(target.low)
    } else {
        format!("{} to {}", number(target.low), number(target.high))
    };
    let unit = escape(&c.unit);
    if c.published_text.parse::<f64>().is_ok() || !same {
        format!("{compared} {unit}")
    } else {
        let text = escape(&c.published_text);
        format!("{compared} {unit}<br><span class=\"over\">{text}</span>")
    }
}

pub(super) fn write_claims(out: &mut String, claims: &[ClaimReport]) -> fmt::Result {
    if claims.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<div class=\"scroll\"><table><caption>Directions</caption><thead><tr><th scope=\"col\">Claim</th>\
         <th scope=\"col\">Kind</th><th scope=\"col\" class=\"n\">Left</th><th scope=\"col\" class=\"n\">Right</th>\
         <th scope=\"col\" class=\"n\">Seeds</th><th scope=\"col\">Verdict</th></tr></thead><tbody>"
    )?;
    for c in claims {
        write!(
            out,
            "<tr><th scope=\"row\">{}<br><code class=\"over\">{}</code></th><td>{}</td>",
            escape(&c.text),
            escape(&c.holds),
            c.kind.name()
        )?;
        match (&c.left, &c.right, &c.problem) {
            (Some(left), Some(right), None) => write!(
                out,
                "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{} of {}</td>",
                with_ci(left),
                with_ci(right),
                c.seeds_agree,
                left.n
            )?,
            (_, _, problem) => write!(
                out,
                "<td colspan=\"3\" class=\"problem\">{}</td>",
                escape(problem.as_deref().unwrap_or("nothing was counted"))
            )?,
        }
        writeln!(out, "<td>{}</td></tr>", verdict(c.pass))?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn with_ci(interval: &Interval) -> String {
    match interval.half {
        Some(half) if half > 0.0 => format!("{} ± {}", number(interval.mean), number(half)),
        _ => number(interval.mean),
    }
}

fn verdict(pass: bool) -> &'static str {
    if pass {
        "<span class=\"pass\">✓ pass</span>"
    } else {
        "<span class=\"fail\">✗ fail</span>"
    }
}
