// SPDX-License-Identifier: GPL-2.0-only
//! A running L1. Dropping it ends QEMU and removes the boot's folder.

use super::channel::ControlChannel;
use super::qemu::Files;
use super::{BootError, BootSpec, Console, Diagnosis, Evidence, Failure, Next};
use crate::image::{Image, RunLayer};
use crate::paths::{LabDirs, RunDir};
use corun_lab_proto::control::Order;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid, getppid};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
const COMMANDS_LOG: &str = "commands.log";

/// A running L1.
#[derive(Debug)]
pub struct Boot {
    child: Child,
    control: ControlChannel,
    dir: RunDir,
    logs: PathBuf,
    started: Instant,
}

impl Boot {
    /// Starts L1 with `run` on top of `image`. Returns at once; the thread that
    /// calls must outlive the boot, because QEMU ends with it.
    pub fn start(
        spec: &BootSpec,
        image: &Image,
        run: &RunLayer,
        dirs: &LabDirs,
    ) -> Result<Self, BootError> {
        spec.accel.check()?;
        let dir = dirs.new_run()?;
        let initrd = dir.path().join("initrd");
        image.write_initrd(run, &initrd)?;
        let console = dir.path().join("console.log");
        let commands = dir.path().join(COMMANDS_LOG);
        let (ours, theirs) = UnixStream::pair().map_err(BootError::io("making a socket"))?;
        let files = Files {
            initrd: &initrd,
            console: &console,
            commands: &commands,
        };
        let mut cmd = spec.command(image, &files, theirs.as_raw_fd());
        let stderr = dir.path().join("qemu.stderr");
        let stderr = File::create(&stderr).map_err(BootError::io_at("making", &stderr))?;
        cmd.stderr(stderr).current_dir(dir.path());
        if spec.console == Console::Log {
            // A group of its own: the terminal's Ctrl-C is for us to handle.
            cmd.stdin(Stdio::null())
                .stdout(Stdio::null())
                .process_group(0);
        }
        leash(&mut cmd, theirs.as_raw_fd());
        let child = cmd.spawn().map_err(BootError::io("starting QEMU"))?;
        drop(theirs);
        Ok(Self {
            control: ControlChannel::new(ours).map_err(BootError::io("the control channel"))?,
            child,
            dir,
            logs: dirs.logs(),
            started: Instant::now(),
        })
    }

    /// Waits up to `timeout` for the driver's next message.
    pub fn next(&self, timeout: Duration, stop: &AtomicBool) -> Result<Next, BootError> {
        self.control.next(timeout, stop)
    }

    /// Sends an order to the driver.
    pub fn send(&mut self, order: &Order) -> Result<(), BootError> {
        self.control.send(order)
    }

    /// Time since the start.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// What the console has shown so far.
    pub fn console(&self) -> String {
        read_lossy(&self.console_path())
    }

    /// The console's log; gone with the boot.
    pub fn console_path(&self) -> PathBuf {
        self.dir.path().join("console.log")
    }

    /// What the commands of a shell from a pipe have printed so far.
    pub fn commands_output(&self) -> String {
        read_lossy(&self.dir.path().join(COMMANDS_LOG))
    }

    /// Waits up to `timeout` until QEMU has ended; `None` when it has not.
    pub fn wait_exit(
        &mut self,
        timeout: Duration,
        stop: &AtomicBool,
    ) -> Result<Option<ExitStatus>, BootError> {
        let deadline = Instant::now() + timeout;
        loop {
            let status = self.child.try_wait();
            if let Some(status) = status.map_err(BootError::io("waiting for QEMU"))? {
                return Ok(Some(status));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(BootError::Interrupted);
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            thread::sleep(POLL);
        }
    }

    /// Ends QEMU at once.
    pub fn kill(&mut self) {
        // Fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Tells why this boot did not do its work: call it after [`Next::Ended`],
    /// [`Next::Silent`] or a failed report. Ends QEMU and keeps the logs.
    pub fn diagnose(mut self, failure: Failure) -> Diagnosis {
        // Output that is on its way still counts: give QEMU a moment to end.
        let grace = match failure {
            Failure::Silent { .. } => Duration::ZERO,
            _ => Duration::from_secs(3),
        };
        let exit = self
            .wait_exit(grace, &AtomicBool::new(false))
            .ok()
            .flatten();
        self.kill();
        let evidence = Evidence {
            failure,
            console: self.console(),
            qemu_said: read_lossy(&self.dir.path().join("qemu.stderr")),
            exit,
            age: self.age(),
        };
        let kept = self.keep_logs().ok();
        Diagnosis::new(&evidence, kept)
    }

    /// Copies the logs to the output folder; returns where they are.
    pub fn keep_logs(&self) -> Result<PathBuf, BootError> {
        let logs = &self.logs;
        fs::create_dir_all(logs).map_err(BootError::io_at("making", logs))?;
        let kept = tempfile::Builder::new()
            .prefix("boot-")
            .disable_cleanup(true)
            .tempdir_in(logs)
            .map_err(BootError::io_at("making a folder in", logs))?;
        for name in ["console.log", COMMANDS_LOG, "qemu.stderr"] {
            let from = self.dir.path().join(name);
            if from.exists() {
                let to = kept.path().join(name);
                fs::copy(&from, &to).map_err(BootError::io_at("keeping", &to))?;
            }
        }
        Ok(kept.path().to_owned())
    }
}

impl Drop for Boot {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ties the child to this process's life, and hands it the socket `fd`.
fn leash(cmd: &mut Command, fd: RawFd) {
    let parent = getpid();
    let prepare = move || prepare_child(parent, fd);
    // SAFETY: the closure runs between fork and exec and makes only system
    // calls (prctl, getppid, fcntl), which are async-signal-safe; it allocates
    // nothing and takes no lock.
    unsafe {
        cmd.pre_exec(prepare);
    }
}

fn prepare_child(parent: Pid, fd: RawFd) -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before that call: then nobody waits for us.
    if getppid() != parent {
        return Err(io::ErrorKind::Interrupted.into());
    }
    // SAFETY: F_SETFD with no flags on a descriptor that the parent keeps open
    // until after the spawn.
    if unsafe { nix::libc::fcntl(fd, nix::libc::F_SETFD, 0) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn read_lossy(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\r', "")
}
