// SPDX-License-Identifier: MIT OR Apache-2.0
//! Yardsticks: controllers with exactly one fault each, and senders that know the path. They show what a suite can find. A bound
//! that every faulty controller keeps finds no fault, and a bound that an oracle breaks may ask for too much.
//!
//! They are no controllers to choose from, so the embeddable library does not have them.

mod altered;
mod constant;
mod ignores_delay;
mod ignores_feedback;
mod ignores_loss;
mod never_increases;
pub(crate) mod oracle;
mod oscillates;

pub use altered::{Alteration, Altered, NoAlteration, scaled};
pub use oracle::Oracle;
pub(crate) use oracle::shares_a_medium;

use crate::results::RowKind;
use paceline::Registry;

pub const FAULTY: [&str; 6] = [
    constant::NAME,
    ignores_delay::NAME,
    ignores_loss::NAME,
    ignores_feedback::NAME,
    never_increases::NAME,
    oscillates::NAME,
];

/// Returns the registry with the faulty controllers after its own.
///
/// # Panics
/// Panics if the registry lacks `fixed`, or if one of the names is taken.
pub fn add(mut registry: Registry) -> Registry {
    registry.add_preset(&constant::PRESET);
    let faulty = [
        ignores_delay::entry(),
        ignores_loss::entry(),
        ignores_feedback::entry(),
        never_increases::entry(),
        oscillates::entry(),
    ];
    faulty.into_iter().for_each(|entry| registry.add(entry));
    registry
}

pub fn is_faulty(name: &str) -> bool {
    FAULTY.contains(&name)
}

/// Returns the purpose of a controller or an oracle in results. A controller that does not control its rate is marked as faulty.
pub fn row_kind(name: &str, registry: &Registry) -> RowKind {
    let controls = || registry.get(name).is_some_and(|entry| entry.controls());
    match Oracle::find(name) {
        Some(_) => RowKind::Oracle,
        None if is_faulty(name) || !controls() => RowKind::Faulty,
        None => RowKind::Controller,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_has_the_faulty_controllers_in_order_after_its_own() {
        let (standard, all) = (Registry::standard(), add(Registry::standard()));
        let names: Vec<&str> = all.iter().map(|entry| entry.name()).collect();
        let (own, added) = names.split_at(standard.iter().count());
        assert_eq!(added, FAULTY);
        assert!(own.iter().all(|name| !is_faulty(name)) && added.iter().all(|name| is_faulty(name)));
    }

    /// The name alone must show in results that it is no controller to choose from.
    #[test]
    fn names_and_summaries_state_the_fault() {
        for entry in add(Registry::standard()).iter().filter(|entry| is_faulty(entry.name())) {
            assert!(entry.name().starts_with("faulty-") && entry.summary().contains(": "), "{}", entry.summary());
        }
    }

    /// The two that take no feedback run without the guard against missing feedback, which is a fault as well.
    #[test]
    fn guard_is_missing_where_feedback_is_ignored_alone() {
        let all = add(Registry::standard());
        let unguarded: Vec<&str> = FAULTY.into_iter().filter(|name| !all.get(name).unwrap().controls()).collect();
        assert_eq!(unguarded, [constant::NAME, ignores_feedback::NAME]);
    }
}
