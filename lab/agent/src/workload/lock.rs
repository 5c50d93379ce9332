// SPDX-License-Identifier: GPL-2.0-only
//! `lock`: all threads want the same kernel lock all the time.

use super::{Setup, ThreadRule, Workload};
use crate::error::Error;
use crate::futex;
use crate::params::{Kind, Param};
use crate::scratch::Scratch;
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

pub(super) static WORKLOAD: Workload = Workload {
    name: "lock",
    about: "threads that contend for kernel locks: one directory, one pipe or one futex bucket",
    unit: "operations",
    latency: "one operation",
    threads: ThreadRule::Any,
    program: None,
    params: &[Param {
        name: "op",
        about: "dentry: create, stat, rename, unlink in one tmpfs directory (each counts); \
                pipe: a byte into and one out of one pipe (the two count as one); \
                futex: a wait that returns at once, for the hash bucket's spin lock",
        kind: Kind::Choice {
            default: "dentry",
            of: &["dentry", "pipe", "futex"],
        },
    }],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let workers = match setup.params.text("op") {
        "pipe" => {
            let ends = io::pipe().map_err(|e| Error::os("cannot make a pipe", e))?;
            let pipe = Arc::new(ends);
            same(setup.threads, || Box::new(SharedPipe(Arc::clone(&pipe))))
        }
        "futex" => {
            let word = Arc::new(AtomicU32::new(0));
            same(setup.threads, || Box::new(SharedFutex(Arc::clone(&word))))
        }
        _ => {
            let folder = Arc::new(Scratch::new()?);
            let mut number = 0;
            same(setup.threads, || {
                number += 1;
                Box::new(SharedFolder::new(&folder, number))
            })
        }
    };
    Ok(Box::new(Threads::start(
        workers,
        &setup.cpus,
        &setup.control,
    )?))
}

fn same(threads: usize, mut make: impl FnMut() -> Box<dyn Worker>) -> Vec<Box<dyn Worker>> {
    (0..threads).map(|_| make()).collect()
}

/// Files of its own in everybody's folder: only the folder's locks are shared.
struct SharedFolder {
    first: PathBuf,
    second: PathBuf,
    _folder: Arc<Scratch>,
}

impl SharedFolder {
    fn new(folder: &Arc<Scratch>, number: usize) -> Self {
        Self {
            first: folder.join(&format!("a{number}")),
            second: folder.join(&format!("b{number}")),
            _folder: Arc::clone(folder),
        }
    }
}

impl Worker for SharedFolder {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        let failed = |e| Error::os("file loop", e);
        meter
            .time(|| fs::File::create(&self.first))
            .map_err(failed)?;
        meter.time(|| fs::metadata(&self.first)).map_err(failed)?;
        meter
            .time(|| fs::rename(&self.first, &self.second))
            .map_err(failed)?;
        meter
            .time(|| fs::remove_file(&self.second))
            .map_err(failed)?;
        Ok(Flow::Continue)
    }
}

/// Everybody writes before reading, so there is always a byte for each reader and
/// nobody sleeps for lack of one: what is waited for is the pipe's lock.
struct SharedPipe(Arc<(PipeReader, PipeWriter)>);

impl Worker for SharedPipe {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        let (mut reader, mut writer) = (&self.0.0, &self.0.1);
        meter
            .time(|| {
                writer
                    .write_all(&[1])
                    .and_then(|()| reader.read_exact(&mut [0]))
            })
            .map_err(|e| Error::os("pipe loop", e))?;
        Ok(Flow::Continue)
    }
}

/// The word never has the expected value, so the kernel takes the bucket's lock,
/// looks, and returns.
struct SharedFutex(Arc<AtomicU32>);

impl Worker for SharedFutex {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        meter.time(|| futex::wait(&self.0, 1))?;
        Ok(Flow::Continue)
    }
}
