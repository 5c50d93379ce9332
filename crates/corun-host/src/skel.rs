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

skeleton!(corun, "/corun_skel.rs");
skeleton!(latency, "/latency_skel.rs");
skeleton!(observe, "/observe_skel.rs");
skeleton!(vectors, "/vectors_skel.rs");
