// SPDX-License-Identifier: GPL-2.0-only
//! Kernel functions of the guests, by name: what a policy sees that looks at a
//! preempted vCPU's instruction pointer.

/// A function's number.
pub type Symbol = u16;

/// User code has no symbol.
pub const USER: Symbol = 0;
/// Waiting for a spinlock.
pub const SPIN: Symbol = 1;
/// Waiting for the acknowledgement of a function-call IPI.
pub const CALL_WAIT: Symbol = 2;
/// Flushing the own TLB.
pub const FLUSH: Symbol = 3;
/// An interrupt's entry and exit.
pub const IRQ: Symbol = 4;
/// The scheduler.
pub const SCHED: Symbol = 5;
/// The idle loop.
pub const IDLE: Symbol = 6;
/// Network receive.
pub const NET_RX: Symbol = 7;
/// Waking another thread.
pub const WAKE: Symbol = 8;
/// Spinning for a sleeping lock whose owner runs.
pub const OWNER_SPIN: Symbol = 9;
/// A futex system call.
pub const FUTEX: Symbol = 10;
/// Any other kernel code.
pub const KERNEL: Symbol = 11;

const BUILT_IN: [&str; 12] = [
    "[user]",
    "native_queued_spin_lock_slowpath",
    "smp_call_function_many",
    "flush_tlb_func",
    "irq_enter",
    "schedule",
    "default_idle",
    "net_rx_action",
    "try_to_wake_up",
    "mutex_spin_on_owner",
    "do_futex",
    "[kernel]",
];

/// True for functions that others wait for: seed 004's table of critical guest
/// OS components (sched, mm, irq, spinlock).
pub fn is_critical(symbol: Symbol) -> bool {
    matches!(symbol, FLUSH | IRQ | SCHED | NET_RX | WAKE)
}

/// Names by number.
#[derive(Debug, Clone)]
pub struct Symbols {
    names: Vec<String>,
}

impl Default for Symbols {
    fn default() -> Self {
        Self {
            names: BUILT_IN.iter().map(|n| (*n).to_owned()).collect(),
        }
    }
}

impl Symbols {
    /// The number of `name`; kernel code without a name is [`KERNEL`].
    pub fn intern(&mut self, name: &str) -> Symbol {
        if name.is_empty() {
            return KERNEL;
        }
        let known = self.names.iter().position(|n| n == name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        Symbol::try_from(index).unwrap_or(KERNEL)
    }

    /// The name of `symbol`.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.names
            .get(usize::from(symbol))
            .map_or("[unknown]", String::as_str)
    }
}
