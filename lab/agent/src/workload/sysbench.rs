// SPDX-License-Identifier: GPL-2.0-only
//! `sysbench`: Debian's own, its thread scheduler and mutex tests.

use super::{Setup, ThreadRule, Workload};
use crate::error::{Error, tail};
use crate::external::{External, Figures, Program};
use crate::params::{Kind, Param};
use crate::session::Session;
use std::time::Duration;

const SYSBENCH: Program = Program {
    name: "sysbench",
    package: "sysbench",
};

pub(super) static WORKLOAD: Workload = Workload {
    name: "sysbench",
    about: "sysbench's tests of thread scheduling and mutexes, run again and again; its start counts as time without work",
    unit: "events",
    latency: "one event",
    threads: ThreadRule::Any,
    program: Some(SYSBENCH),
    params: &[
        Param {
            name: "test",
            about: "threads: an event is 1000 times yield, lock, yield, unlock; mutex: an event is \
                    one thread's locking and computing; cpu: an event is a search for primes",
            kind: Kind::Choice {
                default: "threads",
                of: &["threads", "mutex", "cpu"],
            },
        },
        Param {
            name: "events",
            about: "events of one run, threads and cpu tests",
            kind: Kind::Int {
                default: 150,
                min: 1,
                max: 1_000_000_000,
            },
        },
        Param {
            name: "acquisitions",
            about: "mutexes that each thread takes in one run, mutex test",
            kind: Kind::Int {
                default: 10_000,
                min: 1,
                max: 1_000_000_000,
            },
        },
        Param {
            name: "locks",
            about: "mutexes to take from, threads and mutex tests: fewer means more contention",
            kind: Kind::Int {
                default: 1,
                min: 1,
                max: 100_000,
            },
        },
    ],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let p = &setup.params;
    let test = p.text("test");
    let mut args = vec![test.to_owned()];
    args.push(format!("--threads={}", setup.threads));
    args.push("--time=0".to_owned());
    args.push("--histogram=on".to_owned());
    let (events, locks) = (p.int("events"), p.int("locks"));
    match test {
        "mutex" => args.extend([
            format!("--mutex-locks={}", p.int("acquisitions")),
            format!("--mutex-num={locks}"),
        ]),
        "threads" => args.extend([
            format!("--events={events}"),
            format!("--thread-locks={locks}"),
        ]),
        _ => args.push(format!("--events={events}")),
    }
    args.push("run".to_owned());
    let parse = |output: &str, _: Duration| {
        figures(output).ok_or_else(|| Error::Unparsable {
            program: SYSBENCH.name,
            what: "its events and latencies",
            tail: tail(output, 12),
        })
    };
    Ok(Box::new(External::new(
        SYSBENCH,
        args,
        setup.threads,
        Box::new(parse),
    )?))
}

/// Number of events, and the histogram: lines of milliseconds, a bar, and a count.
fn figures(output: &str) -> Option<Figures> {
    let events = output
        .lines()
        .find_map(|line| line.trim().strip_prefix("total number of events:"))
        .and_then(|number| number.trim().parse().ok())?;
    let latency: Vec<(u64, u64)> = output.lines().filter_map(bucket).collect();
    (!latency.is_empty()).then_some(Figures {
        work: events,
        latency,
    })
}

/// One line of the histogram: nanoseconds and count.
fn bucket(line: &str) -> Option<(u64, u64)> {
    let (value, rest) = line.split_once('|')?;
    let milliseconds: f64 = value.trim().parse().ok()?;
    let count = rest.rsplit(' ').next()?.parse().ok()?;
    let latency = Duration::try_from_secs_f64(milliseconds / 1000.0).ok()?;
    Some((crate::sync::nanos(latency), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "Threads started!

Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.500 |****                                     10
      12.750 |**************************************** 90

General statistics:
    total time:                          0.2001s
    total number of events:              100
";

    #[test]
    fn events_and_histogram_are_read() {
        let expected = Figures {
            work: 100.0,
            latency: vec![(500_000, 10), (12_750_000, 90)],
        };
        assert_eq!(figures(OUTPUT), Some(expected));
    }

    #[test]
    fn missing_parts_are_noticed() {
        assert_eq!(figures(""), None);
        assert_eq!(figures("total number of events: 5\n"), None);
        assert_eq!(figures("  0.5 |** 3\n"), None);
    }
}
