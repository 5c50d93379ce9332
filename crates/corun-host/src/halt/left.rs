// SPDX-License-Identifier: GPL-2.0-only
//! What a killed process leaves behind, and how the next one undoes it.
//!
//! A file says what the operator had set and what we may have set since. It is
//! written before the parameter is, so that at no moment a value of ours is in
//! force without the file; and a value that is none of ours is never touched.

use super::parameter;
use super::places::Places;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Who set the parameter: a process, told apart from a later one of its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    boot_id: String,
    pid: u32,
    /// Clock ticks from boot to its start (`/proc/PID/stat`, field 22).
    start_ticks: u64,
}

impl Owner {
    /// This process.
    pub(super) fn this(places: &Places) -> Result<Self> {
        let pid = std::process::id();
        let start_ticks = start_of(places, pid).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("/proc has no process {pid}"))
        })?;
        Ok(Self {
            boot_id: boot_id(places),
            pid,
            start_ticks,
        })
    }

    fn lives(&self, places: &Places) -> bool {
        self.boot_id == boot_id(places) && start_of(places, self.pid) == Some(self.start_ticks)
    }
}

fn boot_id(places: &Places) -> String {
    crate::text::first_line(places.proc.join("sys/kernel/random/boot_id")).unwrap_or_default()
}

/// When a process that runs was started; `None` for one that ended, also while
/// nobody has waited for it.
fn start_of(places: &Places, pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(places.proc.join(format!("{pid}/stat"))).ok()?;
    // The name, in parentheses, may contain anything.
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

/// The file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(flatten)]
    pub(super) owner: Owner,
    /// [`parameter::Parameter::module`].
    pub(super) module: u64,
    /// What the operator had set. Nanoseconds.
    pub(super) operator_ns: u64,
    /// What we may have set: the value before the last change, and after it.
    pub(super) ours_ns: [u64; 2],
}

impl Record {
    /// Puts it in place, whole or not at all.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = path.with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(&new, path)
    }
}

/// Forgets the record; absent is as good.
pub(super) fn forget(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Err(e),
        _ => Ok(()),
    }
}

/// What was found of earlier processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Left {
    /// No record.
    Nothing,
    /// The record of a process that runs.
    InUse {
        /// It.
        pid: u32,
    },
    /// A record with nothing to undo.
    Void {
        /// Why.
        why: &'static str,
    },
    /// A dead process' value is in force.
    Changed {
        /// The process.
        pid: u32,
        /// The value now. Nanoseconds.
        present_ns: u64,
        /// The operator's. Nanoseconds.
        operator_ns: u64,
    },
}

/// Looks, and changes nothing.
pub(crate) fn inspect(places: &Places) -> Result<Left> {
    let bytes = match fs::read(&places.left) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Left::Nothing);
        }
        other => other?,
    };
    let Ok(record) = serde_json::from_slice::<Record>(&bytes) else {
        return Ok(Left::Void {
            why: "the record cannot be read",
        });
    };
    if record.owner.lives(places) {
        return Ok(Left::InUse {
            pid: record.owner.pid,
        });
    }
    if record.owner.boot_id != boot_id(places) {
        return Ok(Left::Void {
            why: "the host was booted since",
        });
    }
    let Some(present) = parameter::read(&places.parameter)? else {
        return Ok(Left::Void {
            why: "kvm was unloaded since",
        });
    };
    Ok(match present.value_ns {
        _ if present.module != record.module => Left::Void {
            why: "kvm was loaded anew since",
        },
        ns if ns == record.operator_ns => Left::Void {
            why: "the operator's value is in force",
        },
        ns if !record.ours_ns.contains(&ns) => Left::Void {
            why: "somebody else set it since",
        },
        present_ns => Left::Changed {
            pid: record.owner.pid,
            present_ns,
            operator_ns: record.operator_ns,
        },
    })
}

/// Undoes what a dead process left; returns what was found.
pub(crate) fn repair(places: &Places) -> Result<Left> {
    let left = inspect(places)?;
    if let Left::Changed { operator_ns, .. } = left {
        parameter::write(&places.parameter, operator_ns)?;
    }
    if matches!(left, Left::Changed { .. } | Left::Void { .. }) {
        forget(&places.left)?;
    }
    Ok(left)
}
