// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters that the entries of a registry declare: sources, queue disciplines, link servers, loss models. Scenario keys,
//! their checks, the JSON schema and the reference pages are derived from them.

use paceline_units::{DataSize, Fraction, Rate, TimeDelta};
use std::str::FromStr;

/// A level of a queue, such as its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    Bytes(DataSize),
    Packets(u32),
    /// The bytes that the link drains in this time at its rate when a packet arrives. The limit in bytes follows every
    /// change of capacity. Queued packets stay; an outage keeps the limit that was in force before it.
    /// As a queue limit it is at least 1500 bytes; as a marking threshold it has no minimum.
    DrainTime(TimeDelta),
}

impl FromStr for QueueLimit {
    type Err = String;

    /// Parses a time, a size or a number of packets.
    fn from_str(text: &str) -> Result<Self, String> {
        let packets = text.trim().strip_suffix("packets").or_else(|| text.trim().strip_suffix("packet"));
        let limit = match packets {
            Some(number) => number.trim().parse().map(Self::Packets).ok(),
            None => text.parse().map(Self::DrainTime).or_else(|_| text.parse().map(Self::Bytes)).ok(),
        };
        limit.ok_or_else(|| {
            format!("`{text}` is not a queue limit; write a time \"300 ms\", a size \"60 KB\" or \"50 packets\"")
        })
    }
}

/// A parameter: the name of its key in scenarios, its description, and its values.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The key in scenarios.
    pub name: &'static str,
    /// A description, in one sentence without its end. It names the source of the default.
    pub description: &'static str,
    /// The type and range of its values.
    pub kind: ParameterKind,
    /// What applies if the key is absent, as the reference pages show it: the default, such as `5 ms`, or what it means that
    /// there is none, such as `no packet is marked`.
    pub if_absent: &'static str,
    /// Whether `if_absent` is a value.
    has_default: bool,
    /// Whether the scenario must give a value.
    pub is_required: bool,
}

/// The type and the range of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterKind {
    /// A time between two bounds, both included.
    Time(TimeDelta, TimeDelta),
    Fraction,
    /// A number between two bounds, both included.
    Number(f64, f64),
    /// A whole number between two bounds, both included.
    Count(u32, u32),
    /// A size between two bounds, both included.
    Size(DataSize, DataSize),
    Rate,
    Text,
    /// True or false.
    Flag,
    /// A level of the queue below its limit.
    Level,
}

impl ParameterKind {
    /// Returns the allowed values as text, such as `1 ms to 10 s`; empty if the type alone limits them.
    pub fn range_text(&self) -> String {
        let between = |from: &dyn std::fmt::Display, to: &dyn std::fmt::Display| format!("{from} to {to}");
        match self {
            Self::Time(from, to) if to.as_nanos() == i64::MAX => format!("at least {from}"),
            Self::Time(from, to) => between(from, to),
            Self::Number(from, to) if *to == f64::MAX => format!("at least {from}"),
            Self::Number(from, to) => between(from, to),
            Self::Count(from, to) if *to == u32::MAX => format!("at least {from}"),
            Self::Count(from, to) => between(from, to),
            Self::Size(from, to) => between(from, to),
            Self::Fraction => "0 to 100 %".to_owned(),
            Self::Rate | Self::Text | Self::Flag | Self::Level => String::new(),
        }
    }

    /// Parses a value as a scenario would write it; `None` for text.
    fn parse(self, text: &str) -> Option<Value> {
        match self {
            Self::Time(..) => text.parse().ok().map(Value::Time),
            Self::Fraction => text.parse().ok().map(Value::Fraction),
            Self::Number(..) => text.parse().ok().map(Value::Number),
            Self::Count(..) => text.parse().ok().map(Value::Count),
            Self::Size(..) => text.parse().ok().map(Value::Size),
            Self::Rate => text.parse().ok().map(Value::Rate),
            Self::Flag => text.parse().ok().map(Value::Flag),
            Self::Level => text.parse().ok().map(Value::Level),
            Self::Text => None,
        }
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    Time(TimeDelta),
    Fraction(Fraction),
    Number(f64),
    Count(u32),
    Size(DataSize),
    Rate(Rate),
    Flag(bool),
    Level(QueueLimit),
}

impl Parameter {
    /// Declares a parameter with a default, as a scenario would write it.
    pub const fn new(name: &'static str, kind: ParameterKind, default: &'static str) -> Self {
        Self { name, description: "", kind, if_absent: default, has_default: true, is_required: false }
    }

    /// Declares a parameter that the scenario may leave out; `if_absent` says what that means.
    pub const fn optional(name: &'static str, kind: ParameterKind, if_absent: &'static str) -> Self {
        Self { has_default: false, ..Self::new(name, kind, if_absent) }
    }

    /// Declares a parameter that the scenario must give.
    pub const fn required(name: &'static str, kind: ParameterKind) -> Self {
        Self { is_required: true, ..Self::optional(name, kind, "an error") }
    }

    /// Describes the parameter, in one sentence without its end. It names the source of the default.
    pub const fn about(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Returns the value if the key is absent; `None` if the parameter is required, or has no value without its key.
    ///
    /// # Panics
    /// The default is no value of the type.
    pub fn default(&self) -> Option<Value> {
        let value = |text| self.kind.parse(text).unwrap_or_else(|| panic!("`{text}` is no `{}`", self.name));
        self.has_default.then(|| value(self.if_absent))
    }

    /// Returns whether a value has the type of the parameter and lies in its range.
    pub fn allows(&self, value: Value) -> bool {
        match (self.kind, value) {
            (ParameterKind::Time(least, most), Value::Time(value)) => (least..=most).contains(&value),
            (ParameterKind::Number(least, most), Value::Number(value)) => (least..=most).contains(&value),
            (ParameterKind::Count(least, most), Value::Count(value)) => (least..=most).contains(&value),
            (ParameterKind::Size(least, most), Value::Size(value)) => (least..=most).contains(&value),
            (ParameterKind::Fraction, Value::Fraction(_)) | (ParameterKind::Rate, Value::Rate(_)) => true,
            (ParameterKind::Flag, Value::Flag(_)) | (ParameterKind::Level, Value::Level(_)) => true,
            _ => false,
        }
    }
}

/// An entry of a registry, which a scenario chooses by name.
pub trait RegistryEntry: Sized + 'static {
    /// What it is, for messages.
    const WHAT: &'static str;
    /// The key that names it in scenarios.
    const KEY: &'static str;
    /// Returns every entry; the first is the default.
    fn all() -> &'static [Self];
    /// Returns the names of the parameters of all entries, in order.
    fn keys() -> &'static [&'static str];
    fn name(&self) -> &'static str;
    /// Describes it in one line.
    fn summary(&self) -> &'static str;
    fn parameters(&self) -> &'static [Parameter];
    /// Returns the parameter by which a scenario may choose it without its name.
    fn implied_by(&self) -> Option<&'static str> {
        None
    }
    /// Returns whether a value outside of the range of its parameter is an error. If not, the entry checks its values itself.
    fn checks_ranges(&self) -> bool {
        true
    }

    /// Returns the entry of this name.
    fn find(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|entry| entry.name() == name)
    }

    /// Returns the entry that one of the given keys implies.
    fn implied(is_given: impl Fn(&str) -> bool) -> Option<&'static Self> {
        Self::all().iter().find(|entry| entry.implied_by().is_some_and(&is_given))
    }

    /// Returns whether it has a parameter of this name.
    fn has(&self, key: &str) -> bool {
        self.parameters().iter().any(|parameter| parameter.name == key)
    }
}

/// Implements [`RegistryEntry`], and `Debug` with the name alone: the text of a plan identifies its runs, and an address of a
/// function differs in each process.
macro_rules! registry_entry {
    ($entry:ident, $all:ident, $key:literal, $what:literal $(, $more:item)*) => {
        impl $crate::parameter::RegistryEntry for $entry {
            const WHAT: &'static str = $what;
            const KEY: &'static str = $key;
            fn all() -> &'static [Self] {
                $all
            }
            fn keys() -> &'static [&'static str] {
                static KEYS: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(|| {
                    let all = $all.iter().flat_map(|entry| entry.parameters).map(|parameter| parameter.name);
                    all.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
                });
                &KEYS
            }
            fn name(&self) -> &'static str {
                self.name
            }
            fn summary(&self) -> &'static str {
                self.summary
            }
            fn parameters(&self) -> &'static [Parameter] {
                self.parameters
            }
            $($more)*
        }

        impl std::fmt::Debug for $entry {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name)
            }
        }
    };
}
pub(crate) use registry_entry;

/// The values of an entry's parameters: those that a scenario gives, or else the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    values: Vec<(&'static str, Option<Value>)>,
    texts: Vec<(&'static str, String)>,
}

/// Methods that return the value of a parameter of one type.
macro_rules! getters {
    ($($method:ident $variant:ident $type:ty,)*) => { $(
        #[doc = "Returns the value of a parameter of this type.\n\n# Panics\nThere is no such parameter with a value."]
        pub fn $method(&self, name: &str) -> $type {
            match self.get(name) {
                Some(Value::$variant(value)) => value,
                other => panic!("`{name}` is {other:?}"),
            }
        }
    )* };
}

/// Methods that return the value of a parameter of one type; `None` if it has no value.
macro_rules! optional_getters {
    ($($method:ident $variant:ident $type:ty,)*) => { $(
        #[doc = "Returns the value of a parameter of this type; `None` if it has no value."]
        pub fn $method(&self, name: &str) -> Option<$type> {
            match self.get(name) {
                Some(Value::$variant(value)) => Some(value),
                _ => None,
            }
        }
    )* };
}

impl Values {
    /// Returns the values of `parameters`: those `given`, and the defaults of the others.
    pub fn new(parameters: &'static [Parameter], given: &[(&str, Value)]) -> Self {
        let value = |p: &Parameter| {
            given.iter().find(|(name, _)| *name == p.name).map(|(_, value)| *value).or_else(|| p.default())
        };
        Self { values: parameters.iter().map(|p| (p.name, value(p))).collect(), texts: Vec::new() }
    }

    /// Sets the values of parameters that are text.
    pub fn with_texts(self, texts: Vec<(&'static str, String)>) -> Self {
        Self { texts, ..self }
    }

    /// Returns a text; `None` if it has no value.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.iter().find(|(of, _)| *of == name).map(|(_, text)| text.as_str())
    }

    /// Returns the value of a parameter; `None` if it has none, or if it is text.
    ///
    /// # Panics
    /// There is no such parameter.
    pub fn get(&self, name: &str) -> Option<Value> {
        let entry = self.values.iter().find(|(of, _)| *of == name);
        entry.unwrap_or_else(|| panic!("no parameter `{name}`")).1
    }

    optional_getters! {
        level Level QueueLimit,
        optional_time Time TimeDelta,
        optional_number Number f64,
        optional_rate Rate Rate,
    }

    getters! {
        time Time TimeDelta,
        fraction Fraction Fraction,
        number Number f64,
        count Count u32,
        size Size DataSize,
        rate Rate Rate,
        flag Flag bool,
    }
}

/// Checks the names of the entries of a registry, and the names, defaults and keys of their parameters.
#[cfg(test)]
pub(crate) fn check_registry<E: RegistryEntry>() {
    for (index, entry) in E::all().iter().enumerate() {
        let name = entry.name();
        assert!(E::all()[..index].iter().all(|other| other.name() != name), "{name}");
        for parameter in entry.parameters() {
            assert_ne!(parameter.name, E::KEY, "{name}");
            assert!(parameter.default().is_none_or(|value| parameter.allows(value)), "{name}: {}", parameter.name);
        }
        assert!(entry.implied_by().is_none_or(|key| entry.has(key)), "{name}");
    }
}
