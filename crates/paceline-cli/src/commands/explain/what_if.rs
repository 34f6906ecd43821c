// SPDX-License-Identifier: MIT OR Apache-2.0
//! What another controller would have done on the observed path: closed-loop runs in the simulator.

use super::open_loop;
use crate::errors::world_error;
use crate::table::Table;
use crate::view::View;
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_explain::model::Flow;
use paceline_explain::path::{DEFAULT_RTT_S, Path, Unknown, observe};
use paceline_lab::run::Runner;
use paceline_netsim::ControllerFailure;
use paceline_scenario::{Changes, Origin};
use schemars::JsonSchema;
use serde::Serialize;

/// The seed of the runs.
const SEED: u64 = 1;

/// A controller on the observed path.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct WhatIf {
    /// The flow whose path it is.
    pub flow: String,
    /// The controller.
    pub controller: String,
    /// What is assumed where the capacity was not the limit: `as-carried` or `free`.
    pub unknown: &'static str,
    /// Throughput, bit/s.
    pub throughput_bps: f64,
    /// Share of packets lost.
    pub loss_ratio: f64,
    /// 95 % of one-way delays are below it, ms.
    pub owd_p95_ms: f64,
    /// The share of the call in which the capacity was the limit, so that it is known.
    pub capacity_known: f64,
    /// The mean target in the open loop: the controller meets what the recorded packets met. `null` if that is not known.
    pub open_loop_target_bps: Option<f64>,
    /// What limits these numbers.
    pub caveat: String,
}

impl WhatIf {
    pub(super) const HEADINGS: [&'static str; 6] =
        ["controller", "unknown capacity", "Mbit/s", "lost", "delay p95", "open loop Mbit/s"];

    pub(super) fn cells(&self) -> Vec<String> {
        vec![
            self.controller.clone(),
            self.unknown.to_owned(),
            format!("{:.2}", self.throughput_bps / 1e6),
            format!("{:.1} %", self.loss_ratio * 100.0),
            format!("{:.0} ms", self.owd_p95_ms),
            self.open_loop_target_bps.map_or("–".to_owned(), |bps| format!("{:.2}", bps / 1e6)),
        ]
    }
}

/// Runs controllers on the path of a flow.
pub(super) fn run(flow: &Flow, controllers: &[String], registry: &Registry) -> Result<Vec<WhatIf>> {
    let mut all = Vec::new();
    for controller in controllers {
        for (unknown, name) in [(Unknown::AsCarried, "as-carried"), (Unknown::Free, "free")] {
            let Some(path) = observe(flow, unknown) else { continue };
            all.push(one(flow, &path, controller, name, registry)?);
        }
    }
    Ok(all)
}

fn one(flow: &Flow, path: &Path, controller: &str, unknown: &'static str, registry: &Registry) -> Result<WhatIf> {
    let origin = Origin::from_text("what-if.toml", path.scenario(controller));
    let scenario = paceline_lab::load(&origin, &Changes::default(), registry)?;
    let result = Runner::simulator(registry).run(&scenario, SEED, None).map_err(world_error)?;
    let result = serde_json::to_value(&result).into_diagnostic()?;
    let call = &result["flows"][0];
    let number = |value: &serde_json::Value| value.as_f64().ok_or_else(|| miette!("the run has no packets"));
    let rtt_s = path.rtt_s.unwrap_or(DEFAULT_RTT_S);
    let entry = registry.get(controller);
    let open_loop_target = entry.and_then(|entry| open_loop::mean_target(flow, entry, rtt_s, path.highest_bps));
    let failed = |failure: ControllerFailure| world_error(failure.in_run(&scenario.plan, SEED));
    let mut caveat = "closed loop: a run in the simulator, in which other traffic does not react".to_owned();
    if path.rtt_s.is_none() {
        caveat += &format!("; RTT unknown, {:.0} ms assumed", DEFAULT_RTT_S * 1e3);
    }
    Ok(WhatIf {
        flow: flow.name.clone(),
        controller: controller.to_owned(),
        unknown,
        throughput_bps: number(&call["throughput_bps"])?,
        loss_ratio: number(&call["loss_ratio"])?,
        owd_p95_ms: number(&call["owd_ms"]["p95"])?,
        open_loop_target_bps: open_loop_target.transpose().map_err(failed)?,
        capacity_known: path.known,
        caveat,
    })
}

/// Returns what limits the numbers of the runs on the path of one flow.
pub(super) fn caveats(all: &[&WhatIf]) -> Vec<String> {
    let Some(first) = all.first() else { return Vec::new() };
    let open = "open loop: the mean target if the controller meets what the recorded packets met; its own rate would have \
                changed that";
    let known = format!(
        "the capacity is known in {:.0} % of the call; elsewhere `as-carried` is a lower bound and `free` an upper one",
        first.capacity_known * 100.0
    );
    vec![first.caveat.clone(), open.to_owned(), known]
}

/// Describes the runs on the path of one flow.
pub(super) fn describe(all: &[&WhatIf], view: &mut View) {
    view.gap();
    view.line("", "What if (closed loop, one run each, and open loop):");
    let mut table = Table::new(WhatIf::HEADINGS, 2);
    for what_if in all {
        table.row(what_if.cells());
    }
    view.table(table);
    caveats(all).into_iter().for_each(|caveat| view.line("· ", caveat));
}
