// SPDX-License-Identifier: GPL-2.0-only
//! `membarrier(2)`: the cheapest way from user mode to an IPI to every vCPU that
//! runs a thread of this process, with the kernel waiting for the answers.

use crate::error::Error;

/// From the kernel's `uapi/linux/membarrier.h`; libc has no names for them.
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Tells the kernel that this process will call [`everywhere`].
pub(super) fn register() -> Result<(), Error> {
    call(REGISTER_PRIVATE_EXPEDITED)
}

/// Interrupts all other vCPUs that run threads of this process, and waits.
pub(super) fn everywhere() -> Result<(), Error> {
    call(PRIVATE_EXPEDITED)
}

fn call(command: libc::c_int) -> Result<(), Error> {
    // SAFETY: membarrier takes numbers alone and touches no memory of ours.
    let failed = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if failed == 0 {
        Ok(())
    } else {
        Err(Error::last_os("membarrier"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_process_may_call() {
        register().expect("registers");
        everywhere().expect("calls");
    }
}
