// SPDX-License-Identifier: GPL-2.0-only
//! What the machine keeps: pCPUs, vCPUs, guest threads, and what they share.

use crate::engine::dist::Dist;
use crate::engine::rng::Rng;
use crate::outcome::{Account, Accounts};
use crate::symbols::{self, Symbol};
use crate::workload::program::MAX_NESTING;
use corun_case::PvFeatures;
use corun_case::sim::{SpinlockKind, TlbKind};
use std::collections::VecDeque;

/// No end in sight: what waits until somebody else acts.
pub(crate) const FOREVER: u64 = u64::MAX;

/// What a pCPU does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing.
    Idle,
    /// The host: an exit's handler, the scheduler, a switch.
    Host,
    /// A guest.
    Guest,
    /// Polls for a halted vCPU.
    Poll,
}

/// What the host does when its current work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Enters the current vCPU.
    Enter,
    /// Picks a task; the current one stays runnable.
    Schedule,
    /// The current vCPU halted.
    Halt,
    /// The current vCPU sleeps for so long, whatever comes.
    Nap(u64),
}

/// A pCPU.
#[derive(Debug)]
pub(crate) struct Pcpu {
    pub(crate) mode: Mode,
    /// When the current interval began.
    pub(crate) since_ns: u64,
    /// Of the host's current work: what is left of exits, and of the rest.
    pub(crate) exit_left_ns: u64,
    pub(crate) host_left_ns: u64,
    pub(crate) then: Then,
    pub(crate) need_resched: bool,
    /// The host uses the pCPU for itself until then.
    pub(crate) stolen_until_ns: u64,
    /// Threads of the host's wait here for a vCPU to give way; they will run so long.
    pub(crate) noise_due_ns: u64,
    /// vCPU that ran here last: its caches are warm.
    pub(crate) last: Option<usize>,
    /// Guest time here that used the caches: all but spinning.
    pub(crate) touched_ns: u64,
    /// The other hardware thread of the core.
    pub(crate) sibling: Option<usize>,
    /// Speed of guest code now. Per mille.
    pub(crate) speed_pm: u64,
    /// When it went idle last.
    pub(crate) idle_from_ns: u64,
    /// It locks run queues for a spinner, until its work is done.
    pub(crate) yielding: bool,
    pub(crate) accounts: Accounts,
    pub(crate) noise: Rng,
}

/// A stretch of guest code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seg {
    /// What is left of it at full speed; [`FOREVER`] when another has to act.
    pub(crate) left_ns: u64,
    pub(crate) account: Account,
    pub(crate) symbol: Symbol,
}

impl Seg {
    pub(crate) fn new(left_ns: u64, account: Account, symbol: Symbol) -> Self {
        Self {
            left_ns,
            account,
            symbol,
        }
    }

    /// Kernel code that is neither lock nor TLB work.
    pub(crate) fn kernel(left_ns: u64, symbol: Symbol) -> Self {
        Self::new(left_ns, Account::KernelOther, symbol)
    }
}

/// Interrupts of a vCPU, as bits.
pub(crate) mod irq {
    /// Look at the run queue.
    pub(crate) const RESCHED: u32 = 1;
    /// Call a function: flush the TLB.
    pub(crate) const CALL: u32 = 2;
    /// The tick.
    pub(crate) const TICK: u32 = 4;
    /// A timer of a thread.
    pub(crate) const TIMER: u32 = 8;
    /// Packets.
    pub(crate) const NET: u32 = 16;
    /// A pv kick: ends a halt, is no interrupt to the guest.
    pub(crate) const KICK: u32 = 32;
    /// What vCPUs of the VM send each other.
    pub(crate) const SIBLING: u32 = RESCHED | CALL | KICK;
    /// What the guest has a handler for.
    pub(crate) const GUEST: u32 = RESCHED | CALL | TICK | TIMER | NET;
}

/// Where a vCPU's thread is, for the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Sleeps.
    Blocked,
    /// Waits for a pCPU.
    Ready,
    /// Has a pCPU.
    On(usize),
}

/// A vCPU.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts of a vCPU, as in struct kvm_vcpu"
)]
pub(crate) struct Vcpu {
    pub(crate) vm: usize,
    /// Number within its VM.
    pub(crate) index: usize,
    pub(crate) place: Place,
    /// Since when it is where it is.
    pub(crate) since_ns: u64,
    /// Ready because it was preempted, not because it woke.
    pub(crate) preempted: bool,
    /// It blocked: its next entry pays the return from the halt path.
    pub(crate) halted: bool,
    /// Its spinlock's waiter halted for a kick.
    pub(crate) pv_wait: bool,
    pub(crate) halt_start_ns: u64,
    pub(crate) poll_ns: u64,
    /// Interrupts that it has not taken.
    pub(crate) pending: u32,
    /// Interrupts on their way, oldest first: when, which, from whom.
    pub(crate) arriving: VecDeque<(u64, u32)>,
    /// vCPUs that wait for this one to flush.
    pub(crate) calls: Vec<usize>,
    /// When the oldest interrupt not taken was sent; 0: none.
    pub(crate) ipi_sent_ns: u64,
    /// Address space loaded, also while idle (lazy TLB).
    pub(crate) mm: u32,
    /// What runs on it, innermost first: an interrupt, a softirq, a thread.
    pub(crate) irq: Option<(u32, Seg)>,
    pub(crate) soft: Option<Seg>,
    pub(crate) thread: Option<usize>,
    /// Idle loop, when nothing else is there.
    pub(crate) idle: Seg,
    pub(crate) idle_state: IdleState,
    pub(crate) queue: Vec<usize>,
    pub(crate) min_vruntime: u64,
    pub(crate) need_resched: bool,
    /// Cold caches: so much is lost before guest code gets on.
    pub(crate) cold_ns: u64,
    /// `touched_ns` of its pCPU when it left it.
    pub(crate) left_touched_ns: u64,
    /// Threads whose timers went off.
    pub(crate) due: Vec<usize>,
    /// Kernel work to be done at once.
    pub(crate) kernel_debt_ns: u64,
    /// Exits that guest code caused and has not paid for.
    pub(crate) exit_debt_ns: u64,
    /// kvmtlb: it flushes its TLB when it enters.
    pub(crate) flush_queued: bool,
    /// Acknowledgements that its shootdown waits for, and since when it runs.
    pub(crate) acks: u32,
    pub(crate) shootdown_ns: u64,
    /// Pause-loop exiting.
    pub(crate) ple_window_ns: u64,
    pub(crate) ple_spun_ns: u64,
    pub(crate) ple_run: u64,
    pub(crate) spun_last: bool,
    pub(crate) boost_passed: bool,
    /// Siblings that sent it an IPI since it lost its pCPU, a bit each.
    pub(crate) ipi_from: u64,
    pub(crate) rng: Rng,
}

/// How far a guest is into its idle loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdleState {
    Outside,
    /// On its way to the HLT, with interrupts off.
    Entering,
    Halted,
}

/// What a thread is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its next instruction.
    Fetch,
    /// Waits for a spinlock, then holds it for so long.
    LockWait { lock: usize, hold_ns: u64 },
    /// Holds a spinlock.
    LockHold { lock: usize },
    /// Flushes its own TLB, then tells the others.
    FlushSelf,
    /// Waits for the others to flush.
    FlushWait,
    /// The hypervisor flushed for it.
    FlushReturn,
    /// Spins for a sleeping lock whose owner runs.
    SemSpin { sem: usize },
    /// On its way to sleep: takes effect when the system call's work is done.
    Sleep(Why),
    /// Slept, and returns from the system call.
    Woken(Why),
    /// Spins at a barrier until all are there.
    BarrierSpin { barrier: usize },
}

/// What a sleeping thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Sem { sem: usize, shared: bool },
    Push,
    Pop,
    Barrier(usize),
    Timer(u64),
    Packet(usize),
}

/// What a thread is to its guest's scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadState {
    Running,
    Queued,
    Asleep,
}

/// A thread of a guest.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) vm: usize,
    /// Which of the VM's programs, and which code.
    pub(crate) work: usize,
    pub(crate) code: usize,
    /// Its number in its role.
    pub(crate) number: usize,
    /// It stays on its vCPU.
    pub(crate) pinned: bool,
    pub(crate) mm: u32,
    /// First objects of its program instance.
    pub(crate) base: Base,
    pub(crate) pc: usize,
    pub(crate) rounds: [u32; MAX_NESTING],
    pub(crate) state: ThreadState,
    pub(crate) vcpu: usize,
    pub(crate) vruntime: u64,
    /// When it was last put on its vCPU, by its own clock.
    pub(crate) slice_start: u64,
    pub(crate) seg: Seg,
    pub(crate) phase: Phase,
    /// What it waits for was given to it while it was on its way to sleep.
    pub(crate) granted: bool,
    /// When it notices that what it spins for is there.
    pub(crate) grant_ns: u64,
    pub(crate) wait_since_ns: u64,
    pub(crate) spun_ns: u64,
    pub(crate) woken_ns: u64,
    pub(crate) last_unit_ns: u64,
    /// To do once it has the spinlock that it asked for.
    pub(crate) locked_op: Option<QueueOp>,
    /// Where it goes on when it has released that.
    pub(crate) after_unlock: Option<(Phase, Seg)>,
    /// Sleeping locks that it holds, last taken last.
    pub(crate) held: Vec<(usize, bool)>,
    pub(crate) rng: Rng,
}

/// Where the objects of a program instance begin in the machine's tables.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Base {
    pub(crate) lock_family: usize,
    pub(crate) sem_family: usize,
    pub(crate) queue_family: usize,
    pub(crate) barrier: usize,
    pub(crate) flow: usize,
}

/// Objects of one name: `first`, and how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Family {
    pub(crate) first: usize,
    pub(crate) count: u32,
}

/// A spinlock.
#[derive(Debug)]
pub(crate) struct SpinLock {
    pub(crate) kind: SpinlockKind,
    pub(crate) irq_off: bool,
    pub(crate) symbol: Symbol,
    /// Who has it, or was handed it and does not know yet.
    pub(crate) owner: Option<usize>,
    pub(crate) waiters: VecDeque<usize>,
    /// Its VM.
    pub(crate) vm: usize,
    /// Index of the histogram of waits in its VM.
    pub(crate) stat: usize,
}

/// A sleeping lock.
#[derive(Debug)]
pub(crate) struct Sem {
    pub(crate) spin: bool,
    /// Nobody else is woken for it until who was woken has run.
    pub(crate) wakes_one: bool,
    pub(crate) writer: Option<usize>,
    pub(crate) readers: u32,
    /// Sleepers: who, and whether shared. With `wakes_one` a woken writer is among
    /// them until it has the lock.
    pub(crate) sleepers: VecDeque<(usize, bool)>,
    pub(crate) spinners: VecDeque<usize>,
}

/// A bounded queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) capacity: u32,
    /// Pushers wake when no more items than that are left.
    pub(crate) wake_at: u32,
    pub(crate) items: u32,
    pub(crate) pushers: VecDeque<usize>,
    pub(crate) poppers: VecDeque<usize>,
    /// Spinlock of those who wake and of those about to sleep.
    pub(crate) wait_lock: Option<usize>,
}

/// What a thread does to a queue once it has its `wait_lock`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueueOp {
    Push(usize),
    Pop(usize),
}

/// A barrier.
#[derive(Debug)]
pub(crate) struct Barrier {
    pub(crate) parties: u32,
    pub(crate) arrived: u32,
    pub(crate) spin_ns: u64,
    pub(crate) wakes_one: bool,
    pub(crate) waiters: Vec<usize>,
    /// Who may pass and still sleeps, as it is not its turn to be woken.
    pub(crate) released: VecDeque<usize>,
}

/// A network flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) vcpu: usize,
    /// A batch's time on the line.
    pub(crate) batch_ns: u64,
    pub(crate) window: u32,
    pub(crate) rtt: Dist,
    pub(crate) wobble: Dist,
    pub(crate) in_flight: u32,
    pub(crate) line_busy: bool,
    /// Of the batch on the line.
    pub(crate) late_ns: u64,
    /// Batches in the NIC's ring: when they were sent.
    pub(crate) ring: VecDeque<u64>,
    /// Batches that the guest's kernel has passed on.
    pub(crate) socket: VecDeque<u64>,
    /// Most of them; 0: no limit.
    pub(crate) socket_limit: usize,
    pub(crate) acks: VecDeque<u64>,
    pub(crate) reader: Option<usize>,
    /// Of the batch read last: sent and read.
    pub(crate) last: Option<(u64, u64)>,
    pub(crate) jitter_ns: u64,
    pub(crate) stat: usize,
    pub(crate) rng: Rng,
}

/// Most batches in a NIC's ring; more are dropped.
pub(crate) const RING: usize = 64;

/// A VM.
#[derive(Debug)]
pub(crate) struct Vm {
    pub(crate) first_vcpu: usize,
    pub(crate) vcpus: usize,
    pub(crate) spinlock: SpinlockKind,
    pub(crate) tlb: TlbKind,
    /// Idle vCPUs need no shootdown.
    pub(crate) lazy_tlb: bool,
    pub(crate) pv: PvFeatures,
    pub(crate) tick_ns: u64,
    /// Threads queued on any vCPU; 0 saves a search.
    pub(crate) queued: usize,
    pub(crate) flows: Vec<usize>,
    /// Number of the vCPU that a spinner boosted last (`kvm->last_boosted_vcpu`).
    pub(crate) last_boosted: usize,
}

impl Vcpu {
    /// The stretch that it would run now.
    pub(crate) fn idle_seg() -> Seg {
        Seg::kernel(0, symbols::IDLE)
    }
}
