// SPDX-License-Identifier: GPL-2.0-only
//! A real-time task that keeps a pCPU to itself: what starves a scheduler's tasks
//! until the kernel's watchdog ends it.

use super::error::{Doing, TinyVmError};
use super::tasks;
use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// Middle of the range 1 to 99: above threaded interrupts, which have 50.
const PRIORITY: i32 = 60;

/// Holds `cpu` for `length`.
pub fn hog(cpu: usize, length: Duration) -> Result<(), TinyVmError> {
    tasks::bind(Pid::from_raw(0), cpu)?;
    let param = libc::sched_param {
        sched_priority: PRIORITY,
    };
    // SAFETY: thread id 0 is the calling thread; `param` outlives the call, which
    // only reads it.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) };
    Errno::result(result).doing("becoming a real-time task (as root)")?;
    let begin = Instant::now();
    while begin.elapsed() < length {
        std::hint::spin_loop();
    }
    Ok(())
}
