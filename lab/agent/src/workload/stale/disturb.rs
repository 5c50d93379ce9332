// SPDX-License-Identifier: GPL-2.0-only
//! What goes on beside the changes when a run asks for it: pages in use are migrated
//! (taken out of service, which works without nodes to migrate between), memory is
//! compacted, vCPUs go and come back. Each makes the kernel shoot down on its own
//! account; none may make a translation stale.

use super::slots::Slots;
use super::tally::Tally;
use crate::error::Error;
use crate::threads::{Flow, Meter, Worker};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Between two turns; the kernel's own work in a turn takes longer.
const PAUSE: Duration = Duration::from_millis(20);
/// Every how many turns memory is compacted, and a vCPU goes or comes.
const COMPACT_EVERY: u64 = 8;
const HOTPLUG_EVERY: u64 = 16;

/// The worker that does it. It changes the guest: it is not for other machines.
pub(super) struct Disturber {
    all: Vec<Arc<Slots>>,
    tally: Arc<Tally>,
    hotplug: Hotplug,
    turn: u64,
}

impl Disturber {
    /// Will disturb those who use `all`, and take turns with all of `cpus` but the
    /// first.
    pub(super) fn new(all: Vec<Arc<Slots>>, tally: Arc<Tally>, cpus: &[usize]) -> Self {
        Self {
            all,
            tally,
            hotplug: Hotplug {
                cpus: cpus.get(1..).unwrap_or_default().to_vec(),
                next: 0,
                gone: None,
            },
            turn: 0,
        }
    }
}

impl Worker for Disturber {
    fn step(&mut self, _: &Meter) -> Result<Flow, Error> {
        thread::sleep(PAUSE);
        self.turn += 1;
        for slots in &self.all {
            let migrated = slots.migrate(self.turn);
            Tally::add(&self.tally.migrations, u64::from(migrated));
        }
        if self.turn.is_multiple_of(COMPACT_EVERY) {
            fs::write("/proc/sys/vm/compact_memory", "1")
                .map_err(|e| Error::os("cannot compact memory", e))?;
            Tally::add(&self.tally.compactions, 1);
        }
        if self.turn.is_multiple_of(HOTPLUG_EVERY) {
            self.hotplug.take_turn()?;
            Tally::add(&self.tally.hotplugs, 1);
        }
        Ok(Flow::Continue)
    }
}

/// vCPUs that go and come back, one after the other.
struct Hotplug {
    cpus: Vec<usize>,
    next: usize,
    gone: Option<usize>,
}

impl Hotplug {
    /// Brings back the one that is gone, or lets the next one go.
    fn take_turn(&mut self) -> Result<(), Error> {
        if let Some(cpu) = self.gone.take() {
            return set_online(cpu, true);
        }
        let Some(&cpu) = self.cpus.get(self.next % self.cpus.len().max(1)) else {
            return Ok(());
        };
        self.next += 1;
        set_online(cpu, false)?;
        self.gone = Some(cpu);
        Ok(())
    }
}

impl Drop for Hotplug {
    fn drop(&mut self) {
        // The next run wants all of them. One that does not come is seen by its
        // thread, which cannot be pinned.
        if let Some(cpu) = self.gone {
            let _ = set_online(cpu, true);
        }
    }
}

fn set_online(cpu: usize, online: bool) -> Result<(), Error> {
    let file = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
    fs::write(&file, if online { "1" } else { "0" })
        .map_err(|e| Error::os(format!("cannot set {} to {online}", file.display()), e))
}
