// SPDX-License-Identifier: GPL-2.0-only
//! Recordings for other eyes: Perfetto's trace viewer, and text; and what all
//! pages need.

mod flows;
pub mod html;
mod perfetto;
mod text;

pub use flows::Flows;
pub use perfetto::Perfetto;
pub use text::Text;
