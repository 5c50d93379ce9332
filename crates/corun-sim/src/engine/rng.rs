// SPDX-License-Identifier: GPL-2.0-only
//! Random numbers: one stream an entity, all from one seed.

use rand_core::RngCore;
use rand_pcg::Pcg32;

/// What a stream belongs to; part of the stream's number, so that adding an
/// entity of one kind changes no stream of another.
#[derive(Debug, Clone, Copy)]
pub enum Stream {
    /// A thread of a guest.
    Thread,
    /// A pCPU: the host's own work on it.
    Pcpu,
    /// A network flow.
    Flow,
    /// A vCPU.
    Vcpu,
}

/// One stream of random numbers.
#[derive(Debug, Clone)]
pub struct Rng(Pcg32);

impl Rng {
    /// The stream of entity `index` of `kind`, for `seed`.
    pub fn new(seed: u64, kind: Stream, index: usize) -> Self {
        let stream = ((kind as u64) << 32) | index as u64;
        Self(Pcg32::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), stream))
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A number from 0 to `n - 1`; 0 for `n` 0. By multiplication: the bias
    /// (`n` / 2^32) is far below anything measured here.
    pub fn below(&mut self, n: u32) -> u32 {
        u32::try_from((u64::from(self.bits()) * u64::from(n)) >> 32).unwrap_or(0)
    }

    /// True in `pm` of 1000 cases.
    pub fn chance_pm(&mut self, pm: u32) -> bool {
        pm >= 1000 || (pm > 0 && self.below(1000) < pm)
    }
}
