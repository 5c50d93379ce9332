// SPDX-License-Identifier: GPL-2.0-only
//! What only a kernel can show: the lab is booted for real. Run with
//! `make smoke`. Behaviour is judged by counters and states, never by time, unless time is
//! the number of executed instructions.

#[path = "lab/accounts.rs"]
mod accounts;
#[path = "lab/counted.rs"]
mod counted;
#[path = "lab/doctor.rs"]
mod doctor;
#[path = "lab/events.rs"]
mod events;
#[path = "lab/pinned.rs"]
mod pinned;
#[path = "lab/robust.rs"]
mod robust;
#[path = "lab/shootdowns.rs"]
mod shootdowns;
#[path = "lab/trace.rs"]
mod trace;

use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn corun(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corun"));
    command
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command
}

/// Runs `script` in the emulated host, with the guests of `case` when given.
/// The script exits with 1 when the lab failed it, or the lab does when the
/// emulator did; then it is tried again, at most three times, and told.
fn in_lab(script: &str, args: &[&str]) -> Output {
    for retry in 1..=3 {
        let output = in_lab_once(script, args);
        if output.status.success() {
            return output;
        }
        eprintln!("retry {retry} of 3 after:\n{}", text(&output));
    }
    in_lab_once(script, args)
}

fn in_lab_once(script: &str, args: &[&str]) -> Output {
    // A host that the emulator stopped for good would be waited for for ever.
    let shell = ["lab", "shell", "--silent-s", "420"];
    let mut shell = corun(&[&shell[..], args].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("corun starts");
    let mut stdin = shell.stdin.take().expect("stdin is piped");
    stdin
        .write_all(script.as_bytes())
        .expect("corun reads its commands");
    drop(stdin);
    shell.wait_with_output().expect("corun ends")
}

/// Two guests with twice as many vCPUs as the lab has pCPUs, under the kernel's
/// scheduler.
const TWO_GUESTS: &str = r#"
[[scheduler]]
label = "eevdf"
kind = "kernel"

[[guest]]
name = "a"
vcpus = 2

[[guest]]
name = "b"
vcpus = 2

[gate]
enabled = false
"#;

/// The same with three vCPUs each, which shoot down TLBs; a counts its own. (Linux asks for
/// a yield only when an IPI has several targets.)
const TWO_SHOOTERS: &str = r#"
[[phase]]
name = "tlb"
measure = ["a", "b"]

[phase.run.b]
workload = "shell"
params = { script = """
echo "SHOOTS END" > /dev/ttyS0
/init --run tlb --measure-ms 3600000 > /dev/null
""" }

[[scheduler]]
label = "eevdf"
kind = "kernel"

[[guest]]
name = "a"
vcpus = 3
pv = { sched_yield = true }
module = "corun_guest"
module_params = "mode=kernel"

[[guest]]
name = "b"
vcpus = 3
pv = { sched_yield = true }

[gate]
enabled = false
"#;

/// The file of a case that a test brings, in a folder that goes with it.
struct CaseFile {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl CaseFile {
    /// The case whose guests are in `guests`, and the rest in `text`.
    fn new(text: &str, guests: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("case.toml");
        std::fs::write(&path, format!("{guests}{text}")).expect("the case is written");
        Self {
            _folder: folder,
            path,
        }
    }

    fn path(&self) -> &str {
        self.path.to_str().expect("a path of letters")
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// What follows `word` on its line.
fn after<'a>(said: &'a str, word: &str) -> &'a str {
    let line = said.lines().find_map(|l| l.trim().strip_prefix(word));
    line.unwrap_or_else(|| panic!("no {word:?} in:\n{said}"))
        .trim()
}

fn smoke_result(host_kernel: &str) -> Value {
    let output = corun(&[
        "lab",
        "run",
        "smoke",
        "--json",
        "--host-kernel",
        host_kernel,
    ])
    .stderr(Stdio::inherit())
    .output()
    .expect("corun starts");
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).expect("the result is JSON")
}

fn samples<'a>(result: &'a Value, phase: &str, scheduler: &str) -> Vec<&'a Value> {
    let samples = result["samples"].as_array().expect("samples");
    samples
        .iter()
        .filter(|s| s["phase"] == phase && s["scheduler"] == scheduler)
        .collect()
}

fn counter(sample: &Value, name: &str) -> u64 {
    sample["counters"][name]
        .as_u64()
        .unwrap_or_else(|| panic!("no counter {name}"))
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn two_guests_run_under_both_schedulers_and_yields_are_followed() {
    check_smoke(&smoke_result("7.3"));
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn the_same_on_the_older_host_kernel() {
    let result = smoke_result("7.2");
    let release = result["host"]["kernel"].as_str();
    assert!(
        release.is_some_and(|r| r.starts_with("7.2.")),
        "{release:?}"
    );
    check_smoke(&result);
}

fn check_smoke(result: &Value) {
    let qemu = result["versions"]["qemu"].as_str();
    assert!(
        qemu.is_some_and(|q| q.ends_with("(mended)")),
        "the emulator has faults in {qemu:?}"
    );
    for scheduler in ["eevdf", "corun"] {
        for phase in ["tlb", "cpu"] {
            let samples = samples(result, phase, scheduler);
            assert!(
                !samples.is_empty(),
                "no window of {phase} under {scheduler}"
            );
            for guest in ["a", "b"] {
                let work = samples[0]["guests"][guest]["work"].as_f64();
                assert!(
                    work.is_some_and(|w| w > 0.0),
                    "{guest} did nothing: {work:?}"
                );
            }
        }
    }
    let tlb = samples(result, "tlb", "corun")[0];
    let asked = counter(tlb, "corun.yields_asked");
    assert!(
        asked > 0,
        "KVM asked for no yield: the case does not reach that path"
    );
    assert!(
        counter(tlb, "corun.yields_dispatched") > 0,
        "no yield was followed: {tlb:#}"
    );
    let fates: u64 = [
        "corun.yields_accepted",
        "corun.yields_refused_stranger",
        "corun.yields_refused_affinity",
    ]
    .iter()
    .map(|name| counter(tlb, name))
    .sum();
    assert!(
        fates.abs_diff(asked) <= 1,
        "{fates} fates of {asked} yields"
    );
    assert!(counter(tlb, "corun.dispatches") > 0);
    assert_eq!(counter(tlb, "corun.vms_untracked"), 0);
}

/// Finds both guests, and says how the scheduler left.
const LEAVE: &str = r#"
[ $(ps | grep -c '[q]emu-system') = 3 ] || { echo "guests did not come up"; exit 1; }
state() { cat /sys/kernel/sched_ext/state; }
corun run --json > /tmp/run 2>&1 & run=$!
for i in $(seq 100); do grep -q '"vcpus":3.*' /tmp/run && [ $(grep -c found /tmp/run) -ge 3 ] && break; sleep 0.2; done
cat /tmp/run
echo "while running: $(state)"
kill -SIGNAL $run
for i in $(seq 100); do [ "$(state)" = disabled ] && break; sleep 0.1; done
echo "afterwards: $(state)"
wait $run
echo "exit code: $?"
tail -1 /tmp/run
ps | grep -c '[q]emu-system'
dmesg | grep -E 'BUG|Oops|runtime error|stall' && echo "kernel complains"
true
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn vms_are_found_and_leaving_restores_the_kernels_scheduler() {
    let output = in_lab(&LEAVE.replace("SIGNAL", "INT"), &["--case", "smoke"]);
    let text = text(&output);
    assert!(text.contains("while running: enabled"), "{text}");
    for name in [r#""name":"a""#, r#""name":"b""#] {
        assert!(text.contains(name), "VM {name} was not found: {text}");
    }
    assert!(text.contains(r#""event":"left""#), "{text}");
    assert!(text.contains("afterwards: disabled"), "{text}");
    assert!(text.contains("exit code: 0"), "{text}");
    assert!(!text.contains("kernel complains"), "{text}");
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn kill_9_restores_the_kernels_scheduler_and_guests_go_on() {
    let output = in_lab(&LEAVE.replace("SIGNAL", "KILL"), &["--case", "smoke"]);
    let text = text(&output);
    assert!(text.contains("while running: enabled"), "{text}");
    assert!(text.contains("afterwards: disabled"), "{text}");
    // Two guests and the paused one that holds KVM's static keys.
    assert!(
        text.lines().any(|line| line.trim() == "3"),
        "guests are gone: {text}"
    );
    assert!(!text.contains("kernel complains"), "{text}");
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn the_policy_decides_alike_in_bpf_and_natively() {
    let output = in_lab("corun policy-check --random 500\n", &[]);
    let text = text(&output);
    assert!(
        output.status.success() && text.contains("passed, 0 failed"),
        "{text}"
    );
}

/// Waits for the first line of corun's output in `$1` that has `$2`.
const AWAIT: &str = r#"
await() { i=0; while ! grep -q "$2" "$1"; do sleep 0.2; i=$((i+1)); [ $i -gt 900 ] && { echo "NO $2 in $1"; cat "$1"; exit 1; }; done; }
state() { cat /sys/kernel/sched_ext/state; }
"#;

/// pCPUs go and come back under load, kvm is unloaded and loaded again while tools
/// watch, corun ends by Ctrl-C and by kill -9: it stays, or the kernel's scheduler is
/// back.
const COMINGS_AND_GOINGS: &str = r#"
corun run > /tmp/log 2>&1 & P=$!
await /tmp/log "corun: scheduling"
for k in 1 2 3; do (while :; do :; done) & B="$B $!"; done
for k in 1 2 3 4 5; do
    echo 0 > /sys/devices/system/cpu/cpu1/online; sleep 0.3
    echo 1 > /sys/devices/system/cpu/cpu1/online; sleep 0.3
done
echo "HOTPLUG $(state) $(cat /sys/devices/system/cpu/online)"
kill $B
corun top --json -i 0.5 > /tmp/top & T=$!
corun trace record -o /tmp/t.trace > /tmp/recorded 2> /tmp/progress & R=$!
await /tmp/top corun_accounts
await /tmp/progress events
V=$(lsmod | grep -o "^kvm_[a-z]*")
rmmod $V
await /tmp/log "kvm is no longer in use"
await /tmp/top "the module is not loaded"
wait $R; echo "RECORDER $? $(grep -c "kvm was unloaded" /tmp/progress)"
i=0; until rmmod kvm 2>/dev/null; do sleep 0.2; i=$((i+1)); [ $i -gt 300 ] && break; done
echo "KVM $(lsmod | grep -c "^kvm") left"
insmod /mod/kvm.ko; insmod "/mod/$(echo $V | tr _ -).ko"
await /tmp/log "reloading with VM discovery"
i=0; until [ "$(state)" = enabled ]; do sleep 0.2; i=$((i+1)); [ $i -gt 300 ] && break; done
echo "AGAIN $(state)"
corun lab-vms hold --program spin --vcpus 2 --seconds 600 --name back > /tmp/back & G=$!
await /tmp/top '"name":"back"'
echo "TOP $(tail -1 /tmp/top | grep -c '"missing":\[\]')"
kill $G; kill -INT $T; wait $T
kill -INT $P; wait $P
echo "LEFT $? $(state)"
corun run > /tmp/log2 2>&1 & P=$!
await /tmp/log2 "corun: scheduling"
kill -9 $P; sleep 1
echo "KILLED $(state)"
corun doctor > /dev/null; echo "DOCTOR $?"
corun doctor --repair > /dev/null; echo "REPAIR $?"
corun doctor > /dev/null; echo "DOCTOR $?"
ls /sys/fs/bpf/corun 2>/dev/null | wc -l
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn pcpus_kvm_and_corun_itself_come_and_go() {
    let output = in_lab(&format!("{AWAIT}{COMINGS_AND_GOINGS}"), &[]);
    let said = text(&output);
    for line in [
        "HOTPLUG enabled 0-1",
        "RECORDER 0 1",
        "KVM 0 left",
        "AGAIN enabled",
        "TOP 1",
        "LEFT 0 disabled",
        "KILLED disabled",
        "DOCTOR 1\nREPAIR 0\nDOCTOR 0\n0\n",
    ] {
        assert!(said.contains(line), "no {line:?} in:\n{said}");
    }
}
