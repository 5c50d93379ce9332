// SPDX-License-Identifier: GPL-2.0-only
//! Recordings for other eyes: Perfetto's trace viewer, and text.

mod flows;
mod perfetto;
mod text;

pub use flows::Flows;
pub use perfetto::Perfetto;
pub use text::Text;
