// SPDX-License-Identifier: GPL-2.0-only
//! Programs that load, leave or fail, made of shell; and a kernel made of words.

use super::*;
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn launch(text: &str, ready_line: Option<&'static str>) -> (tempfile::TempDir, Launch) {
    let dir = tempfile::tempdir().expect("tempdir");
    let program = dir.path().join("sched");
    fs::write(&program, format!("#!/bin/sh\n{text}\n")).expect("write");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("chmod");
    let launch = Launch {
        program,
        arguments: vec!["run".to_owned()],
        ready_line,
        ops: "ours",
    };
    (dir, launch)
}

fn kernel(state: &str, ops: &str, loads: u64) -> SchedExt {
    SchedExt {
        state: state.to_owned(),
        ops: ops.to_owned(),
        loads,
    }
}

/// A kernel that says the first reading once, then the second for ever.
fn turns(first: SchedExt, then: SchedExt) -> impl Fn() -> SchedExt {
    let asked = Cell::new(false);
    move || {
        if asked.replace(true) {
            then.clone()
        } else {
            first.clone()
        }
    }
}

fn off() -> SchedExt {
    kernel("disabled", "", 1)
}

fn on() -> SchedExt {
    kernel("enabled", "ours_1.0", 2)
}

#[test]
fn a_refusal_is_told_in_the_programs_own_words() {
    let (_dir, launch) = launch("echo 'no sched_ext here' >&2; exit 3", None);
    let error = Loaded::load(launch, off).expect_err("fails").to_string();
    for part in [
        "sched run ended at once",
        "exit status: 3",
        "no sched_ext here",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_kernel_must_name_it_and_have_loaded_it_since() {
    for strange in [
        off(),
        kernel("enabled", "theirs", 2),
        kernel("enabled", "ours", 1),
    ] {
        let (_dir, launch) = launch("exit 3", None);
        assert!(Loaded::load(launch, turns(off(), strange)).is_err());
    }
    let (_dir, launch) = launch("exec sleep 1000", None);
    assert!(Loaded::load(launch, turns(off(), on())).is_ok());
}

#[test]
fn a_program_with_a_line_must_print_it_too() {
    let (_dir, silent) = launch("exit 3", Some("ready"));
    assert!(Loaded::load(silent, turns(off(), on())).is_err());
    let (_dir, told) = launch("echo 'ready (x)'; exec sleep 1000", Some("ready"));
    assert!(Loaded::load(told, turns(off(), on())).is_ok());
}

#[test]
fn an_ejection_is_noticed_even_when_it_came_back() {
    let (_dir, launch) = launch("exec sleep 1000", None);
    let mut loaded = Loaded::load(launch, turns(off(), on())).expect("loads");
    assert!(loaded.check(&on()).is_ok());
    let said = |loaded: &mut Loaded, k| loaded.check(&k).expect_err("ejected").to_string();
    assert!(said(&mut loaded, kernel("disabled", "", 2)).contains("ejected"));
    assert!(said(&mut loaded, kernel("enabled", "theirs", 2)).contains("theirs"));
    assert!(said(&mut loaded, kernel("enabled", "ours_1.0", 3)).contains("again"));
}

#[test]
fn leaving_is_a_clean_exit_and_then_the_kernels_word() {
    let polite = "trap 'exit 0' INT; echo up; while :; do sleep 0.05; done";
    let (_dir, one) = launch(polite, Some("up"));
    let loaded = Loaded::load(one, turns(off(), on())).expect("loads");
    // Still on its way out when first asked.
    let leaving = kernel("disabling", "ours_1.0", 2);
    assert!(loaded.unload(turns(leaving, off())).is_ok());
    let (_dir, two) = launch(
        "trap 'exit 4' INT; echo up; while :; do sleep 0.05; done",
        Some("up"),
    );
    let loaded = Loaded::load(two, turns(off(), on())).expect("loads");
    let error = loaded.unload(off).expect_err("unclean").to_string();
    assert!(error.contains("left with exit status: 4"), "{error}");
}
