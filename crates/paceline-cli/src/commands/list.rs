// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline list`.

use super::check_controllers;
use crate::external;
use crate::output;
use crate::table::Table;
use crate::worlds;
use clap::builder::PossibleValuesParser;
use miette::{Result, miette};
use paceline::Registry;
use paceline_lab::catalogue::{self, CONTROLLERS, Details, Entry, Listing, YARDSTICKS};
use paceline_netsim::records::MetricKind;
use paceline_scenario::{Catalogue, Changes, path_names, path_preset};
use paceline_units::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

/// Arguments of `list`.
#[derive(clap::Args)]
pub struct Arguments {
    /// What to list; the kinds if absent.
    #[arg(value_parser = PossibleValuesParser::new(catalogue::kinds()))]
    kind: Option<String>,
    /// Name of one of them, which shows its details; or the group of several, such as `scenarios mmsys16`.
    name: Option<String>,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// Prints the lists.
pub fn list(arguments: &Arguments) -> Result<ExitCode> {
    let kinds = match arguments.kind.as_deref() {
        None => catalogue::kinds().to_vec(),
        // A heading of its own shows that those are no controllers to choose from.
        Some(CONTROLLERS) => vec![CONTROLLERS, YARDSTICKS],
        Some(kind) => vec![kind],
    };
    if let (Some(name), Some(CONTROLLERS | YARDSTICKS)) = (&arguments.name, arguments.kind.as_deref()) {
        list_one(name, arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let listing = catalogue::list(&kinds, &worlds::names().map(|world| (world, worlds::registry(world))));
    if let (Some(name), [kind]) = (&arguments.name, kinds.as_slice()) {
        let known = &listing[*kind];
        let in_group = |entry: &&Entry| entry.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        let group: Vec<Entry> = known.iter().filter(in_group).cloned().collect();
        if !group.is_empty() {
            output::print_result(arguments.json, &BTreeMap::from([(*kind, &group)]), || kind_table(kind, &group))?;
            return Ok(ExitCode::SUCCESS);
        }
        // A path also has names without its direction.
        let preset = path_preset(name).filter(|_| *kind == "paths").map_or_else(|| name.clone(), |preset| preset.name);
        let Some(entry) = known.iter().find(|entry| entry.name == preset) else {
            let paths = if *kind == "paths" { path_names() } else { Vec::new() };
            let names: BTreeSet<&str> =
                known.iter().map(|entry| &entry.name).chain(&paths).map(String::as_str).collect();
            let names: Vec<&str> = names.into_iter().collect();
            let help = paceline_scenario::nearest_of_many(name, &names);
            return Err(miette!(help = help, "no `{name}` among the {kind}"));
        };
        output::print_result(arguments.json, entry, || describe(entry))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::print_result(arguments.json, &listing, || match &arguments.kind {
        None => overview(&kinds, &listing),
        Some(_) => kinds.iter().map(|kind| kind_table(kind, &listing[kind]) + "\n").collect(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Names shown of each kind.
const EXAMPLES: usize = 3;

/// Returns the number of entries of each kind, with examples.
fn overview(kinds: &[&str], listing: &Listing) -> String {
    let mut table = Table::new(["kind", "number", "such as"], 1).with_text_last();
    for kind in kinds {
        let entries = &listing[kind];
        // Of different groups, where the names have groups.
        let step = (entries.len() / EXAMPLES).max(1);
        let some: Vec<&str> = entries.iter().step_by(step).take(EXAMPLES).map(|entry| entry.name.as_str()).collect();
        table.row(vec![(*kind).to_owned(), entries.len().to_string(), some.join(", ")]);
    }
    let hints = [
        ("every entry of a kind", "paceline list scenarios"),
        ("a group of scenarios", "paceline list scenarios mmsys16"),
        ("the details of one", "paceline list controllers gcc-2016"),
    ];
    let hints: String = hints.iter().map(|(what, command)| format!("  {what:22} {command}\n")).collect();
    format!("{}\n{hints}", table.render())
}

/// Returns a table of entries. Scenarios and sweeps, of which there are many, have one line each.
fn kind_table(kind: &str, entries: &[Entry]) -> String {
    if kind == "paths" {
        return path_table(entries);
    }
    let widest = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let room = output::width().saturating_sub(widest + 7).max(10);
    let mut table = Table::new([kind, ""], 2);
    for Entry { name, summary, .. } in entries {
        let summary = match matches!(kind, "scenarios" | "sweeps") && summary.chars().count() > room {
            true => summary.chars().take(room - 1).collect::<String>().trim_end().to_owned() + "…",
            false => summary.clone(),
        };
        table.row(vec![format!("  {name}"), summary]);
    }
    table.render()
}

/// Returns a table of path presets with the mean rate, the delay and the queue of the forward hop.
fn path_table(entries: &[Entry]) -> String {
    let mut table = Table::new(["paths", "rate", "delay", "queue", ""], 1).with_text_last();
    for Entry { name, summary, details, .. } in entries {
        let Details::Preset { hop, .. } = details else { continue };
        let queue: Option<toml::Table> = hop.get("queue").and_then(|queue| format!("queue = {queue}").parse().ok());
        let queue = queue.as_ref().and_then(|keys| keys["queue"].get("discipline").or(keys["queue"].get("limit")));
        table.row(vec![
            format!("  {name}"),
            mean_rate(name).map_or_else(String::new, |rate| MetricKind::Rate.show(rate)),
            hop.get("delay").map_or_else(String::new, |delay| range_of_delays(delay)),
            queue.and_then(toml::Value::as_str).unwrap_or_default().to_owned(),
            summary.clone(),
        ]);
    }
    table.render()
}

/// Returns a delay as written, or the range of a schedule.
fn range_of_delays(written: &str) -> String {
    let times = written.split('"').filter_map(|text| text.strip_suffix(" ms")?.parse::<f64>().ok());
    let (least, most) = times.fold((f64::MAX, 0.0_f64), |(least, most), ms| (least.min(ms), most.max(ms)));
    if least < most { format!("{least} to {most} ms") } else { written.trim_matches('"').to_owned() }
}

/// Describes an entry that is no controller.
fn describe(entry: &Entry) -> String {
    let heading = output::wrap(&format!("{}: {}", output::bold(&entry.name), entry.summary));
    let heading = heading.trim_start();
    match &entry.details {
        Details::Keys { keys } if !keys.is_empty() => {
            let mut table = Table::new(["key", "default", "range", "description"], 3).with_text_last();
            for key in keys {
                let row = [key.name, key.default, &key.range, key.description];
                table.row(row.map(str::to_owned).to_vec());
            }
            format!("{heading}\n\n{}", table.render())
        }
        Details::Preset { source, hop } => {
            let rate = hop.contains_key("capacity").then(|| mean_rate(&entry.name)).flatten();
            let rate = rate.map(|rate| ("mean rate", MetricKind::Rate.show(rate)));
            let keys = hop.iter().map(|(key, value)| (key.as_str(), value.trim_matches('"').to_owned()));
            let line = |(key, value): (&str, String)| output::hang(&format!("{key:10} "), &value) + "\n";
            let source = if source.is_empty() { String::new() } else { output::wrap(source) + "\n" };
            format!("{heading}\n{source}{}", rate.into_iter().chain(keys).map(line).collect::<String>())
        }
        Details::Scenario { source, duration_s, flows, cases } => {
            let source = if source.is_empty() { String::new() } else { output::wrap(source) + "\n" };
            let cases: String = cases.iter().map(|case| format!("  --case '{case}'\n")).collect();
            format!("{heading}\n{source}  {duration_s} s, flows: {flows}\n{cases}")
        }
        _ => format!("{heading}\n"),
    }
}

/// Returns the mean rate of the forward hop of a path preset, bit/s.
fn mean_rate(preset: &str) -> Option<f64> {
    let changes = Changes { settings: vec![format!("path.preset={preset}").parse().ok()?], ..Changes::default() };
    let origin = Catalogue.find("mmsys16/table1").ok()?;
    let scenario = paceline_scenario::load(&origin, &changes, &Registry::standard()).ok()?;
    let of = Time::ZERO + scenario.plan.duration;
    let volume = scenario.plan.hops[0].capacity.as_ref()?.volume(Time::ZERO, of);
    Some(volume.as_bits() as f64 / scenario.plan.duration.as_secs_f64())
}

fn list_one(name: &str, json: bool) -> Result<()> {
    let has = |registry: &Registry| registry.get(name).is_some();
    let registry = worlds::names().into_iter().map(worlds::registry).find(has).unwrap_or_else(Registry::standard);
    let named = [name.to_owned()];
    let registry = external::add(registry, &named, &[], "")?;
    check_controllers(&named, &registry)?;
    let entry = registry.get(name).expect("the name was checked");
    output::print_result(json, &catalogue::controller(entry), || describe_parameters(entry))
}

fn describe_parameters(entry: &paceline::Entry) -> String {
    let mut table = Table::new(["parameter", "default", "unit", "from", "to", "description"], 1).with_text_last();
    for f in entry.fields() {
        let [default, from, to] = [f.default, f.range.0, f.range.1].map(|x| format!("{x}"));
        table.row(vec![f.name.to_owned(), default, f.unit.to_owned(), from, to, f.source.to_owned()]);
    }
    let (name, summary, source) = (entry.name(), entry.summary(), entry.source());
    let heading = output::wrap(&format!("{}: {summary}", output::bold(name)));
    let hint = "Set one with --set flow.ID.config.PARAMETER=VALUE; ID is the flow's id.";
    let (heading, source, hint) = (heading.trim_start(), output::wrap(source), output::wrap(hint));
    format!("{heading}\n{source}\n\n{}\n{hint}\n", table.render())
}
