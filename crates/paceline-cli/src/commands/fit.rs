//! `paceline fit`.

use super::check_controllers;
use crate::errors::world_error;
use crate::external;
use crate::output;
use crate::table::Table;
use crate::worlds;
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_explain::fit::comparison::Measures;
use paceline_explain::fit::observation::{Clocks, Collector, Observation};
use paceline_explain::fit::{PathFit, fit as fitted, scenario};
use paceline_explain::model::{Call, Flow};
use paceline_explain::path::{self, Unknown, observe};
use paceline_explain::readers::run::run_folder;
use paceline_explain::{ReadError, readers};
use paceline_lab::results::tables::RunTables;
use paceline_lab::results::{About, Store};
use paceline_lab::run::Runner;
use paceline_netsim::records::MetricKind;
use paceline_scenario::{Changes, Origin, Scenario};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `fit`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Folder that --out wrote; or a capture, a dump or statistics of a call, as `explain` reads them.
    #[arg(value_name = "DIR|FILE")]
    input: PathBuf,
    /// The run of a folder that has several.
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Gives the media flows of the scenario another controller.
    #[arg(long, value_name = "NAME")]
    controller: Option<String>,
    /// Runs the scenario in the simulator, too, and compares both on stderr. Only for folders of --out.
    #[arg(long)]
    simulate: bool,
}

const EXAMPLES: &str = "\
Examples:
  paceline send 192.0.2.7 --max-rate 20Mbps --out results
  paceline fit results > path.toml
  paceline fit call.pcapng --controller nada > path.toml
  paceline run path.toml";

/// The world whose ends have clocks of their own.
const APART: &str = "hosts";

/// Prints the path of a run as a scenario file.
pub fn fit(arguments: &Arguments) -> Result<ExitCode> {
    let registry = external::add(worlds::registry("sim"), arguments.controller.as_slice(), &[], "")?;
    check_controllers(arguments.controller.as_slice(), &registry)?;
    let failed = |error: ReadError| miette!(help = error.help(), "{}: {error}", arguments.input.display());
    if !arguments.input.exists() {
        let help = "name a folder that --out wrote, or a capture, a dump or statistics of a call";
        return Err(miette!(help = help, "there is no {}", arguments.input.display()));
    }
    if !arguments.input.is_dir() {
        let call = readers::read(&arguments.input, None).map_err(failed)?;
        return fit_call(&call, arguments, &registry);
    }
    let folder = run_folder(&arguments.input, arguments.run.as_deref()).map_err(failed)?;
    let about = Store::read_run(&folder).into_diagnostic()?.about;
    let seen = read(&folder, &about)?;
    let path = fitted(&seen);
    let (text, scenario) = scenario_of(&path, &seen, &about, arguments.controller.as_deref(), &registry)?;
    output::print(text.trim_end())?;
    if !path.has_capacity() {
        eprintln!(
            "The flow did not fill the path, so the capacity is a lower bound. Send with a higher --max-rate to see it."
        );
    }
    if arguments.simulate {
        let simulated = simulate(&scenario, about.run.seed, seen.clocks, &registry)?;
        anstream::eprintln!("{}", compare(&Measures::of(&seen), &Measures::of(&simulated)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the path of the fastest flow of a call that one end recorded.
fn fit_call(call: &Call, arguments: &Arguments, registry: &Registry) -> Result<ExitCode> {
    let name = arguments.input.display();
    if arguments.run.is_some() {
        return Err(miette!(help = "leave --run out", "{name} is no folder of --out, so it has no runs"));
    }
    if arguments.simulate {
        let help = format!("`paceline explain {name} --what-if googcc` runs a controller on the path");
        return Err(miette!(help = help, "--simulate compares packets, which only folders of --out have"));
    }
    let paths = call.flows.iter().filter_map(|flow| Some((flow, observe(flow, Unknown::AsCarried)?)));
    // More is known of a flow at the end that sent it.
    let order = |(flow, path): &(&Flow, path::Path)| (flow.is_sent, path.highest_bps.round() as u64);
    let help = "`paceline explain` shows what is known of the call";
    let (flow, path) = paths
        .max_by_key(order)
        .ok_or_else(|| miette!(help = help, "{name}: no flow has a rate, so its path is unknown"))?;
    let controller = arguments.controller.as_deref().unwrap_or("googcc");
    let text = path.scenario(controller);
    paceline_lab::load(&Origin::from_text("path.toml", text.clone()), &Changes::default(), registry)?;
    let rtt = if path.rtt_s.is_none() { "# The round-trip time is not known; this one is assumed.\n" } else { "" };
    output::print(&format!(
        "# The path of `{}` in a call ({}), in steps of a second. The capacity is known where a\n\
         # queue stood or nothing arrived: in {:.0} % of the call. Elsewhere it is what arrived, a lower bound.\n{rtt}{}",
        flow.name,
        call.format,
        100.0 * path.known,
        text.trim_end()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn read(folder: &Path, about: &About) -> Result<Observation> {
    let header = about.header();
    let clocks = if about.run.world == APART { Clocks::Apart } else { Clocks::Same };
    let mut collector = Collector::new(&header, about.inputs.setting.as_ref(), clocks);
    RunTables::new(folder, about).replay(&header, &mut collector).into_diagnostic()?;
    collector.finish().ok_or_else(|| {
        let help = "a fit needs packets that arrived; store them with --out";
        miette!(help = help, "{}: no packet arrived", folder.display())
    })
}

/// Returns the text of the scenario, and the scenario. Its flows are those of the run, if they can stand in a file of their own; else
/// media flows with the same controllers and targets.
fn scenario_of(
    path: &PathFit,
    seen: &Observation,
    about: &About,
    controller: Option<&str>,
    registry: &Registry,
) -> Result<(String, Scenario)> {
    let duration_s = about.inputs.setting.as_ref().map_or(0.0, |setting| setting.duration_s);
    let last = seen.forward.last().map_or(1.0, |packet| packet.sent);
    let duration_s = if duration_s > 0.0 { duration_s } else { last.max(1.0) };
    let origin = format!("{}, world {}, seed {}", about.run.scenario, about.run.world, about.run.seed);
    let write = |flows: &str| {
        let text = scenario::write(path, seen, &origin, duration_s, flows);
        let origin = Origin::from_text("path.toml", text.clone());
        paceline_lab::load(&origin, &Changes::default(), registry).map(|scenario| (text, scenario))
    };
    if let (None, Some(flows)) = (controller, own_flows(about))
        && let Ok(written) = write(&flows)
    {
        return Ok(written);
    }
    let control = |(index, id): (usize, &String)| {
        let own = about.run.controllers.get(index).cloned().flatten();
        let name = controller.map(str::to_owned).or(own).filter(|name| registry.get(name).is_some());
        seen.flows.contains(id).then(|| (id.clone(), name.unwrap_or_else(|| "fixed".to_owned())))
    };
    let flows: Vec<(String, String)> = about.flows.iter().enumerate().filter_map(control).collect();
    Ok(write(&scenario::media_flows(&flows, seen))?)
}

/// Returns the flows of the run's scenario as text; `None` if changes apply to it.
fn own_flows(about: &About) -> Option<String> {
    if !about.inputs.changes.is_empty() {
        return None;
    }
    let mut table: toml::Table = about.inputs.scenario_text.parse().ok()?;
    let flows = table.remove("flow")?;
    toml::to_string(&toml::Table::from_iter([("flow".to_owned(), flows)])).ok()
}

fn simulate(scenario: &Scenario, seed: u64, clocks: Clocks, registry: &Registry) -> Result<Observation> {
    let header = scenario.plan.header(registry, "sim", seed);
    let mut collector = Collector::new(&header, Some(&scenario.plan.describe(registry)), clocks);
    Runner::simulator(registry).run(scenario, seed, Some(&mut collector)).map_err(world_error)?;
    collector.finish().ok_or_else(|| miette!("in the simulator no packet arrived"))
}

/// Returns a table of measured and simulated values.
fn compare(measured: &Measures, simulated: &Measures) -> String {
    let mut table = Table::new(["", "measured", "simulated"], 1);
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
    let mut row = |name: &str, show: &dyn Fn(&Measures) -> String| {
        table.row(vec![name.to_owned(), show(measured), show(simulated)]);
    };
    row("received", &|m| MetricKind::Rate.show(m.received_bps));
    row("lost", &|m| format!("{:.2} %", m.loss_ratio * 100.0));
    row("delay variation, median", &|m| ms(Some(m.variation_p50_ms)));
    row("delay variation, p95", &|m| ms(Some(m.variation_p95_ms)));
    row("round trip, median", &|m| ms(m.rtt_p50_ms));
    table.render()
}
