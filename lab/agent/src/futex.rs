// SPDX-License-Identifier: GPL-2.0-only
//! The futex system call, for workloads which want it without a lock around it.

use crate::error::Error;
use std::ptr;
use std::sync::atomic::AtomicU32;

/// Sleeps while `word` is `expected`; may come back early.
pub(crate) fn wait(word: &AtomicU32, expected: u32) -> Result<(), Error> {
    // SAFETY: `word` is valid for the call; a null timeout means none.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            ptr::null::<libc::timespec>(),
        )
    };
    if failed == 0 {
        return Ok(());
    }
    let error = Error::last_os("futex wait");
    match &error {
        // The word has changed already, or a signal came: both mean look again.
        Error::Os { source, .. }
            if matches!(source.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) =>
        {
            Ok(())
        }
        _ => Err(error),
    }
}

/// Wakes one sleeper on `word`.
pub(crate) fn wake_one(word: &AtomicU32) {
    // SAFETY: `word` is valid for the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
}
