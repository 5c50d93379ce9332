// SPDX-License-Identifier: GPL-2.0-only
//! Stock Debian packages for the lab: resolved by apt in a private root (no
//! root rights, nothing installed), downloaded, checked and unpacked into a
//! folder tree of the cache.

mod apt;
mod error;
mod fetch;
#[cfg(test)]
mod fetch_tests;
mod manifest;
mod mirror;
mod request;
pub(crate) mod tool;
mod unpack;

pub use error::PackageError;
pub(crate) use fetch::human;
pub use fetch::{Fetcher, Tree};
pub(crate) use manifest::sha256_of;
pub use manifest::{Manifest, Package};
pub use request::Request;
pub(crate) use request::short_hash;
pub use tool::Stop;
