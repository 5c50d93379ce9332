// SPDX-License-Identifier: GPL-2.0-only
//! Metrics: `corun exporter`, and what `corun run` serves beside its work.

use anyhow::{Context, Result, anyhow};
use corun_events::account::{Host, Snapshot};
use corun_host::accounts::AccountOptions;
use corun_host::{SymbolSource, account_reader, counters};
use corun_metrics::{HttpServer, MAX_VCPUS, Read, Reader, StatsSocket, page};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Serve what vCPUs wait for to Prometheus, under any scheduler
///
/// Keeps accounts of all vCPUs of this host by BPF (as root) and serves them at
/// http://ADDR:PORT/metrics until Ctrl-C: run time, ready time by cause, halts,
/// polls, spins, preemptions, exits; distributions of wake-up and IPI latency. It
/// reads only, and waits for kvm when it is not loaded yet. There is no password:
/// listen where only the monitoring network comes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9727")]
    listen: SocketAddr,
    /// vCPUs that get series of their own; VMs beyond are summed as _others
    #[arg(long, value_name = "N", default_value_t = MAX_VCPUS)]
    max_vcpus: usize,
    /// Symbols of guests' kernels, by which preemptions in critical sections are told:
    /// VM=FILE, or a directory, as for `corun run`
    #[arg(long, value_name = "VM=FILE|DIR")]
    symbols: Vec<SymbolSource>,
}

pub(crate) fn export(args: &Args, stop: &AtomicBool) -> Result<()> {
    let server = HttpServer::bind(args.listen)?;
    let options = AccountOptions {
        symbols: args.symbols.clone(),
        ..AccountOptions::default()
    };
    let reader = Reader::start(|| {
        let mut read = account_reader(options);
        read()?;
        Ok(read)
    });
    let reader = reader.map_err(|why| anyhow!("{why}; nothing was changed"))?;
    tell(&server)?;
    server.serve(stop, &|| page_of(reader.read(), args.max_vcpus));
    Ok(())
}

fn tell(server: &HttpServer) -> Result<()> {
    let address = server.address().context("asking for the own address")?;
    // Standard output is the scheduler's, and may be read by a program.
    eprintln!("corun: metrics at http://{address}/metrics");
    Ok(())
}

fn page_of(read: Read, max_vcpus: usize) -> Result<String, String> {
    page(read?, max_vcpus).map_err(|e| format!("writing the page: {e}"))
}

/// Runs `work`, the scheduler, and serves meanwhile: the socket of `scx_stats` from when
/// the scheduler is loaded, and metrics where `listen` says so.
pub(crate) fn serve_beside(
    listen: Option<SocketAddr>,
    symbols: Vec<SymbolSource>,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let server = listen.map(HttpServer::bind).transpose()?;
    // The accounts begin with the first reading, which may not be before the checks of
    // the host: an error then is on the page.
    let options = AccountOptions {
        symbols,
        ..AccountOptions::default()
    };
    let reader = listen.map(|_| Reader::start(|| Ok(account_reader(options))));
    let reader = reader.transpose().map_err(|why| anyhow!(why))?;
    if let Some(server) = &server {
        tell(server)?;
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also when the work panics: the servers must not hold the process.
        let _end = SetWhenDropped(&ended);
        if let (Some(server), Some(reader)) = (&server, &reader) {
            let ended = &ended;
            scope.spawn(move || server.serve(ended, &|| page_of(reader.read(), MAX_VCPUS)));
        }
        scope.spawn(|| serve_socket(reader.as_ref(), &ended));
        work()
    })
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Serves the socket once the scheduler is loaded. Statistics are a convenience: the
/// scheduler runs on without them.
fn serve_socket(reader: Option<&Reader>, ended: &AtomicBool) {
    while !matches!(counters::of_running_scheduler(), Ok(Some(_))) {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    match StatsSocket::bind(Path::new(StatsSocket::PATH)) {
        Ok(socket) => socket.serve(ended, &|| match reader {
            Some(reader) => reader.read(),
            None => counters_alone(),
        }),
        Err(why) => tracing::warn!("statistics are not served: {why}"),
    }
}

/// The scheduler's counters, where no accounts are kept.
fn counters_alone() -> Read {
    let counters = counters::of_running_scheduler().map_err(|e| e.to_string())?;
    Ok(Arc::new(Snapshot {
        host: Host {
            corun: counters.unwrap_or_default(),
            ..Host::default()
        },
        ..Snapshot::default()
    }))
}
