// SPDX-License-Identifier: GPL-2.0-only
//! Alarms in L1's kernel log.

use nix::fcntl::OFlag;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// What a healthy kernel does not say.
const ALARMS: &[&str] = &[
    "BUG:",
    "WARNING:",
    "Oops",
    "general protection fault",
    "soft lockup",
    "hard LOCKUP",
    "detected stalls",
    "blocked for more than",
    "runtime error",
];
/// More than this tells nothing new.
const MAX_ALARMS: usize = 20;

/// The alarms in the kernel log since boot.
pub(super) fn alarms() -> Vec<String> {
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open("/dev/kmsg");
    let Ok(mut log) = open else { return Vec::new() };
    let mut found = Vec::new();
    let mut record = [0; 8192];
    // Each read gives one record; at the end it would block.
    while let Ok(length) = log.read(&mut record) {
        if length == 0 {
            break;
        }
        found.extend(alarm(&String::from_utf8_lossy(&record[..length])));
        if found.len() == MAX_ALARMS {
            break;
        }
    }
    found
}

/// The text of `record` ("priority,number,time,flags;text") if it is an alarm.
fn alarm(record: &str) -> Option<String> {
    let text = record.split_once(';')?.1.lines().next()?;
    ALARMS
        .iter()
        .any(|a| text.contains(a))
        .then(|| format!("L1 kernel: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_told_from_chatter() {
        let warning = "4,700,1234,-;WARNING: CPU: 0 PID: 1 at x.c:1\n SUBSYSTEM=x\n";
        assert_eq!(
            alarm(warning).as_deref(),
            Some("L1 kernel: WARNING: CPU: 0 PID: 1 at x.c:1")
        );
        assert_eq!(alarm("6,1,1,-;Linux version 7.3.4; BUGS none"), None);
    }
}
