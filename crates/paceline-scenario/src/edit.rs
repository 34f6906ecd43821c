// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overrides written into a TOML text, with its comments kept: for sweeps and the Python package, which store the text.

use super::error::ScenarioError;
use super::overrides::{self, Override, key_path};
use super::text_span::Sources;
use super::tree::Node;
use toml_edit::visit_mut::{self, VisitMut};
use toml_edit::{DocumentMut, Formatted, Item, KeyMut, Table, TableLike, TomlError, Value};

/// Returns the text of the file `name` with every override written into it.
///
/// # Errors
/// The text is not TOML, or a key leads to an element of a list that is not there.
pub fn edit_text(name: &str, text: &str, overrides: &[Override]) -> Result<String, ScenarioError> {
    let mut sources = Sources::of_file(name, text);
    let mut root = Node::document(&sources, 0)?;
    let mut document: DocumentMut = text.parse().map_err(|error: TomlError| {
        ScenarioError::at(name, text, error.span().unwrap_or(0..0), error.message().to_owned())
    })?;
    for change in overrides {
        let (text_span, value) = change.add_to(&mut sources);
        let path = key_path(change.key(), text_span);
        overrides::set(&mut root, &path, value, &sources)?;
        if change.is_unset() {
            overrides::unset(&mut root, &path);
        }
        set(document.as_table_mut(), change);
    }
    Ok(document.to_string())
}

/// Sets a key as [`overrides::set`] did, which found every element.
fn set(root: &mut Table, change: &Override) {
    let parts: Vec<&str> = change.key().split('.').map(str::trim).collect();
    let (last, way) = parts.split_last().expect("split yields at least one part");
    let mut table: &mut dyn TableLike = root;
    let mut way = way.iter();
    while let Some(part) = way.next() {
        let next = table.entry(part).or_insert_with(|| Item::Value(Value::InlineTable(Default::default())));
        if elements(next).is_none() {
            if next.as_table_like().is_none() {
                *next = Item::Value(Value::InlineTable(Default::default()));
            }
            table = next.as_table_like_mut().expect("it was made one");
            continue;
        }
        let (mut elements, which) = (elements(next).expect("it is a list"), way.next().expect("an element is named"));
        let named = elements.iter().position(|e| e.get("id").and_then(Item::as_str) == Some(*which));
        table = elements.swap_remove(named.or_else(|| which.parse().ok()).expect("the element was found"));
    }
    if change.is_unset() {
        table.remove(last);
        return;
    }
    let mut value = change.value().parse::<Value>().unwrap_or_else(|_| Value::from(change.value()));
    if let Some(replaced) = table.get(last).and_then(Item::as_value) {
        // The comment behind it.
        *value.decor_mut() = replaced.decor().clone();
    }
    table.insert(last, Item::Value(value));
}

/// Returns the elements of a list of tables, written as [[...]] or in line.
fn elements(item: &mut Item) -> Option<Vec<&mut dyn TableLike>> {
    match item {
        Item::ArrayOfTables(tables) => Some(tables.iter_mut().map(|t| t as &mut dyn TableLike).collect()),
        Item::Value(Value::Array(array)) if !array.is_empty() => {
            array.iter_mut().map(|e| e.as_inline_table_mut().map(|t| t as &mut dyn TableLike)).collect()
        }
        _ => None,
    }
}

/// Returns the text in which `replace` may give another value to each string under a key whose last part is one of `keys`.
pub(super) fn with_strings(
    text: &str,
    keys: &[&str],
    replace: impl Fn(&str) -> Option<String>,
) -> Result<String, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    Strings { keys, replace }.visit_document_mut(&mut document);
    Ok(document.to_string())
}

struct Strings<'a, F> {
    keys: &'a [&'a str],
    replace: F,
}

impl<F: Fn(&str) -> Option<String>> VisitMut for Strings<'_, F> {
    fn visit_table_like_kv_mut(&mut self, key: KeyMut<'_>, item: &mut Item) {
        let is_wanted = key.get().rsplit('.').next().is_some_and(|last| self.keys.contains(&last));
        match item.as_value_mut() {
            Some(Value::String(string)) if is_wanted => {
                if let Some(other) = (self.replace)(string.value()) {
                    let decor = string.decor().clone();
                    *string = Formatted::new(other);
                    *string.decor_mut() = decor;
                }
            }
            _ => visit_mut::visit_table_like_kv_mut(self, key, item),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "duration = \"10s\"\n[path.forward]\ncapacity = \"1Mbps\" # note\n\n[[flow]]\nid = \"video\"\n\n[[flow]]\nid = \"two\"\n";

    fn edited(overrides: &[&str]) -> Result<String, String> {
        let overrides: Vec<Override> = overrides.iter().map(|s| s.parse().unwrap()).collect();
        edit_text("x.toml", TEXT, &overrides).map_err(|e| format!("{e} / {}", e.hint().unwrap_or_default()))
    }

    #[test]
    fn writes_each_value_under_its_key() {
        let text = edited(&[
            "duration=20s",
            "path.forward.capacity=[[\"0s\",\"1Mbps\"]]",
            "flow.two.config.k_u=0.02",
            "flow.0.controller=fixed",
        ])
        .unwrap();
        assert!(text.contains("duration = \"20s\""), "{text}");
        assert!(text.contains("capacity = [[\"0s\",\"1Mbps\"]]"), "{text}");
        let read: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(read["flow"][1]["config"]["k_u"].as_float(), Some(0.02));
        assert_eq!(read["flow"][0]["controller"].as_str(), Some("fixed"));
        let read: toml::Table = toml::from_str(&edited(&["path.forward.capacity.trace=a/b.down"]).unwrap()).unwrap();
        assert_eq!(read["path"]["forward"]["capacity"]["trace"].as_str(), Some("a/b.down"));
        for change in ["flow.two.start=1s", "path.forward.capacity=2Mbps"] {
            assert!(edited(&[change]).unwrap().contains("Mbps\" # note\n"), "comments stay");
        }
    }

    #[test]
    fn names_the_elements_of_a_list() {
        let error = edited(&["flow.vido.start=1s"]).unwrap_err();
        assert!(error.contains("no element `vido`") && error.contains("`video`"), "{error}");
    }
}
