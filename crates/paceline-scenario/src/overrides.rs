// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overrides, `--set dotted.key=value`, and how a value is put into the tree by its key. Without a value, the key is unset.

use super::error::suggestion;
use super::text_span::{Sources, TextSpan};
use super::tree::{Entries, Node, Value};
use crate::ScenarioError;
use std::fmt;
use std::str::FromStr;

/// One change of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    key: String,
    value: String,
}

impl Override {
    /// Returns the override that sets `key` to `value`.
    pub fn new(key: impl Into<String>, value: &toml::Value) -> Self {
        Self { key: key.into(), value: value.to_string() }
    }

    /// Returns the dotted key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the override that sets the same value under another key.
    pub(crate) fn with_path(&self, path: &KeyPath) -> Self {
        let key: Vec<&str> = path.iter().map(|(part, _)| part.as_str()).collect();
        Self { key: key.join("."), value: self.value.clone() }
    }

    /// Returns whether the key is unset: the key and assumed constants for it do not apply.
    pub(crate) fn is_unset(&self) -> bool {
        self.value.is_empty()
    }

    /// Adds it to the sources. Returns the location of its key, and its value.
    pub(crate) fn add_to(&self, sources: &mut Sources<'_>) -> (TextSpan, Node) {
        let source = sources.add("--set", self.to_string(), format!("set by --set {self}"));
        let end = self.key.len();
        (TextSpan::new(source, 0..end), Node::value(sources, source, end + 1))
    }

    /// Returns the value as text.
    pub(crate) fn value(&self) -> &str {
        &self.value
    }
}

impl FromStr for Override {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(format!("`{text}` is not KEY=VALUE, such as path.forward.capacity=2Mbps; KEY= unsets the key")),
        }
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The parts of a dotted key, each with its location.
pub(crate) type KeyPath = Vec<(String, TextSpan)>;

/// Splits a dotted key at `text_span`, where it may stand in quotes.
pub(crate) fn key_path(key: &str, text_span: TextSpan) -> KeyPath {
    let span = text_span.span();
    let quote = match span.len().checked_sub(key.len()) {
        Some(0) => Some(0),
        Some(2) => Some(1),
        // The key is written with escapes.
        _ => None,
    };
    let mut start = 0;
    let mut parts = KeyPath::new();
    for part in key.split('.') {
        let from = span.start + quote.unwrap_or_default() + start + part.len() - part.trim_start().len();
        let at = TextSpan::new(text_span.source(), from..from + part.trim().len());
        parts.push((part.trim().to_owned(), if quote.is_some() && !at.span().is_empty() { at } else { text_span }));
        start += part.len() + 1;
    }
    parts
}

/// Removes a key from the tree. A key that is not there stays so; elements of lists are named as in [`set`].
pub(crate) fn unset(root: &mut Node, path: &KeyPath) {
    let Some(((last, _), way)) = path.split_last() else { return };
    let mut node = root;
    for (part, _) in way {
        let next = match &mut node.value {
            Value::Table(entries) => entries.get_mut(part).map(|(_, node)| node),
            Value::List(elements) => Node::find_element(elements, part).and_then(|index| elements.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return };
        node = next;
    }
    if let Value::Table(entries) = &mut node.value {
        entries.remove(last);
    }
}

/// Puts a value into the tree. Elements of lists of tables are named by their `id` or their number from 0. A table that is
/// not there is made; a value that stands in the way, such as a rate before `capacity.trace`, is replaced by one.
pub(crate) fn set(root: &mut Node, path: &KeyPath, value: Node, sources: &Sources<'_>) -> Result<(), ScenarioError> {
    if let Some((_, text_span)) = path.iter().find(|(part, _)| part.is_empty()) {
        return Err(sources.error(text_span, "a part of the key is empty").help("write it like path.forward.capacity"));
    }
    let ((last, last_place), way) = path.split_last().expect("split yields at least one part");
    let mut node = root;
    let (mut way, mut at_node) = (way.iter(), TextSpan::default());
    while let Some((part, text_span)) = way.next() {
        let table = node.make_table(at_node);
        at_node = *text_span;
        let empty = || (*text_span, Node { value: Value::Table(Entries::new()), text_span: *text_span });
        node = &mut table.entry(part.clone()).or_insert_with(empty).1;
        let Some(elements) = node.tables() else { continue };
        let name = |(number, e): (usize, &Node)| e.text_of("id").map_or_else(|| number.to_string(), str::to_owned);
        let names: Vec<String> = elements.iter().enumerate().map(name).collect();
        let Some((which, at)) = way.next() else {
            let message = format!("`{part}.{last}` names a whole element of a list, not a key in it");
            let help = format!("write it like {part}.{}.key; elements: {}", names[0], names.join(", "));
            return Err(sources.error(last_place, message).help(help));
        };
        let Some(index) = Node::find_element(elements, which) else {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(sources
                .error(at, format!("`{part}` has no element `{which}`"))
                .help(suggestion(which, &names)));
        };
        let Value::List(elements) = &mut node.value else { unreachable!("it has elements") };
        node = &mut elements[index];
    }
    node.make_table(at_node).insert(last.clone(), (*last_place, value));
    Ok(())
}
