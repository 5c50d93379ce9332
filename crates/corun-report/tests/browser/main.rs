// SPDX-License-Identifier: GPL-2.0-only
//! The page in a real browser: `make browser-test`. Leaves screenshots in
//! `out/report/`.

mod cdp;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cdp::Browser;
use corun_report::{Input, compare, html, report};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Set where a missing browser is a failure: in CI.
const REQUIRED: &str = "CORUN_BROWSER_REQUIRED";

/// Pages by name, each with its one or two inputs, from this crate's folder.
const PAGES: [(&str, &[&str]); 7] = [
    ("lab", &["../../docs/results/demo.json"]),
    (
        "mechanisms",
        &["../../docs/results/mechanisms-waiting.json"],
    ),
    ("sim", &["tests/data/sim.json"]),
    ("repro", &["../../docs/results/sim-repro.json"]),
    ("recording", &["tests/data/recording.jsonl"]),
    (
        "lab-and-sim",
        &["../../docs/results/demo.json", "tests/data/sim.json"],
    ),
    (
        "recordings",
        &["tests/data/recording.jsonl", "tests/data/recording.jsonl"],
    ),
];

fn folder() -> PathBuf {
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../out/report");
    fs::create_dir_all(&out).expect("a folder");
    out.canonicalize().expect("is there")
}

fn write_page(name: &str, files: &[&str]) -> String {
    let read = |file: &&str| {
        Input::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("is understood")
    };
    let inputs: Vec<Input> = files.iter().map(read).collect();
    let report = match inputs.as_slice() {
        [a, b] => compare(a, b, "corun test").expect("can be compared"),
        inputs => report(&inputs[0], "corun test"),
    };
    let page = folder().join(format!("{name}.html"));
    fs::write(&page, html::page(&report)).expect("written");
    format!("file://{}", page.display())
}

/// The browser; `None` where there is none, which is said.
fn start() -> Option<Browser> {
    if let Some(program) = cdp::find() {
        return Some(Browser::start(&program));
    }
    assert!(
        std::env::var_os(REQUIRED).is_none(),
        "no chromium here, and {REQUIRED} is set: install it with scripts/setup --browser"
    );
    println!(
        "SKIP: chromium is not installed (scripts/setup --browser); the page was not looked at"
    );
    None
}

/// Screenshot of the whole page, as it is now.
fn screenshot(browser: &mut Browser, name: &str) {
    let picture = browser.call(
        "Page.captureScreenshot",
        &json!({ "format": "png", "captureBeyondViewport": true }),
    );
    let bytes = STANDARD
        .decode(picture["data"].as_str().expect("text"))
        .expect("base64");
    fs::write(folder().join(format!("{name}.png")), bytes).expect("written");
}

/// Nothing was complained of, and nothing was asked of any network.
fn quiet(browser: &Browser, what: &str) {
    for method in [
        "Runtime.exceptionThrown",
        "Runtime.consoleAPICalled",
        "Log.entryAdded",
    ] {
        assert!(
            browser.seen(method).is_empty(),
            "{what}: {:?}",
            browser.seen(method)
        );
    }
    let requests = browser.seen("Network.requestWillBeSent");
    let urls: Vec<&str> = requests
        .iter()
        .filter_map(|r| r["request"]["url"].as_str())
        .collect();
    assert_eq!(urls.len(), 1, "{what}: more than the page itself: {urls:?}");
    assert!(urls[0].starts_with("file:///"), "{what}: {urls:?}");
}

/// Share of each canvas's pixels that are not empty, and how many colours they
/// have.
const CANVASES: &str = "[...document.querySelectorAll('.chart')].map((chart) => {
  const canvas = chart.querySelector('.uplot canvas');
  if (!canvas || !canvas.width) return [0, 0, 0];
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  let drawn = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] < 200) continue;
    drawn++;
    colours.add((data[i] >> 4 << 8) | (data[i + 1] >> 4 << 4) | (data[i + 2] >> 4));
  }
  return [drawn, colours.size, canvas.clientWidth];
})";

fn charts_are_drawn(browser: &mut Browser, what: &str, width: u32) {
    let canvases = browser.value(CANVASES);
    let canvases = canvases.as_array().expect("a list");
    let wanted = browser.value("JSON.parse(document.getElementById('data').textContent).length");
    assert_eq!(Some(canvases.len() as u64), wanted.as_u64(), "{what}");
    for canvas in canvases {
        // Text and grid alone have fewer than three colours.
        let number = |i: usize| canvas[i].as_u64().unwrap_or(0);
        assert!(
            number(0) > 500 && number(1) >= 3,
            "{what}: an empty chart: {canvases:?}"
        );
        assert!(
            number(2) <= u64::from(width),
            "{what}: wider than the window: {canvases:?}"
        );
    }
}

/// What reaches beyond the window, tables that scroll aside.
const OUTSIDE: &str = "[...document.querySelectorAll('body *:not(.scroll *, pre *)')]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5)
  .map((e) => e.tagName + '.' + e.className)";

fn nothing_sticks_out(browser: &mut Browser, what: &str, width: u32) {
    let widest = browser.value("document.documentElement.scrollWidth");
    let outside = browser.value(OUTSIDE);
    assert!(
        widest.as_u64() <= Some(u64::from(width)),
        "{what}: {widest} px wide: {outside}"
    );
}

/// WCAG contrasts of the theme's colours: the least of text (4.5 is wanted) and
/// of series (3).
const CONTRASTS: &str = "(() => {
  const style = getComputedStyle(document.documentElement);
  const luminance = (name) => {
    const hex = style.getPropertyValue('--' + name).trim();
    const wide = hex.length === 4 ? hex.replace(/[^#]/g, '$&$&') : hex;
    const part = (at) => {
      const c = parseInt(wide.slice(at, at + 2), 16) / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a) + 0.05, luminance(b) + 0.05];
    return Math.max(x, y) / Math.min(x, y);
  };
  const text = [['ink', 'paper'], ['ink', 'card'], ['soft', 'paper'], ['soft', 'card'], ['link', 'paper'],
    ['better', 'better-bg'], ['worse', 'worse-bg']].map(([a, b]) => contrast(a, b));
  const series = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'].map((c) => contrast(c, 'paper'));
  return [Math.min(...text), Math.min(...series)];
})()";

fn can_be_read(browser: &mut Browser, what: &str) {
    let contrasts = browser.value(CONTRASTS);
    assert!(
        contrasts[0].as_f64() >= Some(4.5),
        "{what}: text {contrasts}"
    );
    assert!(
        contrasts[1].as_f64() >= Some(3.0),
        "{what}: series {contrasts}"
    );
}

/// What the browser will be shown can be made: a result that was renamed is
/// seen by the quick tests.
#[test]
fn every_page_is_written() {
    for (name, files) in PAGES {
        write_page(name, files);
    }
}

#[test]
#[ignore = "wants a browser: make browser-test"]
fn pages_look_right_in_every_width_and_theme() {
    let Some(mut browser) = start() else { return };
    for (name, files) in PAGES {
        let url = write_page(name, files);
        for (theme, width) in [
            ("light", 360),
            ("light", 1200),
            ("dark", 1200),
            ("dark", 1920),
        ] {
            let what = format!("{name}-{theme}-{width}");
            browser.resize(width);
            browser.media(theme, "");
            browser.open(&url);
            quiet(&browser, &what);
            charts_are_drawn(&mut browser, &what, width);
            nothing_sticks_out(&mut browser, &what, width);
            can_be_read(&mut browser, &what);
            let shown = browser.value("document.documentElement.dataset.theme");
            assert_eq!(shown, theme, "{what}");
            screenshot(&mut browser, &what);
        }
    }
}

#[test]
#[ignore = "wants a browser: make browser-test"]
fn the_reader_chooses_the_theme_and_walks_with_keys() {
    let Some(mut browser) = start() else { return };
    browser.media("light", "");
    browser.open(&write_page("reader", PAGES[0].1));
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = browser.value(paper);
    let button = "document.getElementById('theme')";
    browser.value(&format!("{button}.click(), {button}.click()"));
    assert_eq!(
        browser.value("document.documentElement.dataset.theme"),
        "dark"
    );
    assert_ne!(browser.value(paper), light);
    let walk = "const chart = document.querySelector('.chart'); chart.focus();
        chart.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
        const tip = chart.querySelector('.tip'); tip.hidden ? '' : tip.textContent";
    let said = browser.value(walk);
    let told = |s: &str| s.contains("\neevdf: ") && s.ends_with(" repeats");
    assert!(said.as_str().is_some_and(told), "{said}");
    // A window that changes takes its charts with it.
    browser.resize(500);
    browser.settle();
    charts_are_drawn(&mut browser, "resized", 500);
    quiet(&browser, "reader");
}

#[test]
#[ignore = "wants a browser: make browser-test"]
fn the_page_prints() {
    let Some(mut browser) = start() else { return };
    for (name, files) in [PAGES[0], PAGES[4]] {
        browser.resize(1920);
        browser.media("dark", "");
        browser.open(&write_page("print", files));
        // What the paper gets, on the screen: as wide as the paper, and light.
        browser.value("dispatchEvent(new Event('beforeprint'))");
        browser.media("dark", "print");
        browser.resize(720);
        browser.settle();
        charts_are_drawn(&mut browser, name, 720);
        assert_eq!(
            browser.value("document.documentElement.dataset.theme"),
            "light"
        );
        screenshot(&mut browser, &format!("{name}-print"));
        browser.media("dark", "");
        browser.value("dispatchEvent(new Event('afterprint'))");
        assert_eq!(
            browser.value("document.documentElement.dataset.theme"),
            "dark"
        );
        // Charts have the paper's width when they are printed.
        browser
            .value("addEventListener('beforeprint', () => (window.printed = plots[0].plot.width))");
        let pdf = browser.call("Page.printToPDF", &json!({ "printBackground": false }));
        assert_eq!(browser.value("window.printed"), 680);
        let bytes = STANDARD
            .decode(pdf["data"].as_str().expect("text"))
            .expect("base64");
        fs::write(folder().join(format!("{name}.pdf")), &bytes).expect("written");
        assert!(
            bytes.starts_with(b"%PDF-") && bytes.len() > 20_000,
            "{}",
            bytes.len()
        );
        quiet(&browser, name);
    }
}

#[test]
#[ignore = "wants a browser: make browser-test"]
fn hostile_names_stay_text_and_nothing_can_be_fetched() {
    let Some(mut browser) = start() else { return };
    browser.open(&write_page("hostile", PAGES[4].1));
    quiet(&browser, "hostile");
    assert_eq!(
        browser.value("typeof hostile"),
        "undefined",
        "a VM's name was run"
    );
    assert_eq!(browser.value("document.scripts.length"), 2);
    let foreign = "document.querySelectorAll('img, iframe, svg, object, link, a[href]:not([href^=\"#\"])').length";
    assert_eq!(browser.value(foreign), 0);
    // The other way round: the policy refuses what a hostile page would do, and
    // this test would have seen it.
    let fetched =
        browser.value("fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused')");
    assert_eq!(fetched, "refused");
    let ran = browser.value(
        "const s = document.createElement('script'); s.textContent = 'var hostile = 1';
         document.body.append(s); typeof hostile",
    );
    assert_eq!(ran, "undefined", "the policy lets foreign scripts run");
    browser.settle();
    let complaints: Vec<&Value> = browser.seen("Log.entryAdded");
    assert!(complaints.len() >= 2, "{complaints:?}");
}
