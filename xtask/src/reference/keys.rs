// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of all keys of scenario files, from the JSON schema.
//!
//! Each table of the schema is a section, in the order of the keys that refer to it. The description of an optional key must
//! end with its default: `…; 300 ms if absent.`

use super::markdown::{Table, linked, plain};
use serde_json::Value;

/// Returns the page, or an error that names a key without a default.
pub fn page(schema: &Value) -> Result<String, String> {
    let mut sections = Vec::new();
    visit(schema, schema, "", &mut sections);
    let mut text = format!(
        "# Scenario files\n\nEvery key, table by table. `--set` takes the same keys, joined by dots, with a flow, stream \
         or hop named by its `id` or its number: `flow.video.encoder.max=1Mbps`. [Writing one](../how-to/scenario.md) is \
         a guide.\n\n## The file\n\n{}",
        table(schema)?
    );
    let is_table = |section: &&Section| schema["$defs"][&section.name]["properties"].is_object();
    let (tables, mut values): (Vec<&Section>, Vec<&Section>) = sections.iter().partition(is_table);
    values.sort_by_key(|section| &section.name);
    for Section { name, places } in tables.into_iter().chain(values) {
        let definition = &schema["$defs"][name];
        text += &format!("\n## {name}\n\n");
        if definition["properties"].is_object() {
            text += &format!("At {}. ", places.join(", "));
        }
        text += &format!("{}\n", body(definition)?);
    }
    Ok(format!("{}\n", text.trim_end()))
}

/// A definition, and the keys that refer to it.
struct Section {
    name: String,
    places: Vec<String>,
}

/// Collects the definitions that the keys of a table refer to, depth first.
fn visit(schema: &Value, table: &Value, place: &str, sections: &mut Vec<Section>) {
    for (key, value) in keys(table) {
        let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        visit_value(schema, value, &place, sections);
    }
}

fn visit_value(schema: &Value, value: &Value, place: &str, sections: &mut Vec<Section>) {
    for name in references(value) {
        let definition = &schema["$defs"][&name];
        let shown = format!("`{place}`");
        match sections.iter_mut().find(|s| s.name == name) {
            Some(section) if section.places.contains(&shown) => {}
            Some(section) => section.places.push(shown),
            None => sections.push(Section { name, places: vec![shown] }),
        }
        match definition["properties"].is_object() {
            true => visit(schema, definition, place, sections),
            false => visit_value(schema, definition, place, sections),
        }
    }
}

/// Returns the keys of a table, required ones first.
fn keys(table: &Value) -> Vec<(&String, &Value)> {
    let mut keys: Vec<_> = table["properties"].as_object().into_iter().flatten().collect();
    keys.sort_by_key(|(key, _)| !is_required(table, key));
    keys
}

fn is_required(table: &Value, key: &str) -> bool {
    table["required"].as_array().into_iter().flatten().any(|required| required == key)
}

/// Returns the names of the definitions that a value refers to.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match value.as_str() {
                Some(to) if key == "$ref" => vec![to.trim_start_matches("#/$defs/").to_owned()],
                _ => references(value),
            })
            .collect(),
        Value::Array(values) => values.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn body(definition: &Value) -> Result<String, String> {
    let what = sentence(&plain(&definition["description"]));
    if definition["properties"].is_object() {
        return Ok(format!("{what}\n\n{}", table(definition)?));
    }
    if let Some(choices) = definition["oneOf"].as_array() {
        let lines = choices.iter().map(|c| format!("* `\"{}\"`: {}\n", plain(&c["const"]), plain(&c["description"])));
        return Ok(format!("{what}\n\n{}", lines.collect::<String>()));
    }
    let how = match definition["examples"].as_array() {
        Some(examples) => {
            let examples: Vec<String> = examples.iter().map(|e| format!("`{e}`")).collect();
            format!("such as {}", examples.join(", "))
        }
        None => type_of(definition),
    };
    Ok(format!("{what} {}\n", sentence(&how)).trim_start().to_owned())
}

/// Returns the text with a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let stop = if text.is_empty() || text.ends_with(['.', '?']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

fn table(of: &Value) -> Result<String, String> {
    let mut table = Table::new(&["key", "type", "if absent", "what it is"]);
    for (key, value) in keys(of) {
        let text = plain(&value["description"]);
        let (absent, text) = match split_absent(&text) {
            _ if is_required(of, key) => ("required".to_owned(), text),
            Some((absent, text)) => (absent, text),
            None => return Err(format!("the description of `{key}` has no default like `; 1 s if absent.`: {text}")),
        };
        table.row(&[format!("`{key}`"), type_of(value), absent, text]);
    }
    Ok(table.to_string())
}

/// Splits a description into the default and the rest.
fn split_absent(text: &str) -> Option<(String, String)> {
    let (before, after) = text.split_once(" if absent")?;
    let (what, absent) = before.rsplit_once("; ").unwrap_or(("", before));
    Some((absent.to_owned(), format!("{what}{after}")))
}

fn type_of(value: &Value) -> String {
    let kinds: Vec<&str> = match &value["type"] {
        Value::String(one) => vec![one],
        Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if let Some(to) = value["$ref"].as_str() {
        return linked(to.trim_start_matches("#/$defs/").to_owned());
    }
    if let Some(choices) = value["anyOf"].as_array() {
        let choices: Vec<String> = choices.iter().filter(|c| c["type"] != "null").map(type_of).collect();
        return choices.join(" or ");
    }
    if let Some(parts) = value["prefixItems"].as_array() {
        return format!("\\[{}\\]", parts.iter().map(type_of).collect::<Vec<_>>().join(", "));
    }
    match kinds.first() {
        Some(&"string") => "text".to_owned(),
        Some(&"number") => "number".to_owned(),
        Some(&"integer") => "whole number".to_owned(),
        Some(&"boolean") => "true or false".to_owned(),
        Some(&"array") => format!("list of {}", type_of(&value["items"])),
        Some(&"object") => format!("table of name = {}", type_of(&value["additionalProperties"])),
        _ => "any value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_split_off() {
        let split = |text| split_absent(text).map(|(absent, text)| format!("{absent}|{text}"));
        assert_eq!(split("Frames per second; 30 if absent.").as_deref(), Some("30|Frames per second."));
        assert_eq!(split("a; b; 1 if absent. Several more.").as_deref(), Some("1|a; b. Several more."));
        assert_eq!(split("Frames per second."), None);
    }

    #[test]
    fn schema_becomes_tables_in_order_of_reference() {
        let schema = serde_json::json!({
            "required": ["a"],
            "properties": { "a": { "$ref": "#/$defs/Way", "description": "It." } },
            "$defs": {
                "Rate": { "type": "string", "examples": ["1 Mbps"] },
                "Way": { "description": "A way.", "properties": {
                    "r": { "anyOf": [{ "$ref": "#/$defs/Rate" }, { "type": "null" }], "description": "R; 1 if absent." }
                } }
            }
        });
        let text = page(&schema).unwrap();
        let way = "## Way\n\nAt `a`. A way.\n\n| key | type | if absent | what it is |\n|---|---|---|---|\n| `r` | [Rate](#rate) | 1 | R. |\n";
        assert!(text.contains("| `a` | [Way](#way) | required | It. |"), "{text}");
        assert!(text.contains(way) && text.contains("## Rate\n\nSuch as `\"1 Mbps\"`.\n"), "{text}");
        assert!(text.find("## Way") < text.find("## Rate"));
        let mut silent = schema.clone();
        silent["$defs"]["Way"]["properties"]["r"]["description"] = "R.".into();
        assert!(page(&silent).unwrap_err().contains("`r`"));
    }
}
