// SPDX-License-Identifier: GPL-2.0-only
//! Reports: a result of the lab or of the simulator, or a recording, or two of
//! a kind compared, as one document of tables and charts.
//!
//! [`Input::read`] recognises a file by its content, [`report`] and [`compare`]
//! make a [`Report`] of it, and [`html::page`] one page that needs nothing else.
//! A report as JSON has the same data as the page.

mod compare;
mod config;
pub mod html;
mod input;
mod lab;
mod latency;
mod model;
mod outcome;
mod recording;
mod repro;
mod sections;
mod sim;

pub use compare::{CompareError, compare};
pub use input::{Input, Kind, ReadError, report};
pub use model::{
    Block, Cell, Chart, Column, Curve, Dots, Fact, Mark, Plot, Report, SCHEMA_VERSION, Section,
    Series, SourceInfo, Span, Table,
};
