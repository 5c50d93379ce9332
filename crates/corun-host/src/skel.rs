// SPDX-License-Identifier: GPL-2.0-only
//! The generated skeletons of the BPF programs.

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
pub(crate) mod corun {
    include!(concat!(env!("OUT_DIR"), "/corun_skel.rs"));
}

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
pub(crate) mod observe {
    include!(concat!(env!("OUT_DIR"), "/observe_skel.rs"));
}

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
pub(crate) mod vectors {
    include!(concat!(env!("OUT_DIR"), "/vectors_skel.rs"));
}
