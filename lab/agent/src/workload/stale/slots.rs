// SPDX-License-Identifier: GPL-2.0-only
//! The mappings that one mutator changes, and what must hold for them.

use crate::error::Error;
use std::ffi::c_void;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(super) const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
/// Pages that take turns at the remapped address. A stale reader sees one of the
/// last few, which still says its old turn.
const TURNS: usize = 8;
/// How often a mutator looks for writes that must not come.
const LOOKS: usize = 64;
/// Of <asm-generic/mman-common.h>; not in libc for every target.
const MADV_SOFT_OFFLINE: libc::c_int = 101;
/// A page has room for this many counters.
const MOST_CHECKERS: usize = PAGE / 8;

/// One mutator's mappings.
pub(super) struct Slots {
    /// Pages of the remapped address, then the protected page's own.
    memory: OwnedFd,
    /// All of `memory`, never changed.
    alias: *mut u8,
    remapped: *mut u8,
    /// Turn of the page at `remapped`, since its system call returned.
    turn: AtomicU64,
    protected: *mut u8,
    /// Whether `protected` may be written.
    pub(super) writable: AtomicBool,
    /// A region for one huge page; its first page is discarded.
    discarded: *mut u8,
    /// Odd: the page is discarded and nobody has filled it again.
    epoch: AtomicU64,
    forked: *mut u8,
    /// What each checker has surely written to `forked`.
    counters: Vec<AtomicU64>,
}

// SAFETY: the pointers are to mappings that live as long as the process; all access
// through them is volatile, and races are what is tested.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// Maps everything, for `checkers` threads that use it. The mappings stay for
    /// the life of the process: a few pages per run.
    pub(super) fn map(checkers: usize) -> Result<Self, Error> {
        let memory = memory((TURNS + 1) * PAGE)?;
        let shared = |at: usize, bytes| map_shared(&memory, at, bytes);
        let (alias, remapped) = (shared(0, (TURNS + 1) * PAGE)?, shared(0, PAGE)?);
        let protected = shared(TURNS * PAGE, PAGE)?;
        let room = map_private(2 * HUGE)?;
        let discarded = room.wrapping_add(room.align_offset(HUGE));
        // SAFETY: within our own mapping. A kernel without huge pages refuses: no
        // matter.
        unsafe { libc::madvise(discarded.cast(), HUGE, libc::MADV_HUGEPAGE) };
        Ok(Self {
            alias,
            remapped,
            turn: AtomicU64::new(0),
            protected,
            writable: AtomicBool::new(true),
            discarded,
            epoch: AtomicU64::new(0),
            forked: map_private(PAGE)?,
            counters: (0..checkers.min(MOST_CHECKERS))
                .map(|_| AtomicU64::new(0))
                .collect(),
            memory,
        })
    }

    /// Accesses of one checker that looks at everything once.
    pub(super) fn accesses(&self) -> usize {
        // Two that are read, two that are written, and all counters.
        4 + self.counters.len()
    }

    /// Has the kernel copy the page of `turn` - each has its turn - to other memory,
    /// as for memory that begins to fail: 4 KiB less for this machine until it boots
    /// again. Returns whether it did; a page in other use cannot move just then.
    pub(super) fn migrate(&self, turn: u64) -> bool {
        let pages = [self.remapped, self.protected, self.discarded, self.forked];
        let page = pages[usize::try_from(turn).unwrap_or(0) % pages.len()];
        // SAFETY: our own page, which keeps its address and content.
        unsafe { libc::madvise(page.cast(), PAGE, MADV_SOFT_OFFLINE) == 0 }
    }

    /// Address of the page whose right to write comes and goes.
    pub(super) fn protected_page(&self) -> usize {
        self.protected as usize
    }

    /// Puts the page of `turn` at its address.
    pub(super) fn remap(&self, turn: u64) -> Result<(), Error> {
        let at = usize::try_from(turn).unwrap_or(0) % TURNS * PAGE;
        store(self.alias.wrapping_add(at), turn);
        // SAFETY: replaces a mapping of our own with another of the same file.
        let got = unsafe {
            libc::mmap(
                self.remapped.cast(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.memory.as_raw_fd(),
                libc::off_t::try_from(at).unwrap_or(0),
            )
        };
        checked(got, "mmap")?;
        self.turn.store(turn, Ordering::Release);
        Ok(())
    }

    /// The page at the address is that of the published turn, or a later one.
    pub(super) fn check_remapped(&self) -> Result<(), Error> {
        let published = self.turn.load(Ordering::Acquire);
        let seen = load(self.remapped);
        if seen >= published {
            return Ok(());
        }
        Err(stale(format!(
            "read the page of turn {seen} after turn {published} was mapped"
        )))
    }

    /// Takes the right to write away, watches that nobody writes, gives it back.
    pub(super) fn protect(&self) -> Result<(), Error> {
        self.writable.store(false, Ordering::Release);
        self.set_protection(libc::PROT_READ)?;
        let before = self.protected_sum();
        let changed = (0..LOOKS).any(|_| self.protected_sum() != before);
        self.set_protection(libc::PROT_READ | libc::PROT_WRITE)?;
        self.writable.store(true, Ordering::Release);
        if changed {
            return Err(stale(
                "wrote to a page after mprotect(PROT_READ)".to_owned(),
            ));
        }
        Ok(())
    }

    fn set_protection(&self, protection: i32) -> Result<(), Error> {
        // SAFETY: our own mapping; whoever writes meanwhile waits in the handler.
        let failed = unsafe { libc::mprotect(self.protected.cast(), PAGE, protection) };
        if failed == 0 {
            Ok(())
        } else {
            Err(Error::last_os("mprotect"))
        }
    }

    /// Sum of the protected page, read where it is not protected.
    fn protected_sum(&self) -> u64 {
        let page = self.alias.wrapping_add(TURNS * PAGE);
        (0..self.counters.len())
            .map(|i| load(page.wrapping_add(8 * i)))
            .fold(0, u64::wrapping_add)
    }

    /// Writes `counter` to this thread's place; waits while the page is protected.
    pub(super) fn write_protected(&self, index: usize, counter: u64) {
        store(self.protected.wrapping_add(8 * index), counter);
    }

    /// Fills the page and throws it away: with all of its huge page, or alone. Returns
    /// whether the latter follows a filling of the huge page, and so splits it.
    pub(super) fn discard(&self, turn: u64) -> Result<bool, Error> {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        store(self.discarded, turn);
        let bytes = if turn.is_multiple_of(8) { HUGE } else { PAGE };
        // SAFETY: our own mapping, of which nothing is needed later.
        let failed = unsafe { libc::madvise(self.discarded.cast(), bytes, libc::MADV_DONTNEED) };
        if failed != 0 {
            return Err(Error::last_os("madvise"));
        }
        self.epoch.fetch_add(1, Ordering::AcqRel);
        Ok(turn % 8 == 1)
    }

    /// Between a discard and the next filling the page is zero.
    pub(super) fn check_discarded(&self) -> Result<(), Error> {
        let before = self.epoch.load(Ordering::Acquire);
        let seen = load(self.discarded);
        let after = self.epoch.load(Ordering::Acquire);
        if before != after || !before.is_multiple_of(2) || seen == 0 {
            return Ok(());
        }
        Err(stale(format!(
            "read {seen} from a page that was discarded in turn {}",
            before / 2
        )))
    }

    /// Writes `counter` to this thread's place in the page that forks share, and
    /// says so.
    pub(super) fn write_forked(&self, index: usize, counter: u64) {
        store(self.forked.wrapping_add(8 * index), counter);
        self.counters[index].store(counter, Ordering::Release);
    }

    /// Nobody reads an older copy of the page than what is surely in it.
    pub(super) fn check_counters(&self) -> Result<(), Error> {
        for (i, counter) in self.counters.iter().enumerate() {
            let published = counter.load(Ordering::Acquire);
            let seen = load(self.forked.wrapping_add(8 * i));
            if seen < published {
                return Err(stale(format!(
                    "read {seen} after {published} was written: a copy from before a fork"
                )));
            }
        }
        Ok(())
    }

    /// Forks a child that watches its copy of the page: nobody may write to it.
    pub(super) fn fork(&self) -> Result<(), Error> {
        // SAFETY: the child reads memory and ends; both are async-signal-safe.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let sum = || {
                (0..self.counters.len())
                    .map(|i| load(self.forked.wrapping_add(8 * i)))
                    .fold(0, u64::wrapping_add)
            };
            let before = sum();
            let changed = (0..LOOKS).any(|_| sum() != before);
            // SAFETY: ends the child without running anything of its parent's.
            unsafe { libc::_exit(i32::from(changed)) };
        }
        if child < 0 {
            return Err(Error::last_os("fork"));
        }
        let mut status = 0;
        // SAFETY: the status is ours to be written.
        while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
            if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                return Err(Error::last_os("waitpid"));
            }
        }
        if status == 0 {
            Ok(())
        } else {
            Err(stale(format!(
                "wrote to the page of a forked child (its status is {status:#x})"
            )))
        }
    }
}

fn stale(what: String) -> Error {
    Error::Stale { what }
}

#[allow(
    clippy::cast_ptr_alignment,
    reason = "every place is a multiple of 8 bytes into a page"
)]
fn load(at: *const u8) -> u64 {
    // SAFETY: an aligned place in a mapping that is always readable.
    unsafe { at.cast::<u64>().read_volatile() }
}

#[allow(clippy::cast_ptr_alignment, reason = "as above")]
fn store(at: *mut u8, value: u64) {
    // SAFETY: an aligned place in a mapping of our own; where it is protected, the
    // handler waits.
    unsafe { at.cast::<u64>().write_volatile(value) }
}

fn memory(bytes: usize) -> Result<OwnedFd, Error> {
    // SAFETY: a constant name and no flags.
    let fd = unsafe { libc::memfd_create(c"stale".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(Error::last_os("memfd_create"));
    }
    // SAFETY: a new descriptor that nobody else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let bytes = libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
    // SAFETY: a valid descriptor.
    if unsafe { libc::ftruncate(fd.as_raw_fd(), bytes) } == 0 {
        Ok(fd)
    } else {
        Err(Error::last_os("ftruncate"))
    }
}

fn map_shared(memory: &OwnedFd, at: usize, bytes: usize) -> Result<*mut u8, Error> {
    map(bytes, libc::MAP_SHARED, memory.as_raw_fd(), at)
}

fn map_private(bytes: usize) -> Result<*mut u8, Error> {
    map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
}

fn map(bytes: usize, flags: i32, fd: i32, at: usize) -> Result<*mut u8, Error> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let at = libc::off_t::try_from(at).unwrap_or(0);
    // SAFETY: a new mapping wherever the kernel likes overlaps nothing.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, fd, at) };
    checked(start, "mmap")
}

fn checked(start: *mut c_void, what: &str) -> Result<*mut u8, Error> {
    if start == libc::MAP_FAILED {
        Err(Error::last_os(what))
    } else {
        Ok(start.cast())
    }
}
