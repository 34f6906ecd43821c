// SPDX-License-Identifier: MIT OR Apache-2.0
//! Constants: values that a paper leaves open. One file per paper gives each assumed value with its reason and its
//! plausible range.
//!
//! A constant applies to a key that neither the scenario, its case nor `--set` writes. A key that begins with `media.`
//! or `tcp.` stands for all flows of that kind. A constant of one experiment or case precedes one of all experiments.

use super::case::known;
use super::catalogue::{CONSTANTS, Origin};
use super::error::ScenarioError;
use super::evaluation::{ASSUMED, Constant};
use super::file::{AnyValue, CaseTable};
use super::overrides::{KeyPath, Override, key_path, set};
use super::preset::source_entry;
use super::reader::read;
use super::resolve::default_source;
use super::text_span::{HasTextSpan, Sources, Spanned, TextSpan};
use super::tree::{Entries, Node, Value};
use paceline::Registry;
use paceline_netsim::flow::source::SourceEntry;
use paceline_netsim::parameter::RegistryEntry;
use paceline_netsim::records::Label;
use serde::Deserialize;
use toml::Value as Toml;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantsFile {
    /// The paper that leaves the values open.
    paper: String,
    /// The quantities that a seed randomises, a line each.
    #[serde(default)]
    seed: Vec<String>,
    #[serde(default)]
    constant: Vec<ConstantTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantTable {
    id: Spanned<String>,
    /// The key of scenarios that it sets.
    key: Spanned<String>,
    /// The experiment to which it is limited, without the paper; all if absent.
    experiment: Option<Spanned<String>>,
    /// The cases of that experiment to which it is limited; all if absent.
    case: Option<Spanned<Label>>,
    /// Its value, as in a scenario.
    value: Spanned<AnyValue>,
    /// The lowest and the highest plausible value.
    range: Spanned<(AnyValue, AnyValue)>,
    /// One sentence with the source.
    why: Spanned<String>,
}

impl ConstantTable {
    /// Returns the experiment and the cases to which it is limited.
    fn only(&self) -> Option<String> {
        let case = self.case.as_ref().map(|case| case.get().to_string());
        let parts: Vec<String> = self.experiment.iter().map(|name| name.get().clone()).chain(case).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// Returns whether it may apply to a case of an experiment.
    fn is_of(&self, experiment: &str, case: &Label) -> bool {
        self.experiment.as_ref().is_none_or(|name| name.get() == experiment)
            && self.case.as_ref().is_none_or(|pattern| case.matches(pattern.get()))
    }
}

/// Puts the constants that apply into the tree. Returns all of them, and a note on those that apply. `case` is the chosen one of
/// `cases`. `instead` holds other values for some constants, by id; those for keys of `unset` do not apply.
pub(crate) fn apply(
    root: &mut Node,
    origin: &Origin,
    (cases, case): (&[CaseTable], &Label),
    controller: Option<&str>,
    (instead, unset): (&[(String, String)], &[KeyPath]),
    registry: &Registry,
    sources: &mut Sources<'_>,
) -> Result<(Vec<Constant>, Option<String>), ScenarioError> {
    let Some(node) = root.get("constants") else { return Ok(Default::default()) };
    let Value::Text(name) = &node.value else { return Ok(Default::default()) };
    // Errors quote the file. Under another name it may hold secrets.
    if name.rsplit(['/', '\\']).next() != Some(CONSTANTS) && !name.ends_with(&format!(".{CONSTANTS}")) {
        let error = sources.error(node, format!("`{name}` is no name of a file of constants"));
        return Err(error.help("call it constants.toml, or let its name end in .constants.toml"));
    }
    let text = origin.read(name).map_err(|error| sources.error(node, error).help(origin.lookup()))?;
    let layer = format!("{} names this file under `constants`", origin.name);
    let source = sources.add(origin.display_path(name), text, layer);
    let document = Node::document(sources, source)?;
    let file: ConstantsFile = read(sources, &document)?;
    check(&file, &document, sources)?;
    let id = root.text_of("id").unwrap_or_default();
    let experiment = id.rsplit('/').next().unwrap_or_default().to_owned();
    check_places(&file, (name == CONSTANTS).then_some(origin), (&experiment, cases), sources)?;

    // The path of a preset is none that the paper leaves open.
    let has_preset = root.get("path").is_some_and(|path| path.get("preset").is_some());
    let flows = root.tables_of("flow");
    let mut constants = Vec::new();
    let mut settings: Vec<(KeyPath, Node)> = Vec::new();
    let keys_of = |c: &ConstantTable| match c.is_of(&experiment, case) {
        true => keys(c.key.get(), root, controller, registry),
        false => Vec::new(),
    };
    let limited = file.constant.iter().filter(|c| c.only().is_some());
    let taken: Vec<Vec<String>> = limited.flat_map(keys_of).collect();
    let mut claimed: Vec<(Vec<String>, &str)> = Vec::new();
    for (c, node) in file.constant.iter().zip(document.tables_of("constant")) {
        let id = c.id.get();
        let only = c.only();
        let keys: Vec<_> = keys_of(c).into_iter().filter(|key| only.is_some() || !taken.contains(key)).collect();
        if let Some((_, first)) = claimed.iter().find(|(key, _)| keys.contains(key)) {
            let message = format!("`{}` sets the same key as `{first}`", c.key.get());
            return Err(sources.error(&c.key, message).help("write one constant for a key of the scenario"));
        }
        claimed.extend(keys.iter().map(|key| (key.clone(), id.as_str())));
        let (value, node) = match instead.iter().find(|(other, _)| other == id) {
            None => (c.value.get().0.to_string(), node.get("value").expect("it was read").clone()),
            Some((_, value)) => {
                let source = sources.add(format!("constant {id}"), value.clone(), format!("constant {id} = {value}"));
                let node = Node::value(sources, source, 0);
                (read::<AnyValue>(sources, &node)?.0.to_string(), node)
            }
        };
        let before = settings.len();
        let is_free = |key: &&Vec<String>| {
            let of_preset = has_preset && key.first().is_some_and(|part| part == "path");
            !of_preset
                && !unset.iter().any(|path| is_same_key(path, key, flows))
                && root.entries().is_some_and(|root| is_free(root, key))
        };
        for key in keys.iter().filter(is_free) {
            settings.push((key.iter().map(|part| (part.clone(), c.key.text_span())).collect(), node.clone()));
        }
        let (low, high) = c.range.get();
        constants.push(Constant {
            id: id.clone(),
            key: c.key.get().clone(),
            value,
            range: (low.0.to_string(), high.0.to_string()),
            why: c.why.get().clone(),
            only,
            applied: settings.len() > before,
        });
    }
    for (path, value) in settings {
        set(root, &path, value, sources)?;
    }
    let applied = constants.iter().filter(|c| c.applied).map(|c| format!("{} = {}", c.key, c.value));
    let applied = applied.collect::<Vec<_>>().join(", ");
    let note = format!("{ASSUMED}{} does not give them: {applied}", file.paper);
    Ok((constants, (!applied.is_empty()).then_some(note)))
}

fn check(file: &ConstantsFile, document: &Node, sources: &Sources<'_>) -> Result<(), ScenarioError> {
    if file.seed.is_empty() {
        let error = sources.error(document, "the file needs a list of what a seed randomises");
        return Err(error.help("add seed = [\"…\"], a line for each thing that differs between seeds"));
    }
    for (index, c) in file.constant.iter().enumerate() {
        let before = &file.constant[..index];
        let (value, (low, high)) = (&c.value.get().0, c.range.get());
        let number = |v: &Toml| v.as_float().or(v.as_integer().map(|i| i as f64));
        let in_range = match (number(&low.0), number(value), number(&high.0)) {
            (Some(low), Some(value), Some(high)) => low <= value && value <= high,
            _ => low.0.same_type(value) && high.0.same_type(value),
        };
        let same_key = before.iter().find(|other| other.key.get() == c.key.get() && other.only() == c.only());
        let (text_span, message, help) = if before.iter().any(|other| other.id.get() == c.id.get()) {
            let message = format!("two constants have the id `{}`", c.id.get());
            (c.id.text_span(), message, "results name constants by `id`; give each its own".to_owned())
        } else if let Some(first) = same_key {
            let message = format!("the constant `{}` already sets `{}`", first.id.get(), c.key.get());
            (c.key.text_span(), message, "write one constant for a key".to_owned())
        } else if c.key.get().split('.').any(|part| part.trim().is_empty()) {
            let help = "write it like media.encoder.size_noise or path.forward.jitter".to_owned();
            (c.key.text_span(), "a part of the key is empty".to_owned(), help)
        } else if c.why.get().trim().is_empty() {
            let help = "write one sentence with the source".to_owned();
            (c.why.text_span(), "an assumed value needs a reason".to_owned(), help)
        } else if !in_range {
            let message = "a range is [lowest, highest] around the value".to_owned();
            (c.range.text_span(), message, format!("the value is {value}"))
        } else {
            continue;
        };
        return Err(sources.error(&text_span, message).help(help));
    }
    Ok(())
}

/// Checks that the named cases of this experiment exist, and that every other experiment has a file beside this one; not if the
/// constants are those of another folder, of which this scenario may be a copy.
fn check_places(
    file: &ConstantsFile,
    origin: Option<&Origin>,
    (experiment, cases): (&str, &[CaseTable]),
    sources: &Sources<'_>,
) -> Result<(), ScenarioError> {
    for c in &file.constant {
        if let (None, Some(case)) = (&c.experiment, &c.case) {
            let error = sources.error(case, "`case` needs the experiment that has the case");
            return Err(error.help("add experiment = \"…\", the name of its file without .toml"));
        }
        if let Some(name) = c.experiment.as_ref().filter(|name| name.get() != experiment) {
            if origin.is_some_and(|origin| origin.read(&format!("{}.toml", name.get())).is_err()) {
                let message = format!("no experiment `{}` beside this scenario", name.get());
                return Err(sources.error(name, message).help("write the name of its file without .toml"));
            }
        } else if let Some(pattern) = &c.case
            && !cases.iter().any(|case| case.label.get().matches(pattern.get()))
        {
            let error = sources.error(pattern, format!("no case matches `{}`", pattern.get()));
            return Err(error.help(known(cases)));
        }
    }
    Ok(())
}

/// Returns the keys that an override sets: for `media.` or `tcp.` that of each flow which reads it, otherwise its own.
/// The key is written at `text_span`.
pub(crate) fn of_each_flow(
    change: &Override,
    text_span: TextSpan,
    root: &Node,
    controller: Option<&str>,
    registry: &Registry,
    sources: &Sources<'_>,
) -> Result<Vec<KeyPath>, ScenarioError> {
    if !["media.", "tcp."].iter().any(|kind| change.key().starts_with(kind)) {
        return Ok(vec![key_path(change.key(), text_span)]);
    }
    let keys = keys(change.key(), root, controller, registry);
    if keys.is_empty() {
        let error = sources.error(&text_span, format!("no flow reads `{}`", change.key()));
        return Err(error.help(
            "media. and tcp. are all flows of that kind; `paceline list controllers NAME` prints the keys of `config`",
        ));
    }
    Ok(keys.into_iter().map(|key| key.into_iter().map(|part| (part, text_span)).collect()).collect())
}

/// Returns the keys that a constant or an override stands for, split at the dots.
fn keys(key: &str, root: &Node, controller: Option<&str>, registry: &Registry) -> Vec<Vec<String>> {
    let mut parts: Vec<String> = key.split('.').map(|p| p.trim().to_owned()).collect();
    let flows = root.tables_of("flow");
    match parts[0].as_str() {
        kind @ ("media" | "tcp") => {
            let of_kind = flows.iter().enumerate().filter(|(_, f)| f.text_of("kind").unwrap_or("media") == kind);
            of_kind.flat_map(|(index, flow)| keys_of_flow(index, flow, &parts[1..], controller, registry)).collect()
        }
        "flow" => {
            // The number of a flow stands for its id, so that both spellings are one key.
            if let Some(number) = parts.get(1).and_then(|id| flows.iter().position(|f| f.text_of("id") == Some(id))) {
                parts[1] = number.to_string();
            }
            vec![parts]
        }
        _ => vec![parts],
    }
}

/// Returns whether a path of an override leads to this key, in which flows have numbers, or to a table that holds it.
fn is_same_key(path: &KeyPath, key: &[String], flows: &[Node]) -> bool {
    let is_same = |(number, ((part, _), of_key)): (usize, (&(String, TextSpan), &String))| {
        let is_flow = number == 1 && path[0].0 == "flow";
        part == of_key || (is_flow && Node::find_element(flows, part).is_some_and(|index| index.to_string() == *of_key))
    };
    path.len() <= key.len() && path.iter().zip(key).enumerate().all(is_same)
}

fn keys_of_flow(
    index: usize,
    flow: &Node,
    rest: &[String],
    controller: Option<&str>,
    registry: &Registry,
) -> Vec<Vec<String>> {
    let under = |way: &[String]| [&["flow".to_owned(), index.to_string()], way].concat();
    let reads = match rest {
        [table, field] if table == "config" => {
            let entry = controller.or(flow.text_of("controller")).and_then(|name| registry.get(name));
            entry.is_some_and(|e| e.fields().iter().any(|f| f.name == field))
        }
        [table, field] if table == "audio" => flow.get("audio").is_some_and(|audio| reads(Some(audio), "audio", field)),
        [table, field] if table == "encoder" => {
            let streams = flow.tables_of("stream");
            if !streams.is_empty() {
                let reading = streams.iter().enumerate().filter(|(_, s)| reads(s.get("encoder"), "encoder", field));
                let way = |number: usize| ["stream".to_owned(), number.to_string(), table.clone(), field.clone()];
                return reading.map(|(number, _)| under(&way(number))).collect();
            }
            reads(flow.get("encoder"), "encoder", field)
        }
        _ => true,
    };
    if reads { vec![under(rest)] } else { Vec::new() }
}

/// Returns whether the source that is written in the table under `key` reads `field`.
fn reads(table: Option<&Node>, key: &str, field: &str) -> bool {
    let named = table.and_then(|t| t.text_of("source")).map(source_entry);
    let implied = || SourceEntry::implied(|key| table.is_some_and(|t| t.get(key).is_some()));
    let source = named.unwrap_or_else(|| Some(implied().unwrap_or(default_source(key))));
    field == "source" || source.is_some_and(|source| source.has(field))
}

/// Returns whether a key may be set: neither it nor another spelling of it is written, and its elements of lists exist.
fn is_free(table: &Entries, key: &[String]) -> bool {
    let [part, rest @ ..] = key else { return false };
    if part != "hops" && table.contains_key("hops") {
        return false; // the hops hold the keys of the way
    }
    let written = |key: &str| table.get(key).map(|(_, node)| node);
    if part == "server" && rest == ["burst"] {
        // Only a hop with rates as capacity has a token bucket, and none with a trace or another server.
        let is_bucket = |server: &Node| {
            server.get("burst").is_none() && server.text_of("kind").is_none_or(|kind| kind == "token-bucket")
        };
        let has_rates = written("capacity").is_some_and(|capacity| capacity.entries().is_none());
        return has_rates && written("server").is_none_or(is_bucket);
    }
    match (written(part), rest) {
        (None, [.., last]) if last == "burst" => false,
        (None, _) => true,
        (Some(_), []) => false,
        (Some(node), rest) => match (&node.value, rest) {
            (Value::Table(table), rest) => is_free(table, rest),
            (Value::List(elements), [which, rest @ ..]) => {
                let element = Node::find_element(elements, which).and_then(|index| elements[index].entries());
                element.is_some_and(|table| is_free(table, rest))
            }
            _ => false,
        },
    }
}
