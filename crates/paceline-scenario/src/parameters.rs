// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys that the entries of a registry declare: the parameters of queue disciplines, loss models, link servers and
//! sources. Their types, descriptions and defaults in the schema come from the entries.

use super::forms::Limit;
use super::text_span::{HasTextSpan, Spanned, TextSpan};

use paceline_netsim::flow::source::SourceEntry;
use paceline_netsim::link::loss::LossEntry;
use paceline_netsim::link::queue::QueueEntry;
use paceline_netsim::link::server::ServerEntry;
use paceline_netsim::parameter::{Parameter, ParameterKind, RegistryEntry, Value};
use paceline_units::{DataSize, Fraction, Rate, TimeDelta};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Returns the parameters of this name of all entries of a registry.
fn named<E: RegistryEntry>(name: &str) -> impl Iterator<Item = (&'static str, &'static Parameter)> {
    let of_entry = move |entry: &'static E| Some((entry.name(), entry.parameters().iter().find(|p| p.name == name)?));
    E::all().iter().filter_map(of_entry)
}

/// Returns the keys of an entry: the one of this name in the registry whose entries are named under `key`.
pub(crate) fn keys_of_entry(key: &str, name: &str) -> Option<Vec<&'static str>> {
    fn keys<E: RegistryEntry>(key: &str, name: &str) -> Option<Vec<&'static str>> {
        let entry = E::find(name).filter(|_| E::KEY == key)?;
        Some(entry.parameters().iter().map(|parameter| parameter.name).collect())
    }
    let of_path = keys::<QueueEntry>(key, name).or_else(|| keys::<LossEntry>(key, name));
    of_path.or_else(|| keys::<ServerEntry>(key, name)).or_else(|| keys::<SourceEntry>(key, name))
}

/// Returns the first server that has this key.
pub(crate) fn server_of(key: &str) -> Option<&'static str> {
    named::<ServerEntry>(key).map(|(server, _)| server).next()
}

/// A value as a scenario gives it.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Given {
    Value(Spanned<Value>),
    Text(Spanned<String>),
}

impl HasTextSpan for Given {
    fn text_span(&self) -> TextSpan {
        match self {
            Self::Value(spanned) => spanned.text_span(),
            Self::Text(spanned) => spanned.text_span(),
        }
    }
}

/// The parameters that a table gives: names and values, in order of the text.
#[derive(Debug)]
pub struct Parameters<E>(Vec<(String, Given)>, PhantomData<E>);

impl<E> Default for Parameters<E> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<E> Parameters<E> {
    /// Returns the given values with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Given)> {
        self.0.iter().map(|(name, given)| (name.as_str(), given))
    }
}

impl<'de, E: RegistryEntry> Deserialize<'de> for Parameters<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct(E::KEY, E::keys(), ParametersVisitor(PhantomData))
    }
}

struct ParametersVisitor<E>(PhantomData<E>);

impl<'de, E: RegistryEntry> Visitor<'de> for ParametersVisitor<E> {
    type Value = Parameters<E>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Self::Value, A::Error> {
        fn value<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
            table: &mut A,
            value: impl Fn(T) -> Value,
        ) -> Result<Given, A::Error> {
            table.next_value::<Spanned<T>>().map(|spanned| Given::Value(spanned.map(value)))
        }
        let mut given = Vec::new();
        while let Some(key) = table.next_key::<String>()? {
            // The reader passes only keys of the list.
            let Some((_, parameter)) = named::<E>(&key).next() else { continue };
            let value = match parameter.kind {
                ParameterKind::Time(..) => value(&mut table, Value::Time)?,
                ParameterKind::Fraction => value(&mut table, Value::Fraction)?,
                ParameterKind::Number(..) => value(&mut table, Value::Number)?,
                ParameterKind::Count(..) => value(&mut table, Value::Count)?,
                ParameterKind::Size(..) => value(&mut table, Value::Size)?,
                ParameterKind::Rate => value(&mut table, Value::Rate)?,
                ParameterKind::Text => Given::Text(table.next_value()?),
                ParameterKind::Flag => value(&mut table, Value::Flag)?,
                ParameterKind::Level => value(&mut table, |Limit(level)| Value::Level(level))?,
            };
            given.push((key, value));
        }
        Ok(Parameters(given, PhantomData))
    }
}
impl<E: RegistryEntry> JsonSchema for Parameters<E> {
    fn schema_name() -> Cow<'static, str> {
        "Parameters".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = serde_json::Map::new();
        for key in E::keys() {
            let of_key: Vec<(&str, &Parameter)> = named::<E>(key).collect();
            let mut schema = match of_key[0].1.kind {
                ParameterKind::Time(..) => generator.subschema_for::<Option<TimeDelta>>(),
                ParameterKind::Fraction => generator.subschema_for::<Option<Fraction>>(),
                ParameterKind::Number(..) => generator.subschema_for::<Option<f64>>(),
                ParameterKind::Count(..) => generator.subschema_for::<Option<u32>>(),
                ParameterKind::Size(..) => generator.subschema_for::<Option<DataSize>>(),
                ParameterKind::Rate => generator.subschema_for::<Option<Rate>>(),
                ParameterKind::Text => generator.subschema_for::<Option<String>>(),
                ParameterKind::Flag => generator.subschema_for::<Option<bool>>(),
                ParameterKind::Level => generator.subschema_for::<Option<Spanned<Limit>>>(),
            };
            schema.insert("description".to_owned(), describe_all(&of_key).into());
            properties.insert((*key).to_owned(), schema.to_value());
        }
        schemars::json_schema!({ "type": "object", "properties": properties })
    }
}

/// Describes the parameters of one name of all entries. Entries for which it means the same are named together.
fn describe_all(of_key: &[(&str, &Parameter)]) -> String {
    let mut described: Vec<(String, String)> = Vec::new();
    for (entry, parameter) in of_key {
        let text = describe(entry, parameter);
        match described.iter_mut().find(|(_, other)| *other == text) {
            Some((entries, _)) => *entries += &format!(", `{entry}`"),
            None => described.push((format!("`{entry}`"), text)),
        }
    }
    let all: Vec<String> = described.iter().map(|(entries, text)| format!("{entries}: {text}")).collect();
    all.join(" ")
}

/// Describes a parameter of an entry, with the default at the end.
fn describe(entry: &str, parameter: &Parameter) -> String {
    let Parameter { description, if_absent, is_required, .. } = parameter;
    match is_required {
        true => format!("{description}; required by `{entry}` if absent."),
        false => format!("{description}; {if_absent} if absent."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_several_entries_has_one_type() {
        fn check<E: RegistryEntry>() {
            for key in E::keys() {
                let kinds: Vec<_> = named::<E>(key).map(|(_, p)| core::mem::discriminant(&p.kind)).collect();
                assert!(kinds.iter().all(|kind| *kind == kinds[0]), "{}: {key}", E::WHAT);
            }
        }
        check::<QueueEntry>();
        check::<LossEntry>();
        check::<SourceEntry>();
        check::<ServerEntry>();
        assert_eq!(LossEntry::keys(), ["bad", "good", "probability", "to_bad", "to_good"]);
    }
}
