// SPDX-License-Identifier: GPL-2.0-only
//! Results of a case: what was measured, what follows from it, and its tables.

pub mod format;
mod latency;
mod latency_tables;
mod machine;
mod matrix;
mod model;
mod spread;
mod summary;
mod table;
mod vcpus;

pub use machine::{Disturbance, MachineTimes};
pub use matrix::{Figure, Matrix, MatrixInput, Row, Verdict};
pub use model::{
    BootCounts, CaseResult, GateOutcome, GuestInfo, HostInfo, MachineWindow, SCHEMA_VERSION,
    SchedulerInfo,
};
pub use spread::Spread;
pub use summary::{CounterSums, GuestSummary, LatencyFigures, SchedulerFigures, Summary};
pub use table::render;
pub use vcpus::VcpuFigures;
