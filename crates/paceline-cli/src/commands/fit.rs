// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline fit`.

use super::check_controllers;
use crate::errors::world_error;
use crate::external;
use crate::output;
use crate::table::Table;
use crate::worlds;
use miette::{Report, Result, miette};
use paceline::Registry;
use paceline_explain::fit::comparison::Measures;
use paceline_explain::fit::input::{FitError, FittedRun, fit_input};
use paceline_explain::fit::observation::{Collector, Observation};
use paceline_lab::run::Runner;
use paceline_netsim::records::MetricKind;
use paceline_scenario::Scenario;
use std::path::PathBuf;
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

/// Prints the path of a run as a scenario file.
pub fn fit(arguments: &Arguments) -> Result<ExitCode> {
    let registry = external::add(worlds::registry("sim"), arguments.controller.as_slice(), &[], "")?;
    check_controllers(arguments.controller.as_slice(), &registry)?;
    let input = &arguments.input;
    if arguments.simulate && input.exists() && !input.is_dir() {
        let help = format!("`paceline explain {} --what-if googcc` runs a controller on the path", input.display());
        return Err(miette!(help = help, "--simulate compares packets, which only folders of --out have"));
    }
    let fitted = fit_input(input, arguments.run.as_deref(), arguments.controller.as_deref(), &registry);
    let fitted = fitted.map_err(|error| match (error.help(), error) {
        (_, FitError::Scenario(error)) => Report::new(*error),
        (help, error) => miette!(help = help.unwrap_or_default(), "{error}"),
    })?;
    output::print(&fitted.text)?;
    let Some(run) = fitted.run else { return Ok(ExitCode::SUCCESS) };
    if !run.has_capacity {
        eprintln!(
            "The flow did not fill the path, so the capacity is a lower bound. Send with a higher --max-rate to see it."
        );
    }
    if arguments.simulate {
        let simulated = simulate(&fitted.scenario, &run, &registry)?;
        anstream::eprintln!("{}", compare(&Measures::of(&run.seen), &Measures::of(&simulated)));
    }
    Ok(ExitCode::SUCCESS)
}

fn simulate(scenario: &Scenario, run: &FittedRun, registry: &Registry) -> Result<Observation> {
    let header = scenario.plan.header(registry, "sim", run.seed);
    let mut collector = Collector::new(&header, Some(&scenario.plan.describe(registry)), run.seen.clocks);
    Runner::simulator(registry).run(scenario, run.seed, Some(&mut collector)).map_err(world_error)?;
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
