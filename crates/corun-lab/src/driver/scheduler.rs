// SPDX-License-Identifier: GPL-2.0-only
//! Chooses what schedules the host: the kernel, or `corun run` as a child.

use super::error::{Context, DriverError, Result};
use crate::case::{Scheduler, SchedulerKind};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What `corun run` prints first when it schedules.
const READY_LINE: &str = "corun: scheduling";
/// Verifying and attaching BPF programs takes seconds under emulation.
const LOAD_TIMEOUT: Duration = Duration::from_mins(3);
/// The same for leaving.
const UNLOAD_TIMEOUT: Duration = Duration::from_mins(1);
/// Lines of corun's output that are kept for messages.
const KEPT_LINES: usize = 60;

/// The host's scheduler.
pub(super) struct HostScheduler {
    program: PathBuf,
    factor: f64,
    corun: Option<Corun>,
}

impl HostScheduler {
    /// The kernel schedules; `program` is the `corun` to run later.
    pub(super) fn new(program: PathBuf, factor: f64) -> Self {
        Self {
            program,
            factor,
            corun: None,
        }
    }

    /// Hands the host to `scheduler`.
    pub(super) fn select(&mut self, scheduler: &Scheduler) -> Result<()> {
        self.release()?;
        if scheduler.kind == SchedulerKind::Corun {
            let mut arguments = arguments(self.factor, &scheduler.options);
            arguments.extend(guest_symbols()?);
            self.corun = Some(Corun::load(&self.program, &arguments)?);
        }
        self.check()
    }

    /// Fails unless the scheduler that was selected is in force: an ejected
    /// scheduler must not give figures for corun.
    pub(super) fn check(&mut self) -> Result<()> {
        let state = sched_ext_state();
        match &mut self.corun {
            None if state != "enabled" => Ok(()),
            None => Err(DriverError::Own(
                "a sched_ext scheduler is loaded, but the kernel's own was asked for".to_owned(),
            )),
            Some(corun) => corun.check(&state),
        }
    }

    /// Hands the host back to the kernel's scheduler.
    pub(super) fn release(&mut self) -> Result<()> {
        match self.corun.take() {
            Some(corun) => corun.unload(),
            None => Ok(()),
        }
    }
}

/// A factor of 1 is corun's own default and is not named, so that the smoke
/// case runs corun as users do.
fn arguments(factor: f64, options: &[String]) -> Vec<String> {
    let mut arguments = vec!["run".to_owned()];
    if (factor - 1.0).abs() > f64::EPSILON {
        arguments.extend(["--time-scale".to_owned(), format!("{factor}")]);
    }
    arguments.extend(options.iter().cloned());
    arguments
}

/// Where the map of the guests' kernel is put.
const SYMBOLS_DIR: &str = "/run/corun-symbols";

/// `--symbols` for `corun run`: guests of the host's own kernel version have the
/// host's symbols; others are seen to run another kernel.
fn guest_symbols() -> Result<[String; 2]> {
    let map = Path::new(SYMBOLS_DIR).join("System.map");
    if !map.exists() {
        fs::create_dir_all(SYMBOLS_DIR).doing(|| format!("create {SYMBOLS_DIR}"))?;
        fs::copy("/proc/kallsyms", &map).doing(|| format!("write {}", map.display()))?;
    }
    Ok(["--symbols".to_owned(), SYMBOLS_DIR.to_owned()])
}

/// What the kernel says of sched_ext: "enabled", "disabled", ...
pub(super) fn sched_ext_state() -> String {
    let text = fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_default();
    text.trim().to_owned()
}

/// A running `corun run`.
struct Corun {
    child: Child,
    output: Output,
}

type Output = Arc<Mutex<Vec<String>>>;

impl Corun {
    fn load(program: &Path, arguments: &[String]) -> Result<Self> {
        let doing = || format!("start {} {}", program.display(), arguments.join(" "));
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing(doing)?;
        let output = Output::default();
        collect(child.stdout.take(), &output);
        collect(child.stderr.take(), &output);
        let mut corun = Self { child, output };
        corun.wait_until_ready()?;
        Ok(corun)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + LOAD_TIMEOUT;
        loop {
            if self.said(READY_LINE) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failure(&format!("corun run ended at once ({status})")));
            }
            if Instant::now() > deadline {
                let waited = LOAD_TIMEOUT.as_secs();
                return Err(self.failure(&format!("corun run does not schedule after {waited} s")));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn check(&mut self, state: &str) -> Result<()> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(self.failure(&format!("corun run ended by itself ({status})")));
        }
        if state != "enabled" {
            return Err(self.failure(&format!("sched_ext is {state:?}: the kernel ejected corun")));
        }
        Ok(())
    }

    fn unload(mut self) -> Result<()> {
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT);
        let deadline = Instant::now() + UNLOAD_TIMEOUT;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => break,
                Ok(Some(status)) => {
                    return Err(self.failure(&format!("corun run left with {status}")));
                }
                _ if Instant::now() > deadline => {
                    return Err(self.failure("corun run does not leave on SIGINT"));
                }
                _ => thread::sleep(Duration::from_millis(20)),
            }
        }
        match sched_ext_state().as_str() {
            "enabled" => Err(self.failure("corun run left, but its scheduler is still loaded")),
            _ => Ok(()),
        }
    }

    fn said(&self, start: &str) -> bool {
        let lines = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().any(|l| l.starts_with(start))
    }

    fn failure(&self, what: &str) -> DriverError {
        // The last words may still be on their way from the child.
        thread::sleep(Duration::from_millis(200));
        let lines = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        DriverError::Own(format!("{what}; its output:\n{}", lines.join("\n")))
    }
}

impl Drop for Corun {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(stream: Option<impl Read + Send + 'static>, output: &Output) {
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
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("corun");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
        (dir, path)
    }

    #[test]
    fn the_factor_is_passed_on() {
        let options = ["--stats".to_owned(), "1".to_owned()];
        assert_eq!(arguments(1.0, &options).join(" "), "run --stats 1");
        assert_eq!(arguments(42.5, &[]).join(" "), "run --time-scale 42.5");
    }

    #[test]
    fn a_refusal_is_told_in_coruns_own_words() {
        let (_dir, path) = script("echo 'corun: no sched_ext here' >&2; exit 3");
        let error = Corun::load(&path, &[])
            .err()
            .expect("must fail")
            .to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("no sched_ext here"), "{error}");
    }

    #[test]
    fn readiness_is_the_line_and_ejection_is_noticed() {
        let (_dir, path) = script("echo 'corun: scheduling (x)'; exec sleep 1000");
        let mut corun = Corun::load(&path, &[]).expect("gets ready");
        assert!(corun.check("enabled").is_ok());
        assert!(corun.check("disabled").is_err());
    }
}
