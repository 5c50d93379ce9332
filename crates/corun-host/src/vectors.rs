// SPDX-License-Identifier: GPL-2.0-only
//! Puts the policy's test vectors through its BPF build, in the kernel.

use crate::error::{During, HostError, Result};
use crate::skel::tunables_for_bpf;
use crate::skel::vectors::{VectorsSkel, VectorsSkelBuilder, types};
use corun_policy::vector::{self, Vector};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{OpenObject, ProgramInput};
use std::mem::MaybeUninit;

/// The BPF build of the policy, loaded but attached to nothing.
struct BpfPolicy {
    skel: VectorsSkel<'static>,
}

impl BpfPolicy {
    fn load() -> Result<Self> {
        // The skeleton borrows its object; loaded once per process.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let open = VectorsSkelBuilder::default()
            .open(object)
            .during("opening the vectors")?;
        let skel = open
            .load()
            .during("loading the policy's BPF build (root needed)")?;
        Ok(Self { skel })
    }

    fn run(&mut self, v: &Vector) -> Result<Vector> {
        let shared = &mut self
            .skel
            .maps
            .bss_data
            .as_mut()
            .ok_or(HostError::Section(".bss"))?
            .vector;
        shared.op = v.op;
        shared.done = 0;
        shared.r#in = v.inputs;
        shared.out = v.outputs;
        shared.tun = tunables_for_bpf!(types, &v.tunables);
        self.skel
            .progs
            .run_vector
            .test_run(ProgramInput::default())
            .during("running a vector")?;
        let shared = &self
            .skel
            .maps
            .bss_data
            .as_ref()
            .ok_or(HostError::Section(".bss"))?
            .vector;
        Ok(Vector {
            done: shared.done,
            outputs: shared.out,
            ..*v
        })
    }
}

/// Runs the repository's vectors, and `random` made-up ones a decision, through
/// the kernel's build of the policy; every answer must be the native build's.
/// Returns how many vectors ran.
pub fn check(random: u32) -> Result<u32> {
    let mut policy = BpfPolicy::load()?;
    let expected = vector::repository().map_err(|e| HostError::Vectors(e.to_string()))?;
    let mut ran = 0;
    for e in expected {
        let unknown = || HostError::Vectors(format!("unknown op {:?}", e.op));
        let outputs = policy.run(&e.vector().ok_or_else(unknown)?)?.outputs;
        if outputs.as_slice() != e.outputs {
            return Err(HostError::Vectors(format!(
                "{} ({}): the BPF build says {outputs:?}, expected {:?}",
                e.op, e.why, e.outputs
            )));
        }
        ran += 1;
    }
    for op in (0_u32..).take(vector::OPS.len()) {
        for v in (0..random).map(|round| made_up(op, round)) {
            let (bpf, native) = (policy.run(&v)?, v.run_native());
            if bpf != native {
                return Err(HostError::Vectors(format!(
                    "{bpf:?} in BPF, {native:?} natively"
                )));
            }
            ran += 1;
        }
    }
    Ok(ran)
}

/// Inputs from a small generator (`SplitMix64`), some large, some small, so that
/// both sides of the decisions' comparisons are met.
fn made_up(op: u32, round: u32) -> Vector {
    let mut state = (u64::from(op) << 32) | u64::from(round);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let inputs: [u64; vector::INPUTS] = std::array::from_fn(|_| {
        let value = next();
        value >> (next() % 64)
    });
    Vector::new(op, &inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_inputs_differ_and_repeat() {
        assert_eq!(made_up(1, 2), made_up(1, 2));
        assert_ne!(made_up(1, 2).inputs, made_up(1, 3).inputs);
    }
}
