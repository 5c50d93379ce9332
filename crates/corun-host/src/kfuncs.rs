// SPDX-License-Identifier: GPL-2.0-only
//! Kernel functions that BPF programs cannot call because of how the kernel was
//! built.
//!
//! Since 7.0 the verifier itself passes `aux`, the last argument of many
//! sched_ext functions. For each of these the kernel's build adds a function
//! `NAME_impl` with that argument to the BTF and takes it away from `NAME`; it
//! finds them by tags that pahole writes, and versions of pahole before 1.27 lose
//! some of these. Where a tag was lost, the verifier refuses every call.

use crate::root::Root;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto};

/// Functions without which no scheduler of ours can be.
const NEEDED: [&str; 4] = [
    "scx_bpf_create_dsq",
    "scx_bpf_kick_cpu",
    "scx_bpf_pick_idle_cpu",
    "bpf_iter_scx_dsq_new",
];
/// Name of the argument that the verifier passes.
const IMPLICIT: &str = "aux";

/// The first function that cannot be called here; `None` also when the BTF
/// cannot be read, which loading will tell of.
pub(crate) fn first_broken(root: &Root) -> Option<&'static str> {
    let btf = Btf::from_path(root.path("sys/kernel/btf/vmlinux")).ok()?;
    NEEDED.into_iter().find(|name| is_broken(&btf, name))
}

fn is_broken(btf: &Btf<'_>, name: &str) -> bool {
    let Some(function) = btf.type_by_name::<Func<'_>>(name) else {
        return false;
    };
    let prototype = function
        .next_type()
        .and_then(|t| FuncProto::try_from(t).ok());
    let last = prototype.and_then(|p| p.get(p.len().checked_sub(1)?)?.name);
    let has_twin = btf
        .type_by_name::<Func<'_>>(&format!("{name}_impl"))
        .is_some();
    last.is_some_and(|n| n == IMPLICIT) && !has_twin
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A BTF, as the kernel lays it out, of functions and their arguments; all
    /// arguments are of one type.
    fn btf_of(functions: &[(&str, &[&str])]) -> Vec<u8> {
        const INT: u32 = 1 << 24;
        const FUNC: u32 = 12 << 24;
        const FUNC_PROTO: u32 = 13 << 24;
        let mut strings = vec![0];
        let mut types: Vec<u32> = Vec::new();
        let mut text = |s: &str| {
            let at = u32::try_from(strings.len()).expect("small");
            strings.extend(s.bytes().chain([0]));
            at
        };
        types.extend([text("int"), INT, 4, 32]);
        for (next, (name, arguments)) in (2_u32..).step_by(2).zip(functions) {
            let count = u32::try_from(arguments.len()).expect("small");
            types.extend([0, FUNC_PROTO | count, 1]);
            for argument in *arguments {
                types.extend([text(argument), 1]);
            }
            types.extend([text(name), FUNC, next]);
        }
        let length = |n: usize| u32::try_from(n).expect("small");
        let types: Vec<u8> = types.iter().flat_map(|w| w.to_le_bytes()).collect();
        let header = [
            24,
            0,
            length(types.len()),
            length(types.len()),
            length(strings.len()),
        ];
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        bytes.extend(header.iter().flat_map(|w: &u32| w.to_le_bytes()));
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    fn broken(functions: &[(&str, &[&str])]) -> bool {
        let file = tempfile::NamedTempFile::new().expect("temp file");
        std::fs::write(file.path(), btf_of(functions)).expect("writes");
        let btf = Btf::from_path(file.path()).expect("is a BTF");
        is_broken(&btf, "f")
    }

    #[test]
    fn only_an_implicit_argument_without_a_twin_is_broken() {
        assert!(broken(&[("f", &["cpu", "aux"])]));
        assert!(!broken(&[("f", &["cpu"]), ("f_impl", &["cpu", "aux"])]));
        // Kernels before 7.0, and functions that are not there.
        assert!(!broken(&[("f", &["cpu"])]));
        assert!(!broken(&[("f", &[])]));
        assert!(!broken(&[("g", &["aux"])]));
    }
}
