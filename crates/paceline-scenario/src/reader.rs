// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typed values from the tree: a serde deserializer whose errors carry the location, the expected type, and a hint.
//!
//! A field called `$part` of a struct is a struct that reads its keys from the same table.

use super::error::{ScenarioError, suggestion};
use super::parameters::{keys_of_entry, server_of};
use super::text_span::{Sources, TextSpan};
use super::tree::{Node, Value};
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Keys that have another name now: the old name, and the new one.
const RENAMED_KEYS: [(&str, &str); 3] =
    [("keep", "include_if"), ("over", "relative_to"), ("moved_by", "reproduced_with")];

/// A value for each required key, and where to find others.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("id", "\"a-name\"", ""),
    ("title", "\"One line about it\"", ""),
    ("duration", "\"60 s\"", ""),
    ("limit", "\"300 ms\"", ""),
    ("metric", "\"utilization\"", "; `paceline list metrics` shows all"),
    ("at_least", "1", ""),
    ("bounds", "[0.8, 1.0]", ""),
    ("controller", "\"gcc-2016\"", "; `paceline list controllers` shows all"),
    ("model", "\"gilbert-elliott\"", "; `paceline list losses` shows all"),
    ("std", "\"5 ms\"", ""),
    ("label", "{ threshold = \"static\" }", ""),
    ("published", "0.84", ""),
    ("range", "[0.05, 0.2]", ""),
    ("scenarios", "[\"rfc8867/5.1\", \"my-call\"]", "; ids, or files beside the manifest"),
    ("why", "\"one sentence with the source\"", ""),
];

const NUMBER: &str = "a number";
const WHOLE: &str = "a whole number";
const TRUTH: &str = "true or false";
const TEXT: &str = "text in quotes";
const PAIR: &str = "a pair of values";
const LIST: &str = "a list";
const TABLE: &str = "a table";

/// Reads a value of the tree.
pub(crate) fn read<T: DeserializeOwned>(sources: &Sources<'_>, node: &Node) -> Result<T, ScenarioError> {
    T::deserialize(Reader { node, part: None }).map_err(|error| {
        let hint = error.hint.unwrap_or_else(|| "`paceline schema` prints every key of a scenario".to_owned());
        sources.error(&error.text_span.unwrap_or_default(), error.message).help(hint)
    })
}

/// Parses the text of a scenario, a sweep or another file of tables.
pub fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ScenarioError> {
    let sources = Sources::of_file(name, text);
    read(&sources, &Node::document(&sources, 0)?)
}

#[derive(Debug)]
struct Error {
    text_span: Option<TextSpan>,
    message: String,
    hint: Option<String>,
    /// The expected type, if the value has another one.
    expected: Option<String>,
    is_missing: bool,
}

impl Error {
    fn new(message: impl Into<String>, hint: impl Into<Option<String>>) -> Self {
        Self { text_span: None, message: message.into(), hint: hint.into(), expected: None, is_missing: false }
    }

    /// Returns the error about a value of another type. The types of the standard library have names of their own in serde.
    fn expected(expected: &dyn fmt::Display) -> Self {
        let expected = match expected.to_string().as_str() {
            "a boolean" => TRUTH.to_owned(),
            "f64" => NUMBER.to_owned(),
            "a string" => TEXT.to_owned(),
            "a sequence" => LIST.to_owned(),
            "a map" => TABLE.to_owned(),
            "u32" => format!("{WHOLE} up to {} that is not negative", u32::MAX),
            "u64" => format!("{WHOLE} that is not negative"),
            other => other.to_owned(),
        };
        Self { expected: Some(expected), ..Self::new("", None) }
    }

    fn unknown(what: &str, name: &str, known: &[&str]) -> Self {
        let renamed = RENAMED_KEYS.iter().find(|(old, new)| *old == name && known.contains(new));
        let of_server = server_of(name).filter(|_| known.contains(&"server"));
        let hint = match (renamed, of_server) {
            (Some((old, new)), _) => format!("`{old}` is called `{new}` now"),
            (None, Some(kind)) => format!("it is a key of `server`: server = {{ kind = \"{kind}\", {name} = … }}"),
            _ if known.is_empty() => "no key is allowed here".to_owned(),
            _ => suggestion(name, known),
        };
        Self::new(format!("unknown {what} `{name}`"), hint)
    }

    /// The error about this value, unless it is about one within it.
    fn about(mut self, node: &Node) -> Self {
        if let Some(expected) = self.expected.take() {
            self.message = format!("expected {expected}, found {}", found(node));
            self.hint = hint(&expected, node);
        }
        self.text_span = self.text_span.or(Some(node.text_span));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    /// Takes the messages of this workspace's types, which end with how to write the value: `…; write …`.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        match message.split_once("; write ") {
            Some((what, how)) => Self::new(what, format!("write {how}")),
            None => Self::new(message, None),
        }
    }
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(&expected)
    }
    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(&expected)
    }
    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::unknown("value", name, known)
    }
    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::unknown("key", name, known)
    }
    fn missing_field(key: &'static str) -> Self {
        let example = EXAMPLES.iter().find(|(of, ..)| *of == key);
        let (_, value, more) = example.unwrap_or(&("", "…", ""));
        let hint = format!("add `{key} = {value}`{more}");
        Self { is_missing: true, ..Self::new(format!("missing key `{key}`"), hint) }
    }
}

/// Describes the value in the file.
fn found(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => format!("the text \"{text}\""),
        Value::Integer(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Date(date) => format!("the date {date}"),
        Value::List(list) => format!("a list of {}", list.len()),
        Value::Table(_) => "a table".to_owned(),
    }
}

/// Returns a hint to write a value of the expected type.
fn hint(expected: &str, node: &Node) -> Option<String> {
    match expected {
        PAIR => {
            let hint = "a schedule is written [[\"0s\", …], [\"50s\", …]], a window [\"10s\", \"60s\"], bounds [0.2, 1.0] \
                        or [0.2, inf]";
            return Some(hint.to_owned());
        }
        NUMBER if matches!(node.value, Value::Text(_)) => {
            let hint =
                "write the number without quotes and unit; bounds are in the unit of the metric, rates in bit/s: 300e3";
            return Some(hint.to_owned());
        }
        _ if expected.starts_with(WHOLE) => return Some("write it like 10, without quotes".to_owned()),
        LIST if matches!(node.value, Value::Table(_)) => {
            return Some("a list of tables is written with two brackets: [[flow]] in place of [flow]".to_owned());
        }
        TRUTH => return Some("write true or false, without quotes".to_owned()),
        TABLE => {
            let hint = "a table is written in braces or set key by key: queue = { limit = \"200 ms\" }, or \
                        queue.limit=200ms; `paceline schema` prints its keys";
            return Some(hint.to_owned());
        }
        _ => {}
    }
    let number = match node.value {
        Value::Integer(n) => n as f64,
        Value::Float(x) => x,
        _ => return None,
    };
    hint_on_number(expected, number)
}

/// Returns a hint to write a number with a unit, if the result is then accepted.
fn hint_on_number(expected: &str, number: f64) -> Option<String> {
    if expected == TEXT {
        return Some(format!("write \"{number}\""));
    }
    if !number.is_finite() || number < 0.0 {
        return None;
    }
    if expected.starts_with("a fraction") {
        // A number above one is taken for per cent.
        let percent = if number > 1.0 { number } else { number * 100.0 };
        return (percent <= 100.0).then(|| format!("write \"{percent} %\""));
    }
    // Quantities begin their expectation with their name (`paceline_units`, `Limit`). Only a time may be zero.
    let units = [
        ("a time", ["s", "ms"]),
        ("a queue limit", ["ms", "packets"]),
        ("a rate", ["bps", "kbps"]),
        ("a size", ["B", "KB"]),
    ];
    let (quantity, [first, second]) = units.iter().find(|(quantity, _)| expected.starts_with(quantity))?;
    (number > 0.0 || *quantity == "a time").then(|| format!("write \"{number} {first}\" or \"{number} {second}\""))
}

/// Reads one value.
#[derive(Clone)]
struct Reader<'de> {
    node: &'de Node,
    /// Reading a part of the table: where it announces its keys.
    part: Option<Rc<RefCell<Keys>>>,
}

/// The keys that parts of a table announce.
#[derive(Default)]
struct Keys {
    /// Those that they read.
    read: Vec<&'static str>,
    /// Those that a hint lists: of an entry of a registry its own.
    listed: Vec<&'static str>,
}

impl<'de> Reader<'de> {
    fn of(node: &'de Node) -> Self {
        Self { node, part: None }
    }

    fn error<T>(&self, expected: &dyn fmt::Display) -> Result<T, Error> {
        Err(Error::expected(expected).about(self.node))
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let value = match &self.node.value {
            Value::Text(text) | Value::Date(text) => visitor.visit_str(text),
            Value::Integer(n) => visitor.visit_i64(*n),
            Value::Float(x) => visitor.visit_f64(*x),
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            Value::List(list) => visitor.visit_seq(SeqDeserializer::new(list.iter())),
            Value::Table(entries) => {
                let entries = entries.iter().map(|(key, (at, node))| (key.as_str(), *at, Reader::of(node)));
                visitor.visit_map(Fields { left: entries.collect::<Vec<_>>().into_iter(), value: None })
            }
        };
        value.map_err(|error: Error| error.about(self.node))
    }

    /// Reads text. A date is none.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Text(text) => visitor.visit_str(text).map_err(|error: Error| error.about(self.node)),
            _ => self.error(&(&visitor as &dyn Expected)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    /// Reads a value with several forms (`$forms`), or a newtype.
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        match self.node.value {
            Value::Table(_) => visitor.visit_newtype_struct(self.clone()).map_err(|error| error.about(self.node)),
            _ if name == "$forms" => self.deserialize_any(visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::List(list) if list.len() == len => visitor.visit_seq(SeqDeserializer::new(list.iter())),
            _ if len == 2 => self.error(&PAIR),
            _ => self.error(&format_args!("a list of {len}")),
        }
    }

    /// Reads a value with its locations ([`Spanned`](super::text_span::Spanned), [`Table`](super::text_span::Table)), or a
    /// tuple.
    fn deserialize_tuple_struct<V: Visitor<'de>>(self, name: &str, len: usize, visitor: V) -> Result<V::Value, Error> {
        match name {
            "$spanned" | "$table" => visitor.visit_seq(SpannedAccess { reader: self, read: 0, before: 0 }),
            _ => self.deserialize_tuple(len, visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Some(entries) = self.node.entries() else { return self.error(&TABLE) };
        let own = entries.iter().filter(|(key, _)| fields.contains(&key.as_str()));
        let own = own.map(|(key, (at, node))| (key.as_str(), *at, Reader::of(node)));
        let of_parts: Rc<RefCell<Keys>> = Rc::default();
        let parts = fields.iter().filter(|field| field.starts_with('$'));
        let parts = parts
            .map(|part| (*part, self.node.text_span, Reader { node: self.node, part: Some(Rc::clone(&of_parts)) }));
        let left = own.chain(parts).collect::<Vec<_>>().into_iter();
        let value = visitor.visit_map(Fields { left, value: None }).map_err(|error| error.about(self.node));
        let mut known = of_parts.take();
        known.read.extend(fields);
        let of_entry = self.node.text_of(name).and_then(|entry| keys_of_entry(name, entry));
        known.listed.splice(..0, of_entry.unwrap_or(fields.to_vec()));
        if let Some(part) = self.part {
            part.borrow_mut().read.append(&mut known.read);
            part.borrow_mut().listed.append(&mut known.listed);
            return value;
        }
        // A key that is missing may stand there under a wrong name, so that name is reported first.
        if value.as_ref().is_err_and(|error| !error.is_missing) {
            return value;
        }
        known.listed.retain(|key| !key.starts_with('$'));
        match entries.iter().find(|(key, _)| key.starts_with('$') || !known.read.contains(&key.as_str())) {
            Some((key, (at, _))) => Err(Error { text_span: Some(*at), ..Error::unknown("key", key, &known.listed) }),
            None => value,
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Text(text) if known.contains(&text.as_str()) => {
                visitor.visit_enum(text.as_str().into_deserializer())
            }
            Value::Text(text) => Err(Error::unknown("value", text, known).about(self.node)),
            _ => self.error(&TEXT),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf seq map unit unit_struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Error> for &'de Node {
    type Deserializer = Reader<'de>;
    fn into_deserializer(self) -> Reader<'de> {
        Reader::of(self)
    }
}

/// The entries of a table.
struct Fields<'de> {
    left: std::vec::IntoIter<(&'de str, TextSpan, Reader<'de>)>,
    value: Option<Reader<'de>>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((key, at, reader)) = self.left.next() else { return Ok(None) };
        self.value = Some(reader);
        let at_key = |error: Error| Error { text_span: error.text_span.or(Some(at)), ..error };
        seed.deserialize(key.into_deserializer()).map(Some).map_err(at_key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.value.take().expect("serde reads a key before its value"))
    }
}

/// A value, its location, and those of the keys in it.
struct SpannedAccess<'de> {
    reader: Reader<'de>,
    read: u32,
    /// The number of keys that parts before this one announced, if the value is a part of a table.
    before: usize,
}

impl<'de> SeqAccess<'de> for SpannedAccess<'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        self.read += 1;
        let node = self.reader.node;
        let part = self.reader.part.as_ref();
        let element = match self.read {
            1 => {
                self.before = part.map_or(0, |keys| keys.borrow().read.len());
                seed.deserialize(self.reader.clone())
            }
            2 => seed.deserialize(SeqDeserializer::new(node.text_span.numbers().into_iter())),
            _ => {
                let entries = node.entries().into_iter().flatten();
                let own = |key: &str| part.is_none_or(|keys| keys.borrow().read[self.before..].contains(&key));
                let written = entries.filter(|(key, _)| own(key));
                seed.deserialize(MapDeserializer::new(
                    written.map(|(key, (at, value))| (key.as_str(), vec![at.numbers(), value.text_span.numbers()])),
                ))
            }
        };
        element.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_on_a_number_is_not_refused_in_turn() {
        let hint = |expected: &str, number: f64| hint_on_number(expected, number).unwrap_or_default();
        assert_eq!(hint("a time like", 50.0), "write \"50 s\" or \"50 ms\"");
        assert_eq!(hint("a time like", 0.0), "write \"0 s\" or \"0 ms\"");
        assert_eq!(hint("a fraction like", 0.05), "write \"5 %\"");
        assert_eq!(hint("a fraction like", 5.0), "write \"5 %\"");
        assert_eq!(hint(TEXT, -1.0), "write \"-1\"");
        for (expected, number) in [
            ("a time like", -50.0),
            ("a rate like", 0.0),
            ("a rate like", f64::NAN),
            ("a queue limit like", 0.0),
            ("a fraction like", -0.05),
            ("a fraction like", f64::INFINITY),
            ("a fraction like", 101.0),
        ] {
            assert_eq!(hint(expected, number), "", "{expected} {number}");
        }
    }
}
