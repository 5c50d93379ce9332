// SPDX-License-Identifier: GPL-2.0-only
//! Builds what L1 boots: its kernel and an initramfs made of layers.
//!
//! Layers are cpio archives that the kernel unpacks one after the other. Each
//! is named after a hash of what it is made from, so a changed `corun` binary
//! rebuilds one layer of a few megabytes and nothing else.

mod builder;
mod bzimage;
mod comparators;
mod cpio;
mod emulator;
mod error;
mod files;
mod guests;
mod host;
mod layer;
mod root;

pub use builder::{Builder, Image, ImageSpec};
pub use error::ImageError;
pub(crate) use files::Loader;
pub use layer::RunLayer;
