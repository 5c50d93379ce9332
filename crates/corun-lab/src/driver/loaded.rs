// SPDX-License-Identifier: GPL-2.0-only
//! A program that loads a sched_ext scheduler, from its start to its end.

use super::error::{Context, DriverError, Result};
use super::sched_ext::SchedExt;
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Verifying and attaching BPF programs takes seconds under emulation, and half a
/// minute where a scheduler has many. Shorter than the runner's patience.
const LOAD_TIMEOUT: Duration = Duration::from_mins(3);
/// The same for leaving.
const UNLOAD_TIMEOUT: Duration = Duration::from_mins(1);
/// How often the kernel and the child are looked at meanwhile.
const POLL: Duration = Duration::from_millis(20);
/// Lines of the program's output that are kept for messages.
const KEPT_LINES: usize = 60;

/// What to start, and how to tell that it schedules.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    /// The program.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
    /// How a line begins that it prints when it is ready; the kernel's word
    /// alone counts for a program without one.
    pub(super) ready_line: Option<&'static str>,
    /// How the kernel's name for its scheduler begins.
    pub(super) ops: &'static str,
}

/// A running program whose scheduler is in force.
#[derive(Debug)]
pub(super) struct Loaded {
    launch: Launch,
    child: Child,
    output: Output,
    /// [`SchedExt::loads`] once it was loaded.
    loads: u64,
}

/// The lines that a program printed: all, or the first and the last of them.
pub(super) type Output = Arc<Mutex<Vec<String>>>;

impl Loaded {
    /// Starts the program and waits until it schedules, by `kernel`'s word.
    pub(super) fn load(launch: Launch, kernel: impl Fn() -> SchedExt) -> Result<Self> {
        let before = kernel().loads;
        let command = || {
            let arguments = launch.arguments.join(" ");
            format!("start {} {arguments}", launch.program.display())
        };
        let mut start = Command::new(&launch.program);
        start
            .args(&launch.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        hear_sigint(&mut start);
        let mut child = start.spawn().doing(command)?;
        let output = Output::default();
        collect(child.stdout.take(), &output);
        collect(child.stderr.take(), &output);
        let mut loaded = Self {
            launch,
            child,
            output,
            loads: before,
        };
        loaded.wait_until_ready(before, kernel)?;
        Ok(loaded)
    }

    fn wait_until_ready(&mut self, before: u64, kernel: impl Fn() -> SchedExt) -> Result<()> {
        let deadline = Instant::now() + LOAD_TIMEOUT;
        loop {
            let now = kernel();
            if now.loads > before && self.is_ours(&now) && self.says_ready() {
                self.loads = now.loads;
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failure(&format!("ended at once ({status})")));
            }
            if Instant::now() > deadline {
                let waited = LOAD_TIMEOUT.as_secs();
                return Err(self.failure(&format!("does not schedule after {waited} s")));
            }
            thread::sleep(POLL);
        }
    }

    fn is_ours(&self, kernel: &SchedExt) -> bool {
        kernel.is_on() && kernel.ops.starts_with(self.launch.ops)
    }

    fn says_ready(&self) -> bool {
        self.launch.ready_line.is_none_or(|start| {
            let lines = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            lines.iter().any(|l| l.starts_with(start))
        })
    }

    /// Fails unless the program runs and its scheduler is in force, the same one
    /// since it was loaded.
    pub(super) fn check(&mut self, kernel: &SchedExt) -> Result<()> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(self.failure(&format!("ended by itself ({status})")));
        }
        if !self.is_ours(kernel) {
            return Err(self.failure(&format!(
                "was ejected by the kernel: sched_ext is {:?} ({:?})",
                kernel.state, kernel.ops
            )));
        }
        if kernel.loads != self.loads {
            return Err(self.failure("was ejected by the kernel and has loaded itself again"));
        }
        Ok(())
    }

    /// Ends the program as Ctrl-C does, and sees that its scheduler is gone.
    pub(super) fn unload(mut self, kernel: impl Fn() -> SchedExt) -> Result<()> {
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT);
        let deadline = Instant::now() + UNLOAD_TIMEOUT;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => break,
                Ok(Some(status)) => return Err(self.failure(&format!("left with {status}"))),
                _ if Instant::now() > deadline => {
                    return Err(self.failure("does not leave on SIGINT"));
                }
                _ => thread::sleep(POLL),
            }
        }
        // The kernel may finish after the program.
        while !kernel().is_off() {
            if Instant::now() > deadline {
                return Err(self.failure("left, but its scheduler is still loaded"));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn failure(&self, what: &str) -> DriverError {
        // The last words may still be on their way from the child.
        thread::sleep(Duration::from_millis(200));
        let lines = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let program = self.launch.program.display();
        let arguments = self.launch.arguments.join(" ");
        DriverError::Own(format!(
            "{program} {arguments} {what}; its output:\n{}",
            lines.join("\n")
        ))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A background job of a shell ignores SIGINT, and its children inherit that; this
/// child is ended by SIGINT, whatever we were started by.
pub(super) fn hear_sigint(start: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe functions may be called,
    // and sigaction() is one; the default action runs no code of ours.
    unsafe {
        start.pre_exec(|| {
            signal(Signal::SIGINT, SigHandler::SigDfl)?;
            Ok(())
        });
    }
}

/// Keeps the lines of `stream` in `output`.
pub(super) fn collect(stream: Option<impl Read + Send + 'static>, output: &Output) {
    let (Some(stream), output) = (stream, Arc::clone(output)) else {
        return;
    };
    thread::spawn(move || {
        for line in BufReader::new(stream)
            .lines()
            .map_while(std::result::Result::ok)
        {
            let mut kept = output.lock().unwrap_or_else(PoisonError::into_inner);
            // The first lines say what was found, the last what went wrong.
            if kept.len() == KEPT_LINES {
                kept.remove(KEPT_LINES / 2);
            }
            kept.push(line);
        }
    });
}

#[cfg(test)]
#[path = "loaded_tests.rs"]
mod tests;
