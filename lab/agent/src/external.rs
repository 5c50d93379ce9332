// SPDX-License-Identifier: GPL-2.0-only
//! Workloads that are programs of their own, run again and again.

use crate::control::{Control, kill_group};
use crate::error::{Error, tail};
use crate::session::{Session, Window, histogram};
use hdrhistogram::Histogram;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Where programs are looked for, in the guest as outside.
pub(crate) const PATH: [&str; 2] = ["/usr/bin", "/bin"];
/// How much of a failed program's output is passed on.
const TAIL_LINES: usize = 12;

/// A program, and the Debian package which holds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    /// Its file name.
    pub(crate) name: &'static str,
    /// The package.
    pub(crate) package: &'static str,
}

impl Program {
    /// Its path.
    pub(crate) fn find(&self) -> Result<PathBuf, Error> {
        PATH.iter()
            .map(|folder| Path::new(folder).join(self.name))
            .find(|path| path.exists())
            .ok_or(Error::MissingProgram {
                program: self.name,
                package: self.package,
            })
    }
}

/// What one run of the program came to.
#[derive(Debug, PartialEq)]
pub(crate) struct Figures {
    /// Work done.
    pub(crate) work: f64,
    /// Latencies: nanoseconds, and how many there were of that.
    pub(crate) latency: Vec<(u64, u64)>,
}

/// Understands what a run printed; its second argument is the run's wall time.
pub(crate) type Parse = Box<dyn Fn(&str, Duration) -> Result<Figures, Error>>;

/// A workload that is a program, run over and over.
pub(crate) struct External {
    path: PathBuf,
    args: Vec<String>,
    threads: usize,
    parse: Parse,
    begin: Instant,
    last_end: Option<Instant>,
    work: f64,
    latency: Histogram<u64>,
}

impl External {
    /// Runs `program` with `args`, which will use `threads` threads or processes.
    pub(crate) fn new(
        program: Program,
        args: Vec<String>,
        threads: usize,
        parse: Parse,
    ) -> Result<Self, Error> {
        Ok(Self {
            path: program.find()?,
            args,
            threads,
            parse,
            begin: Instant::now(),
            last_end: None,
            work: 0.0,
            latency: histogram(),
        })
    }

    /// One run of the program. `None`: it was killed because the run was stopped.
    fn run_once(&mut self, control: &Control) -> Result<Option<()>, Error> {
        let start = Instant::now();
        let (status, output) = capture(&self.path, &self.args, control)?;
        let end = Instant::now();
        if control.stopped() {
            return Ok(None);
        }
        if !status.success() {
            return Err(Error::Program {
                program: format!("{} {}", self.path.display(), self.args.join(" ")),
                how: how_it_ended(status),
                tail: tail(&output, TAIL_LINES),
            });
        }
        let figures = (self.parse)(&output, end - start)?;
        self.work += figures.work;
        for (ns, count) in figures.latency {
            self.latency.saturating_record_n(ns, count);
        }
        self.last_end = Some(end);
        Ok(Some(()))
    }
}

impl Session for External {
    fn threads(&self) -> usize {
        self.threads
    }

    /// Comes back when the run in flight at `deadline` is over. When stopped, the
    /// run in flight is killed and does not count.
    fn run_until(&mut self, deadline: Option<Instant>, control: &Control) -> Result<(), Error> {
        while !control.stopped() && deadline.is_none_or(|deadline| Instant::now() < deadline) {
            if self.run_once(control)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn open_window(&mut self) {
        self.work = 0.0;
        self.latency.reset();
        self.last_end = None;
        self.begin = Instant::now();
    }

    /// Ends with the last run that counts, so that work and time fit exactly.
    fn close_window(&mut self) -> Window {
        Window {
            begin: self.begin,
            end: self.last_end.unwrap_or_else(Instant::now),
            work: self.work,
            latency: self.latency.clone(),
            module_counts: BTreeMap::new(),
        }
    }
}

/// Runs a program in a process group of its own to its end; returns its status
/// and all that the group printed. Nothing of the group is left.
fn capture(path: &Path, args: &[String], control: &Control) -> Result<(ExitStatus, String), Error> {
    let fail = |e| Error::os(format!("cannot run {}", path.display()), e);
    let (mut reader, writer) = std::io::pipe().map_err(fail)?;
    let mut command = Command::new(path);
    command
        .args(args)
        .env("PATH", PATH.join(":"))
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(fail)?)
        .stderr(writer)
        .process_group(0);
    let mut child = command.spawn().map_err(fail)?;
    // It holds our ends for writing: with them open there would be no end of file.
    drop(command);
    let group = Pid::from_raw(child.id().cast_signed());
    control.enter_group(group);
    let (status, read) = std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let mut output = Vec::new();
            reader.read_to_end(&mut output).map(|_| output)
        });
        let status = wait_unreaped(group);
        control.leave_group();
        // Those left behind would hold the pipe open, and its end is waited for.
        kill_group(group);
        (status, reading.join())
    });
    let reaped = child.wait().map_err(fail)?;
    reap_group(group);
    status?;
    // The thread only reads: a panic in it has ended the agent.
    let output = read.unwrap_or_else(|_| Ok(Vec::new())).map_err(fail)?;
    Ok((reaped, String::from_utf8_lossy(&output).into_owned()))
}

/// Waits until process `pid` has ended but leaves its status to be fetched, so
/// that neither its number nor its group's can be used again yet.
fn wait_unreaped(pid: Pid) -> Result<(), Error> {
    use nix::sys::wait::{Id, waitid};
    loop {
        match waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Ok(_) => return Ok(()),
            Err(nix::Error::EINTR) => {}
            Err(e) => return Err(Error::os("cannot wait for a program", e)),
        }
    }
}

/// As process 1, the agent inherits what is left of the group.
fn reap_group(group: Pid) {
    while waitpid(Pid::from_raw(-group.as_raw()), None).is_ok() {}
}

/// Reaps whatever processes the agent inherited. Only while no run is in flight:
/// it would take away the status of a run's own children.
pub(crate) fn reap_orphans() {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            break;
        }
    }
}

/// An exit status in words.
pub(crate) fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended strangely".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SH: Program = Program {
        name: "sh",
        package: "dash",
    };

    fn shell(script: &str) -> External {
        let args = vec!["-c".to_owned(), script.to_owned()];
        let parse = |output: &str, _: Duration| {
            let work = output.trim().parse().expect("the script prints a number");
            Ok(Figures {
                work,
                latency: vec![(5, 2)],
            })
        };
        External::new(SH, args, 1, Box::new(parse)).expect("there is a shell")
    }

    #[test]
    fn a_run_is_counted() {
        let control = Control::default();
        let mut session = shell("echo 7");
        session.open_window();
        session
            .run_until(Some(Instant::now() + Duration::from_nanos(1)), &control)
            .expect("runs");
        session.run_once(&control).expect("runs");
        let window = session.close_window();
        assert!(window.work >= 7.0);
        let samples_per_work = window.latency.len() as f64 / window.work;
        assert!((samples_per_work - 2.0 / 7.0).abs() < 1e-9);
        assert!(window.end > window.begin);
    }

    #[test]
    fn stopping_kills_the_whole_group() {
        let control = Control::default();
        let mut session = shell("sleep 1000 & sleep 1000");
        std::thread::scope(|s| {
            s.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                control.stop();
            });
            session
                .run_until(None, &control)
                .expect("stopping is no failure");
        });
        assert!(session.close_window().work < 1e-9);
    }

    #[test]
    fn stragglers_are_not_waited_for() {
        let control = Control::default();
        let mut session = shell("sleep 1000 & echo 3");
        assert!(session.run_once(&control).expect("runs").is_some());
    }

    #[test]
    fn failure_has_the_last_words() {
        let error = shell("echo oh no >&2; exit 3").run_once(&Control::default());
        let message = error.expect_err("exit 3 is a failure").to_string();
        assert!(
            message.contains("status 3") && message.ends_with("oh no"),
            "{message}"
        );
    }

    #[test]
    fn missing_program_names_its_package() {
        let missing = Program {
            name: "no-such-program",
            package: "no-such-package",
        };
        let message = missing.find().expect_err("not there").to_string();
        assert!(message.contains("no-such-package"), "{message}");
    }
}
