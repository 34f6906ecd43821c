// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TOML document as a tree of values that know their places. Layers are merged in it; nothing is written back as text.

use super::error::ScenarioError;
use super::text_span::{HasTextSpan, Sources, TextSpan};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue, Error};

/// A value, and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) text_span: TextSpan,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date(String),
    List(Vec<Node>),
    Table(Entries),
}

/// The entries of a table: each key with its location and its value.
pub(crate) type Entries = BTreeMap<String, (TextSpan, Node)>;

impl HasTextSpan for Node {
    fn text_span(&self) -> TextSpan {
        self.text_span
    }
}

impl Node {
    /// Parses the text of a source.
    pub(crate) fn document(sources: &Sources<'_>, source: u32) -> Result<Self, ScenarioError> {
        let error = |span: Range<usize>, message: &str| {
            let text_span = TextSpan::new(source, span.start..span.end.max(span.start + 1));
            sources.error(&text_span, message.lines().next().unwrap_or_default()).help(
                "a line of TOML is key = value, with each key once in its table; text stands in double quotes, a list in \
                 [ ], a table in { }",
            )
        };
        let toml_error = |e: Error| error(e.span().unwrap_or(0..0), e.message());
        let document = DeTable::parse(sources.text(source)).map_err(toml_error)?;
        let table = DeValue::Table(document.into_inner());
        Self::of(table, source, 0, 0..0).map_err(|span| error(span, "a whole number of more than 64 bits"))
    }

    /// Parses the value that begins at byte `start` of a source: TOML, or else text without quotes.
    pub(crate) fn value(sources: &Sources<'_>, source: u32, start: usize) -> Self {
        let text = &sources.text(source)[start..];
        let toml = DeValue::parse(text).ok().and_then(|value| {
            let span = value.span();
            Self::of(value.into_inner(), source, start, span).ok()
        });
        let text_span = TextSpan::new(source, start..start + text.len());
        toml.unwrap_or_else(|| Self { value: Value::Text(text.to_owned()), text_span })
    }

    /// Converts a value at `span` of the text that begins at byte `start` of the source, or returns the span of a number
    /// that is too large.
    fn of(value: DeValue<'_>, source: u32, start: usize, span: Range<usize>) -> Result<Self, Range<usize>> {
        let text_span = |span: Range<usize>| TextSpan::new(source, start + span.start..start + span.end);
        let value = match value {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(n) => {
                Value::Integer(i64::from_str_radix(n.as_str(), n.radix()).map_err(|_| span.clone())?)
            }
            DeValue::Float(x) => Value::Float(x.as_str().parse().map_err(|_| span.clone())?),
            DeValue::Boolean(truth) => Value::Boolean(truth),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(list) => {
                let of = |value: toml::Spanned<DeValue<'_>>| {
                    let span = value.span();
                    Self::of(value.into_inner(), source, start, span)
                };
                Value::List(list.into_iter().map(of).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => {
                let entry = |(key, value): (toml::Spanned<_>, toml::Spanned<DeValue<'_>>)| {
                    let (at, span) = (text_span(key.span()), value.span());
                    let key: std::borrow::Cow<'_, str> = key.into_inner();
                    Ok::<_, Range<usize>>((key.into_owned(), (at, Self::of(value.into_inner(), source, start, span)?)))
                };
                Value::Table(table.into_iter().map(entry).collect::<Result<_, _>>()?)
            }
        };
        Ok(Self { value, text_span: text_span(span) })
    }

    pub(crate) fn entries(&self) -> Option<&Entries> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the entries, after making it an empty table at `text_span` if it is something else.
    pub(crate) fn make_table(&mut self, text_span: TextSpan) -> &mut Entries {
        if !matches!(self.value, Value::Table(_)) {
            *self = Self { value: Value::Table(Entries::new()), text_span };
        }
        match &mut self.value {
            Value::Table(entries) => entries,
            _ => unreachable!("it was made a table"),
        }
    }

    /// Returns the value of a key, if it is a table with that key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        Some(&self.entries()?.get(key)?.1)
    }

    /// Returns the value of a key for changes, if it is a table with that key.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.value {
            Value::Table(entries) => Some(&mut entries.get_mut(key)?.1),
            _ => None,
        }
    }

    /// Returns the elements, if it is a list of tables that is not empty.
    pub(crate) fn tables(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(list) if !list.is_empty() && list.iter().all(|e| e.entries().is_some()) => Some(list),
            _ => None,
        }
    }

    /// Returns the elements under a key; none if there is no list of tables.
    pub(crate) fn tables_of(&self, key: &str) -> &[Self] {
        self.get(key).and_then(Self::tables).unwrap_or_default()
    }

    /// Returns the elements, if it is a list, for changes.
    pub(crate) fn elements_mut(&mut self) -> &mut [Self] {
        match &mut self.value {
            Value::List(list) => list,
            _ => &mut [],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text under a key.
    pub(crate) fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key)?.text()
    }

    /// Returns the index of the element with this `id`, or with this number from 0.
    pub(crate) fn find_element(elements: &[Self], name: &str) -> Option<usize> {
        let named = elements.iter().position(|e| e.text_of("id") == Some(name));
        named.or_else(|| name.parse().ok()).filter(|index| *index < elements.len())
    }

    /// Moves the value and all in it to a source with the same text.
    pub(crate) fn into_source(mut self, source: u32) -> Self {
        self.move_to(source);
        self
    }

    fn move_to(&mut self, source: u32) {
        self.text_span = self.text_span.of_source(source);
        match &mut self.value {
            Value::List(list) => list.iter_mut().for_each(|e| e.move_to(source)),
            Value::Table(entries) => entries.values_mut().for_each(|(text_span, node)| {
                *text_span = text_span.of_source(source);
                node.move_to(source);
            }),
            _ => {}
        }
    }
}

/// Removes what layers before `first` wrote.
pub(crate) fn keep_from_layer(entries: &mut Entries, first: u32) {
    entries.retain(|_, (_, node)| match &mut node.value {
        Value::Table(inner) => {
            keep_from_layer(inner, first);
            !inner.is_empty()
        }
        _ => node.text_span().source() >= first,
    });
}

/// Puts entries over others: tables are merged, other values replaced.
pub(crate) fn overlay(under: &mut Entries, over: Entries) {
    for (key, (span, node)) in over {
        match (under.get_mut(&key), node) {
            (Some((_, Node { value: Value::Table(under), .. })), Node { value: Value::Table(over), .. }) => {
                overlay(under, over);
            }
            (_, node) => {
                under.insert(key, (span, node));
            }
        }
    }
}
