// SPDX-License-Identifier: GPL-2.0-only
//! Programs: a model's operations with their names resolved and their blocks
//! laid out flat.

use super::model::{Model, Op, Role, Threads};
use crate::SimError;
use crate::engine::dist::Dist;
use crate::symbols::{Symbol, Symbols};

/// One instruction. Objects are numbered within their model, families by their
/// first member and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instr {
    User(Dist),
    Kernel(Dist, Symbol),
    Lock {
        family: u32,
        hold: Dist,
        lines: u32,
        lockref: bool,
    },
    Uncontended(u32),
    Down {
        family: u32,
        shared: bool,
    },
    Up,
    Shootdown,
    Push {
        family: u32,
    },
    Pop {
        family: u32,
    },
    Barrier {
        barrier: u32,
    },
    Sleep(Dist),
    Receive {
        flow: u32,
    },
    Unit,
    /// Skips `over` instructions, but in `chance_pm` of 1000 cases.
    Maybe {
        chance_pm: u32,
        over: u32,
    },
    /// Goes back `back` instructions, `times - 1` times; `slot` counts.
    Again {
        times: u32,
        back: u32,
        slot: u32,
    },
    /// From the start.
    Restart,
}

/// Most rounds of a repetition inside another one.
pub(crate) const MAX_NESTING: usize = 2;

/// Compiles `role` of `model`.
pub(crate) fn compile(
    model: &Model,
    role: &Role,
    symbols: &mut Symbols,
) -> Result<Vec<Instr>, SimError> {
    let mut compiler = Compiler {
        model,
        symbols,
        code: Vec::new(),
        advances: false,
    };
    compiler.block(&role.ops, 0)?;
    if !compiler.advances {
        return Err(bad(
            model,
            format!(
                "role {} takes no time: expected an operation that computes, sleeps or waits",
                role.name
            ),
        ));
    }
    compiler.code.push(Instr::Restart);
    Ok(compiler.code)
}

/// Threads of `role` for `parallel` (vCPUs, or the case's `threads`).
pub(crate) fn threads_of(role: &Role, parallel: u32) -> u32 {
    match role.threads {
        Threads::Fixed(n) => n,
        Threads::PerVcpuPm(pm) => (parallel * pm).div_ceil(1000),
    }
}

fn bad(model: &Model, what: String) -> SimError {
    SimError::Model {
        name: model.name.clone(),
        what,
    }
}

struct Compiler<'a> {
    model: &'a Model,
    symbols: &'a mut Symbols,
    code: Vec<Instr>,
    advances: bool,
}

impl Compiler<'_> {
    fn block(&mut self, ops: &[Op], nesting: usize) -> Result<(), SimError> {
        for op in ops {
            self.op(op, nesting)?;
        }
        Ok(())
    }

    fn op(&mut self, op: &Op, nesting: usize) -> Result<(), SimError> {
        let instr = match op {
            Op::User { time } => self.timed(*time, Instr::User(*time)),
            Op::Kernel { time, symbol } => {
                let symbol = self.symbols.intern(symbol);
                self.timed(*time, Instr::Kernel(*time, symbol))
            }
            Op::Lock {
                lock,
                hold,
                lines,
                lockref,
            } => {
                let names = self.model.locks.iter().map(|l| l.name.as_str());
                let instr = Instr::Lock {
                    family: self.find("lock", lock, names)?,
                    hold: *hold,
                    lines: *lines,
                    lockref: *lockref,
                };
                if *lockref {
                    instr
                } else {
                    self.timed(*hold, instr)
                }
            }
            Op::Uncontended { locks } => Instr::Uncontended(*locks),
            Op::Down { sem, shared } => Instr::Down {
                family: self.sem(sem)?,
                shared: *shared,
            },
            Op::Up { sem } => {
                self.sem(sem)?;
                Instr::Up
            }
            Op::Shootdown {} => Instr::Shootdown,
            Op::Push { queue } => Instr::Push {
                family: self.queue(queue)?,
            },
            Op::Pop { queue } => {
                self.advances = true;
                Instr::Pop {
                    family: self.queue(queue)?,
                }
            }
            Op::Barrier { barrier } => {
                let names = self.model.barriers.iter().map(|b| b.name.as_str());
                Instr::Barrier {
                    barrier: self.find("barrier", barrier, names)?,
                }
            }
            Op::Sleep { time } => self.timed(*time, Instr::Sleep(*time)),
            Op::Receive { flow } => {
                self.advances = true;
                let names = self.model.flows.iter().map(|f| f.name.as_str());
                Instr::Receive {
                    flow: self.find("flow", flow, names)?,
                }
            }
            Op::Unit {} => Instr::Unit,
            Op::Sometimes { chance_pm, op } => return self.sometimes(*chance_pm, op, nesting),
            Op::Repeat { times, op } => return self.repeat(*times, op, nesting),
        };
        self.code.push(instr);
        Ok(())
    }

    fn timed(&mut self, time: Dist, instr: Instr) -> Instr {
        self.advances |= time.mean_ns() > 0;
        instr
    }

    fn sometimes(&mut self, chance_pm: u32, ops: &[Op], nesting: usize) -> Result<(), SimError> {
        if chance_pm > 1000 {
            return Err(bad(
                self.model,
                format!("chance_pm {chance_pm}: expected 0 to 1000"),
            ));
        }
        let at = self.code.len();
        self.code.push(Instr::Restart);
        let advances = self.advances;
        self.block(ops, nesting)?;
        self.advances = advances || (self.advances && chance_pm > 0);
        let over = (self.code.len() - at - 1) as u32;
        self.code[at] = Instr::Maybe { chance_pm, over };
        Ok(())
    }

    fn repeat(&mut self, times: u32, ops: &[Op], nesting: usize) -> Result<(), SimError> {
        if times == 0 || nesting >= MAX_NESTING {
            return Err(bad(
                self.model,
                format!(
                    "repeat: expected times from 1, and no more than {MAX_NESTING} inside each other"
                ),
            ));
        }
        let at = self.code.len();
        self.block(ops, nesting + 1)?;
        let back = (self.code.len() - at) as u32;
        self.code.push(Instr::Again {
            times,
            back,
            slot: nesting as u32,
        });
        Ok(())
    }

    fn sem(&self, name: &str) -> Result<u32, SimError> {
        self.find("sem", name, self.model.sems.iter().map(|s| s.name.as_str()))
    }

    fn queue(&self, name: &str) -> Result<u32, SimError> {
        self.find(
            "queue",
            name,
            self.model.queues.iter().map(|q| q.name.as_str()),
        )
    }

    fn find<'n>(
        &self,
        kind: &str,
        name: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<u32, SimError> {
        match names.clone().position(|n| n == name) {
            Some(index) => Ok(index as u32),
            None => Err(bad(
                self.model,
                format!(
                    "unknown {kind} `{name}`: expected one of {}",
                    names.collect::<Vec<_>>().join(", ")
                ),
            )),
        }
    }
}
