// SPDX-License-Identifier: GPL-2.0-only
//! Tables, and the tables of charts.

use crate::model::{Cell, Chart, Mark, Plot, Table};
use corun_events::export::html::escape;
use corun_lab::results::format::{count, nanos, number};
use std::fmt::{self, Write as _};

/// Rows of a chart's table; a page with more would be no use to anyone, and the
/// JSON has them all.
const ROWS: usize = 500;

/// Writes `table`; a folded one opens when asked.
pub(super) fn write(out: &mut String, table: &Table) -> fmt::Result {
    let title = escape(&table.title);
    if table.folded {
        writeln!(out, "<details class=\"wide\"><summary>{title}</summary>")?;
    }
    // Wide tables scroll in their own box, which the keyboard reaches.
    writeln!(
        out,
        "<div class=\"scroll wide\" tabindex=\"0\" role=\"region\" aria-label=\"Table: {title}\">\n<table>"
    )?;
    if !table.folded {
        writeln!(out, "<caption>{title}</caption>")?;
    }
    out.push_str("<thead><tr>");
    for column in &table.columns {
        let class = if column.numeric { " class=\"n\"" } else { "" };
        write!(
            out,
            "<th scope=\"col\"{class}>{}</th>",
            escape(&column.name)
        )?;
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let numeric = table.columns.get(i).is_some_and(|c| c.numeric);
            write_cell(out, cell, i == 0, numeric)?;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if table.folded {
        out.push_str("</details>\n");
    }
    Ok(())
}

fn write_cell(out: &mut String, cell: &Cell, names: bool, numeric: bool) -> fmt::Result {
    let (class, sign, said) = match cell.mark {
        Some(Mark::Better) => (" better", "▲ ", "better: "),
        Some(Mark::Worse) => (" worse", "▼ ", "worse: "),
        Some(Mark::Pass) => (" better", "✓ ", "passes: "),
        Some(Mark::Fail) => (" worse", "✗ ", "fails: "),
        None => ("", "", ""),
    };
    let class = format!("{}{class}", if numeric { "n" } else { "" });
    let class = match class.trim() {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let text = escape(&cell.text);
    if names {
        return write!(out, "<th scope=\"row\"{class}>{text}</th>");
    }
    write!(out, "<td{class}>")?;
    if !sign.is_empty() {
        // The colour is not all that tells; neither is the sign.
        write!(
            out,
            "<span aria-hidden=\"true\">{sign}</span><span class=\"said\">{said}</span>"
        )?;
    }
    write!(out, "{text}</td>")
}

/// Whether a chart needs the page's whole width.
pub(super) fn is_wide(plot: &Plot) -> bool {
    matches!(
        plot,
        Plot::Spans { .. } | Plot::Dots(_) | Plot::Stack { .. }
    )
}

/// The table of a chart's figures; `None` for those that have theirs after them.
pub(super) fn of(chart: &Chart) -> Option<Table> {
    match &chart.plot {
        Plot::Dots(_) => None,
        Plot::Stack {
            rows,
            parts,
            shares,
        } => Some(stack(rows, parts, shares)),
        Plot::Cdf { curves, .. } => {
            let columns = ["", "samples", "mean", "p50", "p90", "p99", "longest"];
            let mut table = Table::new("Percentiles", 1, &columns);
            for c in curves {
                let time = |ns: f64| Cell::number(Some(ns), nanos);
                let mut cells = vec![
                    Cell::text(&c.name),
                    Cell::text(c.count.map_or_else(|| "–".to_owned(), count)),
                    time(c.mean_ns),
                ];
                cells.extend([c.p50_ns, c.p90_ns, c.p99_ns, c.max_ns].map(|ns| time(ns as f64)));
                table.rows.push(cells);
            }
            Some(table)
        }
        Plot::Lines {
            x_label, x, series, ..
        } => {
            let mut columns = vec![x_label.as_str()];
            columns.extend(series.iter().map(|s| s.name.as_str()));
            let mut table = Table::new("Figures of this chart", 0, &columns).folded();
            for (i, at) in x.iter().enumerate().take(ROWS) {
                let mut cells = vec![Cell::number(Some(*at), number)];
                let value = |s: &crate::model::Series| s.values.get(i).copied().flatten();
                cells.extend(series.iter().map(|s| Cell::number(value(s), number)));
                table.rows.push(cells);
            }
            Some(table)
        }
        Plot::Spans {
            lanes,
            states,
            spans,
            ..
        } => {
            let columns = ["lane", "state", "from (s)", "took"];
            let title = if spans.len() > ROWS {
                format!(
                    "The first {ROWS} of {} intervals of this chart",
                    spans.len()
                )
            } else {
                "Figures of this chart".to_owned()
            };
            let mut table = Table::new(&title, 2, &columns).folded();
            let name = |names: &[String], i: u32| {
                Cell::text(names.get(i as usize).map_or("?", String::as_str))
            };
            for span in spans.iter().take(ROWS) {
                table.rows.push(vec![
                    name(lanes, span.lane),
                    name(states, span.state),
                    Cell::text(format!("{:.6}", span.from_ns as f64 / 1e9)),
                    Cell::number(Some((span.to_ns - span.from_ns) as f64), nanos),
                ]);
            }
            Some(table)
        }
    }
}

fn stack(rows: &[String], parts: &[String], shares: &[Vec<f64>]) -> Table {
    let mut columns = vec![""];
    columns.extend(parts.iter().map(String::as_str));
    let mut table = Table::new("Shares", 1, &columns);
    for (row, shares) in rows.iter().zip(shares) {
        let mut cells = vec![Cell::text(row)];
        let percent = |s: &f64| Cell::number(Some(*s), |s| format!("{:.1} %", s * 100.0));
        cells.extend(shares.iter().map(percent));
        table.rows.push(cells);
    }
    if rows.len() > 12 {
        table.folded()
    } else {
        table
    }
}
