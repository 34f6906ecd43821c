// SPDX-License-Identifier: MIT OR Apache-2.0
//! `faulty-constant`: a constant rate, without feedback.
//!
//! The rate is 1 Mbit/s, the reference capacity of the variable path of RFC 8867, section 5.1. On that path it fills the link half of
//! the time, leaves 60 % of it unused at 2.5 Mbit/s, and exceeds it at 0.6 Mbit/s. `fixed` sends the maximum of the sources, which
//! exceeds nearly every link.

use paceline::Preset;

pub(super) const NAME: &str = "faulty-constant";

pub(super) const PRESET: Preset = Preset {
    name: NAME,
    base: "fixed",
    values: &[("rate_bps", 1e6)],
    summary: "one fault: a constant rate of 1 Mbit/s, without feedback",
    source: None,
};

#[cfg(test)]
mod tests {
    use super::super::altered::tests::{SETUP, at};
    use paceline::{Event, Registry, Signals};
    use paceline_units::Rate;

    #[test]
    fn rate_is_constant_whatever_the_limits_of_the_source() {
        let registry = super::super::add(Registry::standard());
        let mut half = registry.get(super::NAME).unwrap().build(&SETUP, &[]).unwrap().send.unwrap();
        assert_eq!(half.decision().target, Rate::from_kbps(1000));
        let mut bounds = SETUP.bounds();
        half.handle_event(at(1000), &Event::Bounds(&bounds), &mut Signals::disabled());
        assert_eq!(half.decision().target, Rate::from_kbps(1000));
        bounds.max = Rate::from_kbps(400);
        half.handle_event(at(2000), &Event::Bounds(&bounds), &mut Signals::disabled());
        assert_eq!(half.decision().target, Rate::from_kbps(400), "a limit from outside holds");
    }
}
