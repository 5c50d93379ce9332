// SPDX-License-Identifier: GPL-2.0-only
//! The format of workload models.
//!
//! A model says what a program asks of its guest kernel: for how long it
//! computes, which locks it takes and for how long, when it changes mappings,
//! what its threads wait for. One TOML file a program.

use crate::engine::dist::Dist;
use serde::{Deserialize, Serialize};

/// One program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Name in cases.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where each parameter comes from and what it was fitted to.
    pub derivation: String,
    /// What one unit of work is.
    pub unit: String,
    /// Kernel spinlocks.
    #[serde(default, rename = "lock")]
    pub locks: Vec<LockDecl>,
    /// Sleeping locks: mutexes and semaphores of kernel or user level.
    #[serde(default, rename = "sem")]
    pub sems: Vec<SemDecl>,
    /// Bounded queues between threads.
    #[serde(default, rename = "queue")]
    pub queues: Vec<QueueDecl>,
    /// Barriers for all threads of one role.
    #[serde(default, rename = "barrier")]
    pub barriers: Vec<BarrierDecl>,
    /// Network flows from outside.
    #[serde(default, rename = "flow")]
    pub flows: Vec<FlowDecl>,
    /// What kinds of threads there are.
    #[serde(rename = "role")]
    pub roles: Vec<Role>,
}

/// A spinlock, or a family of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockDecl {
    /// Name in operations and results.
    pub name: String,
    /// How many there are; each use takes one at random.
    #[serde(default = "one")]
    pub count: u32,
    /// Taken with interrupts off (`spin_lock_irqsave`).
    #[serde(default)]
    pub irq_off: bool,
    /// Kernel function that runs while it is held.
    #[serde(default)]
    pub symbol: String,
}

/// A sleeping lock, or a family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SemDecl {
    /// Name in operations and results.
    pub name: String,
    /// How many there are; each use takes one at random.
    #[serde(default = "one")]
    pub count: u32,
    /// Who waits for it alone spins while the holder seems to run: a mutex's waiters,
    /// and a rwsem's writers since Linux 3.16.
    #[serde(default)]
    pub spin: bool,
    /// Nobody else is woken for it until who was woken has run. So it is with glibc's
    /// mutex, whose word says that nobody waits once it has been freed, until a woken
    /// waiter says otherwise (`lll_unlock`, `__lll_lock_wait`).
    #[serde(default)]
    pub wakes_one: bool,
}

/// A queue between threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueDecl {
    /// Name in operations.
    pub name: String,
    /// Pushing waits when this many items are in it.
    pub capacity: u32,
    /// One who waits to push is woken when so many items are left; absent: as
    /// soon as there is room.
    #[serde(default)]
    pub wake_at: Option<u32>,
    /// Items in it at the start.
    #[serde(default)]
    pub initial: u32,
    /// How many there are; a thread uses the one of its number.
    #[serde(default = "one")]
    pub count: u32,
    /// Who wakes another here holds the wait queue's spinlock meanwhile, IPI
    /// and its exit included, and who is about to sleep takes it: pipes and
    /// sockets (`__wake_up_common_lock`, `prepare_to_wait_event`). A futex lets
    /// go of its lock before it wakes (`wake_up_q`).
    #[serde(default)]
    pub wait_lock: bool,
}

/// A barrier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarrierDecl {
    /// Name in operations.
    pub name: String,
    /// Waiters spin for this long before they sleep, without PAUSE.
    #[serde(default)]
    pub spin_ns: u64,
    /// Sleepers are woken one by one, each by the one before it, once that runs: so it
    /// is with a condition variable whose mutex each of them has to take. A broadcast
    /// wakes the first and puts the others into the mutex's queue
    /// (`FUTEX_CMP_REQUEUE` of glibc before 2.25).
    #[serde(default)]
    pub wakes_one: bool,
}

/// A stream of packets to the guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowDecl {
    /// Name in operations and results.
    pub name: String,
    /// Payload of one batch, as the NIC coalesces it. Bytes.
    pub batch_bytes: u32,
    /// Speed of the line. Mbit/s.
    pub line_mbps: u32,
    /// Batches on their way without acknowledgement at most; 0: no limit (UDP).
    pub window: u32,
    /// Batches that the socket holds at most, more are dropped; 0: no limit.
    #[serde(default)]
    pub socket: u32,
    /// Network round trip without the guest's part.
    pub rtt: Dist,
    /// By how much a batch comes later than the line's speed says.
    #[serde(default = "no_time")]
    pub wobble: Dist,
    /// vCPU that takes the interrupts.
    #[serde(default)]
    pub vcpu: u32,
}

/// How many threads a role has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Threads {
    /// This many.
    Fixed(u32),
    /// This many for every vCPU (or, where a case gives `threads`, for every
    /// one of those). Per mille.
    PerVcpuPm(u32),
}

/// Threads that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Name, for people.
    pub name: String,
    /// How many.
    pub threads: Threads,
    /// Threads stay on the vCPU of their number.
    #[serde(default)]
    pub pinned: bool,
    /// Pinned threads count their vCPUs from this one.
    #[serde(default)]
    pub first_vcpu: u32,
    /// The threads are processes: each has an address space of its own, and
    /// its TLB shootdowns reach nobody.
    #[serde(default)]
    pub own_mm: bool,
    /// What a thread does, over and over.
    #[serde(rename = "op")]
    pub ops: Vec<Op>,
}

/// One operation of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// Computes in user mode.
    User {
        /// How long.
        time: Dist,
    },
    /// Computes in the kernel.
    Kernel {
        /// How long.
        time: Dist,
        /// In which function.
        #[serde(default)]
        symbol: String,
    },
    /// Takes a spinlock, holds it, releases it.
    Lock {
        /// Which.
        lock: String,
        /// How long, but for `lines`.
        hold: Dist,
        /// Cache lines that it then touches and another CPU wrote last: each takes what
        /// the machine's cost `line_ns` says.
        #[serde(default)]
        lines: u32,
        /// The lock guards a reference count, which changes without it while nobody
        /// holds it (`lockref_get_not_dead`). With debugging spinlocks, which are too
        /// large for that, the lock is taken (`USE_CMPXCHG_LOCKREF`).
        #[serde(default)]
        lockref: bool,
    },
    /// Takes spinlocks that nobody else wants, one after the other: native ones
    /// cost nothing worth modelling, paravirtual ones may.
    Uncontended {
        /// How many.
        locks: u32,
    },
    /// Takes a sleeping lock.
    Down {
        /// Which.
        sem: String,
        /// With other readers.
        #[serde(default)]
        shared: bool,
    },
    /// Releases the sleeping lock that this thread took last.
    Up {
        /// Which.
        sem: String,
    },
    /// Changes a mapping: flushes the TLBs of the other threads' vCPUs.
    Shootdown {},
    /// Puts an item into a queue; waits while it is full.
    Push {
        /// Which.
        queue: String,
    },
    /// Takes an item from a queue; waits while it is empty.
    Pop {
        /// Which.
        queue: String,
    },
    /// Waits for all threads of the role.
    Barrier {
        /// Which.
        barrier: String,
    },
    /// Sleeps.
    Sleep {
        /// How long.
        time: Dist,
    },
    /// Takes a batch of packets; waits for one.
    Receive {
        /// From which flow.
        flow: String,
    },
    /// One unit of work is done.
    Unit {},
    /// Does the operations in some of the rounds.
    Sometimes {
        /// In how many of 1000.
        chance_pm: u32,
        /// What.
        op: Vec<Op>,
    },
    /// Does the operations several times.
    Repeat {
        /// How often.
        times: u32,
        /// What.
        op: Vec<Op>,
    },
}

fn no_time() -> Dist {
    Dist::Fixed(0)
}

fn one() -> u32 {
    1
}
