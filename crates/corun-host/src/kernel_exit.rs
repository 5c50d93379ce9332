// SPDX-License-Identifier: GPL-2.0-only
//! Why the kernel ended a scheduler, and what to do about it.

use crate::host_info;
use serde::Serialize;
use std::fmt;

/// The kernel's exit kinds (`enum scx_exit_kind`) that matter here.
const NONE: i32 = 0;
const SYSRQ: i32 = 67;
const ERROR_STALL: i32 = 1026;

/// Why the kernel ended the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelExit {
    /// The kernel's number of the reason (`enum scx_exit_kind`).
    pub kind: i32,
    /// The reason in the kernel's words.
    pub reason: String,
    /// More of it, where there is more.
    pub message: String,
    /// The kernel's own scheduler schedules all tasks again.
    pub kernel_schedules: bool,
}

impl KernelExit {
    /// `None` while the scheduler runs.
    pub(crate) fn new(kind: i32, reason: String, message: String) -> Option<Self> {
        (kind != NONE).then_some(Self {
            kind,
            reason,
            message,
            kernel_schedules: false,
        })
    }

    /// Looks whether the kernel's own scheduler is back.
    pub(crate) fn look_again(&mut self) {
        self.kernel_schedules = host_info::kernel_schedules();
    }

    fn next_step(&self) -> &'static str {
        match self.kind {
            SYSRQ => "somebody asked for it by SysRq-S; start `corun run` again when you like",
            ERROR_STALL => {
                "a task waited for a pCPU for longer than sched_ext allows. Does a real-time \
                 task hold that pCPU (`ps -eLo psr,cls,rtprio,pcpu,comm`)? If none does, \
                 report it with the kernel's log (`dmesg`); then start `corun run` again"
            }
            _ => "report it with the kernel's log (`dmesg`); then start `corun run` again",
        }
    }
}

impl fmt::Display for KernelExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        let back = if self.kernel_schedules {
            "The kernel's own scheduler is back, and guests go on"
        } else {
            "The kernel's own scheduler is not back yet (/sys/kernel/sched_ext/state)"
        };
        write!(f, ".\n{back}.\nNext: {}.", self.next_step())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(kind: i32, reason: &str, message: &str) -> KernelExit {
        KernelExit::new(kind, reason.to_owned(), message.to_owned()).expect("an exit")
    }

    #[test]
    fn a_scheduler_that_runs_has_not_ended() {
        assert_eq!(KernelExit::new(NONE, String::new(), String::new()), None);
    }

    #[test]
    fn what_happened_and_what_to_do_is_told() {
        let mut stall = exit(ERROR_STALL, "runnable task stall", "sh[7] failed to run");
        assert!(stall.to_string().contains("not back yet"));
        stall.kernel_schedules = true;
        let text = stall.to_string();
        assert!(text.starts_with("runnable task stall: sh[7] failed to run.\n"));
        assert!(text.contains("is back") && text.contains("real-time"));
        let asked = exit(SYSRQ, "disabled by sysrq-S", "").to_string();
        assert!(asked.starts_with("disabled by sysrq-S.\n"), "{asked}");
        assert!(asked.contains("SysRq-S"));
    }
}
