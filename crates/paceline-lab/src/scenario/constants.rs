//! What no source gives: one file of assumed constants per paper, each argued once, with the range in which it may lie.
//!
//! A constant stands for a key of scenarios and applies where a scenario does not write that key, neither itself nor by
//! its case nor by `--set`. `media.` and `tcp.` before a key are all flows of that kind.

use super::catalogue::Origin;
use super::file::{self, Anything, Flow, Placed, ScenarioFile, SourceTable};
use super::overrides::Setting;
use super::problem::Problem;
use super::resolve::source_reads;
use crate::plan::Constant;
use paceline::Registry;
use serde::Deserialize;
use toml::{Table, Value};

/// What stands in a file of constants.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantsFile {
    /// Whose constants they are.
    paper: String,
    /// What a seed randomises, a line each.
    #[serde(default)]
    seed: Vec<String>,
    #[serde(default)]
    constant: Vec<ConstantTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantTable {
    /// Its name.
    id: Placed<String>,
    /// The key it stands for.
    key: Placed<String>,
    /// Its value, as a scenario would write it.
    value: Placed<Anything>,
    /// The lowest and the highest that are plausible.
    range: Placed<(Anything, Anything)>,
    /// One sentence with the source.
    why: Placed<String>,
}

/// The constants of a scenario.
pub(super) struct Constants {
    /// Each, and whether it applies to this scenario.
    pub list: Vec<Constant>,
    /// What they set.
    pub settings: Vec<Setting>,
    /// A line on what they are.
    pub note: Option<String>,
}

/// The constants that a scenario names, as they apply to its text; `instead` are other values for some, by id.
pub(super) fn constants(
    origin: &Origin,
    text: &str,
    scenario: &ScenarioFile,
    controller: Option<&str>,
    instead: &[(String, String)],
    registry: &Registry,
) -> Result<Constants, Problem> {
    let mut constants = Constants { list: Vec::new(), settings: Vec::new(), note: None };
    let Some(place) = &scenario.constants else { return Ok(constants) };
    let (name, read) = (origin.beside(place.get()), origin.read(place.get()));
    let assumed = read.map_err(|error| {
        let problem = Problem::at(&origin.name, text, place.span(), error);
        problem.help("constants are looked up beside the scenario file, then from the working directory")
    })?;
    let file: ConstantsFile = file::parse(&name, &assumed)?;
    check(&file, &name, &assumed)?;
    let written: Table = toml::from_str(text).expect("it was parsed before");
    let mut claimed: Vec<(Vec<String>, &str)> = Vec::new();
    for c in &file.constant {
        let id = c.id.get();
        let value = match instead.iter().find(|(other, _)| other == id) {
            None => c.value.get().0.clone(),
            // Values of a range came from here; what does not parse is a string, as with --set.
            Some((_, value)) => toml::from_str::<Table>(&format!("v = {value}"))
                .ok()
                .and_then(|mut t| t.remove("v"))
                .unwrap_or_else(|| Value::String(value.clone())),
        };
        let keys = keys(c.key.get(), scenario, controller, registry);
        if let Some((_, first)) = claimed.iter().find(|(key, _)| keys.contains(key)) {
            let message = format!("`{}` says what `{first}` says in other words", c.key.get());
            let problem = Problem::at(&name, &assumed, c.key.span(), message);
            return Err(problem.help("one constant for a key of the scenario"));
        }
        claimed.extend(keys.iter().map(|key| (key.clone(), id.as_str())));
        let free = keys.iter().filter(|key| is_free(&written, key));
        let before = constants.settings.len();
        constants.settings.extend(free.map(|key| Setting::new(key.join("."), &value)));
        let (low, high) = c.range.get();
        constants.list.push(Constant {
            id: id.clone(),
            key: c.key.get().clone(),
            value: value.to_string(),
            range: (low.0.to_string(), high.0.to_string()),
            why: c.why.get().clone(),
            applied: constants.settings.len() > before,
        });
    }
    let applied: Vec<String> =
        constants.list.iter().filter(|c| c.applied).map(|c| format!("{} = {}", c.key, c.value)).collect();
    if !applied.is_empty() {
        constants.note = Some(format!("assumed, as {} does not say: {}", file.paper, applied.join(", ")));
    }
    Ok(constants)
}

fn check(file: &ConstantsFile, name: &str, text: &str) -> Result<(), Problem> {
    if file.seed.is_empty() {
        let problem = Problem::of(name, text, "constants come with what a seed randomises");
        return Err(problem.help("add seed = [\"…\"], a line for each thing that differs between seeds"));
    }
    for (index, c) in file.constant.iter().enumerate() {
        if file.constant[..index].iter().any(|other| other.id.get() == c.id.get()) {
            let problem = Problem::at(name, text, c.id.span(), format!("two constants are called `{}`", c.id.get()));
            return Err(problem.help("results name constants by `id`; give each a name of its own"));
        }
        if let Some(first) = file.constant[..index].iter().find(|other| other.key.get() == c.key.get()) {
            let message = format!("`{}` already stands for `{}`", first.id.get(), c.key.get());
            let problem = Problem::at(name, text, c.key.span(), message);
            return Err(problem.help("one constant for a key"));
        }
        if c.key.get().split('.').any(|part| part.trim().is_empty()) {
            let problem = Problem::at(name, text, c.key.span(), "a part of the key is empty");
            return Err(problem.help("write it like media.encoder.size_noise or path.forward.jitter"));
        }
        if c.why.get().trim().is_empty() {
            let problem = Problem::at(name, text, c.why.span(), "an assumed value is argued");
            return Err(problem.help("one sentence with the source"));
        }
        let (low, high) = c.range.get();
        let kind = |v: &Value| core::mem::discriminant(v);
        let number = |v: &Value| v.as_float().or(v.as_integer().map(|i| i as f64));
        let (value, low, high) = (&c.value.get().0, &low.0, &high.0);
        let sound = match (number(low), number(value), number(high)) {
            (Some(low), Some(value), Some(high)) => low <= value && value <= high,
            _ => kind(low) == kind(value) && kind(high) == kind(value),
        };
        if !sound {
            let problem = Problem::at(name, text, c.range.span(), "a range is [lowest, highest] around the value");
            return Err(problem.help(format!("the value is {value}")));
        }
    }
    Ok(())
}

/// A setting of `media.` or `tcp.` for each flow of the scenario that reads it; any other as it is.
pub(super) fn of_each_flow(
    origin: &Origin,
    text: &str,
    setting: &Setting,
    scenario: impl FnOnce() -> Result<ScenarioFile, Problem>,
    controller: Option<&str>,
    registry: &Registry,
) -> Result<Vec<Setting>, Problem> {
    if !["media.", "tcp."].iter().any(|kind| setting.key().starts_with(kind)) {
        return Ok(vec![setting.clone()]);
    }
    let keys = keys(setting.key(), &scenario()?, controller, registry);
    if keys.is_empty() {
        let problem = Problem::of(&origin.name, text, format!("{setting}: no flow reads `{}`", setting.key()));
        return Err(problem
            .help("media. and tcp. are all flows of that kind; `paceline list controllers NAME` has config keys"));
    }
    Ok(keys.iter().map(|key| setting.with_key(key.join("."))).collect())
}

/// The keys of a scenario that a constant's key stands for, in parts.
fn keys(key: &str, scenario: &ScenarioFile, controller: Option<&str>, registry: &Registry) -> Vec<Vec<String>> {
    let parts: Vec<String> = key.split('.').map(|p| p.trim().to_owned()).collect();
    let kind = match parts[0].as_str() {
        kind @ ("media" | "tcp") => kind,
        "flow" => return vec![by_number(parts, scenario)],
        _ => return vec![parts],
    };
    let rest = &parts[1..];
    let flows = scenario.flow.iter().map(Placed::get).enumerate();
    let flows = flows.filter(|(_, f)| f.kind.as_ref().map_or("media", |k| k.get().as_str()) == kind);
    flows.flat_map(|(index, flow)| keys_of_flow(index, flow, rest, controller, registry)).collect()
}

/// A key of one flow, with the flow's number in the place of its id.
fn by_number(mut parts: Vec<String>, scenario: &ScenarioFile) -> Vec<String> {
    let flows = scenario.flow.iter().map(Placed::get);
    let named = |which: &String| flows.map(|f| f.id.get()).position(|id| id == which);
    if let Some(number) = parts.get(1).and_then(named) {
        parts[1] = number.to_string();
    }
    parts
}

fn keys_of_flow(
    index: usize,
    flow: &Flow,
    rest: &[String],
    controller: Option<&str>,
    registry: &Registry,
) -> Vec<Vec<String>> {
    let under = |way: &[String]| -> Vec<String> {
        let flow = ["flow".to_owned(), index.to_string()];
        flow.into_iter().chain(way.iter().cloned()).collect()
    };
    match rest {
        [table, field] if table == "config" => {
            let own = flow.controller.as_ref().map(|c| c.get().as_str());
            let entry = controller.or(own).and_then(|name| registry.get(name));
            let knows = entry.is_some_and(|e| e.fields().iter().any(|f| f.name == field));
            if knows { vec![under(rest)] } else { Vec::new() }
        }
        [table, field] if table == "audio" => match &flow.audio {
            Some(audio) if reads(audio.get(), "audio", field) => vec![under(rest)],
            _ => Vec::new(),
        },
        [table, field] if table == "encoder" && !flow.stream.is_empty() => {
            let streams = flow.stream.iter().enumerate();
            let reading = streams.filter(|(_, s)| reads(s.get().encoder.get(), "encoder", field));
            reading
                .map(|(number, _)| under(&["stream".to_owned(), number.to_string(), table.clone(), field.clone()]))
                .collect()
        }
        [table, field] if table == "encoder" => {
            let none = SourceTable::default();
            let source = flow.encoder.as_ref().map_or(&none, Placed::get);
            if reads(source, "encoder", field) { vec![under(rest)] } else { Vec::new() }
        }
        _ => vec![under(rest)],
    }
}

/// Whether the source that is written in `table` reads `field`.
fn reads(table: &SourceTable, default: &str, field: &str) -> bool {
    let implied = if table.frames.is_some() { "frames" } else { default };
    source_reads(table.source.as_ref().map_or(implied, |s| s.get().as_str()), field)
}

/// Whether a key may be set: neither it nor anything that says the same in other words is written, and the element of a
/// list that it names is there.
fn is_free(table: &Table, key: &[String]) -> bool {
    let [part, rest @ ..] = key else { return false };
    if part != "hops" && table.contains_key("hops") {
        return false; // the way is written at length
    }
    match (table.get(part), rest) {
        // Only a hop with a capacity has a token bucket.
        (None, []) if part == "burst" => table.contains_key("capacity"),
        (None, [.., last]) if last == "burst" => false,
        (None, _) => true,
        (Some(_), []) => false,
        (Some(Value::Table(table)), rest) => is_free(table, rest),
        (Some(Value::Array(elements)), [which, rest @ ..]) => {
            let named = elements.iter().find(|e| e.get("id").and_then(Value::as_str) == Some(which));
            let numbered = || which.parse::<usize>().ok().and_then(|n| elements.get(n));
            named.or_else(numbered).and_then(Value::as_table).is_some_and(|table| is_free(table, rest))
        }
        _ => false,
    }
}
