// SPDX-License-Identifier: GPL-2.0-only
//! `forged-rip`: always inside one kernel function, for a symbol map that calls it
//! critical: against schedulers that let critical code run on or run first.
//!
//! A map cannot name user code (its addresses are in the lower half), so it has to
//! be the kernel that burns the CPU time. To forge: in a copy of the guest's
//! System.map, give the function named below the name of a lock's function.

use super::super::{Setup, ThreadRule, Workload};
use crate::error::Error;
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};
use std::fs::File;
use std::io::Read;

pub(in super::super) static WORKLOAD: Workload = Workload {
    name: "forged-rip",
    about: "hostile: long system calls that stay inside one function of the guest's kernel, \
            which a forged symbol map can call critical",
    unit: "calls",
    latency: "one call",
    threads: ThreadRule::Any,
    program: None,
    params: &[
        Param {
            name: "op",
            about: "zero: reads of /dev/zero (rep_stos_alternative, on a CPU without ERMS); \
                    random: reads of /dev/urandom (chacha_permute)",
            kind: Kind::Choice {
                default: "random",
                of: &["random", "zero"],
            },
        },
        Param {
            name: "kib",
            about: "size in KiB of one call; stopping waits for its end",
            kind: Kind::Int {
                default: 64,
                min: 4,
                max: 16_384,
            },
        },
    ],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let path = match setup.params.text("op") {
        "zero" => "/dev/zero",
        _ => "/dev/urandom",
    };
    let bytes = usize::try_from(setup.params.int("kib")).unwrap_or(1) * 1024;
    let mut workers: Vec<Box<dyn Worker>> = Vec::new();
    for _ in 0..setup.threads {
        let file = File::open(path).map_err(|e| Error::os(format!("cannot open {path}"), e))?;
        workers.push(Box::new(Reader {
            file,
            buffer: vec![0; bytes],
        }));
    }
    Ok(Box::new(Threads::start(
        workers,
        &setup.cpus,
        &setup.control,
    )?))
}

struct Reader {
    file: File,
    buffer: Vec<u8>,
}

impl Worker for Reader {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        meter
            .time(|| self.file.read_exact(&mut self.buffer))
            .map_err(|e| Error::os("long read", e))?;
        Ok(Flow::Continue)
    }
}
