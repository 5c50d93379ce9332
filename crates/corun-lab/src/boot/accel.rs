// SPDX-License-Identifier: GPL-2.0-only
//! What runs L1's instructions.

use super::BootError;
use std::fmt;
use std::fs::{self, File};
use std::str::FromStr;

/// How L1 is run on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accel {
    /// Emulation; works on any machine.
    #[default]
    Tcg,
    /// Emulation in which time is what was executed: an instruction a nanosecond, in
    /// turns of all pCPUs, so that each of two executes one in two nanoseconds. Some
    /// ten times slower than its own time, on one of this machine's CPUs, and
    /// undisturbed by what else the machine does.
    Icount,
    /// Hardware virtualization; the machine must allow nesting.
    Kvm,
}

impl Accel {
    /// QEMU's options.
    pub(super) fn args(self) -> &'static [&'static str] {
        match self {
            Self::Tcg => &["-accel", "tcg,thread=multi", "-cpu", "max"],
            Self::Icount => &[
                "-accel",
                "tcg,thread=single",
                "-cpu",
                "max",
                "-icount",
                "shift=0,sleep=off",
            ],
            Self::Kvm => &["-accel", "kvm", "-cpu", "host"],
        }
    }

    /// For L1's kernel command line. Where time is what was executed, a pCPU that sleeps
    /// would lend its time to the others: each runs faster the fewer are busy. One that
    /// polls does not.
    pub(super) fn append(self) -> &'static str {
        match self {
            Self::Tcg | Self::Kvm => "",
            Self::Icount => "idle=poll",
        }
    }

    /// How many seconds a second of L1 may take. The emulation that counts instructions
    /// needs some 8, and many times that where compilers run beside it.
    pub fn slowness(self) -> u32 {
        match self {
            Self::Tcg | Self::Kvm => 1,
            Self::Icount => 40,
        }
    }

    /// How much slower than hardware each of `pcpus` computes, and all else with it, where
    /// that is known: what `time_scale = "auto"` is then. Hardware executes some two
    /// instructions a nanosecond, all pCPUs together execute one here. None: to be measured.
    pub fn time_scale(self, pcpus: u32) -> Option<f64> {
        match self {
            Self::Tcg | Self::Kvm => None,
            Self::Icount => Some(2.0 * f64::from(pcpus)),
        }
    }

    /// Whether what else this machine does changes how fast L1 is, by L1's own clock.
    pub fn feels_this_machine(self) -> bool {
        self != Self::Icount
    }

    /// Whether this machine can do it.
    pub fn check(self) -> Result<(), BootError> {
        if self != Self::Kvm {
            return Ok(());
        }
        let device = File::options().read(true).write(true).open("/dev/kvm");
        device.map_err(|e| BootError::NoKvm {
            why: format!("/dev/kvm cannot be opened: {e}"),
            next: "load kvm_intel or kvm_amd, and join the group kvm",
        })?;
        let nested = ["kvm_intel", "kvm_amd"].iter().any(|module| {
            let path = format!("/sys/module/{module}/parameters/nested");
            fs::read_to_string(path).is_ok_and(|v| matches!(v.trim(), "Y" | "1"))
        });
        nested.then_some(()).ok_or_else(|| BootError::NoKvm {
            why: "KVM on this machine does not allow nested virtualization".to_owned(),
            next: "load kvm_intel or kvm_amd with nested=1",
        })
    }
}

impl fmt::Display for Accel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcg => "tcg",
            Self::Icount => "icount",
            Self::Kvm => "kvm",
        })
    }
}

impl FromStr for Accel {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "tcg" => Ok(Self::Tcg),
            "icount" => Ok(Self::Icount),
            "kvm" => Ok(Self::Kvm),
            other => Err(format!("{other:?} is no accelerator: tcg, icount or kvm")),
        }
    }
}
