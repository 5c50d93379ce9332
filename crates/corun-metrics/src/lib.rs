// SPDX-License-Identifier: GPL-2.0-only
//! Accounts for monitoring systems.
//!
//! [`page`] writes a snapshot in the `OpenMetrics` text format, [`HttpServer`] serves
//! it, [`StatsSocket`] answers the clients of `scx_stats`, and [`Reader`] keeps what
//! reads the accounts in a thread of its own.

mod families;
mod http;
mod page;
mod reader;
mod stats_socket;
mod view;

pub use families::{FAMILIES, Family, Kind};
pub use http::{BindError, HttpServer, MakePage};
pub use page::{CONTENT_TYPE, page};
pub use reader::{Read, Reader};
pub use stats_socket::{ReadAccounts, SocketError, StatsSocket};
pub use view::MAX_VCPUS;
