// SPDX-License-Identifier: GPL-2.0-only
//! Adding accounts and taking their differences, field by field.

use std::collections::BTreeMap;

/// Figures that only grow, and add up over vCPUs.
pub(super) trait Additive {
    /// Adds `other`'s figures.
    fn add(&mut self, other: &Self);
    /// Takes `before`'s figures away. A figure that went down (another life of
    /// the same thing) becomes 0.
    fn subtract(&mut self, before: &Self);
}

impl Additive for u64 {
    fn add(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }

    fn subtract(&mut self, before: &Self) {
        *self = self.saturating_sub(*before);
    }
}

/// What is known adds to what is known; of a difference, what is known now counts.
impl Additive for Option<u64> {
    fn add(&mut self, other: &Self) {
        if let Some(n) = other {
            self.get_or_insert(0).add(n);
        }
    }

    fn subtract(&mut self, before: &Self) {
        if let (Some(now), Some(n)) = (self, before) {
            now.subtract(n);
        }
    }
}

impl Additive for BTreeMap<String, u64> {
    fn add(&mut self, other: &Self) {
        for (name, n) in other {
            self.entry(name.clone()).or_default().add(n);
        }
    }

    /// Names that did not grow go away.
    fn subtract(&mut self, before: &Self) {
        for (name, n) in before {
            if let Some(now) = self.get_mut(name) {
                now.subtract(n);
            }
        }
        self.retain(|_, n| *n > 0);
    }
}

/// Implements [`Additive`] for a struct by its fields.
macro_rules! additive {
    ($type:ty { $($field:ident),* $(,)? }) => {
        impl $crate::account::additive::Additive for $type {
            fn add(&mut self, other: &Self) {
                $($crate::account::additive::Additive::add(&mut self.$field, &other.$field);)*
            }

            fn subtract(&mut self, before: &Self) {
                $($crate::account::additive::Additive::subtract(&mut self.$field, &before.$field);)*
            }
        }
    };
}
pub(super) use additive;
