//! `--set dotted.key=value`: changes the text before it is read, so that what is set is checked like what is written.

use super::problem::{Problem, suggestion};
use std::fmt;
use std::str::FromStr;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    key: String,
    value: String,
}

impl Setting {
    /// `key` to `value`, written as in the file.
    pub(crate) fn new(key: impl Into<String>, value: &toml::Value) -> Self {
        Self { key: key.into(), value: value.to_string() }
    }

    /// The same value under another key.
    pub(crate) fn with_key(&self, key: String) -> Self {
        Self { key, value: self.value.clone() }
    }

    /// The dotted key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl FromStr for Setting {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(format!("`{text}` is not KEY=VALUE, such as path.forward.capacity=2Mbps")),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The text with every change made, or what `complain` makes of the complaint about the n-th. Elements of lists of tables
/// are named by their `id` or their number from 0.
pub(crate) fn apply(
    name: &str,
    text: &str,
    settings: &[Setting],
    complain: impl Fn(usize, String) -> Problem,
) -> Result<String, Problem> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        Problem::at(name, text, error.span().unwrap_or(0..0), error.message().to_owned())
    })?;
    for (index, setting) in settings.iter().enumerate() {
        set(document.as_table_mut(), setting).map_err(|(message, help)| complain(index, message).help(help))?;
    }
    Ok(document.to_string())
}

type Complaint = (String, String);

fn set(root: &mut Table, setting: &Setting) -> Result<(), Complaint> {
    let parts: Vec<&str> = setting.key.split('.').map(str::trim).collect();
    if parts.contains(&"") {
        let message = format!("`{}` has an empty part", setting.key);
        return Err((message, "write it like path.forward.capacity".to_owned()));
    }
    let (last, way) = parts.split_last().expect("split yields at least one part");
    let mut item: &mut dyn TableLike = root;
    let mut index = 0;
    while index < way.len() {
        let part = way[index];
        index += 1;
        let next = item.entry(part).or_insert_with(|| Item::Value(Value::InlineTable(Default::default())));
        let Some(ids) = elements(next) else {
            // A capacity written as a rate gives way to `capacity.trace=...`.
            if next.as_table_like().is_none() {
                *next = Item::Value(Value::InlineTable(Default::default()));
            }
            item = next.as_table_like_mut().expect("it was made one");
            continue;
        };
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let Some(which) = way.get(index) else {
            let example = names.first().unwrap_or(&"0");
            let message = format!("`{part}.{last}` names a whole element of a list, not a key in it");
            return Err((message, format!("write it like {part}.{example}.key; elements: {}", names.join(", "))));
        };
        index += 1;
        let found = names.iter().position(|id| id == which).or_else(|| which.parse().ok());
        item = match found.and_then(|i| element(next, i)) {
            Some(table) => table,
            None => return Err((format!("`{part}` has no element `{which}`"), suggestion(which, &names))),
        };
    }
    item.insert(last, Item::Value(value_of(&setting.value)));
    Ok(())
}

/// Ids of the elements of a list of tables, written as [[...]] or in line; their numbers where they have none.
fn elements(item: &Item) -> Option<Vec<String>> {
    let id = |i: usize, id: Option<&str>| id.map_or(i.to_string(), str::to_owned);
    match item {
        Item::ArrayOfTables(tables) => {
            Some(tables.iter().enumerate().map(|(i, t)| id(i, t.get("id").and_then(Item::as_str))).collect())
        }
        Item::Value(Value::Array(array)) => {
            let tables: Option<Vec<_>> = array.iter().map(Value::as_inline_table).collect();
            let tables = tables.filter(|tables| !tables.is_empty())?;
            Some(tables.iter().enumerate().map(|(i, t)| id(i, t.get("id").and_then(Value::as_str))).collect())
        }
        _ => None,
    }
}

/// The element of this number.
fn element(item: &mut Item, index: usize) -> Option<&mut dyn TableLike> {
    match item {
        Item::ArrayOfTables(tables) => tables.get_mut(index).map(|t| t as &mut dyn TableLike),
        Item::Value(Value::Array(array)) => {
            array.get_mut(index)?.as_inline_table_mut().map(|t| t as &mut dyn TableLike)
        }
        _ => None,
    }
}

/// Numbers, booleans, lists and quoted strings as TOML; anything else is a string.
fn value_of(text: &str) -> Value {
    text.parse::<Value>().unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "duration = \"10s\"\n[path.forward]\ncapacity = \"1Mbps\" # note\n\n[[flow]]\nid = \"video\"\n\n[[flow]]\nid = \"two\"\n";

    fn changed(settings: &[&str]) -> Result<String, String> {
        let settings: Vec<Setting> = settings.iter().map(|s| s.parse().unwrap()).collect();
        let complain = |_, message| Problem::of("x.toml", TEXT, message);
        apply("x.toml", TEXT, &settings, complain).map_err(|p| format!("{p} / {}", p.hint().unwrap_or_default()))
    }

    #[test]
    fn values_land_where_the_key_says() {
        let text = changed(&[
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
        let text = changed(&["path.forward.capacity.trace=a/b.down"]).unwrap();
        let read: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(read["path"]["forward"]["capacity"]["trace"].as_str(), Some("a/b.down"));
    }

    #[test]
    fn a_wrong_element_names_the_right_ones() {
        let complaint = changed(&["flow.vido.start=1s"]).unwrap_err();
        assert!(complaint.contains("no element `vido`") && complaint.contains("`video`"), "{complaint}");
        assert!("nonsense".parse::<Setting>().is_err());
    }
}
