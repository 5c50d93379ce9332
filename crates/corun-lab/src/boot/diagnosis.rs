// SPDX-License-Identifier: GPL-2.0-only
//! Why a boot did not do its work, from what it left behind.

use super::{MARKER_DOWN, MARKER_UP};
use serde::Serialize;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// How the failure showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// QEMU ended, or the driver closed the channel, before the work was done.
    Ended,
    /// Nothing was heard for this long.
    Silent {
        /// How long.
        waited: Duration,
    },
    /// The driver told it.
    Reported {
        /// Its words.
        message: String,
        /// Its judgement: a guest fell silent or was reset.
        emulator_suspect: bool,
    },
}

/// What a failed boot left behind.
#[derive(Debug)]
pub struct Evidence {
    /// How the failure showed.
    pub failure: Failure,
    /// The console's whole text.
    pub console: String,
    /// QEMU's standard error.
    pub qemu_said: String,
    /// How QEMU ended by itself, if it did.
    pub exit: Option<ExitStatus>,
    /// Time since the start.
    pub age: Duration,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// QEMU could not start: a missing library, a bad option.
    Qemu,
    /// QEMU itself crashed.
    QemuCrash,
    /// L1's kernel panicked.
    KernelPanic,
    /// L1's kernel hit a fault or a failed assertion.
    KernelOops,
    /// "corrupted stack end": the emulator's best known fault.
    StackCorrupted,
    /// L1 stopped without a word: a triple fault, which resets the machine.
    SilentReset,
    /// One of L1's pCPUs takes no interrupt any more, not even an NMI.
    PcpuStopped,
    /// L1 fell silent.
    Hang,
    /// L1 ran out of memory.
    OutOfMemory,
    /// The image lacks something: no init, or one that cannot run.
    Image,
    /// L1's script ended and powered off without reporting success.
    Ended,
    /// A guest, workload or scheduler failed, as the driver tells.
    Reported,
}

/// Why a boot did not do its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// What went wrong.
    pub cause: Cause,
    /// Whether the emulator may be to blame, so that another boot may pass.
    pub emulator_suspect: bool,
    /// The line that shows it, or the driver's words.
    pub detail: String,
    /// The console's last lines.
    pub last_lines: Vec<String>,
    /// Whether L1 got as far as its init.
    pub was_up: bool,
    /// Time from the start to the failure. Milliseconds.
    pub age_ms: u64,
    /// Folder with the logs.
    pub logs: Option<PathBuf>,
}

/// Console text that names its cause, most telling first.
const SIGNS: [(&str, Cause); 13] = [
    ("corrupted stack end", Cause::StackCorrupted),
    ("No working init found", Cause::Image),
    ("Unable to mount root fs", Cause::Image),
    ("Initramfs unpacking failed", Cause::Image),
    ("Out of memory", Cause::OutOfMemory),
    ("System is deadlocked on memory", Cause::OutOfMemory),
    ("BUG: ", Cause::KernelOops),
    ("Oops: ", Cause::KernelOops),
    ("general protection fault", Cause::KernelOops),
    ("kernel BUG at", Cause::KernelOops),
    ("soft lockup", Cause::KernelOops),
    ("Kernel panic", Cause::KernelPanic),
    (PCPU_STOPPED, Cause::PcpuStopped),
];

/// Told by another pCPU, after 21 s. Seen in the emulator's memory: the stopped one
/// runs a guest with GIF clear, which VMRUN sets, so neither interrupt nor NMI ends
/// the guest's turn. Nothing that L1 does can bring that about; `image/emulator.rs` tells
/// what did.
const PCPU_STOPPED: &str = "detected stalls on CPUs";

/// Has one of L1's pCPUs stopped, as its console tells?
pub fn has_stopped_pcpu(console: &str) -> bool {
    kernel_lines(console).any(|line| line.contains(PCPU_STOPPED))
}

impl Diagnosis {
    /// Judges `evidence`; `logs` is where its logs were kept.
    pub fn new(evidence: &Evidence, logs: Option<PathBuf>) -> Self {
        let (cause, detail) = judge(evidence);
        let emulator_suspect = match (&evidence.failure, cause) {
            (
                Failure::Reported {
                    emulator_suspect, ..
                },
                Cause::Reported,
            ) => *emulator_suspect,
            _ => cause.emulator_suspect(),
        };
        Self {
            cause,
            emulator_suspect,
            detail,
            last_lines: last_lines(&evidence.console),
            was_up: evidence.console.contains(MARKER_UP),
            age_ms: u64::try_from(evidence.age.as_millis()).unwrap_or(u64::MAX),
            logs,
        }
    }

    /// Whether another boot is worth trying.
    pub fn is_emulator_suspect(&self) -> bool {
        self.emulator_suspect
    }
}

impl Cause {
    fn emulator_suspect(self) -> bool {
        match self {
            Self::QemuCrash
            | Self::KernelPanic
            | Self::KernelOops
            | Self::StackCorrupted
            | Self::SilentReset
            | Self::PcpuStopped
            | Self::Hang => true,
            Self::Qemu | Self::OutOfMemory | Self::Image | Self::Ended | Self::Reported => false,
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Qemu => "QEMU could not start L1",
            Self::QemuCrash => "QEMU crashed",
            Self::KernelPanic => "L1's kernel panicked",
            Self::KernelOops => "L1's kernel hit a fault",
            Self::StackCorrupted => "L1's kernel found a corrupted stack, a known emulator fault",
            Self::SilentReset => "L1 was reset without a word, a known emulator fault",
            Self::PcpuStopped => "one of L1's pCPUs stopped, a known emulator fault",
            Self::Hang => "L1 fell silent",
            Self::OutOfMemory => "L1 ran out of memory (give it more, or use fewer guests)",
            Self::Image => "L1's image cannot start (run `corun lab build` again)",
            Self::Ended => "L1 ended before the work was done",
            Self::Reported => "the driver in L1 gave up",
        }
    }
}

fn judge(evidence: &Evidence) -> (Cause, String) {
    // The kernel's own words weigh most: a driver that lost its guests to an
    // oops reports the symptom only.
    if let Some((cause, line)) = sign_in(&evidence.console) {
        return (cause, line);
    }
    match &evidence.failure {
        Failure::Reported { message, .. } => (Cause::Reported, message.clone()),
        Failure::Ended => judge_end(evidence),
        Failure::Silent { waited } => {
            let stage = if evidence.console.contains(MARKER_UP) {
                "after its init had started"
            } else {
                "before its init started"
            };
            let waited = waited.as_secs();
            (Cause::Hang, format!("no word for {waited} s, {stage}"))
        }
    }
}

fn judge_end(evidence: &Evidence) -> (Cause, String) {
    let said = evidence.qemu_said.trim();
    if evidence.console.contains(MARKER_DOWN) {
        let line = evidence
            .console
            .lines()
            .rfind(|l| l.contains("entry ended with"));
        return (Cause::Ended, line.unwrap_or_default().trim().to_owned());
    }
    match evidence.exit {
        Some(status) if status.signal().is_some() => {
            (Cause::QemuCrash, format!("{status}; {said}"))
        }
        Some(status) if !status.success() => (Cause::Qemu, said.to_owned()),
        Some(_) => (
            Cause::SilentReset,
            "QEMU ended without L1's closing marker".to_owned(),
        ),
        None => (
            Cause::Ended,
            "the driver closed the control channel".to_owned(),
        ),
    }
}

/// Looks at the kernel's own lines only (`[    1.234567] ...`): a script may
/// print a guest's last words, which are not L1's.
fn sign_in(console: &str) -> Option<(Cause, String)> {
    SIGNS.iter().find_map(|(text, cause)| {
        let line = kernel_lines(console).find(|l| l.contains(text))?;
        Some((*cause, line.trim().to_owned()))
    })
}

fn kernel_lines(console: &str) -> impl Iterator<Item = &str> {
    let is_kernels = |line: &&str| line.trim_start().starts_with('[');
    console.lines().filter(is_kernels)
}

fn last_lines(console: &str) -> Vec<String> {
    let lines: Vec<_> = console.lines().filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(8);
    lines[from..].iter().map(|&l| l.to_owned()).collect()
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.age_ms / 1000;
        write!(f, "{} (after {seconds} s)", self.cause.sentence())?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        if !self.last_lines.is_empty() && self.cause != Cause::Reported {
            write!(f, "\nlast lines of its console:")?;
            for line in &self.last_lines {
                write!(f, "\n  {line}")?;
            }
        }
        if let Some(logs) = &self.logs {
            write!(f, "\nlogs: {}", logs.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnosis {}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(failure: Failure, console: &str, exit: Option<i32>) -> Evidence {
        Evidence {
            failure,
            console: console.to_owned(),
            qemu_said: "qemu: bad option".to_owned(),
            exit: exit.map(ExitStatus::from_raw),
            age: Duration::from_secs(9),
        }
    }

    fn cause(failure: Failure, console: &str, exit: Option<i32>) -> (Cause, bool) {
        let d = Diagnosis::new(&evidence(failure, console, exit), None);
        (d.cause, d.is_emulator_suspect())
    }

    #[test]
    fn the_kernels_words_are_recognized() {
        let cases = [
            (
                "[ 3.1] Kernel panic - not syncing: corrupted stack end detected inside scheduler",
                Cause::StackCorrupted,
                true,
            ),
            (
                "[ 3.1] BUG: unable to handle page fault for address: ffff\n[3.2] Kernel panic - \
              not syncing: Fatal exception",
                Cause::KernelOops,
                true,
            ),
            (
                "[ 1.0] Kernel panic - not syncing: Attempted to kill init!",
                Cause::KernelPanic,
                true,
            ),
            (
                "[ 1.0] Kernel panic - not syncing: No working init found.",
                Cause::Image,
                false,
            ),
            (
                "[ 9.0] Out of memory: Killed process 77 (qemu-system-x86)",
                Cause::OutOfMemory,
                false,
            ),
        ];
        for (console, wanted, suspect) in cases {
            assert_eq!(
                cause(Failure::Ended, console, Some(0)),
                (wanted, suspect),
                "{console}"
            );
        }
    }

    #[test]
    fn a_stopped_pcpu_is_told_by_the_kernel_alone() {
        let told = "[ 68.9] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:";
        assert!(has_stopped_pcpu(told));
        assert_eq!(
            cause(Failure::Ended, told, None),
            (Cause::PcpuStopped, true)
        );
        assert!(!has_stopped_pcpu(&format!("guest a: {told}")));
        assert!(!has_stopped_pcpu(
            "[ 9.1] rcu: INFO: rcu_preempt self-detected stall on CPU"
        ));
    }

    #[test]
    fn an_exit_status_is_never_success() {
        let up = MARKER_UP;
        let down = format!("{MARKER_UP}\ncorun-lab: entry ended with 1\n{MARKER_DOWN}\n");
        assert_eq!(
            cause(Failure::Ended, up, Some(0)),
            (Cause::SilentReset, true)
        );
        assert_eq!(cause(Failure::Ended, &down, Some(0)), (Cause::Ended, false));
        // Raw wait statuses: exit code 1, and death by SIGSEGV.
        assert_eq!(cause(Failure::Ended, "", Some(256)), (Cause::Qemu, false));
        assert_eq!(
            cause(Failure::Ended, up, Some(11)),
            (Cause::QemuCrash, true)
        );
    }

    #[test]
    fn a_guests_panic_is_not_the_hosts() {
        let console = format!("{MARKER_UP}\nguest a: Kernel panic - not syncing\n{MARKER_DOWN}");
        assert_eq!(
            cause(Failure::Ended, &console, Some(0)),
            (Cause::Ended, false)
        );
    }

    #[test]
    fn silence_is_a_hang_and_tells_the_stage() {
        let waited = Duration::from_mins(1);
        let d = Diagnosis::new(&evidence(Failure::Silent { waited }, "", None), None);
        assert_eq!((d.cause, d.was_up), (Cause::Hang, false));
        assert!(d.to_string().contains("before its init started"), "{d}");
    }

    #[test]
    fn the_driver_judges_its_own_failures() {
        let told = |emulator_suspect| Failure::Reported {
            message: "guest a was reset".into(),
            emulator_suspect,
        };
        assert_eq!(cause(told(true), MARKER_UP, None), (Cause::Reported, true));
        assert_eq!(
            cause(told(false), MARKER_UP, None),
            (Cause::Reported, false)
        );
        let oops = "[    9.1] BUG: unable to handle page fault";
        assert_eq!(cause(told(false), oops, None), (Cause::KernelOops, true));
    }
}
