// SPDX-License-Identifier: GPL-2.0-only
//! The lab's two message channels, both one JSON object per line:
//!
//! * [`agent`]: the driver in the emulated host (L1) talks to the agent that is
//!   process 1 of each guest (L2), over a virtio-serial port named
//!   [`AGENT_PORT`];
//! * [`control`]: the same driver talks to the lab runner on the developer's
//!   machine (L0), over a virtio-serial port named [`CONTROL_PORT`].

pub mod agent;
pub mod control;
mod latency;
mod line;

pub use latency::{HistogramError, LatencySummary};
pub use line::{LineError, from_line, to_line};

/// Name of the virtio-serial port between L1's driver and a guest's agent.
pub const AGENT_PORT: &str = "corun.agent";
/// Name of the virtio-serial port between L0's runner and L1's driver.
pub const CONTROL_PORT: &str = "corun.control";
/// Name of the virtio-serial port that commands from a pipe print to. The console
/// would mix the kernel's messages into their lines.
pub const COMMANDS_PORT: &str = "corun.commands";
/// Version of both channels; either side refuses to talk to another one.
pub const PROTOCOL_VERSION: u32 = 2;
