// SPDX-License-Identifier: GPL-2.0-only
//! `tlb`: threads of one address space that take rights or pages away from it, so
//! that the kernel has to tell every vCPU which runs in it.

use super::cpu::Burner;
use super::{Setup, ThreadRule, Workload};
use crate::error::Error;
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};
use std::ptr::{self, NonNull};

const PAGE: usize = 4096;
/// Steps of arithmetic of a thread which only keeps its vCPU in the address space:
/// short, because stopping waits for it.
const IDLE_ITERATIONS: u64 = 4096;

pub(super) static WORKLOAD: Workload = Workload {
    name: "tlb",
    about: "threads of one address space that madvise, mprotect and munmap touched memory: TLB shootdowns",
    unit: "calls",
    latency: "one madvise, mprotect or munmap call",
    threads: ThreadRule::Any,
    program: None,
    params: &[
        Param {
            name: "op",
            about: "the call: madvise(MADV_DONTNEED), mprotect (write right taken away), munmap, or all in turn",
            kind: Kind::Choice {
                default: "mix",
                of: &["madvise", "mprotect", "munmap", "mix"],
            },
        },
        Param {
            name: "pages",
            about: "pages of 4 KiB touched and given to each call; above 33, Linux flushes the whole TLB",
            kind: Kind::Int {
                default: 16,
                min: 1,
                max: 256,
            },
        },
        Param {
            name: "initiators",
            about: "threads that make calls, 0 for all of them; the others compute in the same address space",
            kind: Kind::Int {
                default: 0,
                min: 0,
                max: 256,
            },
        },
    ],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let ops: &'static [Op] = match setup.params.text("op") {
        "madvise" => &[Op::Madvise],
        "mprotect" => &[Op::Mprotect],
        "munmap" => &[Op::Munmap],
        _ => &[Op::Madvise, Op::Mprotect, Op::Munmap],
    };
    let bytes = usize::try_from(setup.params.int("pages")).unwrap_or(1) * PAGE;
    let initiators = match usize::try_from(setup.params.int("initiators")) {
        Ok(0) | Err(_) => setup.threads,
        Ok(n) if n <= setup.threads => n,
        Ok(n) => {
            let problem = format!("cannot have {n} initiators among {} threads", setup.threads);
            return Err(Error::Threads {
                workload: WORKLOAD.name,
                problem,
            });
        }
    };
    // A vCPU without a thread of this address space needs no shootdown: fill them.
    let threads = setup.threads.max(setup.cpus.len());
    let mut workers: Vec<Box<dyn Worker>> = Vec::new();
    for i in 0..threads {
        workers.push(if i < initiators {
            Box::new(Shooter {
                ops,
                next: i,
                area: Area::map(bytes)?,
            })
        } else {
            Box::new(Target(Burner {
                iterations: IDLE_ITERATIONS,
                state: 1,
            }))
        });
    }
    Ok(Box::new(Threads::start(
        workers,
        &setup.cpus,
        &setup.control,
    )?))
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Madvise,
    Mprotect,
    Munmap,
}

/// Makes the calls.
pub(super) struct Shooter {
    ops: &'static [Op],
    next: usize,
    area: Area,
}

impl Shooter {
    /// Takes the right to write away from one page, and gives it back.
    pub(super) fn protecting_one_page() -> Result<Self, Error> {
        Ok(Self {
            ops: &[Op::Mprotect],
            next: 0,
            area: Area::map(PAGE)?,
        })
    }
}

impl Worker for Shooter {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        let op = self.ops[self.next % self.ops.len()];
        self.next += 1;
        // Only pages that are present and may be in a TLB need a shootdown.
        self.area.touch();
        match op {
            Op::Madvise => meter.time(|| self.area.discard())?,
            Op::Mprotect => {
                meter.time(|| self.area.protect(libc::PROT_READ))?;
                // Giving a right back needs no shootdown and does not count.
                self.area.protect(libc::PROT_READ | libc::PROT_WRITE)?;
            }
            Op::Munmap => {
                meter.time(|| self.area.unmap())?;
                self.area = Area::map(self.area.bytes)?;
            }
        }
        Ok(Flow::Continue)
    }
}

/// Keeps a vCPU running in the address space; makes no calls, counts nothing.
struct Target(Burner);

impl Worker for Target {
    fn step(&mut self, _: &Meter) -> Result<Flow, Error> {
        self.0.block();
        Ok(Flow::Continue)
    }
}

/// Private anonymous memory.
struct Area {
    start: Option<NonNull<u8>>,
    bytes: usize,
}

// SAFETY: an Area is the only owner of its mapping; nothing in it belongs to a thread.
unsafe impl Send for Area {}

impl Area {
    fn map(bytes: usize) -> Result<Self, Error> {
        // SAFETY: a new anonymous mapping wherever the kernel likes overlaps nothing.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self {
                start: Some(start),
                bytes,
            }),
            _ => Err(Error::last_os(format!("mmap of {bytes} bytes"))),
        }
    }

    fn address(&self) -> *mut u8 {
        self.start.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    fn touch(&self) {
        for offset in (0..self.bytes).step_by(PAGE) {
            // SAFETY: within our own mapping, writable whenever this is called; an
            // unmapped Area is replaced before the next touch.
            unsafe { self.address().add(offset).write_volatile(1) };
        }
    }

    fn discard(&self) -> Result<(), Error> {
        // SAFETY: our own mapping; its content is never read.
        let failed =
            unsafe { libc::madvise(self.address().cast(), self.bytes, libc::MADV_DONTNEED) };
        if failed == 0 {
            Ok(())
        } else {
            Err(Error::last_os("madvise"))
        }
    }

    fn protect(&self, protection: i32) -> Result<(), Error> {
        // SAFETY: our own mapping; it is written again only after PROT_WRITE is back.
        let failed = unsafe { libc::mprotect(self.address().cast(), self.bytes, protection) };
        if failed == 0 {
            Ok(())
        } else {
            Err(Error::last_os("mprotect"))
        }
    }

    fn unmap(&mut self) -> Result<(), Error> {
        let Some(start) = self.start.take() else {
            return Ok(());
        };
        // SAFETY: our own mapping, and `start` is forgotten, so nothing uses it again.
        let failed = unsafe { libc::munmap(start.as_ptr().cast(), self.bytes) };
        if failed == 0 {
            Ok(())
        } else {
            Err(Error::last_os("munmap"))
        }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // Can only fail for lack of memory to split a mapping; then it stays.
        let _ = self.unmap();
    }
}
