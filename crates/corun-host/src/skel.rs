// SPDX-License-Identifier: GPL-2.0-only
//! The generated skeletons of the BPF programs. Lints do not apply: the text is
//! libbpf-cargo's.

macro_rules! skeleton {
    ($name:ident, $file:literal) => {
        #[allow(
            clippy::all,
            clippy::pedantic,
            clippy::unwrap_used,
            clippy::undocumented_unsafe_blocks,
            missing_docs,
            unreachable_pub,
            unused_qualifications,
            unsafe_op_in_unsafe_fn
        )]
        pub(crate) mod $name {
            include!(concat!(env!("OUT_DIR"), $file));
        }
    };
}

skeleton!(accounts, "/accounts_skel.rs");
skeleton!(corun, "/corun_skel.rs");
skeleton!(observe, "/observe_skel.rs");
skeleton!(trace, "/trace_skel.rs");
skeleton!(vectors, "/vectors_skel.rs");

/// The policy's tunables as the `corun_tunables` of one skeleton: each has its own.
macro_rules! tunables_for_bpf {
    ($types:ident, $tunables:expr) => {{
        let t: &corun_policy::Tunables = $tunables;
        $types::corun_tunables {
            slice_ns: t.slice_ns,
            wakeup_gran_ns: t.wakeup_gran_ns,
            cpu_looks: t.cpu_looks,
            sleeper_credit_ns: t.sleeper_credit_ns,
            hint_max_age_ns: t.hint_max_age_ns,
            yield_min_slice_ns: t.yield_min_slice_ns,
            urgent_slice_ns: t.urgent_slice_ns,
            urgent_gap_ns: t.urgent_gap_ns,
            boost_debt_ns: t.boost_debt_ns,
            boost_cost_ns: t.boost_cost_ns,
            defer_ns: t.defer_ns,
            defer_max: t.defer_max,
            window_ns: t.window_ns,
            gang_event_gap_ns: t.gang_event_gap_ns,
            gang_min_run_ns: t.gang_min_run_ns,
            gang_blind: t.gang_blind,
        }
    }};
}
pub(crate) use tunables_for_bpf;
