// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locations of values: the texts that a scenario is made of, and ranges in them.

use super::error::ScenarioError;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// A range of bytes in one of the texts that a scenario is made of. An empty range means that the location is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TextSpan {
    source: u32,
    start: u32,
    end: u32,
}

impl TextSpan {
    /// Returns the location of the bytes `span` of the text `source`.
    pub(crate) fn new(source: u32, span: Range<usize>) -> Self {
        Self { source, start: span.start as u32, end: span.end as u32 }
    }

    pub(crate) fn source(self) -> u32 {
        self.source
    }

    pub(crate) fn span(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the same bytes of another source with the same text.
    pub(crate) fn of_source(self, source: u32) -> Self {
        Self { source, ..self }
    }

    /// Returns the numbers from which serde reads the location.
    pub(crate) fn numbers(self) -> Vec<u32> {
        vec![self.source, self.start, self.end]
    }
}

/// A value with a location in the text of a scenario.
pub(crate) trait HasTextSpan {
    fn text_span(&self) -> TextSpan;
}

impl HasTextSpan for TextSpan {
    fn text_span(&self) -> TextSpan {
        *self
    }
}

/// A value with its location in the text.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename = "$spanned")]
pub struct Spanned<T>(T, TextSpan);

impl<T> Spanned<T> {
    /// Returns the value.
    pub fn get(&self) -> &T {
        &self.0
    }
    /// Returns another value at the same location.
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned(convert(self.0), self.1)
    }
    /// Returns the bytes of the text that hold the value.
    pub fn span(&self) -> Range<usize> {
        self.1.span()
    }
}

impl<T> HasTextSpan for Spanned<T> {
    fn text_span(&self) -> TextSpan {
        self.1
    }
}

/// A table with its location and those of the keys that are written in it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename = "$table")]
pub struct Table<T>(T, TextSpan, BTreeMap<String, (TextSpan, TextSpan)>);

impl<T> Table<T> {
    /// Returns the table's values.
    pub(crate) fn get(&self) -> &T {
        &self.0
    }
    pub(crate) fn first_key(&self, wanted: impl Fn(&str) -> bool) -> Option<(&str, TextSpan)> {
        let keys = self.2.iter().map(|(key, (text_span, _))| (key.as_str(), *text_span));
        keys.filter(|(key, _)| wanted(key)).min_by_key(|(_, text_span)| (text_span.source, text_span.start))
    }
    pub(crate) fn key(&self, key: &str) -> Option<TextSpan> {
        self.2.get(key).map(|(text_span, _)| *text_span)
    }
    /// Returns the location of a key's value.
    pub(crate) fn value(&self, key: &str) -> Option<TextSpan> {
        self.2.get(key).map(|(_, text_span)| *text_span)
    }
}

impl<T> HasTextSpan for Table<T> {
    fn text_span(&self) -> TextSpan {
        self.1
    }
}

/// The schema of a value does not depend on its location.
macro_rules! schema_of_value {
    ($($name:ident)*) => { $(
        impl<T: JsonSchema> JsonSchema for $name<T> {
            fn schema_id() -> Cow<'static, str> {
                T::schema_id()
            }
            fn schema_name() -> Cow<'static, str> {
                T::schema_name()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                T::json_schema(generator)
            }
            fn inline_schema() -> bool {
                T::inline_schema()
            }
        }
    )* };
}
schema_of_value!(Spanned Table);

/// A text that holds values of a scenario.
struct Source<'a> {
    name: Cow<'a, str>,
    text: Cow<'a, str>,
    /// A line for errors in this text; none for the scenario file.
    layer: Option<String>,
}

/// The texts that a scenario is made of; the first is the file.
#[derive(Default)]
pub(crate) struct Sources<'a>(Vec<Source<'a>>);

impl<'a> Sources<'a> {
    /// Returns the sources of one file.
    pub(crate) fn of_file(name: &'a str, text: &'a str) -> Self {
        Self(vec![Source { name: name.into(), text: text.into(), layer: None }])
    }

    /// Adds a text, and returns its number. `layer` is a line for errors in it.
    pub(crate) fn add(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        text: impl Into<Cow<'a, str>>,
        layer: impl Into<String>,
    ) -> u32 {
        self.0.push(Source { name: name.into(), text: text.into(), layer: Some(layer.into()) });
        self.next() - 1
    }

    /// Adds the file once more, for values that another layer takes from it.
    pub(crate) fn add_file_layer(&mut self, layer: String) -> u32 {
        let file = &self.0[0];
        let (name, text) = (file.name.clone(), file.text.clone());
        self.add(name, text, layer)
    }

    /// Returns the number of the source that is added next.
    pub(crate) fn next(&self) -> u32 {
        self.0.len() as u32
    }

    pub(crate) fn text(&self, source: u32) -> &str {
        &self.0[source as usize].text
    }

    /// Returns an error about a location. If the location is unknown, the error is about the whole text.
    pub(crate) fn error(&self, at: &impl HasTextSpan, message: impl Into<String>) -> ScenarioError {
        let text_span = at.text_span();
        let Source { name, text, layer } = &self.0[text_span.source as usize];
        let error = match text_span.span() {
            span if span.is_empty() => ScenarioError::of(name, text, message),
            span => ScenarioError::at(name, text, span, message),
        };
        error.with_layer(|| layer.clone())
    }

    /// Returns an error about something that is missing from the file.
    pub(crate) fn error_without_location(&self, message: impl Into<String>) -> ScenarioError {
        self.error(&TextSpan::default(), message)
    }
}
