// SPDX-License-Identifier: GPL-2.0-only
//! The agent as process 1 of a guest.

use crate::module;
use crate::port;
use crate::serve::{AtEnd, Output, serve};
use anyhow::Context as _;
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use std::fs::{self, File};
use std::io::BufReader;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the console shows first: the guest's kernel is up and its init runs.
const MARKER: &str = "corun-agent: up";
/// How long the port may take to appear, in a guest that is emulated twice.
const PORT_PATIENCE: Duration = Duration::from_secs(30);
/// How often to look whether the driver is connected again: each look costs exits.
const RECONNECT: Duration = Duration::from_millis(200);

const MOUNTS: &[(&str, &str)] = &[
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
    ("tmpfs", "/dev/shm"),
];

/// Runs the guest from its first process to power-off.
pub(crate) fn main() -> ! {
    std::panic::set_hook(Box::new(|panic| {
        say(&format!("corun-agent: {panic}"));
        power_off();
    }));
    if let Err(error) = guest() {
        say(&format!("corun-agent: fatal: {error:#}"));
    }
    power_off();
}

fn guest() -> anyhow::Result<()> {
    let mounted = mount_all();
    use_console();
    say(MARKER);
    mounted?;
    load_modules(Path::new("/mod"));
    raise_loopback().context("cannot bring the loopback interface up")?;
    let port = port::open(PORT_PATIENCE)?;
    let output = Output::new(Box::new(port.try_clone().context("cannot share the port")?));
    serve(BufReader::new(port), AtEnd::Retry(RECONNECT), output).context("serving on the port")
}

fn mount_all() -> anyhow::Result<()> {
    for (kind, target) in MOUNTS {
        fs::create_dir_all(target).with_context(|| format!("cannot make {target}"))?;
        match mount(
            Some(*kind),
            *target,
            Some(*kind),
            MsFlags::empty(),
            None::<&str>,
        ) {
            Ok(()) | Err(nix::Error::EBUSY) => {}
            Err(e) => return Err(e).with_context(|| format!("cannot mount {kind} on {target}")),
        }
    }
    Ok(())
}

/// The kernel opens a console for its first process only when the initial ramdisk
/// had the device; by now devtmpfs has it.
fn use_console() {
    if let Ok(console) = File::options().read(true).write(true).open("/dev/console") {
        for stream in 0..=2 {
            // SAFETY: both are numbers of file descriptors; nothing in this process
            // owns 0 to 2 other than as its standard streams.
            unsafe { libc::dup2(console.as_raw_fd(), stream) };
        }
    }
}

/// Writes a line on the console: rarely, as each character is an exit.
fn say(line: &str) {
    eprintln!("{line}");
}

/// Loads all modules of `folder`, whatever their order: one that needs another
/// fails until that one is in.
fn load_modules(folder: &Path) {
    let mut left: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|e| e.path()).collect())
        .unwrap_or_default();
    left.retain(|path| path.extension().is_some_and(|e| e == "ko"));
    left.sort();
    loop {
        let before = left.len();
        let mut errors = Vec::new();
        left.retain(|path| match load_module(path) {
            Ok(()) => false,
            Err(e) => {
                errors.push(format!("corun-agent: cannot load {}: {e}", path.display()));
                true
            }
        });
        if left.len() == before {
            for error in &errors {
                say(error);
            }
            return;
        }
    }
}

fn load_module(path: &Path) -> std::io::Result<()> {
    match module::insert(&File::open(path)?, "") {
        // Built in or loaded already: what we wanted.
        Err(e) if e.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other,
    }
}

fn raise_loopback() -> std::io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or(libc::c_short::MAX);
    // SAFETY: the request is complete for SIOCSIFFLAGS and outlives the call.
    let failed = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if failed == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

fn power_off() -> ! {
    // SAFETY: sync takes no arguments.
    unsafe { libc::sync() };
    let Err(error) = reboot(RebootMode::RB_POWER_OFF);
    say(&format!("corun-agent: cannot power off: {error}"));
    // Process 1 must not end, or the kernel panics and hides the message.
    loop {
        std::thread::park();
    }
}
