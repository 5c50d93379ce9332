// SPDX-License-Identifier: GPL-2.0-only
//! What a guest was doing, told by its instruction pointer.
//!
//! [`functions`] says which kernel functions are of which class, an [`Image`] is
//! a guest kernel's symbols as address ranges of one class each, and a
//! [`Library`] holds the images that the user gave and finds the one that a
//! running guest executes, with the address that KASLR chose.
//!
//! Nothing here touches a guest: its registers come in as [`Evidence`], the
//! scheduler gets ranges and a base address.

mod error;
mod evidence;
pub mod functions;
mod image;
mod library;
mod line;
mod map;
mod names;
mod no_match;
mod source;

pub use error::{LibraryError, MapError};
pub use evidence::{Evidence, Misfit};
pub use image::{Image, RANGES_MAX, Range};
pub use library::{Library, Match};
pub use names::Names;
pub use no_match::NoMatch;
pub use source::{Source, SourceError};
