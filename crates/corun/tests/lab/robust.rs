// SPDX-License-Identifier: GPL-2.0-only
//! What happens to corun and its guests when VMs come and go by the hundred, when
//! the kernel ends the scheduler, and when guests tell of spins (or lie).

use super::{AWAIT, in_lab, text};
use serde_json::Value;

/// VMs that are started and ended: half a minute in the lab.
const VMS: u64 = 500;
/// Ways in which they end, in turn (`corun_lab::tinyvm::Ending`).
const ENDINGS: u64 = 10;
/// Tasks of the host that may come or go meanwhile: kworkers, the script's own.
const OTHER_TASKS: u64 = 20;

/// Shell functions: the next complete statistics of the corun that writes `$1`.
pub(crate) const STATS: &str = r#"
stats() {
    n=$(grep -c '"event":"stats"' "$1"); i=0
    until [ $(grep -c '"event":"stats"' "$1") -ge $((n+2)) ]; do
        sleep 0.2; i=$((i+1)); [ $i -gt 300 ] && break
    done
    grep '"event":"stats"' "$1" | tail -1
}
"#;

/// Objects that the script printed, one a line, of those that have `key`.
pub(crate) fn objects(said: &str, key: &str) -> Vec<Value> {
    said.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|value| value.get(key).is_some())
        .collect()
}

/// The object of the run that the script called `with`.
pub(crate) fn of_run<'a>(stats: &'a [Value], with: &str) -> &'a Value {
    let of = stats.iter().find(|s| s["with"] == with);
    of.unwrap_or_else(|| panic!("no statistics with {with}"))
}

pub(crate) fn number(value: &Value, path: &str) -> u64 {
    value
        .pointer(path)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no {path} in {value:#}"))
}

/// VMs that come and go while tools watch: the second number after the first.
const WATCHED_VMS: [u64; 2] = [20, 40];
/// By how much the tools' memory may differ meanwhile. KiB.
const MEMORY_KIB: u64 = 2048;

/// VMs come and go while tools watch, under the kernel's scheduler.
const WATCHED: &str = r#"
rss() { awk '/VmRSS/ {print $2}' /proc/$1/status; }
memory() { printf 'MEMORY {"top":%s,"recorder":%s}\n' $(rss $T) $(rss $R); }
corun top --json -i 0.5 > /tmp/top & T=$!
corun trace record -o /tmp/t.trace > /tmp/recorded 2> /tmp/progress & R=$!
await /tmp/top corun_accounts
await /tmp/progress events
corun lab-vms churn --vms FEW > /tmp/churn || cat /tmp/churn
memory
corun lab-vms churn --vms MORE > /tmp/churn || cat /tmp/churn
lines() { wc -l < /tmp/top; }
n=$(lines); i=0; until [ $(lines) -ge $((n+3)) ]; do sleep 0.2; i=$((i+1)); [ $i -gt 100 ] && break; done
memory
echo "SEEN $(grep -c '"vcpu":' /tmp/top)"
echo "TOP $(tail -1 /tmp/top)"
kill -INT $R; wait $R; kill -INT $T; wait $T
cat /tmp/recorded
echo "RECORDED $(corun trace analyze /tmp/t.trace --json | grep -o '"name":' | wc -l)"
"#;

/// What `said` has of the script above.
fn tools_lose_nothing(said: &str) {
    let lines = |word: &str| -> Vec<Value> {
        let found = said.lines().filter_map(|line| line.strip_prefix(word));
        found
            .map(|of| serde_json::from_str(of).expect(of))
            .collect()
    };
    let top = &lines("TOP ")[0];
    assert!(lines("SEEN ")[0].as_u64() > Some(0), "top saw no vCPU");
    assert_eq!(top["vms"].as_array().map(Vec::len), Some(0), "{top}");
    assert_eq!(number(top, "/drops/vcpus"), 0);
    // One ending is before the first vCPU ran: nothing to record.
    let ran: u64 = WATCHED_VMS.iter().map(|n| n - n / ENDINGS).sum();
    assert_eq!(lines("RECORDED ")[0].as_u64(), Some(ran));
    assert!(said.contains(" bytes), 0 dropped\n"), "{said}");
    let [before, after] = &lines("MEMORY ")[..] else {
        panic!("{said}");
    };
    for tool in ["/top", "/recorder"] {
        let (before, after) = (number(before, tool), number(after, tool));
        assert!(
            after < before + MEMORY_KIB,
            "{tool}: {before} to {after} KiB"
        );
    }
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn five_hundred_vms_come_and_go_in_every_state_and_leave_nothing() {
    let [few, more] = WATCHED_VMS.map(|n| n.to_string());
    let watched = WATCHED.replace("FEW", &few).replace("MORE", &more);
    let script = format!(
        "{AWAIT}{STATS}
corun run --json --stats 1 > /tmp/log 2> /tmp/err & P=$!
await /tmp/log '\"event\":\"stats\"'
stats /tmp/log
corun lab-vms churn --vms {VMS} --json
stats /tmp/log
echo \"THEN $(state)\"
kill -INT $P; wait $P
echo \"LEFT $? $(state)\"
cat /tmp/err
{watched}
dmesg | grep -E 'BUG|Oops|WARNING|runtime error|stall' && echo 'kernel complains'
true
"
    );
    let said = text(&in_lab(&script, &[]));
    println!("{said}");
    assert!(said.contains("THEN enabled\nLEFT 0 disabled\n"), "{said}");
    assert!(!said.contains("kernel complains"), "{said}");
    let churn = &objects(&said, "endings")[0];
    assert_eq!(number(churn, "/failed"), 0);
    let endings = churn["endings"].as_object().expect("endings");
    assert_eq!(endings.len() as u64, ENDINGS);
    for (ending, count) in endings {
        assert_eq!(count.as_u64(), Some(VMS / ENDINGS), "{ending}");
    }
    let stats = objects(&said, "in_use");
    let [before, after] = &stats[..] else {
        panic!("{} statistics", stats.len());
    };
    // One ending is before the first vCPU ran: nothing to find.
    let found = VMS - VMS / ENDINGS;
    assert_eq!(number(after, "/counters/vms_found"), found);
    assert_eq!(number(after, "/counters/vms_gone"), found);
    assert_eq!(number(after, "/counters/vms_untracked"), 0);
    nothing_is_left(&before["in_use"], &after["in_use"]);
    tools_lose_nothing(&said);
}

fn nothing_is_left(before: &Value, after: &Value) {
    assert_eq!(number(after, "/vms"), 0);
    assert_eq!(number(after, "/vcpus"), 0);
    let tasks = |in_use| number(in_use, "/tasks");
    assert!(
        tasks(after).abs_diff(tasks(before)) <= OTHER_TASKS,
        "{} tasks before, {} after",
        tasks(before),
        tasks(after)
    );
    let maps = |in_use: &Value| {
        let mut maps = in_use["maps"].as_array().expect("maps").clone();
        // Its entries are the tasks, compared above.
        for map in maps.iter_mut().filter(|map| map["name"] == "task_ctxs") {
            map["used"].take();
        }
        maps
    };
    assert!(!maps(before).is_empty());
    assert_eq!(maps(before), maps(after));
}

/// A real-time task holds pCPU 1, whose other tasks wait until the kernel's watchdog
/// ends the scheduler (30 s); the kernel's own floors for them are switched off.
/// Then the scheduler is ended by request. Halt polling is steered before: the vCPUs of
/// one guest poll for IPIs of a sibling whose pCPU others want.
const ENDED: &str = r#"
H=/sys/module/kvm/parameters/halt_poll_ns
echo 7000000 > $H
corun lab-vms hold --program spin --vcpus 3 --seconds 600 --name a > /tmp/a & A=$!
corun lab-vms hold --program ipi --vcpus 3 --seconds 600 --name b > /tmp/b & B=$!
corun run --json > /tmp/log 2> /tmp/err & P=$!
await /tmp/log '"change":"found"'
i=0; while [ $(cat $H) != 0 ]; do sleep 0.2; i=$((i+1)); [ $i -gt 300 ] && break; done
echo "STEERED $(cat $H)"
for f in /sys/kernel/debug/sched/*_server/cpu1/runtime; do echo 0 > $f; done
taskset 2 sh -c 'while :; do :; done' & W=$!
corun lab-vms hog --cpu 1 --seconds 120 & G=$!
wait $P
echo "ENDED $? $(state) $(cat $H)"
kill -9 $G $W
cat /tmp/err; grep '"event":"ended"' /tmp/log
tail -1 /tmp/a; sleep 3; tail -1 /tmp/a
corun run --json > /tmp/log2 2> /tmp/err2 & P=$!
await /tmp/log2 '"change":"found"'
echo S > /proc/sysrq-trigger
wait $P
echo "AGAIN $? $(state)"
cat /tmp/err2; grep '"event":"ended"' /tmp/log2
kill -9 $A $B
true
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn when_the_kernel_ends_the_scheduler_it_is_told_and_guests_go_on() {
    let said = text(&in_lab(&format!("{AWAIT}{ENDED}"), &[]));
    println!("{said}");
    for line in [
        "STEERED 0",
        "ENDED 1 disabled 7000000",
        "runnable task stall",
        "failed to run for",
        "AGAIN 1 disabled",
        "disabled by sysrq-S",
        "Next: somebody asked for it",
    ] {
        assert!(said.contains(line), "no {line:?} in:\n{said}");
    }
    let ended = objects(&said, "exit");
    assert_eq!(ended.len(), 2, "{said}");
    for event in &ended {
        assert_eq!(event["exit"]["kernel_schedules"], true, "{event}");
    }
    let guest = objects(&said, "rounds");
    let rounds = |of: &Value| of["rounds"].as_array().expect("rounds").clone();
    for (before, after) in rounds(&guest[0]).iter().zip(&rounds(&guest[1])) {
        assert_ne!(before, after, "a vCPU no longer runs: {said}");
    }
}

/// A guest of four vCPUs works in turns, and notifies Hyper-V of long spins while it
/// waits; corun runs with one mechanism after the other.
const SPINS: &str = r#"
corun lab-vms hold --program turns --vcpus 4 --seconds 600 --name a > /tmp/a & A=$!
await /tmp/a rounds
for m in none yield strict all; do
    corun run --json --mechanisms $m --stats 1 > /tmp/log.$m & P=$!
    await /tmp/log.$m '"change":"found"'
    stats /tmp/log.$m; stats /tmp/log.$m > /dev/null
    stats /tmp/log.$m | sed "s/^{/{\"with\":\"$m\",/"
    kill -INT $P; wait $P
    tail -1 /tmp/a
done
kill -9 $A
true
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn hyper_vs_long_spin_notification_runs_the_preempted_sibling() {
    let said = text(&in_lab(&format!("{AWAIT}{STATS}{SPINS}"), &[]));
    println!("{said}");
    let stats = objects(&said, "with");
    assert_eq!(stats.len(), 4, "{said}");
    let counter =
        |with: &str, name: &str| number(of_run(&stats, with), &format!("/counters/{name}"));
    // KVM's own choice reaches ops.yield, where only `yield` honours it.
    assert!(counter("none", "yields_asked") > 0);
    assert_eq!(counter("none", "yields_accepted"), 0);
    assert_eq!(counter("none", "yields_dispatched"), 0);
    assert!(counter("yield", "yields_accepted") > 0);
    assert!(counter("yield", "yields_dispatched") > 0);
    // corun's own choice, at the notification itself.
    for with in ["strict", "all"] {
        assert!(counter(with, "spins") > 0, "{with}");
        assert!(counter(with, "yields_dispatched") > 0, "{with}");
    }
    assert_eq!(counter("strict", "yields_accepted"), 0);
    for guest in objects(&said, "hypercall_status") {
        let statuses = guest["hypercall_status"].as_array().expect("statuses");
        assert!(statuses.iter().all(|s| s == 0), "KVM refused: {guest}");
    }
}

/// Seconds for which two guests share the host.
const SHARED_S: u64 = 12;

/// A guest that notifies of long spins without end beside one that computes. Beside
/// corun's account there is the kernel's own, of their processes: in one reading, but
/// the reader may lose its pCPU in between.
const FAKE: &str = r#"
corun lab-vms hold --program fake --vcpus VCPUS --seconds 600 --name fake > /tmp/f & F=$!
corun lab-vms hold --program spin --vcpus 2 --seconds 600 --name victim > /tmp/v & V=$!
corun run --json --stats 1 > /tmp/log & P=$!
await /tmp/log '"change":"found".*"fake"'
await /tmp/log '"change":"found".*"victim"'
used() {
    awk -v f="/proc/$F/" 'index(FILENAME, f) == 1 {fake += $1; next} {victim += $1}
        END {printf "{\"fake_ns\":%.0f,\"victim_ns\":%.0f}\n", fake, victim}' \
        /proc/$F/task/*/schedstat /proc/$V/task/*/schedstat
}
sleep 2
used; stats /tmp/log
sleep SECONDS
used; stats /tmp/log
kill -INT $P; wait $P
kill -9 $F $V
true
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn who_notifies_of_spins_without_end_wins_nothing() {
    // As many vCPUs as pCPUs, and twice as many: then a sibling always waits, and who is
    // asked to give way to it is asked to give way itself before its slice is over.
    for vcpus in ["2", "4"] {
        let fake = FAKE.replace("VCPUS", vcpus);
        fakes_and_computes(&fake.replace("SECONDS", &SHARED_S.to_string()));
    }
}

fn fakes_and_computes(script: &str) {
    let said = text(&in_lab(&format!("{AWAIT}{STATS}{script}"), &[]));
    println!("{said}");
    let kernels = objects(&said, "fake_ns");
    let stats = objects(&said, "in_use");
    let ([_, _], [before, after]) = (&kernels[..], &stats[..]) else {
        panic!("{said}");
    };
    let spins = |of: &Value| number(of, "/counters/spins");
    assert!(spins(after) > spins(before), "it did not notify");
    let used = |of: &Value, name: &str| {
        let vms = of["vms"].as_array().expect("VMs");
        let vm = vms.iter().find(|vm| vm["name"] == name);
        number(vm.expect("the VM"), "/used_ns")
    };
    let by_corun = share(|name| used(after, name) - used(before, name));
    let by_kernel = share(|name| {
        let path = format!("/{name}_ns");
        number(&kernels[1], &path) - number(&kernels[0], &path)
    });
    println!("the spinner's share: {by_corun:.2} % by corun, {by_kernel:.2} % by the kernel");
    assert!(by_corun < 51.0, "{by_corun:.2} % by corun");
    assert!(by_kernel < 52.0, "{by_kernel:.2} % by the kernel");
}

/// The spinner's part of what both guests used. Percent.
fn share(used_ns: impl Fn(&str) -> u64) -> f64 {
    let (fake, victim) = (used_ns("fake") as f64, used_ns("victim") as f64);
    100.0 * fake / (fake + victim)
}
