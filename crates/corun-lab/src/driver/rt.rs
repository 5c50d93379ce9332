// SPDX-License-Identifier: GPL-2.0-only
//! Keeps the driver on time on a host that is overloaded on purpose.

use nix::libc;

/// Gives the calling thread a real-time priority, not passed on to children and
/// new threads. With slices of hundreds of milliseconds (scaled time) a fair
/// task would read clocks and CPU times that late. The driver sleeps all but a
/// few milliseconds of a window, so it costs the guests nothing. Without the
/// right to do so (tests) the thread stays as it is.
pub(super) fn make_responsive() {
    let param = libc::sched_param { sched_priority: 10 };
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: thread id 0 is the calling thread; `param` outlives the call,
    // which only reads it.
    let _ = unsafe { libc::sched_setscheduler(0, policy, &raw const param) };
}
