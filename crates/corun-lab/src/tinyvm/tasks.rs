// SPDX-License-Identifier: GPL-2.0-only
//! Threads that run vCPUs, and what the kernel says of them.

use super::error::{Doing, TinyVmError};
use super::ioctl::EXIT_IO;
use super::vm::TinyVm;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{Pid, gettid};
use nix::{libc, unistd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Ample for anything that is waited for, on an emulated host under load.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Waits until `done`, which is `what` in a complaint.
pub(super) fn until(what: &'static str, mut done: impl FnMut() -> bool) -> Result<(), TinyVmError> {
    let begin = Instant::now();
    while !done() {
        if begin.elapsed() > PATIENCE {
            let waited = PATIENCE;
            return Err(TinyVmError::Late { what, waited });
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Where a vCPU's thread is, and what it is told.
#[derive(Default)]
struct Orders {
    tid: AtomicI32,
    /// Sleep in the VMM at the next exit.
    park: bool,
    /// Leave the guest, and the vCPU, at the next chance.
    leave: AtomicBool,
    /// Live on without a vCPU.
    linger: AtomicBool,
    parked: AtomicBool,
    left: AtomicBool,
}

/// A thread that runs a vCPU.
pub(super) struct VcpuThread {
    orders: Arc<Orders>,
    handle: JoinHandle<Result<(), TinyVmError>>,
}

impl VcpuThread {
    /// Runs vCPU `id`; `park`: only until its first exit to the VMM, in which it
    /// then stays.
    pub(super) fn start(vm: &Arc<TinyVm>, id: u32, park: bool) -> Self {
        let orders = Arc::new(Orders {
            park,
            ..Orders::default()
        });
        let (vm, told) = (Arc::clone(vm), Arc::clone(&orders));
        let handle = std::thread::spawn(move || {
            told.tid.store(gettid().as_raw(), Ordering::Release);
            let result = drive(&vm, id, &told);
            told.left.store(true, Ordering::Release);
            while told.linger.load(Ordering::Acquire) {
                std::thread::park_timeout(LOOK_EVERY);
            }
            result
        });
        Self { orders, handle }
    }

    /// Its thread id; waits for it.
    pub(super) fn tid(&self) -> Result<Pid, TinyVmError> {
        until("a thread to start", || {
            self.orders.tid.load(Ordering::Acquire) != 0
        })?;
        Ok(Pid::from_raw(self.orders.tid.load(Ordering::Acquire)))
    }

    /// It sleeps in the VMM.
    pub(super) fn is_parked(&self) -> bool {
        self.orders.parked.load(Ordering::Acquire)
    }

    /// Makes it leave its vCPU and live on.
    pub(super) fn leave(&self) -> Result<(), TinyVmError> {
        self.orders.linger.store(true, Ordering::Release);
        self.orders.leave.store(true, Ordering::Release);
        let tid = self.tid()?;
        // One signal may come just before the guest is entered.
        until("a vCPU's thread to leave its guest", || {
            self.orders.left.load(Ordering::Acquire) || {
                kick(tid);
                false
            }
        })
    }

    /// Makes it leave and end.
    pub(super) fn end(self) -> Result<(), TinyVmError> {
        self.leave()?;
        self.orders.linger.store(false, Ordering::Release);
        self.handle.join().map_err(|_| TinyVmError::Panicked)?
    }
}

fn drive(vm: &TinyVm, id: u32, orders: &Orders) -> Result<(), TinyVmError> {
    let vcpu = &vm.vcpus[usize::try_from(id).unwrap_or_default()];
    while !orders.leave.load(Ordering::Acquire) {
        match vcpu.run() {
            Ok(EXIT_IO) if orders.park => {
                orders.parked.store(true, Ordering::Release);
                while !orders.leave.load(Ordering::Acquire) {
                    std::thread::park_timeout(Duration::from_secs(1));
                }
            }
            Ok(EXIT_IO) | Err(Errno::EINTR) => {}
            Ok(reason) => {
                return Err(TinyVmError::Exit {
                    vcpu: vcpu.id,
                    reason,
                });
            }
            // Closed under it: that is one of the endings.
            Err(Errno::EBADF) => break,
            Err(e) => return Err(TinyVmError::Os("running a vCPU", e)),
        }
    }
    Ok(())
}

/// Lets [`VcpuThread::leave`] interrupt guests.
pub(super) fn take_kicks() -> Result<(), TinyVmError> {
    extern "C" fn ignore(_: libc::c_int) {}
    let action = SigAction::new(
        SigHandler::Handler(ignore),
        SaFlags::empty(),
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing.
    unsafe { sigaction(Signal::SIGUSR1, &action) }.doing("installing a signal handler")?;
    Ok(())
}

fn kick(tid: Pid) {
    // SAFETY: plain numbers. A thread that has ended needs no kick.
    unsafe {
        libc::syscall(
            libc::SYS_tgkill,
            unistd::getpid().as_raw(),
            tid.as_raw(),
            libc::SIGUSR1,
        )
    };
}

/// True when thread `tid` of this process sleeps, in the kernel or in KVM.
pub(super) fn sleeps(tid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
    stat.is_ok_and(|s| {
        s.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
    })
}

/// pCPUs that this process may use.
pub(super) fn pcpus() -> Result<Vec<usize>, TinyVmError> {
    let set = sched_getaffinity(Pid::from_raw(0)).doing("reading the affinity")?;
    Ok((0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or_default())
        .collect())
}

/// Binds thread `tid` (0: the current one) to `cpu`. Afterwards it is not on
/// another.
pub(super) fn bind(tid: Pid, cpu: usize) -> Result<(), TinyVmError> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(tid, &set))
        .doing("binding a thread to a pCPU")
}
