// SPDX-License-Identifier: GPL-2.0-only
//! Process 1 of the lab's guests: starts workloads and measures them. Outside of a
//! guest it runs single workloads and serves the same protocol on its standard
//! streams.

mod affinity;
mod cli;
mod control;
mod error;
mod external;
mod futex;
mod init;
mod kvm;
mod module;
mod params;
mod port;
mod procfs;
mod run;
mod scratch;
mod serve;
mod session;
mod sync;
mod threads;
mod workload;

fn main() -> anyhow::Result<()> {
    if std::process::id() == 1 {
        // The kernel passes on the options that it does not know: not ours.
        init::main();
    }
    cli::main()
}
