// SPDX-License-Identifier: GPL-2.0-only
//! What every discrete-event simulator needs: an event queue, random numbers,
//! distributions. Integers alone, so that a seed gives the same run on every
//! machine and in every build.

pub mod dist;
pub mod rng;
pub mod timers;
