// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controllers by name. A registry is a value: [`Registry::standard`], plus the controllers that a program adds.

use crate::{ConfigError, Controller, Entry, Preset, Setup, drc, fixed, gcc, googcc, nada, scream};
use alloc::vec::Vec;

/// The controllers that a program offers.
#[derive(Debug)]
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// Returns every controller of this library: the [table of the guide](crate#what-each-controller-needs) lists them, and
    /// [`Entry::summary`](crate::Entry::summary) describes each.
    pub fn standard() -> Self {
        let mut registry = Self { entries: Vec::new() };
        gcc::entries()
            .chain(googcc::entries())
            .chain([nada::nada2015::entry()])
            .chain(nada::rfc8698::entries())
            .chain(scream::v1::entries())
            .chain(scream::v2::entries())
            .chain([scream::libwebrtc::entry(), drc::entry(), fixed::entry()])
            .for_each(|entry| registry.add(entry));
        registry
    }

    /// Adds a controller.
    ///
    /// # Panics
    /// Panics if the name is taken: two controllers with one name are an error in the program.
    pub fn add(&mut self, entry: Entry) {
        assert!(self.get(entry.name()).is_none(), "the name `{}` is taken", entry.name());
        self.entries.push(entry);
    }

    /// Adds a preset of a registered controller.
    ///
    /// # Panics
    /// Panics if the name is taken, the base controller is not registered, or a value does not fit it.
    pub fn add_preset(&mut self, preset: &Preset) {
        let base = self.get(preset.base).unwrap_or_else(|| panic!("no controller `{}`", preset.base));
        let entry = base.preset(preset).unwrap_or_else(|error| panic!("preset: {error}"));
        self.add(entry);
    }

    /// Replaces each entry by the result of `change`.
    pub fn map(self, change: impl FnMut(Entry) -> Entry) -> Self {
        Self { entries: self.entries.into_iter().map(change).collect() }
    }

    /// Returns the controller or preset with this name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name() == name)
    }

    /// Builds a controller with its default parameters.
    ///
    /// # Errors
    /// There is no controller of this name, or `setup` contradicts itself.
    pub fn build(&self, name: &str, setup: &Setup) -> Result<Controller, ConfigError> {
        let known = || self.iter().map(Entry::name).collect::<Vec<_>>();
        let unknown = || ConfigError::UnknownController { name: name.into(), known: known() };
        self.get(name).ok_or_else(unknown)?.build(setup, &[])
    }

    /// Returns all entries, in order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, SendHalf, Signals};
    use alloc::borrow::ToOwned;
    use paceline_units::{DataSize, Rate, Time};

    const SETUP: Setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(30), Rate::from_kbps(2000));

    #[test]
    fn defaults_and_range_ends_are_valid() {
        for entry in Registry::standard().iter() {
            for field in entry.fields() {
                assert!((field.range.0..=field.range.1).contains(&field.default), "{} {}", entry.name(), field.name);
                assert!(!field.source.is_empty());
                for value in [field.range.0, field.range.1] {
                    assert!(entry.build(&SETUP, &[(field.name.to_owned(), value)]).is_ok());
                }
            }
        }
    }

    /// The other parameters are those of the controller before it.
    #[test]
    fn variants_differ_in_their_values_alone() {
        let registry = Registry::standard();
        let variants: [(_, _, &[(&str, f64)]); 3] = [
            ("gcc-2016-static", "gcc-2016", &[("gamma_0", 25.0), ("k_u", 0.0), ("k_d", 0.0)]),
            ("gcc-2016-guarded", "gcc-2016", &[("guard_ms", 15.0)]),
            ("gcc-dynamic-alpha", "gcc-2015", &[("dynamic_alpha", 1.0)]),
        ];
        for (name, base, values) in variants {
            let (entry, base) = (registry.get(name).unwrap(), registry.get(base).unwrap());
            assert_eq!((entry.source(), entry.signals()), (base.source(), base.signals()));
            for (field, of_base) in entry.fields().iter().zip(base.fields()) {
                let value = values.iter().find(|(name, _)| *name == field.name);
                assert_eq!(field.default, value.map_or(of_base.default, |(_, value)| *value), "{}", field.name);
            }
        }
    }

    /// Those that can be coupled calculate their rate at the sender and have no window.
    #[test]
    fn coupled_controllers_have_a_calculated_rate() {
        let registry = Registry::standard();
        let couples = |entry: &&Entry| entry.couples();
        let names: Vec<_> = registry.iter().filter(couples).map(Entry::name).collect();
        let expected = ["gcc-med16", "gcc-tfb", "googcc", "googcc-2024", "nada-2015", "nada", "nada-sender"];
        assert_eq!(names, expected);
        for entry in registry.iter() {
            let mut half = entry.build(&SETUP, &[]).unwrap().send.unwrap();
            assert_eq!(half.calculated_rate().is_some(), entry.couples(), "{}", entry.name());
            let Some(rate) = half.calculated_rate() else { continue };
            assert_eq!(rate, SETUP.start, "{}", entry.name());
            let signals = &mut Signals::disabled();
            let share = |half: &mut dyn SendHalf, ms: i64, kbps, signals: &mut Signals| {
                half.handle_event(Time::from_millis(ms), &Event::CoupledRate(Rate::from_kbps(kbps)), signals);
                (half.calculated_rate().unwrap().as_bps() / 1000, half.decision().target.as_bps() / 1000)
            };
            assert_eq!(share(&mut *half, 0, 500, signals), (500, 500), "{}", entry.name());
            assert_eq!(share(&mut *half, 10, 400, signals), (400, 400), "{}", entry.name());
            assert_eq!(share(&mut *half, 20, 10, signals), (30, 30), "{}: the minimum", entry.name());
        }
        for (name, window) in [
            ("gcc-tfb", ("window_ms", 350.0)),
            ("nada-sender", ("window_ms", 350.0)),
            ("googcc", ("window_min_bps", 0.0)),
        ] {
            let half = registry.get(name).unwrap().build(&SETUP, &[(window.0.to_owned(), window.1)]).unwrap().send;
            assert_eq!(half.unwrap().calculated_rate(), None, "{name} with a window");
        }
    }

    #[test]
    fn rejects_unknown_and_invalid_numbers() {
        let registry = Registry::standard();
        let entry = registry.get("gcc-2016").unwrap();
        let build = |name: &str, value| entry.build(&SETUP, &[(name.to_owned(), value)]).err().unwrap();
        assert!(matches!(build("k_x", 1.0), ConfigError::UnknownField { .. }));
        assert!(matches!(build("k_u", -1.0), ConfigError::OutOfRange { .. }));
        assert!(matches!(build("k_u", f64::NAN), ConfigError::OutOfRange { .. }));
        let kbps = Rate::from_kbps;
        for setup in [
            Setup { start: kbps(10), ..SETUP },
            Setup { max: kbps(10), ..SETUP },
            Setup { packet_size: DataSize::ZERO, ..SETUP },
            Setup { start: Rate::ZERO, min: Rate::ZERO, ..SETUP },
            Setup::new(Rate::ZERO, Rate::ZERO, Rate::ZERO),
        ] {
            assert!(matches!(entry.build(&setup, &[]).err().unwrap(), ConfigError::Setup { .. }), "{setup:?}");
        }
        assert!(entry.build(&Setup { start: SETUP.max.scale(2.0), ..SETUP }, &[]).is_ok(), "it starts at the maximum");
    }
}
