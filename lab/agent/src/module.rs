// SPDX-License-Identifier: GPL-2.0-only
//! Our own kernel modules: loading one, and what `corun_guest` counts.

use crate::error::Error;
use crate::session::histogram;
use corun_lab_proto::LatencySummary;
use nix::mount::{MsFlags, mount};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

const FOLDER: &str = "/mod/corun";
const DEBUGFS: &str = "/sys/kernel/debug";
const STATS: &str = "/sys/kernel/debug/corun_guest";
/// Histograms: the file's name, and what one sample measures.
const HISTOGRAMS: [(&str, &str); 2] = [
    ("latency_kernel", "shootdown by the kernel"),
    ("latency_shoot4u", "shootdown by hypercall"),
];
/// How much of what the module said is passed on when it refuses.
const TAIL_LINES: usize = 4;

/// Loads `/mod/corun/NAME.ko`. The error tells what the module said.
pub(crate) fn load(name: &str, params: &str) -> Result<(), Error> {
    let refused = |e: io::Error| Error::Module {
        name: name.to_owned(),
        why: e.to_string(),
        said: kernel_said("corun_", TAIL_LINES),
    };
    let file = File::open(Path::new(FOLDER).join(format!("{name}.ko"))).map_err(|e| {
        let what =
            format!("{name}.ko is not in this guest's image: `make guest`, then build again");
        Error::os(what, e)
    })?;
    insert(&file, params).map_err(refused)?;
    mount_debugfs()
}

/// Loads the module in `file`.
pub(crate) fn insert(file: &File, params: &str) -> io::Result<()> {
    let params = CString::new(params)?;
    // SAFETY: the arguments are a valid descriptor, a C string and no flags.
    let failed =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), params.as_ptr(), 0) };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn mount_debugfs() -> Result<(), Error> {
    let kind = Some("debugfs");
    match mount(kind, DEBUGFS, kind, MsFlags::empty(), None::<&str>) {
        Ok(()) | Err(nix::Error::EBUSY) => Ok(()),
        Err(e) => Err(Error::os(format!("cannot mount {DEBUGFS}"), e)),
    }
}

/// The last `lines` kernel messages that begin with `prefix`.
fn kernel_said(prefix: &str, lines: usize) -> String {
    let mut log = match OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg")
    {
        Ok(log) => log,
        Err(e) => return format!("(the kernel's log cannot be read: {e})"),
    };
    let mut said = Vec::new();
    let mut record = [0; 8192];
    // One record per read; EAGAIN is the end.
    while let Ok(n @ 1..) = log.read(&mut record) {
        let text = String::from_utf8_lossy(&record[..n]).into_owned();
        let message = text.split_once(';').map_or("", |(_, message)| message);
        if message.starts_with(prefix) {
            said.push(message.lines().next().unwrap_or_default().to_owned());
        }
    }
    said[said.len().saturating_sub(lines)..].join("\n")
}

/// What `corun_guest` counted; empty where it is not loaded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Counters by name.
    pub(crate) counts: BTreeMap<String, u64>,
    /// Samples by the middle of their bucket, for each of [`HISTOGRAMS`].
    buckets: [BTreeMap<u64, u64>; 2],
}

impl Stats {
    /// Reads them now.
    pub(crate) fn read() -> Self {
        let file = |name| fs::read_to_string(Path::new(STATS).join(name)).unwrap_or_default();
        Self {
            counts: parse_counts(&file("counts")),
            buckets: HISTOGRAMS.map(|(name, _)| parse_buckets(&file(name))),
        }
    }

    /// Growth since `earlier`.
    pub(crate) fn since(self, earlier: &Self) -> Self {
        let [kernel, hypercall] = self.buckets;
        Self {
            counts: growth(self.counts, &earlier.counts),
            buckets: [
                growth(kernel, &earlier.buckets[0]),
                growth(hypercall, &earlier.buckets[1]),
            ],
        }
    }

    /// One summary for each histogram that is not empty; good to 2 %.
    pub(crate) fn latency(&self) -> Result<Vec<LatencySummary>, Error> {
        let mut summaries = Vec::new();
        for ((_, what), buckets) in HISTOGRAMS.iter().zip(&self.buckets) {
            let mut times = histogram();
            for (ns, count) in buckets {
                times.saturating_record_n(*ns, *count);
            }
            if !times.is_empty() {
                summaries.push(LatencySummary::from_histogram(what, &times)?);
            }
        }
        Ok(summaries)
    }
}

fn growth<K: Ord>(now: BTreeMap<K, u64>, before: &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    now.into_iter()
        .map(|(key, n)| {
            let earlier = before.get(&key).copied().unwrap_or(0);
            (key, n.saturating_sub(earlier))
        })
        .filter(|(_, n)| *n > 0)
        .collect()
}

/// Lines of `NAME N`.
fn parse_counts(text: &str) -> BTreeMap<String, u64> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, n)| Some((name.to_owned(), n.parse().ok()?)))
        .collect()
}

/// Lines of `bucket LOW HIGH N`, where HIGH is the next bucket's least value.
fn parse_buckets(text: &str) -> BTreeMap<u64, u64> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("bucket ")?.split(' ');
            let mut number = || words.next()?.parse::<u64>().ok();
            let (low, high, n) = (number()?, number()?, number()?);
            Some((low + (high.saturating_sub(low)) / 2, n))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_what_came_since() {
        let at = |counts, kernel| Stats {
            counts: parse_counts(counts),
            buckets: [parse_buckets(kernel), BTreeMap::new()],
        };
        let before = at("requests 5\nlist 2\n", "count 2\nbucket 100 104 2\n");
        let after = at(
            "requests 9\nlist 2\n",
            "count 5\nbucket 100 104 4\nbucket 2048 2176 1\n",
        );
        let grown = after.since(&before);
        assert_eq!(grown.counts, BTreeMap::from([("requests".to_owned(), 4)]));
        let latency = grown.latency().expect("encodes");
        assert_eq!(latency.len(), 1);
        assert_eq!(
            (latency[0].what.as_str(), latency[0].count),
            (HISTOGRAMS[0].1, 3)
        );
        assert_eq!(latency[0].p50_ns, 102);
    }

    #[test]
    fn without_the_module_there_is_nothing() {
        let nothing = Stats::default().since(&Stats::default());
        assert!(nothing.counts.is_empty() && nothing.latency().expect("encodes").is_empty());
    }
}
