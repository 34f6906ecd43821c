// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of registries that tables choose, and the values of their parameters.

use super::{Checked, Resolver};
use crate::error::suggestion;
use crate::parameters::{Given, Parameters};
use crate::text_span::{HasTextSpan, Spanned, Table, TextSpan};
use paceline_netsim::parameter::{Parameter, ParameterKind, QueueLimit, RegistryEntry, Value, Values};

/// An entry that a table chooses.
pub(super) struct Chosen<E: 'static> {
    pub entry: &'static E,
    /// The location of its name, or else of the table.
    pub at: TextSpan,
}

impl Resolver<'_> {
    /// Returns the entry that is named, or else the one that a parameter implies, or `default`. `others` are names of other things
    /// that may stand for an entry.
    pub(super) fn choose<E: RegistryEntry>(
        &self,
        name: Option<&Spanned<String>>,
        table: &Table<Parameters<E>>,
        default: &'static E,
        others: &[&str],
    ) -> Checked<Chosen<E>> {
        let Some(spanned) = name else {
            let entry = E::implied(|key| table.key(key).is_some()).unwrap_or(default);
            return Ok(Chosen { entry, at: table.text_span() });
        };
        let Some(entry) = E::find(spanned.get()) else {
            let known: Vec<&str> = E::all().iter().map(|entry| entry.name()).chain(others.iter().copied()).collect();
            return self.unknown(spanned, E::WHAT, &known);
        };
        Ok(Chosen { entry, at: spanned.text_span() })
    }

    /// Returns the values of an entry's parameters: those that the table gives, and the defaults. `place` is the hop or flow, for
    /// messages; `level` converts a level of a queue with this name.
    pub(super) fn values<E: RegistryEntry>(
        &mut self,
        Chosen { entry, at }: &Chosen<E>,
        table: &Table<Parameters<E>>,
        place: &str,
        mut level: impl FnMut(&mut Self, &str, &Spanned<Value>, QueueLimit) -> Checked<QueueLimit>,
    ) -> Checked<Values> {
        let (what, parameters) = (format!("{} `{}`", E::WHAT, entry.name()), entry.parameters());
        let (mut values, mut texts) = (Vec::new(), Vec::new());
        for (name, given) in table.get().iter() {
            let Some(parameter) = parameters.iter().find(|p| p.name == name) else {
                let key = table.key(name).unwrap_or(given.text_span());
                return self.fail(&key, format!("the {what} has no `{name}`"), without_key::<E>(entry, name));
            };
            let spanned = match given {
                Given::Value(spanned) => spanned,
                Given::Text(spanned) => {
                    texts.push((parameter.name, spanned.get().clone()));
                    continue;
                }
            };
            let value = match *spanned.get() {
                Value::Level(given) => Value::Level(level(self, name, spanned, given)?),
                value => value,
            };
            if entry.checks_ranges() && !parameter.allows(value) {
                let message = format!("`{name}` must be {}", parameter.kind.range_text());
                return self.fail(spanned, message, "leave the key out for its default");
            }
            values.push((parameter.name, value));
        }
        let is_missing = |p: &&Parameter| p.is_required && table.get().iter().all(|(name, _)| name != p.name);
        if let Some(Parameter { name, kind, description, .. }) = parameters.iter().find(is_missing) {
            let example = match kind {
                ParameterKind::Fraction => "\"1 %\"",
                ParameterKind::Time(..) => "\"10 ms\"",
                ParameterKind::Size(..) => "\"15 KB\"",
                ParameterKind::Rate => "\"1 Mbps\"",
                ParameterKind::Text => "\"…\"",
                ParameterKind::Level => "\"10 packets\"",
                ParameterKind::Flag => "true",
                ParameterKind::Number(..) | ParameterKind::Count(..) => "1",
            };
            let message = format!("the {what} of the {place} needs `{name}`");
            return self.fail(at, message, format!("add `{name} = {example}`: {description}"));
        }
        Ok(Values::new(parameters, &values).with_texts(texts))
    }
}

/// Returns the hint for a key that an entry does not have: its own keys, and the entries that have the key.
fn without_key<E: RegistryEntry>(entry: &E, key: &str) -> String {
    let known: Vec<&str> = entry.parameters().iter().map(|p| p.name).collect();
    let own = if known.is_empty() { "leave it out".to_owned() } else { suggestion(key, &known) };
    let others = E::all().iter().filter(|other| other.has(key)).map(|other| format!("`{}`", other.name()));
    format!("{own}; `{key}` is a key of {}", others.collect::<Vec<_>>().join(", "))
}
