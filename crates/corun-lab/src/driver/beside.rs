// SPDX-License-Identifier: GPL-2.0-only
//! A command of the host's shell that runs beside the guests, so that the windows
//! show what it costs them.

use super::error::{Context, DriverError, Result};
use super::loaded::{Output, collect, hear_sigint};
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

/// Attaching BPF programs takes seconds under emulation.
const READY_WITHIN: Duration = Duration::from_mins(1);
/// A recorder writes its recording before it leaves.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// How often the command is looked at meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// A running command; what is left of it is killed with this value.
#[derive(Debug)]
pub(super) struct Beside {
    command: String,
    child: Child,
    output: Output,
}

impl Beside {
    /// Starts `command` and waits until it has printed a line: it works then.
    pub(super) fn start(command: &str) -> Result<Self> {
        let mut start = Command::new("sh");
        start
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        hear_sigint(&mut start);
        let mut child = start.spawn().doing(|| format!("start `{command}`"))?;
        let output = Output::default();
        collect(child.stdout.take(), &output);
        collect(child.stderr.take(), &output);
        let mut beside = Self {
            command: command.to_owned(),
            child,
            output,
        };
        beside.wait_until_ready()?;
        Ok(beside)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        while self.lines().is_empty() {
            self.check()?;
            if Instant::now() > deadline {
                let waited = READY_WITHIN.as_secs();
                return Err(self.failure(&format!("printed nothing in {waited} s")));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Fails unless it still runs: figures without it must not pass for figures with it.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(self.failure(&format!("ended by itself ({status})"))),
            _ => Ok(()),
        }
    }

    /// Ends it, and all that it started, as Ctrl-C does.
    pub(super) fn stop(mut self) -> Result<()> {
        let _ = killpg(self.group(), Signal::SIGINT);
        let deadline = Instant::now() + GONE_WITHIN;
        while !self.is_gone() {
            if Instant::now() > deadline {
                return Err(self.failure("does not leave on SIGINT"));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Whether the shell has ended, and all that it started.
    fn is_gone(&mut self) -> bool {
        let reaped = matches!(self.child.try_wait(), Ok(Some(_)));
        reaped && killpg(self.group(), None) == Err(Errno::ESRCH)
    }

    fn group(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }

    fn failure(&self, what: &str) -> DriverError {
        // The last words may still be on their way.
        thread::sleep(Duration::from_millis(200));
        DriverError::Own(format!(
            "`{}`, which was to run beside the guests, {what}; its output:\n{}",
            self.command,
            self.lines().join("\n")
        ))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // The number of a group that is gone may be another's by now.
        if self.is_gone() {
            return;
        }
        let _ = killpg(self.group(), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_until_it_is_stopped_with_all_that_it_started() {
        let mut beside = Beside::start("echo up; sleep 600; sleep 601").expect("starts");
        beside.check().expect("runs");
        let group = beside.group();
        beside.stop().expect("ends");
        assert_eq!(killpg(group, None), Err(Errno::ESRCH));
    }

    #[test]
    fn one_that_ends_is_an_error_with_its_output() {
        let error = Beside::start("echo no such option >&2; exit 2").and_then(|mut beside| {
            // It may have been seen alive after its line.
            while beside.check().is_ok() {
                thread::sleep(POLL);
            }
            beside.check()
        });
        let error = error.expect_err("it ended").to_string();
        assert!(error.contains("exit status: 2"), "{error}");
        assert!(error.contains("no such option"), "{error}");
    }
}
