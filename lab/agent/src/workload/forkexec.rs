// SPDX-License-Identifier: GPL-2.0-only
//! `forkexec`: like a build: short commands one after the other on every vCPU,
//! some of them pipelines, each with some computing and file I/O.

use super::{Setup, ThreadRule, Workload};
use crate::error::{Error, tail};
use crate::external::{PATH, Program, how_it_ended};
use crate::params::{Kind, Param};
use crate::scratch::Scratch;
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

const BUSYBOX: Program = Program {
    name: "busybox",
    package: "busybox",
};

pub(super) static WORKLOAD: Workload = Workload {
    name: "forkexec",
    about: "short-lived busybox commands one after the other on each vCPU, like a build",
    unit: "commands",
    latency: "one command, from fork to exit",
    threads: ThreadRule::Any,
    program: Some(BUSYBOX),
    params: &[
        Param {
            name: "command",
            about: "true: nothing but fork, exec and exit; sha: one that reads and computes; \
                    pipe: a shell with a two-part pipeline into a file; mix: all in turn",
            kind: Kind::Choice {
                default: "mix",
                of: &["mix", "true", "sha", "pipe"],
            },
        },
        Param {
            name: "kib",
            about: "size in KiB of the file that sha and pipe read",
            kind: Kind::Int {
                default: 64,
                min: 1,
                max: 16_384,
            },
        },
    ],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let busybox = BUSYBOX.find()?;
    let folder = Arc::new(Scratch::new()?);
    let input = folder.join("in");
    let bytes = usize::try_from(setup.params.int("kib")).unwrap_or(1) * 1024;
    fs::write(&input, text(bytes)).map_err(|e| Error::os("cannot write the input file", e))?;
    let kinds: &'static [Kinds] = match setup.params.text("command") {
        "true" => &[Kinds::True],
        "sha" => &[Kinds::Sha],
        "pipe" => &[Kinds::Pipe],
        _ => &[Kinds::True, Kinds::Sha, Kinds::Pipe],
    };
    let workers = (0..setup.threads)
        .map(|i| {
            let folder = Arc::clone(&folder);
            Box::new(Forker {
                busybox: busybox.clone(),
                kinds,
                number: i,
                next: i,
                folder,
            }) as Box<dyn Worker>
        })
        .collect();
    Ok(Box::new(Threads::start(
        workers,
        &setup.cpus,
        &setup.control,
    )?))
}

/// Text that compresses about as well as source code.
fn text(bytes: usize) -> Vec<u8> {
    let words = [
        "static", "int", "return", "struct", "if", "(", ")", "{", "}", ";\n", "x", "y1",
    ];
    let mut state = 1_u32;
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        out.extend_from_slice(words[(state >> 16) as usize % words.len()].as_bytes());
        out.push(b' ');
    }
    out.truncate(bytes);
    out
}

#[derive(Debug, Clone, Copy)]
enum Kinds {
    True,
    Sha,
    Pipe,
}

struct Forker {
    busybox: PathBuf,
    kinds: &'static [Kinds],
    number: usize,
    next: usize,
    folder: Arc<Scratch>,
}

impl Forker {
    fn command(&self, kind: Kinds) -> Command {
        let mut command = Command::new(&self.busybox);
        match kind {
            Kinds::True => command.arg("true"),
            Kinds::Sha => command.args(["sha256sum", "in"]),
            Kinds::Pipe => {
                let b = self.busybox.display();
                let out = format!("out{}", self.number);
                let script = format!("{b} gzip -c in | {b} sha256sum >{out}; {b} rm {out}");
                command.args(["sh", "-c", &script])
            }
        };
        command
            .current_dir(self.folder.path())
            .env("PATH", PATH.join(":"))
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }
}

impl Worker for Forker {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        let kind = self.kinds[self.next % self.kinds.len()];
        self.next += 1;
        let mut command = self.command(kind);
        let output = meter
            .time(|| command.output())
            .map_err(|e| Error::os("cannot run busybox", e))?;
        if output.status.success() {
            return Ok(Flow::Continue);
        }
        Err(Error::Program {
            program: format!("{command:?}"),
            how: how_it_ended(output.status),
            tail: tail(&String::from_utf8_lossy(&output.stderr), 5),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn input_has_the_size_asked_for() {
        assert_eq!(text(1000).len(), 1000);
        assert!(text(1000).is_ascii());
    }
}
