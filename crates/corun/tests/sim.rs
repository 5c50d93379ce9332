// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim` as a user meets it: help, mistakes, results, interrupted sweeps.

use corun_sim::batch::CorunOptions;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const CASE: &str = r#"[case]
name = "two"
title = "two burners"
repeats = 2
warmup_s = 0.01
measure_s = 0.1

[[scheduler]]
label = "eevdf"
kind = "kernel"

[[scheduler]]
label = "corun"
kind = "corun"

[[guest]]
name = "a"

[[guest]]
name = "b"
weight = 300

[[phase]]
name = "cpu"
measure = ["a"]
solo = true
run = { a = { workload = "cpu" }, b = { workload = "cpu" } }

[sim.guest.a]
tick_ns = 4000000
"#;

fn corun(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corun"))
        .args(args)
        .output()
        .expect("corun starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Output of a command that must succeed.
fn good(args: &[&str]) -> String {
    let output = corun(args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// The error of a command that must fail.
fn bad(args: &[&str]) -> String {
    let output = corun(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    assert!(
        output.stdout.is_empty(),
        "{args:?}: {}",
        text(&output.stdout)
    );
    text(&output.stderr)
}

/// Runs `test` with a folder and the path of a case in it.
fn with_case(case: &str, test: impl FnOnce(&Path, &str)) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("two.toml");
    std::fs::write(&file, case).expect("written");
    test(folder.path(), &file.display().to_string());
}

#[test]
fn help_teaches() {
    for (args, words) in [
        (&["sim"][..], "any host, in seconds"),
        (&["sim", "run"], "corun sim run demo --profile --latency"),
        (&["sim", "sweep"], "the same command goes on where it was"),
        (&["sim", "models"], "lab-lock-pipe"),
    ] {
        let help = good(&[args, &["--help"]].concat());
        let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{args:?}: {help}");
    }
}

#[test]
fn wrong_cases_are_told_by_place_and_expectation() {
    for (from, to, place, expected) in [
        (
            "name = \"a\"\n",
            "name = \"a\"\nvcpus = 0\n",
            "two.toml:18:9: guest[0].vcpus",
            "expected 1 to 1024",
        ),
        (
            "weight = 300",
            "weight = 0",
            "two.toml:21:10: guest[1].weight",
            "expected 1 to 10000",
        ),
        (
            "weight = 300",
            "weight = 10001",
            "two.toml:21:10: guest[1].weight",
            "expected 1 to 10000",
        ),
        (
            "b = { workload = \"cpu\" }",
            "b = { workload = \"cqu\" }",
            "two.toml:27:52: phase[0].run.b.workload",
            "did you mean `cpu`?",
        ),
        (
            "[sim.guest.a]",
            "[sim.guest.c]",
            "two.toml:29:1: sim.guest.c",
            "unknown guest `c`: expected one of a, b",
        ),
        (
            "tick_ns = 4000000",
            "tick_ns = 4000",
            "two.toml:30:11: sim.guest.a.tick_ns",
            "expected 100000 ns",
        ),
        (
            "kind = \"corun\"",
            "kind = \"cfs\"\nsim.credit.boost = false",
            "two.toml:15:5: scheduler[1].sim.credit",
            "contradictory",
        ),
        (
            "[sim.guest.a]",
            "[sim.kvm]\nple = false\ndebooster = true\n[sim.guest.a]",
            "two.toml:31:13: sim.kvm.debooster",
            "contradictory",
        ),
        (
            "kind = \"corun\"",
            "kind = \"credit\"\nsim.credit.micro_pcpus = 2",
            "scheduler[1].sim.credit.micro_pcpus",
            "contradictory: 2 of 2 pCPUs",
        ),
    ] {
        assert!(CASE.contains(from), "{from}");
        with_case(&CASE.replacen(from, to, 1), |_, file| {
            let error = bad(&["sim", "run", file]);
            assert!(error.contains(place), "{to}: {error}");
            assert!(error.contains(expected), "{to}: {error}");
        });
    }
}

#[test]
fn wrong_changes_are_told_by_key() {
    with_case(CASE, |_, file| {
        for (set, expected) in [
            ("sim.kvm.plee.window_cycles=1", "unknown key `plee`"),
            ("guest[2].vcpus=1", "guest has 2 entries"),
            ("guest[0].weight=10001", "expected 1 to 10000"),
            ("case.repeats=0", "expected 1 to 1000"),
        ] {
            let error = bad(&["sim", "run", file, "--set", set]);
            assert!(error.contains(&format!("--set {set}: ")), "{set}: {error}");
            assert!(error.contains(expected), "{set}: {error}");
        }
        let output = corun(&["sim", "run", file, "--set", "nonsense"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("expected key=value"));
        let error = bad(&["sim", "run", file, "--models", "/nonexistent"]);
        assert!(error.contains("reading models: /nonexistent"), "{error}");
    });
}

#[test]
fn the_lab_refuses_what_only_the_simulator_has() {
    with_case(&CASE.replace("\"corun\"", "\"cfs\""), |_, file| {
        let error = bad(&["lab", "run", file]);
        assert!(error.contains("the lab runs the real kernel"), "{error}");
        assert!(error.contains("corun sim run"), "{error}");
        assert!(good(&["sim", "run", file]).contains("cfs"));
    });
}

#[test]
fn the_same_seed_gives_the_same_result_on_any_number_of_threads() {
    with_case(CASE, |folder, file| {
        let one = good(&["sim", "run", file, "--json", "--threads", "1"]);
        let out = folder.join("result.json").display().to_string();
        good(&["sim", "run", file, "--out", &out, "--threads", "3"]);
        assert_eq!(
            one.trim(),
            std::fs::read_to_string(&out).expect("written").trim()
        );
        let other = good(&["sim", "run", file, "--json", "--seed", "99"]);
        let hash = |text: &str| {
            let result: serde_json::Value = serde_json::from_str(text).expect("is JSON");
            assert_eq!(result["runs"].as_array().map(Vec::len), Some(6));
            result["runs"][0]["trace_hash"].clone()
        };
        assert_ne!(hash(&one), hash(&other));
    });
}

#[test]
fn weights_hold_and_tables_say_so() {
    with_case(CASE, |_, file| {
        let table = good(&["sim", "run", file, "--profile", "--latency", "--check"]);
        for words in [
            "ideal",
            "4.00x",
            "25.0 %",
            "(solo)",
            "k:lock",
            "vCPU ready until it runs",
        ] {
            assert!(table.contains(words), "no {words}: {table}");
        }
    });
}

/// Cases of the lab with something that the simulator has no model of, and what it
/// says of it.
const LAB_ONLY: [(&str, &str); 9] = [
    ("assists.toml", "the simulator loads no modules"),
    ("hostile.toml", "unknown workload `ipi-storm`"),
    ("locks.toml", "unknown workload `klock`"),
    ("locks-smoke.toml", "unknown workload `klock`"),
    ("mechanisms.toml", "kind = \"scx_bpfland\""),
    ("overhead.toml", "the simulator runs no programs"),
    ("preempt.toml", "the simulator runs no programs"),
    ("shootdown.toml", "the simulator loads no modules"),
    ("stale.toml", "unknown workload `stale`"),
];

#[test]
fn every_case_of_the_lab_runs_or_says_what_has_no_model() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/cases");
    for entry in std::fs::read_dir(cases).expect("a folder") {
        let file = entry.expect("an entry").path();
        let file = file.display().to_string();
        let sets = ["--set", "case.measure_s=0.1", "--set", "case.warmup_s=0.01"];
        let args = [&["sim", "run", &file, "--repeats", "1"][..], &sets].concat();
        match LAB_ONLY.iter().find(|(name, _)| file.ends_with(name)) {
            Some((_, why)) => assert!(bad(&args).contains(why), "{file}"),
            None => {
                good(&args);
            }
        }
    }
}

#[test]
fn models_are_listed_and_printed() {
    assert!(good(&["sim", "models"]).contains("cpu "));
    assert!(good(&["sim", "models", "cpu"]).contains("per_vcpu_pm"));
    assert!(bad(&["sim", "models", "cpv"]).contains("did you mean `cpu`?"));
}

#[test]
fn a_sweep_goes_on_where_it_was() {
    with_case(CASE, |folder, file| {
        let out = folder.join("out");
        let sweep = |axis: &str| {
            let dir = out.display().to_string();
            good(&["sim", "sweep", file, "--out", &dir, "--grid", axis])
        };
        assert!(sweep("guest[1].weight=100,200").starts_with("2 points: "));
        let points = || std::fs::read_to_string(out.join("points.jsonl")).expect("reads");
        let csv = || std::fs::read_to_string(out.join("sweep.csv")).expect("reads");
        let (first, rows) = (points(), csv());
        // Two points of 2 solo runs of one guest and 4 runs of two.
        assert_eq!(rows.lines().count(), 1 + 2 * (2 + 4 * 2));
        assert!(
            rows.starts_with("point,guest[1].weight,repeat,seed,phase,"),
            "{rows}"
        );

        std::fs::write(out.join("points.jsonl"), &first[..first.len() - 9]).expect("torn");
        sweep("guest[1].weight=100,200");
        assert_eq!(csv(), rows);
        let whole = first.lines().next().expect("a point");
        assert_eq!(points().lines().next(), Some(whole));

        assert!(sweep("guest[1].weight=100,200,400").starts_with("3 points: "));
        assert!(csv().starts_with(rows.trim_end()));
        let dir = out.display().to_string();
        let error = bad(&["sim", "sweep", file, "--out", &dir, "--grid", "sim.seed=1"]);
        assert!(error.contains("holds points of another sweep"), "{error}");
        let error = bad(&[
            "sim",
            "sweep",
            file,
            "--out",
            &dir,
            "--grid",
            "guest[1].weight=0",
        ]);
        assert!(error.contains("expected 1 to 10000"), "{error}");
    });
}

/// Ctrl-C in the middle of runs ends at once, says what to do, and loses no
/// finished point.
#[test]
fn an_interrupted_sweep_keeps_what_is_done() {
    // Short points first, then one that takes minutes.
    with_case(CASE, |folder, file| {
        let dir = folder.join("out").display().to_string();
        let args = [
            "sim",
            "sweep",
            file,
            "--out",
            &dir,
            "--threads",
            "1",
            "--grid",
        ];
        let axis = "case.measure_s=0.1,0.2,600";
        let mut child = Command::new(env!("CARGO_BIN_EXE_corun"))
            .args([&args[..], &[axis, "--set", "case.repeats=100"]].concat())
            .stderr(Stdio::piped())
            .spawn()
            .expect("corun starts");
        let points = folder.join("out/points.jsonl");
        let lines = || std::fs::read_to_string(&points).map_or(0, |t| t.lines().count());
        let deadline = Instant::now() + Duration::from_mins(1);
        while lines() < 2 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let kill = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(kill.is_ok_and(|s| s.success()));
        let asked = Instant::now();
        let status = child.wait().expect("ends");
        assert!(
            asked.elapsed() < Duration::from_secs(10),
            "{:?}",
            asked.elapsed()
        );
        assert_eq!(status.code(), Some(1));
        let mut error = String::new();
        let mut stderr = child.stderr.take().expect("is piped");
        stderr.read_to_string(&mut error).expect("reads");
        assert!(
            error.contains("the same command goes on where it was"),
            "{error}"
        );
        assert_eq!(lines(), 2);
    });
}

/// `corun run` and the simulator must mean the same by the same options.
#[test]
fn options_of_corun_run_mean_the_same_here() {
    for slice_us in [100u64, 500, 3_000, 1_000_000] {
        for time_scale in [1.0, 12.5, 300.0] {
            let real = corun_host::RunOptions {
                slice: Duration::from_micros(slice_us),
                time_scale,
                ..corun_host::RunOptions::default()
            };
            let ours = CorunOptions::parse(&[format!("--slice-us={slice_us}")]).expect("is good");
            assert_eq!(Ok(ours.tunables(time_scale)), real.tunables());
        }
    }
}
