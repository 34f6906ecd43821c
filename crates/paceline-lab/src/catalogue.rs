// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program offers: controllers, scenarios, metrics and the rest. `serde_json::to_value` turns the documents into
//! what `list --json` prints and what `paceline.catalogue()` returns in Python.

use crate::metrics::{METRICS, Tolerance};
use crate::reproduce::FormulaTable;
use crate::results::Axis;
use crate::suite::Suite;
use crate::sweep::Sweep;
use crate::{registries, yardsticks};
use paceline::{FieldInfo, Registry, SignalShape, SignalSpec};
use paceline_netsim::flow::source::SourceEntry;
use paceline_netsim::flow::tcp::{CONGESTION, Profile, TcpEcn, Workload};
use paceline_netsim::link::loss::LossEntry;
use paceline_netsim::link::queue::DISCIPLINES;
use paceline_netsim::link::server::ServerEntry;
use paceline_netsim::parameter::{self, RegistryEntry};
use paceline_netsim::plan::FlowKind;
use paceline_netsim::records::{Better, Label};
use paceline_scenario::trace::FORMATS;
use paceline_scenario::{Catalogue, Changes, Preset, load, path_presets, source_presets};
use serde::Serialize;
use std::collections::BTreeMap;

/// The registry of each world, for controllers that only one has.
type OfWorlds<'a> = &'a [(&'static str, Registry)];

type Entries = fn(&Registry, OfWorlds<'_>) -> Vec<Entry>;

/// The kinds of entries: the name of each, and its entries in order, with the standard registry.
const KINDS: [(&str, Entries); 15] = [
    (CONTROLLERS, controllers),
    (YARDSTICKS, |registry, _| faulty(registry).map(controller_entry).collect()),
    ("scenarios", |registry, _| Catalogue.ids().map(|id| scenario(id, registry)).collect()),
    ("sweeps", |registry, _| Catalogue.sweeps().map(|id| sweep(id, registry)).collect()),
    ("suites", |_, _| Catalogue.suites().map(suite).collect()),
    ("tables", |_, _| Catalogue.formula_tables().map(table).collect()),
    ("paths", |_, _| path_presets().into_iter().map(preset).collect()),
    ("servers", |_, _| of_registry::<ServerEntry>()),
    ("queues", |_, _| DISCIPLINES.iter().map(|of| with_keys(of, Some(&of.limit))).collect()),
    ("metrics", |_, _| METRICS.iter().map(metric).collect()),
    ("flows", |_, _| named(FlowKind::NAMES.iter().copied())),
    ("tcp", |_, _| tcp()),
    ("sources", |_, _| [of_registry::<SourceEntry>(), source_presets().into_iter().map(preset).collect()].concat()),
    ("losses", |_, _| of_registry::<LossEntry>()),
    ("traces", |_, _| named(FORMATS.iter().map(|f| (f.name, f.description)))),
];

/// The kind whose entries are congestion controllers.
pub const CONTROLLERS: &str = "controllers";

/// The kind whose entries serve to test suites: controllers with one fault each.
pub const YARDSTICKS: &str = "yardsticks";

pub fn kinds() -> [&'static str; KINDS.len()] {
    KINDS.map(|(name, _)| name)
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    pub name: String,
    pub summary: String,
    /// What else is known of it.
    #[serde(flatten)]
    pub details: Details,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Details {
    None {},
    Controller(ControllerDetails),
    Scenario {
        source: String,
        duration_s: f64,
        flows: usize,
        cases: Vec<Label>,
    },
    Sweep {
        source: String,
        axes: Vec<Axis>,
    },
    Suite {
        source: String,
        scenarios: usize,
    },
    Table {
        source: String,
        values: usize,
    },
    Preset {
        source: String,
        /// The forward hop of a path, as its file writes it: key and value.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        hop: BTreeMap<String, String>,
    },
    Keys {
        keys: Vec<Key>,
    },
    Metric {
        unit: &'static str,
        kind: &'static str,
        better: Better,
        tolerance: Tolerance,
    },
    MetricInPython {
        unit: &'static str,
        kind: &'static str,
    },
    Tcp {
        key: &'static str,
    },
}

/// What is known of a controller; `list controllers NAME --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControllerDetails {
    pub source: String,
    /// What `--set` may change.
    pub parameters: Vec<Parameter>,
    pub signals: Signals,
    /// The only world that has it; none: all have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<&'static str>,
}

/// A key in scenarios of a queue, a server, a loss model or a source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    pub name: &'static str,
    /// What applies if the key is absent.
    pub default: &'static str,
    /// Its allowed values; empty if the type alone limits them.
    pub range: String,
    /// A description, with the source of the default.
    pub description: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    pub name: &'static str,
    pub unit: &'static str,
    pub default: f64,
    pub range: [f64; 2],
    pub source: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Signals {
    pub send: Vec<Signal>,
    pub receive: Vec<Signal>,
}

/// A signal: a number over time or, with `states`, the index of a state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Signal {
    pub name: &'static str,
    pub unit: &'static str,
    pub states: Option<&'static [&'static str]>,
}

pub type Listing = BTreeMap<&'static str, Vec<Entry>>;

/// Lists these kinds, which are among [`kinds`]. `of_worlds` has the registry of each world, for controllers that only one
/// has.
pub fn list(kinds: &[&str], of_worlds: &[(&'static str, Registry)]) -> Listing {
    let registry = yardsticks::add(Registry::standard());
    let listed = KINDS.iter().filter(|(name, _)| kinds.contains(name));
    listed.map(|(name, entries)| (*name, entries(&registry, of_worlds))).collect()
}

/// What the Python package lists: details of controllers and metrics, and names of the rest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    pub controllers: Vec<Entry>,
    pub scenarios: Vec<&'static str>,
    pub sweeps: Vec<&'static str>,
    pub tables: Vec<&'static str>,
    pub metrics: Vec<Entry>,
}

/// Lists what a program with these controllers offers.
pub fn overview(registry: &Registry) -> Overview {
    let metric = |m: &crate::metrics::MetricSpec| {
        entry(m.id, m.summary, Details::MetricInPython { unit: m.kind.unit(), kind: m.kind.name() })
    };
    Overview {
        controllers: sound(registry).map(controller_entry).collect(),
        scenarios: Catalogue.ids().collect(),
        sweeps: Catalogue.sweeps().collect(),
        tables: Catalogue.formula_tables().collect(),
        metrics: METRICS.iter().map(metric).collect(),
    }
}

pub fn controller(entry: &paceline::Entry) -> ControllerDetails {
    let parameter = |f: &FieldInfo| Parameter {
        name: f.name,
        unit: f.unit,
        default: f.default,
        range: [f.range.0, f.range.1],
        source: f.source.clone(),
    };
    let signal = |s: &SignalSpec| Signal {
        name: s.name,
        unit: s.unit,
        states: match s.shape {
            SignalShape::Series => None,
            SignalShape::State(names) => Some(names),
        },
    };
    let (send, receive) = entry.signals();
    ControllerDetails {
        source: entry.source().to_owned(),
        parameters: entry.fields().iter().map(parameter).collect(),
        signals: Signals { send: send.iter().map(signal).collect(), receive: receive.iter().map(signal).collect() },
        world: None,
    }
}

fn entry(name: impl Into<String>, summary: impl Into<String>, details: Details) -> Entry {
    Entry { name: name.into(), summary: summary.into(), details }
}

fn named<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Entry> {
    entries.map(|(name, summary)| entry(name, summary, Details::None {})).collect()
}

fn of_registry<E: RegistryEntry>() -> Vec<Entry> {
    E::all().iter().map(|of| with_keys(of, None)).collect()
}

/// Returns an entry with its keys, after one that all entries have.
fn with_keys(of: &impl RegistryEntry, first: Option<&parameter::Parameter>) -> Entry {
    let key = |p: &parameter::Parameter| Key {
        name: p.name,
        default: p.if_absent,
        range: p.kind.range_text(),
        description: p.description,
    };
    let keys = first.into_iter().chain(of.parameters()).map(key).collect();
    entry(of.name(), of.summary(), Details::Keys { keys })
}

fn preset(Preset { name, title, source, keys }: Preset) -> Entry {
    entry(name, title, Details::Preset { source, hop: keys.into_iter().collect() })
}

fn controller_entry(of: &paceline::Entry) -> Entry {
    entry(of.name(), of.summary(), Details::Controller(controller(of)))
}

/// The controllers that are not faulty by design.
fn sound(registry: &Registry) -> impl Iterator<Item = &paceline::Entry> {
    registry.iter().filter(|entry| !yardsticks::is_faulty(entry.name()))
}

fn faulty(registry: &Registry) -> impl Iterator<Item = &paceline::Entry> {
    registry.iter().filter(|entry| yardsticks::is_faulty(entry.name()))
}

/// The standard controllers, and those that one world alone has.
fn controllers(standard: &Registry, of_worlds: OfWorlds<'_>) -> Vec<Entry> {
    let own = |(world, registry): &(&'static str, Registry)| {
        let own = registry.iter().filter(|entry| standard.get(entry.name()).is_none());
        let marked = own.map(|of| {
            let summary = format!("{} [only in --world {world}]", of.summary());
            entry(of.name(), summary, Details::Controller(ControllerDetails { world: Some(*world), ..controller(of) }))
        });
        marked.collect::<Vec<_>>()
    };
    sound(standard).map(controller_entry).chain(of_worlds.iter().flat_map(own)).collect()
}

fn metric(metric: &crate::metrics::MetricSpec) -> Entry {
    let unit = metric.kind.unit();
    let range = match unit {
        "" if metric.kind.is_fraction() => " [0 to 1]".to_owned(),
        "" => String::new(),
        unit => format!(" [{unit}]"),
    };
    let details =
        Details::Metric { unit, kind: metric.kind.name(), better: metric.better, tolerance: metric.tolerance };
    entry(metric.id, format!("{}{range}", metric.summary), details)
}

/// The values of keys of TCP flows, each with its key.
fn tcp() -> Vec<Entry> {
    let of = |key: &'static str, names: Vec<(&str, &str)>| {
        let of_key = move |(name, line): (&str, &str)| {
            let text = match key {
                "workload" => format!("workload = {{ kind = \"{name}\" }}"),
                _ => format!("{key} = \"{name}\""),
            };
            entry(name, format!("{line} [{text}]"), Details::Tcp { key })
        };
        names.into_iter().map(of_key).collect::<Vec<_>>()
    };
    let congestion = CONGESTION.iter().map(|(name, line, _)| (*name, *line)).collect();
    [
        of("congestion", congestion),
        of("ecn", TcpEcn::NAMES.to_vec()),
        of("profile", Profile::NAMES.to_vec()),
        of("workload", Workload::NAMES.to_vec()),
    ]
    .concat()
}

fn scenario(id: &str, registry: &Registry) -> Entry {
    match Catalogue.find(id).and_then(|origin| load(&origin, &Changes::default(), registries(registry))) {
        Ok(scenario) => {
            let plan = scenario.plan;
            let details = Details::Scenario {
                source: plan.source,
                duration_s: plan.duration.as_secs_f64(),
                flows: plan.flows.len(),
                cases: scenario.cases,
            };
            entry(id, plan.title, details)
        }
        Err(problem) => broken(id, &problem),
    }
}

fn sweep(id: &str, registry: &Registry) -> Entry {
    match Catalogue.find_sweep(id).and_then(|origin| Sweep::load(&origin, registry)) {
        Ok(sweep) => entry(id, sweep.title, Details::Sweep { source: sweep.source, axes: sweep.axes }),
        Err(problem) => broken(id, &problem),
    }
}

fn suite(id: &str) -> Entry {
    match Suite::find(id) {
        Ok(suite) => entry(id, suite.title, Details::Suite { source: suite.source, scenarios: suite.scenarios.len() }),
        Err(problem) => broken(id, &problem),
    }
}

fn table(id: &str) -> Entry {
    match Catalogue.find_formula_table(id).and_then(|origin| FormulaTable::load(&origin)) {
        Ok(FormulaTable { report, .. }) => {
            entry(id, report.title, Details::Table { source: report.source, values: report.cells.len() })
        }
        Err(problem) => broken(id, &problem),
    }
}

fn broken(id: &str, problem: &dyn core::fmt::Display) -> Entry {
    entry(id, format!("broken: {problem}"), Details::None {})
}
