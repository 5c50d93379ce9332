// SPDX-License-Identifier: GPL-2.0-only
//! `hackbench`: Debian's own, run again and again.

use super::{Setup, ThreadRule, Workload};
use crate::error::{Error, tail};
use crate::external::{External, Figures, Program};
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::sync::nanos;
use std::time::Duration;

const HACKBENCH: Program = Program {
    name: "hackbench",
    package: "rt-tests",
};

pub(super) static WORKLOAD: Workload = Workload {
    name: "hackbench",
    about: "groups of senders and receivers that pass messages through sockets or pipes: wake-ups and kernel locks",
    unit: "messages",
    latency: "one run of the program, its start included",
    threads: ThreadRule::ByParams,
    program: Some(HACKBENCH),
    params: &[
        Param {
            name: "groups",
            about: "groups of senders and receivers",
            kind: Kind::Int {
                default: 1,
                min: 1,
                max: 100,
            },
        },
        Param {
            name: "fds",
            about: "senders, and as many receivers, in each group",
            kind: Kind::Int {
                default: 10,
                min: 1,
                max: 100,
            },
        },
        Param {
            name: "loops",
            about: "messages of 100 bytes from each sender to each receiver of its group",
            kind: Kind::Int {
                default: 200,
                min: 1,
                max: 1_000_000,
            },
        },
        Param {
            name: "tasks",
            about: "what senders and receivers are",
            kind: Kind::Choice {
                default: "process",
                of: &["process", "thread"],
            },
        },
        Param {
            name: "via",
            about: "what messages go through",
            kind: Kind::Choice {
                default: "socket",
                of: &["socket", "pipe"],
            },
        },
    ],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let p = &setup.params;
    let (groups, fds, loops) = (p.int("groups"), p.int("fds"), p.int("loops"));
    let mut args = Vec::new();
    for (option, value) in [("-g", groups), ("-f", fds), ("-l", loops)] {
        args.extend([option.to_owned(), value.to_string()]);
    }
    args.push(
        if p.text("tasks") == "thread" {
            "-T"
        } else {
            "-P"
        }
        .to_owned(),
    );
    if p.text("via") == "pipe" {
        args.push("-p".to_owned());
    }
    let messages = (groups * fds * fds * loops) as f64;
    let tasks = usize::try_from(groups * fds * 2).unwrap_or(usize::MAX);
    let parse = move |output: &str, wall: Duration| figures(output, wall, messages);
    Ok(Box::new(External::new(
        HACKBENCH,
        args,
        tasks,
        Box::new(parse),
    )?))
}

/// The work is fixed; the time it prints only proves that it came to its end.
fn figures(output: &str, wall: Duration, messages: f64) -> Result<Figures, Error> {
    let finished = output
        .lines()
        .filter_map(|line| line.strip_prefix("Time:"))
        .any(|time| time.trim().parse::<f64>().is_ok());
    if !finished {
        return Err(Error::Unparsable {
            program: HACKBENCH.name,
            what: "its time",
            tail: tail(output, 5),
        });
    }
    Ok(Figures {
        work: messages,
        latency: vec![(nanos(wall), 1)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_run_counts_all_messages() {
        let output =
            "Running in process mode with 1 groups using 20 file descriptors each\nTime: 0.151\n";
        let found = figures(output, Duration::from_millis(160), 40_000.0).expect("complete");
        assert_eq!(
            found,
            Figures {
                work: 40_000.0,
                latency: vec![(160_000_000, 1)]
            }
        );
    }

    #[test]
    fn an_unfinished_run_is_an_error() {
        for output in ["", "Running in process mode\n", "Time: soon\n"] {
            assert!(figures(output, Duration::ZERO, 1.0).is_err(), "{output}");
        }
    }
}
