// SPDX-License-Identifier: GPL-2.0-only
//! A report as one page that needs nothing else and may ask for nothing else:
//! its content security policy allows the page's own style and script by their
//! hashes, and no request whatever.
//!
//! Everything that came from a file is data of someone else: it is escaped where
//! it is markup, and never script.

mod tables;

use crate::model::{Block, Chart, Report, Section, SourceInfo};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use corun_events::export::html::escape;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};

/// Of the charts' library, as it is in its package; see `third_party/uplot`.
const LIBRARY_STYLE: &str = include_str!("../../third_party/uplot/uPlot.min.css");
const LIBRARY: &str = include_str!("../../third_party/uplot/uPlot.iife.min.js");
const STYLE: &str = include_str!("style.css");
/// In this order; together they are one script.
const SCRIPTS: [&str; 6] = [
    include_str!("js/frame.js"),
    include_str!("js/hover.js"),
    include_str!("js/rows.js"),
    include_str!("js/curves.js"),
    include_str!("js/spans.js"),
    include_str!("js/main.js"),
];
const SKELETON: &str = include_str!("page.html");

/// The page.
pub fn page(report: &Report) -> String {
    let style = format!("{LIBRARY_STYLE}\n{STYLE}");
    let script = format!("\"use strict\";\n{LIBRARY}\n{}", SCRIPTS.concat());
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        source_hash(&script),
        source_hash(&style)
    );
    let mut body = String::new();
    // Writing to a String cannot fail.
    let _ = write_body(&mut body, report);
    fill(
        SKELETON,
        &[
            ("POLICY", &policy),
            ("TITLE", &escape(&report.title)),
            ("GENERATOR", &escape(&report.generator)),
            ("STYLE", &style),
            ("BODY", &body),
            ("DATA", &data(report)),
            ("SCRIPT", &script),
        ],
    )
}

/// Puts `values` in the places `{{NAME}}` of `skeleton`, in one pass: what is
/// put in is not looked at again.
fn fill(skeleton: &str, values: &[(&str, &str)]) -> String {
    let mut out =
        String::with_capacity(skeleton.len() + values.iter().map(|v| v.1.len()).sum::<usize>());
    let mut parts = skeleton.split("{{");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        let value = values.iter().find(|(n, _)| *n == name);
        out.push_str(value.map_or("", |(_, v)| v));
        out.push_str(rest);
    }
    out
}

/// How a content security policy names an inline script or style.
fn source_hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// What the charts draw, by anchor; no text in it can end the element.
fn data(report: &Report) -> String {
    let blocks = report.sections.iter().flat_map(|s| &s.blocks);
    let charts: Vec<&Chart> = blocks
        .filter_map(|b| match b {
            Block::Chart(chart) => Some(chart),
            _ => None,
        })
        .collect();
    let json = serde_json::to_string(&charts).unwrap_or_else(|_| "[]".to_owned());
    json.replace('<', "\\u003c")
}

fn write_body(out: &mut String, report: &Report) -> fmt::Result {
    write!(
        out,
        "<header class=\"top\">\n<div>\n<h1>{}</h1>\n<p class=\"soft\">Made by {}</p>\n</div>\n\
         <button type=\"button\" id=\"theme\" aria-live=\"polite\">Theme: as the system</button>\n</header>\n",
        escape(&report.title),
        escape(&report.generator)
    )?;
    write_contents(out, report)?;
    out.push_str(
        "<main id=\"main\">\n<section class=\"sources\" aria-label=\"Files and configuration\">\n",
    );
    for source in &report.sources {
        write_source(out, source)?;
    }
    out.push_str("</section>\n");
    for section in &report.sections {
        write_section(out, section)?;
    }
    out.push_str("</main>\n");
    Ok(())
}

fn write_contents(out: &mut String, report: &Report) -> fmt::Result {
    out.push_str("<nav aria-label=\"Contents\"><ul>\n");
    for section in &report.sections {
        writeln!(
            out,
            "<li><a href=\"#{}\">{}</a></li>",
            escape(&section.id),
            escape(&section.title)
        )?;
    }
    out.push_str("</ul></nav>\n");
    Ok(())
}

fn write_source(out: &mut String, source: &SourceInfo) -> fmt::Result {
    let (kind, file) = (escape(&source.kind), escape(&source.file));
    out.push_str("<article class=\"source\">\n");
    if source.label.is_empty() {
        writeln!(
            out,
            "<h2>This {kind}</h2>\n<p class=\"soft\"><code>{file}</code></p>"
        )?;
    } else {
        writeln!(
            out,
            "<h2><span class=\"label\">{}</span> {}</h2>\n\
             <p class=\"soft\">{kind} · <code>{file}</code></p>",
            escape(&source.label),
            escape(&source.title)
        )?;
    }
    out.push_str("<h3>Lost, dropped or refused</h3>\n<ul>\n");
    for loss in &source.losses {
        writeln!(out, "<li>{}</li>", escape(loss))?;
    }
    out.push_str("</ul>\n<details open><summary>Configuration</summary>\n<dl>\n");
    for fact in &source.facts {
        writeln!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            escape(&fact.name),
            escape(&fact.value)
        )?;
    }
    out.push_str("</dl>\n</details>\n</article>\n");
    Ok(())
}

fn write_section(out: &mut String, section: &Section) -> fmt::Result {
    let id = escape(&section.id);
    writeln!(
        out,
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{}</h2>",
        escape(&section.title)
    )?;
    if !section.text.is_empty() {
        writeln!(out, "<p class=\"text\">{}</p>", escape(&section.text))?;
    }
    out.push_str("<div class=\"blocks\">\n");
    for block in &section.blocks {
        match block {
            Block::Table(table) => tables::write(out, table)?,
            Block::Chart(chart) => write_chart(out, chart)?,
            Block::Note { text } => writeln!(out, "<p class=\"wide note\">{}</p>", escape(text))?,
            Block::Listing { title, text } => writeln!(
                out,
                "<details class=\"wide\"><summary>{}</summary>\n<pre tabindex=\"0\">{}</pre></details>",
                escape(title),
                escape(text)
            )?,
        }
    }
    out.push_str("</div>\n</section>\n");
    Ok(())
}

/// A place for the script to draw in, and the same figures as a table.
fn write_chart(out: &mut String, chart: &Chart) -> fmt::Result {
    let id = escape(&chart.id);
    let wide = if tables::is_wide(&chart.plot) {
        " wide"
    } else {
        ""
    };
    writeln!(
        out,
        "<figure class=\"figure{wide}\">\n<figcaption>{}</figcaption>\n\
         <div class=\"chart\" id=\"{id}\" role=\"group\" aria-roledescription=\"chart\" tabindex=\"0\" aria-label=\"{}. Its figures are in the table below it.\"></div>",
        escape(&chart.title),
        escape(&chart.title)
    )?;
    if !chart.text.is_empty() {
        writeln!(out, "<p class=\"soft\">{}</p>", escape(&chart.text))?;
    }
    if let Some(table) = tables::of(chart) {
        tables::write(out, &table)?;
    }
    out.push_str("</figure>\n");
    Ok(())
}

#[cfg(test)]
mod tests;
