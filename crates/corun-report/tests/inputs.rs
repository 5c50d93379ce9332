// SPDX-License-Identifier: GPL-2.0-only
//! Which files are understood, and that their figures arrive.

use corun_events::recording;
use corun_report::{Block, Input, Kind, Plot, Report, compare, report};
use serde_json::Value;
use std::fs;
use std::path::Path;

const DEMO: &str = "../../docs/results/demo.json";
const REPRO: &str = "../../docs/results/sim-repro.json";
const SIM: &str = "tests/data/sim.json";
const RECORDING: &str = "tests/data/recording.jsonl";

fn read(file: &str) -> Input {
    Input::read(Path::new(file)).unwrap_or_else(|e| panic!("{e}"))
}

/// Why a file with this content is refused.
fn refused(content: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("input");
    fs::write(&file, content).expect("written");
    Input::read(&file)
        .expect_err("is nothing we know")
        .to_string()
}

#[test]
fn files_are_recognised_by_their_content() {
    let kinds = [DEMO, SIM, REPRO, RECORDING].map(|file| read(file).kind);
    assert_eq!(kinds, [Kind::Lab, Kind::Sim, Kind::Repro, Kind::Recording]);
}

#[test]
fn a_compressed_recording_is_read_as_a_plain_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("recording.jsonl.zst");
    let plain = recording::open(Path::new(RECORDING)).expect("opens");
    let mut packed = recording::create(&file, &plain.header).expect("created");
    for event in plain {
        packed.put(&event.expect("reads")).expect("written");
    }
    recording::finish(packed).expect("ended");
    let packed = Input::read(&file).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(packed.kind, Kind::Recording);
    let sections = |input: &Input| {
        let report = report(input, "corun test");
        serde_json::to_value(report.sections).expect("is JSON")
    };
    assert_eq!(sections(&packed), sections(&read(RECORDING)));
}

#[test]
fn every_lab_result_of_the_repository_has_a_report() {
    let files = fs::read_dir("../../docs/results").expect("is there");
    let mut seen = 0;
    for file in files.map(|f| f.expect("readable").path()) {
        let text = fs::read_to_string(&file).expect("readable");
        let lab = serde_json::from_str::<Value>(&text).is_ok_and(|v| v.get("samples").is_some());
        if lab {
            let input = Input::read(&file).unwrap_or_else(|e| panic!("{e}"));
            assert!(
                !report(&input, "corun test").sections.is_empty(),
                "{}",
                file.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn what_is_not_understood_is_told_with_what_would_be() {
    for (content, found) in [
        ("", "an empty file"),
        ("hello", "no JSON"),
        ("[1, 2]", "JSON of another kind"),
        ("{\"a\": 1}", "it has a"),
        (
            "{\"schema_version\": 9, \"case\": {}, \"samples\": [], \"summary\": {}}",
            "of version 9, expected 1",
        ),
        ("\u{28}\u{b5}", "no JSON"),
    ] {
        let error = refused(content);
        assert!(
            error.contains(found) && error.contains("accepted are"),
            "{content}: {error}"
        );
    }
    let error = refused("{\"schema_version\": 1, \"case\": {}, \"samples\": [], \"summary\": {}}");
    assert!(
        error.contains("lab run that cannot be read: missing field `guests`"),
        "{error}"
    );
    let error = refused(
        "{\"corun_events\": 99, \"source\": \"sim\", \"title\": \"\", \"pcpus\": 1, \"vms\": []}\n",
    );
    assert!(error.contains("version 99"), "{error}");
    let error = Input::read(Path::new("no/such/file"))
        .expect_err("is not there")
        .to_string();
    assert!(error.contains("no/such/file"), "{error}");
}

fn medians(report: &Report, chart: &str) -> Vec<Vec<Option<f64>>> {
    let blocks = report.sections.iter().flat_map(|s| &s.blocks);
    let dots = blocks.filter_map(|b| match b {
        Block::Chart(c) if c.id == chart => match &c.plot {
            Plot::Dots(dots) => Some(dots),
            _ => None,
        },
        _ => None,
    });
    let dots: Vec<_> = dots.collect();
    dots[0]
        .values
        .iter()
        .map(|v| v.iter().map(|s| s.map(|s| s.median)).collect())
        .collect()
}

/// A result's own summary, read here in another way.
fn slowdown(result: &Value, guest: usize, scheduler: usize) -> Option<f64> {
    result["summary"]["guests"][guest]["schedulers"][scheduler]["slowdown"]["median"].as_f64()
}

#[test]
fn the_slowdowns_are_the_results() {
    let result: Value = serde_json::from_slice(&fs::read(DEMO).expect("is there")).expect("JSON");
    let medians = medians(&report(&read(DEMO), "corun test"), "slowdown-chart");
    assert!(medians.len() >= 2 && medians[0].len() >= 3);
    for (scheduler, column) in medians.iter().enumerate() {
        for (guest, median) in column.iter().enumerate() {
            assert_eq!(*median, slowdown(&result, guest, scheduler));
        }
    }
}

#[test]
fn two_results_are_joined_by_phase_guest_and_scheduler() {
    let text = fs::read_to_string(DEMO).expect("is there");
    let mut other: Value = serde_json::from_str(&text).expect("JSON");
    let guests = other["summary"]["guests"].as_array_mut().expect("a list");
    // Another order, and one less: what belongs together must be found.
    guests.reverse();
    let dropped = guests.pop().expect("has some");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("b.json");
    fs::write(&file, other.to_string()).expect("written");
    let (a, b) = (read(DEMO), Input::read(&file).expect("is a result"));
    let joined = compare(&a, &b, "corun test").expect("same phases");
    let medians = medians(&joined, "slowdown-chart");
    assert_eq!(medians[0], medians[1]);
    assert!(medians[0].iter().all(Option::is_some));
    let text = serde_json::to_string(&joined.sections).expect("JSON");
    let only = format!(
        "Only A has the phases and guests {} · ",
        dropped["phase"].as_str().expect("text")
    );
    assert!(text.contains(&only), "{only}");
}

#[test]
fn a_lab_result_goes_with_a_simulated_one_and_not_with_a_recording() {
    assert!(compare(&read(DEMO), &read(SIM), "corun test").is_ok());
    let error = compare(&read(DEMO), &read(RECORDING), "corun test").expect_err("differ");
    assert!(
        error.to_string().contains("no figures in common"),
        "{error}"
    );
    let text = fs::read_to_string(SIM)
        .expect("is there")
        .replace("\"tlb\"", "\"x\"")
        .replace("\"lock\"", "\"y\"");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("b.json");
    fs::write(&file, text).expect("written");
    let other = Input::read(&file).expect("is a result");
    let error = compare(&read(DEMO), &other, "corun test").expect_err("nothing in common");
    assert!(
        error.to_string().contains("no phase, guest and scheduler"),
        "{error}"
    );
}
