// SPDX-License-Identifier: GPL-2.0-only
//! The statistics socket of sched_ext schedulers: what `scx_stats`' clients speak.
//!
//! Lines of JSON over a Unix socket. A request is `{"req": "stats", "args": {"target":
//! "top"}}` or `{"req": "stats_meta"}`, with strings as arguments; the answer is
//! `{"errno": 0, "args": {"resp": ...}}`, or an errno with words. Not the crate itself:
//! its statistics are structs known when it is compiled, while corun's counters are
//! named by the BPF object; and its server reads lines of any length in threads of any
//! number. A test speaks to this one with the crate's client.

use crate::view::View;
use corun_events::account::{Account, Snapshot};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Longest request. Bytes.
const MAX_LINE: u64 = 16 * 1024;
/// Clients that are served at the same time; others are hung up on.
const MAX_CLIENTS: usize = 16;
/// How often the end is looked for.
const TICK_MS: u16 = 100;
const TICK: Duration = Duration::from_millis(TICK_MS as u64);

/// Why the socket is not served.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another scheduler's.
    #[error("{path}: another scheduler answers there")]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The system's words.
    #[error("{path}: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
}

/// Gives the accounts, or says why not.
pub type ReadAccounts<'a> = &'a (dyn Fn() -> Result<Arc<Snapshot>, String> + Sync);

/// The socket; removed when dropped.
#[derive(Debug)]
pub struct StatsSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl StatsSocket {
    /// Where clients look for the scheduler that is loaded.
    pub const PATH: &str = "/var/run/scx/root/stats";

    /// Listens on `path`. A socket that nobody answers on was left by a dead process,
    /// and is replaced.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        let path = path.to_owned();
        if UnixStream::connect(&path).is_ok() {
            return Err(SocketError::InUse { path });
        }
        let listen = || {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            let listener = UnixListener::bind(&path)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        match listen() {
            Ok(listener) => Ok(Self { listener, path }),
            Err(source) => Err(SocketError::Io { path, source }),
        }
    }

    /// Serves until `stop` is set.
    pub fn serve(&self, stop: &AtomicBool, accounts: ReadAccounts<'_>) {
        let clients = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                let mut fds = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
                if !poll(&mut fds, PollTimeout::from(TICK_MS)).is_ok_and(|n| n > 0) {
                    continue;
                }
                let Ok((stream, _)) = self.listener.accept() else {
                    continue;
                };
                if clients.load(Ordering::Relaxed) >= MAX_CLIENTS {
                    continue;
                }
                clients.fetch_add(1, Ordering::Relaxed);
                let clients = &clients;
                scope.spawn(move || {
                    // A client that goes away ends its conversation.
                    let _ = converse(&stream, stop, accounts);
                    clients.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }
}

impl Drop for StatsSocket {
    fn drop(&mut self) {
        // Absent is as good as removed.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn converse(
    mut stream: &UnixStream,
    stop: &AtomicBool,
    accounts: ReadAccounts<'_>,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    // Clients may be silent for hours; only the end is looked for meanwhile.
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut input = BufReader::new(stream);
    let mut line = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let left = MAX_LINE.saturating_sub(line.len() as u64);
        match input.by_ref().take(left).read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(e) => return Err(e),
        }
        if line.last() == Some(&b'\n') {
            let answer = answer(&line, accounts);
            stream.write_all(format!("{answer}\n").as_bytes())?;
            line.clear();
        } else if line.len() as u64 >= MAX_LINE {
            let answer = failure(Errno::E2BIG, "the request is too long");
            return stream.write_all(format!("{answer}\n").as_bytes());
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Request {
    req: String,
    #[serde(default)]
    args: BTreeMap<String, String>,
}

fn answer(line: &[u8], accounts: ReadAccounts<'_>) -> Value {
    let request: Request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(e) => return failure(Errno::EINVAL, &format!("not a request: {e}")),
    };
    match request.req.as_str() {
        "stats" => match request.args.get("target").map_or("top", String::as_str) {
            "top" => match accounts() {
                Ok(snapshot) => success(&stats(&snapshot)),
                Err(why) => failure(Errno::EIO, &why),
            },
            other => failure(Errno::EINVAL, &format!("unknown target {other:?}: use top")),
        },
        "stats_meta" => success(&meta()),
        other => failure(
            Errno::EINVAL,
            &format!("unknown request {other:?}: use stats or stats_meta"),
        ),
    }
}

fn success(response: &Value) -> Value {
    json!({"errno": 0, "args": {"resp": response}})
}

fn failure(errno: Errno, why: &str) -> Value {
    json!({"errno": errno as i32, "args": {"resp": why}})
}

/// The statistics; [`meta`] describes them.
fn stats(snapshot: &Snapshot) -> Value {
    let view = View::new(snapshot, usize::MAX);
    let vms: BTreeMap<_, _> = view
        .vms
        .iter()
        .map(|vm| (&vm.name, of_vm(vm.vcpus, &vm.total)))
        .collect();
    json!({
        "at_ns": snapshot.at_ns,
        "version": env!("CARGO_PKG_VERSION"),
        "counters": snapshot.host.corun,
        "vms": vms,
    })
}

fn of_vm(vcpus: usize, total: &Account) -> Value {
    json!({
        "vcpus": vcpus,
        "run_ns": total.times.run_ns,
        "poll_ns": total.times.poll_ns,
        "ready_ns": total.times.ready.total_ns(),
        "halted_ns": total.times.halted_ns,
        "preempted": total.counts.preempted(),
        "spins": total.counts.spins,
        "exits": total.all_exits(),
        "wake_to_run_p99_ns": total.latencies.wake_to_run.quantile_ns(0.99),
    })
}

fn meta() -> Value {
    let datum = |kind: &str, desc: &str| json!({"datum": kind, "desc": desc});
    let number = |desc: &str| datum("u64", desc);
    json!({
        "Corun": {
            "name": "Corun",
            "top": "true",
            "desc": "corun's scheduler and the VMs that it serves; cumulative",
            "fields": {
                "at_ns": number("when, on CLOCK_MONOTONIC"),
                "version": datum("string", "corun's version"),
                "counters": {
                    "dict": {"key": "string", "datum": "u64"},
                    "desc": "the scheduler's counters by name",
                    "user": {"_om_skip": "true"},
                },
                "vms": {
                    "dict": {"key": "string", "datum": {"struct": "CorunVm"}},
                    "desc": "VMs by name, with `corun run --metrics`",
                },
            },
        },
        "CorunVm": {
            "name": "CorunVm",
            "desc": "all vCPUs of a VM together",
            "user": {"_om_prefix": "corun_vm_", "_om_label": "vm"},
            "fields": {
                "vcpus": number("vCPUs that have run"),
                "run_ns": number("time on a pCPU"),
                "poll_ns": number("time in halt polling"),
                "ready_ns": number("time runnable without a pCPU"),
                "halted_ns": number("time asleep since a halt"),
                "preempted": number("losses of a pCPU though runnable"),
                "spins": number("times that KVM took a vCPU for spinning"),
                "exits": number("VM exits"),
                "wake_to_run_p99_ns": number("99th percentile from wake-up to running"),
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_each_field_and_no_other() {
        let stats = stats(&Snapshot::default());
        let vm = of_vm(1, &Account::default());
        let meta = meta();
        for (name, value) in [("Corun", &stats), ("CorunVm", &vm)] {
            let told = meta[name]["fields"].as_object().expect("fields");
            let given = value.as_object().expect("fields");
            assert!(told.keys().eq(given.keys()), "{name}: {given:?}");
        }
    }

    #[test]
    fn mistakes_are_answered_with_an_errno() {
        let none: ReadAccounts<'_> = &|| Err("no rights".to_owned());
        for (line, errno) in [
            ("rubbish", Errno::EINVAL),
            (r#"{"req": "restart"}"#, Errno::EINVAL),
            (
                r#"{"req": "stats", "args": {"target": "x"}}"#,
                Errno::EINVAL,
            ),
            (r#"{"req": "stats"}"#, Errno::EIO),
        ] {
            let answer = answer(line.as_bytes(), none);
            assert_eq!(answer["errno"], errno as i32, "{line}");
            assert!(answer["args"]["resp"].is_string(), "{line}");
        }
    }
}
