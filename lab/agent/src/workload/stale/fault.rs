// SPDX-License-Identifier: GPL-2.0-only
//! What a thread does that writes where it may not: it waits until it may again.

use super::slots::{PAGE, Slots};
use crate::error::Error;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Most mutators of one run.
const MOST: usize = 16;

/// Pages whose right to write comes and goes: address, and the flag that tells
/// when it is back. A signal handler can be given nothing but statics.
static PAGES: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static FLAGS: [AtomicPtr<AtomicBool>; MOST] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST];

/// Waits for the pages of `all` on a fault from now on. The slots are kept for
/// ever, so that the handler never sees one that is gone.
pub(super) fn install(all: &[Arc<Slots>]) -> Result<(), Error> {
    for (i, slots) in all.iter().enumerate().take(MOST) {
        let kept: &'static Slots = Box::leak(Box::new(Arc::clone(slots)));
        FLAGS[i].store(ptr::from_ref(&kept.writable).cast_mut(), Ordering::Release);
        PAGES[i].store(kept.protected_page(), Ordering::Release);
    }
    // SAFETY: all-zero bytes are a valid sigaction, filled in below; the handler
    // uses atomics and async-signal-safe calls alone.
    let failed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut())
    };
    if failed == 0 {
        Ok(())
    } else {
        Err(Error::last_os("sigaction"))
    }
}

/// Comes back when the write may be tried again. A fault anywhere else is this
/// program's own: the default action, at the second try, ends it.
extern "C" fn handler(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo for SIGSEGV.
    let page = unsafe { (*info).si_addr() } as usize & !(PAGE - 1);
    let slot = PAGES.iter().position(|p| p.load(Ordering::Acquire) == page);
    let Some(slot) = slot.filter(|_| page != 0) else {
        // SAFETY: resets the action; async-signal-safe.
        unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
        return;
    };
    let flag = FLAGS[slot].load(Ordering::Acquire);
    // SAFETY: stored before the page was, and leaked, so it lives.
    while !unsafe { &*flag }.load(Ordering::Acquire) {
        // SAFETY: touches no memory.
        unsafe { libc::sched_yield() };
    }
}
