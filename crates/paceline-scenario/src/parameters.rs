//! Keys that the entries of a registry declare: the parameters of queue disciplines, loss models, link servers and
//! sources. Their types, descriptions and defaults in the schema come from the entries.

use super::forms::Limit;
use super::text_span::{HasTextSpan, Spanned, TextSpan};

use paceline_netsim::flow::source::SOURCES;
use paceline_netsim::link::loss::LOSS_MODELS;
use paceline_netsim::link::queue::DISCIPLINES;
use paceline_netsim::link::server::SERVERS;
use paceline_netsim::parameter::{Parameter, ParameterKind};
use paceline_units::{DataSize, Fraction, Rate, TimeDelta};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::LazyLock;

/// A registry whose entries declare parameters.
pub trait Entries {
    /// The key that names an entry.
    const TAG: &'static str;
    /// Returns the name of each entry, and its parameters.
    fn entries() -> impl Iterator<Item = (&'static str, &'static Parameter)>;
    /// Returns the names of all parameters.
    fn keys() -> &'static [&'static str];
}

/// Implements [`Entries`] for a registry.
macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident $registry:ident $tag:literal,)*) => {
        /// Returns the keys of an entry: the one of this name in the registry whose entries are named under `tag`.
        pub(crate) fn keys_of_entry(tag: &str, name: &str) -> Option<Vec<&'static str>> {
            match tag {
                $($tag => $registry.iter().find(|entry| entry.name == name).map(|entry| {
                    entry.parameters.iter().map(|parameter| parameter.name).collect()
                }),)*
                _ => None,
            }
        }
    $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Entries for $name {
            const TAG: &'static str = $tag;
            fn entries() -> impl Iterator<Item = (&'static str, &'static Parameter)> {
                $registry.iter().flat_map(|entry| entry.parameters.iter().map(|p| (entry.name, p)))
            }
            fn keys() -> &'static [&'static str] {
                static KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
                    let mut keys: Vec<&str> = $name::entries().map(|(_, parameter)| parameter.name).collect();
                    keys.sort_unstable();
                    keys.dedup();
                    keys
                });
                &KEYS
            }
        }
    )* };
}
entries! {
    /// The queue disciplines.
    Queues DISCIPLINES "discipline",
    /// The loss models.
    Losses LOSS_MODELS "model",
    /// The sources.
    Sources SOURCES "source",
    /// The link servers.
    Servers SERVERS "kind",
}

/// A value as a scenario gives it.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Given {
    Time(Spanned<TimeDelta>),
    Fraction(Spanned<Fraction>),
    Number(Spanned<f64>),
    Count(Spanned<u32>),
    Size(Spanned<DataSize>),
    Rate(Spanned<Rate>),
    Text(Spanned<String>),
    Flag(Spanned<bool>),
    Level(Spanned<Limit>),
}

impl HasTextSpan for Given {
    fn text_span(&self) -> TextSpan {
        match self {
            Self::Time(spanned) => spanned.text_span(),
            Self::Fraction(spanned) => spanned.text_span(),
            Self::Number(spanned) => spanned.text_span(),
            Self::Count(spanned) => spanned.text_span(),
            Self::Size(spanned) => spanned.text_span(),
            Self::Rate(spanned) => spanned.text_span(),
            Self::Text(spanned) => spanned.text_span(),
            Self::Flag(spanned) => spanned.text_span(),
            Self::Level(spanned) => spanned.text_span(),
        }
    }
}

/// The parameters that a table gives: names and values, in order of the text.
#[derive(Clone, Debug)]
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

impl<'de, E: Entries> Deserialize<'de> for Parameters<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct(E::TAG, E::keys(), ParametersVisitor(PhantomData))
    }
}

struct ParametersVisitor<E>(PhantomData<E>);

impl<'de, E: Entries> Visitor<'de> for ParametersVisitor<E> {
    type Value = Parameters<E>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Self::Value, A::Error> {
        let mut given = Vec::new();
        while let Some(key) = table.next_key::<String>()? {
            // The reader passes only keys of the list.
            let Some((_, parameter)) = E::entries().find(|(_, parameter)| parameter.name == key) else { continue };
            let value = match parameter.kind {
                ParameterKind::Time(..) => Given::Time(table.next_value()?),
                ParameterKind::Fraction => Given::Fraction(table.next_value()?),
                ParameterKind::Number(..) => Given::Number(table.next_value()?),
                ParameterKind::Count(..) => Given::Count(table.next_value()?),
                ParameterKind::Size(..) => Given::Size(table.next_value()?),
                ParameterKind::Rate => Given::Rate(table.next_value()?),
                ParameterKind::Text => Given::Text(table.next_value()?),
                ParameterKind::Flag => Given::Flag(table.next_value()?),
                ParameterKind::Level => Given::Level(table.next_value()?),
            };
            given.push((key, value));
        }
        Ok(Parameters(given, PhantomData))
    }
}

impl<E: Entries> JsonSchema for Parameters<E> {
    fn schema_name() -> Cow<'static, str> {
        "Parameters".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = serde_json::Map::new();
        for key in E::keys() {
            let of_key: Vec<(&str, &Parameter)> = E::entries().filter(|(_, p)| p.name == *key).collect();
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
        fn check<E: Entries>() {
            for (entry, parameter) in E::entries() {
                let (_, first) = E::entries().find(|(_, other)| other.name == parameter.name).unwrap();
                assert_eq!(
                    core::mem::discriminant(&first.kind),
                    core::mem::discriminant(&parameter.kind),
                    "{entry}: {}",
                    parameter.name
                );
            }
        }
        check::<Queues>();
        check::<Losses>();
        check::<Sources>();
        check::<Servers>();
        assert_eq!(Losses::keys(), ["bad", "good", "probability", "to_bad", "to_good"]);
    }
}
