// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases: variants of one experiment in one file.

use super::error::ScenarioError;
use super::file::CaseTable;
use super::overrides::{Override, key_path, set};
use super::reader::read;
use super::text_span::Sources;
use super::tree::Node;
use paceline_netsim::records::Label;

/// Returns every case of the file, checked.
pub(crate) fn cases(root: &Node, sources: &Sources<'_>) -> Result<Vec<CaseTable>, ScenarioError> {
    let Some(list) = root.get("case") else { return Ok(Vec::new()) };
    let cases: Vec<CaseTable> = read(sources, list)?;
    for (index, case) in cases.iter().enumerate() {
        let label = &case.label;
        if label.get().is_empty() {
            let error = sources.error(label, "a case needs a label that differs from those of the other cases");
            return Err(error.help("write it like { threshold = \"static\" }"));
        }
        if cases[..index].iter().any(|other| other.label.get() == label.get()) {
            let error = sources.error(label, format!("two cases have the label `{}`", label.get()));
            return Err(error.help("results name cases by their label; give each case its own"));
        }
        if let Some((key, value)) = case.set.iter().find(|(key, v)| v.get().0.is_table() && !key.contains('.')) {
            let error = sources.error(value, format!("`{key}` is a whole table of the scenario"));
            return Err(error.help(format!("write each key in quotes, as after --set: \"{key}.….…\" = …")));
        }
    }
    Ok(cases)
}

/// Returns the index of the case that matches `wanted`. If `wanted` is empty: the case that changes nothing, if there is one.
pub(crate) fn choose(
    cases: &[CaseTable],
    wanted: &Label,
    id: &str,
    sources: &Sources<'_>,
) -> Result<Option<usize>, ScenarioError> {
    if wanted.is_empty() {
        return Ok(cases.iter().position(|case| case.set.is_empty()));
    }
    let matching: Vec<usize> = (0..cases.len()).filter(|n| cases[*n].label.get().matches(wanted)).collect();
    let message = match matching.as_slice() {
        [case] => return Ok(Some(*case)),
        [] => format!("{id} has no case `{wanted}`"),
        _ => format!("several cases of {id} match `{wanted}`"),
    };
    Err(sources.error_without_location(message).help(known(cases)))
}

/// Returns the hint that lists every case.
pub(crate) fn known(cases: &[CaseTable]) -> String {
    if cases.is_empty() {
        return "the file has no [[case]]; leave the key out, or add a [[case]] with a label and what it sets"
            .to_owned();
    }
    let list: Vec<String> = cases.iter().map(|c| format!("`{}`", c.label.get())).collect();
    format!("cases: {}", list.join(", "))
}

/// Puts the values of the n-th case into the tree, and describes the case for errors; none if it sets nothing.
pub(crate) fn apply(
    root: &mut Node,
    n: usize,
    case: &CaseTable,
    sources: &mut Sources<'_>,
) -> Result<Option<String>, ScenarioError> {
    let written: Vec<_> = root.tables_of("case")[n].get("set").and_then(Node::entries).into_iter().flatten().collect();
    if written.is_empty() {
        return Ok(None);
    }
    let values = case.set.iter().map(|(key, value)| Override::new(key, &value.get().0).to_string());
    let described = format!("the case {} ({})", case.label.get(), values.collect::<Vec<_>>().join(", "));
    let source = sources.add_file_layer(format!("set by {described}"));
    let written: Vec<(String, _, Node)> = written
        .into_iter()
        .map(|(key, (at, value))| (key.clone(), at.of_source(source), value.clone().into_source(source)))
        .collect();
    for (key, text_span, value) in written {
        set(root, &key_path(&key, text_span), value, sources)?;
    }
    Ok(Some(described))
}
