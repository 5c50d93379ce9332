// SPDX-License-Identifier: GPL-2.0-only
//! `corun trace record`.

use anyhow::{Context, Result, bail};
use corun_events::recording::Spool;
use corun_host::trace::{Recorder, TraceOptions};
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  corun trace record -s 10 -o web.trace --vm web
  corun trace record                       until Ctrl-C, all VMs, to corun.trace
  corun trace analyze corun.trace";

/// How long the recorder sleeps between two looks at the buffer: the default one
/// has room for millions of events a second then.
const NAP: Duration = Duration::from_millis(50);
/// How often progress is told.
const PROGRESS_NS: u64 = 1_000_000_000;

/// Record every event of vCPUs to a file, under any scheduler
///
/// Needs root and the kvm module; changes nothing. Ctrl-C ends the recording and
/// keeps it, and so does unloading kvm. The file has its name only when it is whole.
/// Events that found the buffer full are counted and shown: record again with a
/// larger --buffer.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// End after so many seconds; without it, Ctrl-C ends it
    #[arg(short, long, value_name = "SEC")]
    seconds: Option<f64>,
    /// The recording: JSON lines, compressed by zstd
    #[arg(short, long, value_name = "FILE", default_value = "corun.trace")]
    out: PathBuf,
    /// Only this VM; may be given again
    #[arg(long, value_name = "NAME")]
    vm: Vec<String>,
    /// Size of the ring buffer in MiB: a power of two (0.0625 to 1024)
    #[arg(long, value_name = "MIB", default_value = "16", value_parser = buffer_bytes)]
    buffer: u32,
    /// Each line of standard input marks the moment when it comes
    #[arg(long)]
    marks: bool,
    /// Say nothing on standard error while it records
    #[arg(short, long)]
    quiet: bool,
}

fn buffer_bytes(text: &str) -> Result<u32> {
    const MIB: f64 = 1_048_576.0;
    let mib: f64 = text.parse().unwrap_or(0.0);
    let size = (16..=30).map(|power| 1_u32 << power);
    let mut fitting = size.filter(|bytes| (f64::from(*bytes) / MIB - mib).abs() < 1e-9);
    match fitting.next() {
        Some(bytes) => Ok(bytes),
        None => bail!("expected a power of two between 0.0625 and 1024"),
    }
}

pub(crate) fn run(args: &Args, stop: &AtomicBool) -> Result<()> {
    let limit = args.seconds.map(Duration::try_from_secs_f64).transpose();
    let limit = limit.context("--seconds")?;
    let limit_ns = limit.map(|l| u64::try_from(l.as_nanos()).unwrap_or(u64::MAX));
    let during = || format!("writing {}", args.out.display());
    let mut recorder = Recorder::start(&TraceOptions {
        vms: args.vm.clone(),
        buffer_bytes: args.buffer,
    })?;
    let mut spool = Spool::create(&args.out).with_context(during)?;
    let marks = args.marks.then(lines_of_input);
    let mut told_ns = 0;
    loop {
        let elapsed_ns = recorder.elapsed_ns()?;
        let over = limit_ns.is_some_and(|limit_ns| elapsed_ns >= limit_ns);
        if over || stop.load(Ordering::Relaxed) {
            break;
        }
        let left_ns = limit_ns.map_or(u64::MAX, |limit_ns| limit_ns - elapsed_ns);
        std::thread::sleep(NAP.min(Duration::from_nanos(left_ns)));
        let events = recorder.events()?;
        events
            .iter()
            .try_for_each(|e| spool.put(e))
            .with_context(during)?;
        for name in marks.iter().flat_map(Receiver::try_iter) {
            recorder.mark(&name)?;
        }
        if elapsed_ns - told_ns < PROGRESS_NS {
            continue;
        }
        told_ns = elapsed_ns;
        if !recorder.vms_may_run() {
            eprintln!("corun: kvm was unloaded, and no VM can run: the recording ends");
            break;
        }
        if !args.quiet {
            progress(&recorder, &spool, elapsed_ns);
        }
    }
    let rest = recorder.stop()?;
    rest.iter()
        .try_for_each(|e| spool.put(e))
        .with_context(during)?;
    let events = spool.events();
    let header = recorder.header()?;
    let bytes = spool.finish(&header).with_context(during)?;
    report(args, &header, events, bytes);
    Ok(())
}

fn lines_of_input() -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    receive
}

fn progress(recorder: &Recorder, spool: &Spool, elapsed_ns: u64) {
    eprintln!(
        "corun: {:.0} s, {} events, {} dropped; VMs: {}",
        elapsed_ns as f64 / 1e9,
        spool.events(),
        recorder.dropped(),
        match recorder.vms().as_slice() {
            [] => "none has run yet".to_owned(),
            names => names.join(", "),
        }
    );
}

fn report(args: &Args, header: &corun_events::Header, events: u64, bytes: u64) {
    let seconds = header.duration_ns as f64 / 1e9;
    let dropped = header.dropped();
    println!(
        "{events} events of {seconds:.3} s in {} ({bytes} bytes), {dropped} dropped",
        args.out.display()
    );
    if dropped > 0 {
        println!("The buffer was full {dropped} times: use a larger --buffer, or --vm.");
    }
    if header.vms.iter().all(|vm| vm.vcpus == 0) {
        println!("No vCPU ran: is a VM running? An idle guest shows only when it wakes.");
    }
    for missing in &header.missing {
        println!("not recorded: {missing}");
    }
}

#[cfg(test)]
mod tests {
    use super::buffer_bytes;

    #[test]
    fn buffers_are_powers_of_two() {
        assert_eq!(buffer_bytes("16").ok(), Some(16 << 20));
        assert_eq!(buffer_bytes("0.0625").ok(), Some(65_536));
        for wrong in ["0", "3", "2048", "x", "-1"] {
            assert!(buffer_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
