// SPDX-License-Identifier: GPL-2.0-only
//! What can be said of the page without a browser.

use super::*;
use crate::model::{Cell, Dots, Fact, Plot, Table};

const HOSTILE: &str = "</script><script>alert(1)</script>{{DATA}} \"' & <img src=x onerror=y>";

/// A report with something hostile in every place for text.
fn report() -> Report {
    let hostile = || HOSTILE.to_owned();
    let mut table = Table::new(HOSTILE, 1, &[HOSTILE, HOSTILE]);
    table
        .rows
        .push(vec![Cell::text(HOSTILE), Cell::text(HOSTILE)]);
    let chart = Chart {
        id: "c-1".to_owned(),
        title: hostile(),
        text: hostile(),
        plot: Plot::Dots(Dots {
            x_label: hostile(),
            log: false,
            rows: vec![hostile()],
            reference: hostile(),
            references: vec![None],
            series: vec![hostile()],
            values: vec![vec![None]],
        }),
    };
    let mut section = Section::new("s", HOSTILE, HOSTILE);
    section.blocks = vec![
        Block::Chart(chart),
        Block::Table(table.clone()),
        Block::Table(table.folded()),
        Block::Note { text: hostile() },
        Block::Listing {
            title: hostile(),
            text: hostile(),
        },
    ];
    let source = SourceInfo {
        label: hostile(),
        kind: hostile(),
        file: hostile(),
        title: hostile(),
        facts: vec![Fact::new(HOSTILE, HOSTILE)],
        losses: vec![hostile()],
    };
    Report {
        schema_version: 1,
        generator: hostile(),
        title: hostile(),
        sources: vec![source],
        sections: vec![section],
    }
}

/// The page without its own style and script.
fn foreign(page: &str) -> String {
    let style = format!("{LIBRARY_STYLE}\n{STYLE}");
    let script = page.rsplit_once("<script>").map(|(_, s)| s.to_owned());
    page.replace(&style, "")
        .replace(&script.unwrap_or_default(), "")
}

#[test]
fn hostile_text_is_text_everywhere() {
    let page = page(&report());
    let rest = foreign(&page);
    assert!(
        !rest.contains("<img") && !rest.contains("alert(1)</script>"),
        "{rest}"
    );
    assert_eq!(
        page.matches("<script").count() - LIBRARY.matches("<script").count(),
        2
    );
    assert_eq!(page.matches("</script>").count(), 2);
    // Places of the skeleton are filled once: what comes in stays as it is.
    assert!(rest.contains("{{DATA}}") && !rest.contains("{{BODY}}"));
    let data = rest
        .split_once("id=\"data\">")
        .map(|(_, d)| d)
        .unwrap_or_default();
    let data = data
        .split_once("</script>")
        .map(|(d, _)| d)
        .unwrap_or_default();
    let charts: serde_json::Value = serde_json::from_str(data).expect("is JSON");
    assert_eq!(
        charts[0]["rows"][0], HOSTILE,
        "the chart has the name as it is"
    );
}

#[test]
fn the_page_asks_for_nothing_and_allows_only_its_own_script() {
    let page = page(&report());
    let rest = foreign(&page);
    for loader in [
        "src=\"", "url(", "@import", "<link", "<iframe", "<object", " onload", " style=",
    ] {
        assert!(!rest.contains(loader), "{loader}");
    }
    assert!(!STYLE.contains("url(") && !LIBRARY_STYLE.contains("url("));
    assert!(rest.contains("default-src 'none'; script-src 'sha256-"));
    let script = page
        .rsplit_once("<script>")
        .and_then(|(_, s)| s.split_once("</script>"));
    let hash = source_hash(script.map(|(s, _)| s).unwrap_or_default());
    assert!(
        page.contains(&format!("script-src '{hash}'")),
        "the policy refuses the script"
    );
    let style = page
        .split_once("<style>")
        .and_then(|(_, s)| s.split_once("</style>"));
    let hash = source_hash(style.map(|(s, _)| s).unwrap_or_default());
    assert!(
        page.contains(&format!("style-src '{hash}'")),
        "the policy refuses the style"
    );
}

#[test]
fn tags_are_closed_and_anchors_are_there() {
    let page = foreign(&page(&report()));
    for tag in [
        "section", "table", "thead", "tbody", "tr", "td", "th", "div", "details", "figure", "ul",
        "li", "dl", "article", "main", "p", "code", "span",
    ] {
        let open =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    for anchor in page.split("href=\"#").skip(1) {
        let id = anchor.split('"').next().unwrap_or_default();
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
}

/// The library's files are those of the package: their hashes are in its README.
#[test]
fn the_library_is_what_its_readme_says() {
    let readme = include_str!("../../third_party/uplot/README.md");
    for text in [LIBRARY, LIBRARY_STYLE] {
        let hash = format!("{:x}", Sha256::digest(text));
        assert!(readme.contains(&hash), "{hash}");
    }
    assert!(include_str!("../../third_party/uplot/LICENSE").contains("MIT License"));
}
