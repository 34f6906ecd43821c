//! `paceline list`.

use super::controllers;
use crate::output;
use crate::table::Table;
use crate::worlds;
use clap::ValueEnum;
use miette::Result;
use paceline::{Registry, SignalShape};
use paceline_flow::tcp::{CONGESTION, Profile, Workload};
use paceline_lab::metrics::{METRICS, MetricSpec};
use paceline_lab::plan::{FlowKind, SourcePlan};
use paceline_lab::reproduce::{FormulaTable, Tolerance};
use paceline_lab::scenario::{Catalogue, Changes, Label, load};
use paceline_lab::sweep::Sweep;
use paceline_lab::trace::Format;
use paceline_link::LossModel;
use paceline_link::queue::DISCIPLINES;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `list`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Which kind; all if absent.
    kind: Option<Kind>,
    /// One of them: of a controller, its parameters.
    name: Option<String>,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Controllers,
    Scenarios,
    Sweeps,
    Tables,
    Queues,
    Metrics,
    Flows,
    Tcp,
    Sources,
    Losses,
    Traces,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Controllers,
        Self::Scenarios,
        Self::Sweeps,
        Self::Tables,
        Self::Queues,
        Self::Metrics,
        Self::Flows,
        Self::Tcp,
        Self::Sources,
        Self::Losses,
        Self::Traces,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Controllers => "controllers",
            Self::Scenarios => "scenarios",
            Self::Sweeps => "sweeps",
            Self::Tables => "tables",
            Self::Queues => "queues",
            Self::Metrics => "metrics",
            Self::Flows => "flows",
            Self::Tcp => "tcp",
            Self::Sources => "sources",
            Self::Losses => "losses",
            Self::Traces => "traces",
        }
    }

    /// Name and a line on each; for controllers more, as JSON.
    fn entries(self) -> Vec<(String, String, Value)> {
        let plain = |(name, line): (&str, &str)| (name.to_owned(), line.to_owned(), json!({}));
        let registry = Registry::standard();
        match self {
            Self::Controllers => registry.iter().map(controller).chain(elsewhere(&registry)).collect(),
            Self::Scenarios => Catalogue.ids().map(|id| scenario(id, &registry)).collect(),
            Self::Sweeps => Catalogue.sweeps().map(|id| sweep(id, &registry)).collect(),
            Self::Tables => Catalogue.formula_tables().map(table).collect(),
            Self::Queues => DISCIPLINES.iter().copied().map(plain).collect(),
            Self::Metrics => METRICS.iter().map(metric).collect(),
            Self::Flows => FlowKind::NAMES.iter().copied().map(plain).collect(),
            Self::Tcp => tcp(),
            Self::Sources => SourcePlan::NAMES.iter().copied().map(plain).collect(),
            Self::Losses => LossModel::NAMES.iter().copied().map(plain).collect(),
            Self::Traces => Format::ALL.iter().map(|f| plain((f.name(), f.description()))).collect(),
        }
    }
}

fn metric(metric: &MetricSpec) -> (String, String, Value) {
    let (unit, tolerance) = (metric.kind.unit(), Tolerance::of(metric.kind));
    let shown = match unit {
        "" if metric.kind.is_fraction() => " [0 to 1]".to_owned(),
        "" => String::new(),
        unit => format!(" [{unit}]"),
    };
    let more = json!({
        "unit": unit,
        "kind": metric.kind.name(),
        "tolerance": { "part": tolerance.part, "least": tolerance.least },
    });
    (metric.id.to_owned(), format!("{}{shown}", metric.summary), more)
}

/// What a TCP flow may say, each with the key that says it.
fn tcp() -> Vec<(String, String, Value)> {
    let of = |key: &'static str, names: Vec<(&str, &str)>| {
        let entry = move |(name, line): (&str, &str)| {
            let say = if key == "workload" {
                format!("workload = {{ kind = \"{name}\" }}")
            } else {
                format!("{key} = \"{name}\"")
            };
            (name.to_owned(), format!("{line} [{say}]"), json!({ "key": key }))
        };
        names.into_iter().map(entry).collect::<Vec<_>>()
    };
    let mut all = of("congestion", CONGESTION.iter().map(|(name, line, _)| (*name, *line)).collect());
    all.extend(of("profile", Profile::NAMES.to_vec()));
    all.extend(of("workload", Workload::NAMES.to_vec()));
    all
}

/// A controller's parameters, for people.
fn parameters(entry: &paceline::Entry) -> String {
    let mut table = Table::new(&["parameter", "default", "unit", "from", "to", "what it is"], 1).with_prose();
    for f in entry.fields() {
        let [default, from, to] = [f.default, f.range.0, f.range.1].map(|x| format!("{x}"));
        table.row(vec![f.name.to_owned(), default, f.unit.to_owned(), from, to, f.source.to_owned()]);
    }
    let (name, summary, source) = (entry.name(), entry.summary(), entry.source());
    let key = "--set flow.ID.config.PARAMETER=VALUE";
    format!(
        "{name}: {summary}\n  {source}\n\n{}\n  Set one with {key}, ID being the flow's name in the scenario.\n",
        table.render()
    )
}

fn controller(entry: &paceline::Entry) -> (String, String, Value) {
    let fields: Vec<Value> = entry
        .fields()
        .iter()
        .map(|f| json!({ "name": f.name, "unit": f.unit, "default": f.default, "range": [f.range.0, f.range.1], "source": f.source }))
        .collect();
    let signal = |s: &paceline::SignalSpec| {
        let states = match s.shape {
            SignalShape::Series => Value::Null,
            SignalShape::State(names) => json!(names),
        };
        json!({ "name": s.name, "unit": s.unit, "states": states })
    };
    let (send, receive) = entry.signals();
    let more = json!({
        "source": entry.source(),
        "parameters": fields,
        "signals": { "send": send.iter().map(signal).collect::<Vec<_>>(), "receive": receive.iter().map(signal).collect::<Vec<_>>() },
    });
    (entry.name().to_owned(), entry.summary().to_owned(), more)
}

/// Controllers that one world alone has, and not the standard ones: each says which.
fn elsewhere(standard: &Registry) -> Vec<(String, String, Value)> {
    let of_world = |world: &'static str| {
        let registry = worlds::registry(world);
        let own = registry.iter().filter(|entry| standard.get(entry.name()).is_none());
        let marked = own.map(controller).map(|(name, summary, mut more)| {
            more["world"] = json!(world);
            (name, format!("{summary} [only in --world {world}]"), more)
        });
        marked.collect::<Vec<_>>()
    };
    worlds::names().into_iter().flat_map(of_world).collect()
}

fn scenario(id: &'static str, registry: &Registry) -> (String, String, Value) {
    let plan = Catalogue.find(id).and_then(|origin| load(&origin, &Changes::default(), registry));
    match plan {
        Ok(plan) => {
            let cases: Vec<String> = plan.cases.iter().map(Label::to_string).collect();
            let line = if cases.is_empty() { plan.title } else { format!("{} [{}]", plan.title, cases.join(", ")) };
            let more = json!({
                "source": plan.source,
                "duration_s": plan.duration.as_secs_f64(),
                "flows": plan.flows.len(),
                "cases": plan.cases,
            });
            (id.to_owned(), line, more)
        }
        Err(problem) => (id.to_owned(), format!("broken: {problem}"), json!({})),
    }
}

fn sweep(id: &'static str, registry: &Registry) -> (String, String, Value) {
    match Catalogue.find_sweep(id).and_then(|origin| Sweep::load(&origin, registry)) {
        Ok(sweep) => (id.to_owned(), sweep.title, json!({ "source": sweep.source, "axes": sweep.axes })),
        Err(problem) => (id.to_owned(), format!("broken: {problem}"), json!({})),
    }
}

fn table(id: &'static str) -> (String, String, Value) {
    match Catalogue.find_formula_table(id).and_then(|origin| FormulaTable::load(&origin)) {
        Ok(table) => {
            let more = json!({ "source": table.report.source, "values": table.report.cells.len() });
            (id.to_owned(), table.report.title, more)
        }
        Err(problem) => (id.to_owned(), format!("broken: {problem}"), json!({})),
    }
}

/// Prints what there is.
pub fn list(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(name) = &arguments.name {
        let has = |registry: &Registry| registry.get(name).is_some();
        let registry = worlds::names().into_iter().map(worlds::registry).find(has).unwrap_or_else(Registry::standard);
        let [name] = controllers(std::slice::from_ref(name), &registry)?.try_into().expect("one went in");
        let entry = registry.get(&name).expect("it was just checked");
        if arguments.json {
            output::print_json(&controller(entry).2)?;
        } else {
            output::print(parameters(entry).trim_end())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let kinds = arguments.kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    if arguments.json {
        let mut document = serde_json::Map::new();
        for kind in kinds {
            let entries = kind.entries().into_iter().map(|(name, summary, mut more)| {
                more["name"] = json!(name);
                more["summary"] = json!(summary);
                more
            });
            document.insert(kind.name().to_owned(), entries.collect());
        }
        output::print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for kind in kinds {
        let mut table = Table::new(&[kind.name(), ""], 2);
        for (name, line, _) in kind.entries() {
            table.row(vec![format!("  {name}"), line]);
        }
        text += &table.render();
        text.push('\n');
    }
    output::print(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
