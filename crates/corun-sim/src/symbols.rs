// SPDX-License-Identifier: GPL-2.0-only
//! Kernel functions of the guests, by name: what a policy sees that looks at a
//! preempted vCPU's instruction pointer.

use corun_policy::Region;
use corun_symbols::functions::region_of;

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

/// Names and classes by number.
#[derive(Debug, Clone)]
pub struct Symbols {
    names: Vec<String>,
    regions: Vec<Region>,
}

impl Default for Symbols {
    fn default() -> Self {
        Self {
            names: BUILT_IN.iter().map(|n| (*n).to_owned()).collect(),
            regions: BUILT_IN.iter().map(|n| region_named(n)).collect(),
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
            self.regions.push(region_named(name));
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

    /// All symbols with their names.
    pub fn iter(&self) -> impl Iterator<Item = (Symbol, &str)> {
        (0..).zip(self.names.iter().map(String::as_str))
    }

    /// The class of `symbol`, as a host sees it that has the guest's symbols.
    pub fn region(&self, symbol: Symbol) -> Region {
        let region = self.regions.get(usize::from(symbol));
        region.copied().unwrap_or(Region::Unknown)
    }
}

fn region_named(name: &str) -> Region {
    if name == BUILT_IN[usize::from(USER)] {
        return Region::User;
    }
    region_of(name).unwrap_or(Region::Kernel)
}

#[cfg(test)]
mod tests {
    use super::{BUILT_IN, Symbols, USER};
    use corun_policy::Region;

    #[test]
    fn the_models_own_functions_are_classed_by_the_table() {
        let symbols = Symbols::default();
        let regions: Vec<_> = (0..12).map(|s| symbols.region(s).name()).collect();
        let expected = [
            "user",
            "lock-wait",
            "ack-wait",
            "tlb",
            "irq",
            "sched",
            "idle",
            "irq",
            "sched",
            "lock-wait",
            "kernel",
            "kernel",
        ];
        assert_eq!(regions, expected);
        assert_eq!(BUILT_IN.len(), expected.len());
    }

    #[test]
    fn a_models_names_are_looked_up_once() {
        let mut symbols = Symbols::default();
        let page = symbols.intern("get_page_from_freelist");
        assert_eq!(symbols.intern("get_page_from_freelist"), page);
        assert_eq!(symbols.region(page), Region::Mm);
        let vfs = symbols.intern("vfs_write");
        assert_eq!(symbols.region(vfs), Region::Kernel);
        assert_eq!(symbols.region(USER), Region::User);
        assert_eq!(symbols.region(vfs + 1), Region::Unknown);
    }
}
