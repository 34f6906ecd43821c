//! The controllers by name. A registry is a value: [`Registry::standard`] plus what a program adds.

use crate::guard::Guard;
use crate::{Controller, Field, FieldInfo, Fields, SendHalf, SignalSpec, fixed, gcc, nada, scream};
use paceline_units::Rate;
use std::borrow::Cow;

/// What the flow tells a controller at birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The first target.
    pub start: Rate,
    /// Never below this.
    pub min: Rate,
    /// The most that the flow's sources can use, headers included: padding and probing stop there.
    pub max: Rate,
}

/// A controller's configuration is its factory.
pub trait Config: Clone + Send + Sync + 'static {
    /// Every number that can be set, for a config of one piece.
    const FIELDS: &'static [Field<Self>] = &[];
    /// Signals of the send half, then those of the receive half.
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]);
    /// Whether what the receiver says steers it. A yardstick without congestion control says `false`, and does not run
    /// under the guard against silence.
    const CONTROLS: bool = true;
    /// Goes through every number that can be set: for a config that is made of blocks.
    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.table(self, Self::FIELDS);
    }
    /// Makes the pair.
    fn build(&self, setup: &Setup) -> Controller;
}

/// Why no controller can be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No such field.
    #[error("{controller} has no parameter `{name}`")]
    UnknownField {
        /// The controller.
        controller: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// A value that makes no sense.
    #[error("{controller}: {name} = {value} is outside {} to {} {unit}", range.0, range.1)]
    OutOfRange {
        /// The controller.
        controller: String,
        /// The field.
        name: &'static str,
        /// What was asked for.
        value: f64,
        /// Lowest and highest value.
        range: (f64, f64),
        /// Unit of all three.
        unit: &'static str,
    },
    /// A start rate outside the limits, or limits the wrong way round.
    #[error("{controller}: need min <= start and min <= max, got min {}, start {}, max {}", setup.min, setup.start, setup.max)]
    Setup {
        /// The controller.
        controller: String,
        /// What was given.
        setup: Setup,
    },
}

/// A registered controller.
pub struct Entry {
    name: &'static str,
    summary: Cow<'static, str>,
    source: &'static str,
    factory: Box<dyn Factory>,
    /// In place of those of the factory.
    signals: Option<SignalTables>,
}

/// Signals of the send half, and of the receive half.
type SignalTables = (&'static [SignalSpec], &'static [SignalSpec]);

impl Entry {
    /// A controller under `name`, from a config with its defaults. `source`: the document that it follows.
    pub fn new<C: Config>(name: &'static str, summary: &'static str, source: &'static str, config: C) -> Self {
        Self { name, summary: summary.into(), source, factory: Box::new(config), signals: None }
    }
    /// The same controller in a world where somebody else plays one of its halves: what that half shows there.
    pub fn played(self, summary: String, signals: (&'static [SignalSpec], &'static [SignalSpec])) -> Self {
        Self { summary: summary.into(), signals: Some(signals), ..self }
    }
    /// The name by which scenarios ask for it.
    pub fn name(&self) -> &'static str {
        self.name
    }
    /// A line on it.
    pub fn summary(&self) -> &str {
        &self.summary
    }
    /// The document that it follows.
    pub fn source(&self) -> &'static str {
        self.source
    }
    /// Its numbers, with the defaults of this entry.
    pub fn fields(&self) -> Vec<FieldInfo> {
        self.factory.fields()
    }
    /// Signals of the send half and of the receive half.
    pub fn signals(&self) -> (&'static [SignalSpec], &'static [SignalSpec]) {
        self.signals.unwrap_or_else(|| self.factory.signals())
    }
    /// Whether what the receiver says steers it.
    pub fn controls(&self) -> bool {
        self.factory.controls()
    }
    /// A fresh pair of halves, with some numbers changed. The send half of a controller that controls runs under the
    /// guard: it slows down when nothing is heard.
    pub fn build(&self, setup: &Setup, changes: &[(String, f64)]) -> Result<Controller, ConfigError> {
        if setup.min > setup.start || setup.min > setup.max {
            return Err(ConfigError::Setup { controller: self.name.to_owned(), setup: *setup });
        }
        let mut controller = self.factory.build(self.name, setup, changes)?;
        if self.controls() {
            let guarded = |half| -> Box<dyn SendHalf> { Box::new(Guard::new(half, setup.min)) };
            controller.send = controller.send.map(guarded);
        }
        Ok(controller)
    }
}

/// The controllers that a program knows.
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// Every controller of this library.
    pub fn standard() -> Self {
        let mut registry = Self { entries: Vec::new() };
        registry.add(gcc::gcc2016::adaptive());
        registry.add(gcc::gcc2016::static_threshold());
        registry.add(gcc::gcc2016::guarded());
        registry.add(gcc::gcc2013::entry());
        registry.add(gcc::gcc2015::fixed_alpha());
        registry.add(gcc::gcc2015::dynamic_alpha());
        registry.add(gcc::gcc_med16::entry());
        registry.add(gcc::gcc_remb_2018::entry());
        registry.add(gcc::gcc_tfb::entry());
        registry.add(nada::nada2015::entry());
        nada::rfc8698::entries().into_iter().for_each(|entry| registry.add(entry));
        scream::v1::entries().into_iter().for_each(|entry| registry.add(entry));
        registry.add(fixed::entry());
        registry
    }

    /// Adds one. Panics if the name is taken: two controllers of one name are a bug in the program.
    pub fn add(&mut self, entry: Entry) {
        assert!(self.get(entry.name).is_none(), "the name `{}` is taken", entry.name);
        self.entries.push(entry);
    }

    /// The same controllers, each as `change` makes it.
    pub fn map(self, change: impl FnMut(Entry) -> Entry) -> Self {
        Self { entries: self.entries.into_iter().map(change).collect() }
    }

    /// The controller of this name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// All of them, in order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
}

/// [`Config`] without its type.
trait Factory: Send + Sync {
    fn fields(&self) -> Vec<FieldInfo>;
    fn signals(&self) -> (&'static [SignalSpec], &'static [SignalSpec]);
    fn controls(&self) -> bool;
    fn build(&self, name: &str, setup: &Setup, changes: &[(String, f64)]) -> Result<Controller, ConfigError>;
}

impl<C: Config> Factory for C {
    fn fields(&self) -> Vec<FieldInfo> {
        changed(&mut self.clone(), None)
    }
    fn signals(&self) -> (&'static [SignalSpec], &'static [SignalSpec]) {
        C::SIGNALS
    }
    fn controls(&self) -> bool {
        C::CONTROLS
    }
    fn build(&self, controller: &str, setup: &Setup, changes: &[(String, f64)]) -> Result<Controller, ConfigError> {
        let mut config = self.clone();
        for (name, value) in changes {
            let fields = changed(&mut config, None);
            let field = fields.iter().find(|f| f.name == name).ok_or_else(|| ConfigError::UnknownField {
                controller: controller.to_owned(),
                name: name.clone(),
                known: fields.iter().map(|f| f.name).collect(),
            })?;
            let (name, range, unit, value) = (field.name, field.range, field.unit, *value);
            if !(range.0..=range.1).contains(&value) {
                return Err(ConfigError::OutOfRange { controller: controller.to_owned(), name, value, range, unit });
            }
            changed(&mut config, Some((name, value)));
        }
        Ok(Config::build(&config, setup))
    }
}

/// Changes a number of the config, or none. Answers all as they were.
fn changed<C: Config>(config: &mut C, change: Option<(&str, f64)>) -> Vec<FieldInfo> {
    Fields::listed(change, |fields| Config::fields(config, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: Setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(30), max: Rate::from_kbps(2000) };

    #[test]
    fn every_default_is_in_its_range_and_every_field_sets_itself_alone() {
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

    #[test]
    fn bad_numbers_are_errors() {
        let registry = Registry::standard();
        let entry = registry.get("gcc-2016").unwrap();
        let build = |name: &str, value| entry.build(&SETUP, &[(name.to_owned(), value)]).err().unwrap();
        assert!(matches!(build("k_x", 1.0), ConfigError::UnknownField { .. }));
        assert!(matches!(build("k_u", -1.0), ConfigError::OutOfRange { .. }));
        assert!(matches!(build("k_u", f64::NAN), ConfigError::OutOfRange { .. }));
        let setup = Setup { start: Rate::from_kbps(10), ..SETUP };
        assert!(matches!(entry.build(&setup, &[]).err().unwrap(), ConfigError::Setup { .. }));
    }
}
