// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats gaps between two worlds for the terminal and the pages.

use crate::report::check_text::summary_text;
use crate::results::{ComparedMetric, Validation};
use paceline_netsim::records::{HostStats, MetricKind};

/// Largest number of flows in the table; the JSON document has all.
const FLOWS_SHOWN: usize = 6;

pub fn controllers(validation: &Validation) -> String {
    let mut controllers: Vec<&str> = validation.controllers.iter().flatten().map(String::as_str).collect();
    controllers.dedup();
    controllers.join(", ")
}

/// Returns the rows of the table, and the number of flows without rows.
pub fn rows(validation: &Validation) -> (Vec<(&ComparedMetric, [String; 5])>, usize) {
    let mut flows: Vec<&str> = validation.measured.iter().filter_map(|m| m.flow.as_deref()).collect();
    flows.dedup();
    let hidden = flows.get(FLOWS_SHOWN..).unwrap_or_default();
    let is_shown = |m: &&ComparedMetric| m.flow.as_deref().is_none_or(|flow| !hidden.contains(&flow));
    (validation.measured.iter().filter(is_shown).map(|m| (m, row(m))).collect(), hidden.len())
}

/// Returns quantity, value in both worlds, difference, and half of its 95 % interval.
fn row(measured: &ComparedMetric) -> [String; 5] {
    let kind = measured.kind();
    let of = measured.hop.as_ref().or(measured.flow.as_ref());
    let dash = || "–".to_owned();
    let mean = |world: usize| measured.worlds[world].map_or_else(dash, |s| summary_text(&s, |v| kind.show(v)));
    let difference = measured.difference.as_ref();
    [
        of.map_or_else(|| measured.metric.clone(), |of| format!("{} of {of}", measured.metric)),
        mean(0),
        mean(1),
        difference.map_or_else(dash, |d| kind.show_difference(d.mean)),
        difference.filter(|d| d.n > 1).map_or_else(dash, |d| kind.show_size(d.ci95)),
    ]
}

/// Describes the distance between the distributions of queuing delay, if measured.
pub fn distance(validation: &Validation) -> Option<String> {
    let queue = validation.queue_delay.as_ref()?;
    let at = queue.at_ms.map_or(String::new(), |ms| format!(", largest at {ms:.1} ms"));
    let (from, to, hop) = (&validation.worlds[0], &validation.worlds[1], &queue.hop);
    Some(format!("Kolmogorov-Smirnov distance of queuing delays at {hop}, {to} from {from}: {:.3}{at}", queue.ks))
}

/// Describes the distance between seeds of one world, if there are several seeds.
pub fn between_seeds(validation: &Validation) -> Option<String> {
    let [first, second] = validation.queue_delay.as_ref()?.between_seeds;
    let [in_first, in_second] = &validation.worlds;
    Some(format!("mean distance between two seeds: {:.3} in {in_first}, {:.3} in {in_second}", first?, second?))
}

/// Describes the host statistics of each world in one line, with one more line per disturbed run.
pub fn machines(validation: &Validation) -> Vec<String> {
    let mut lines = Vec::new();
    for (world, runs) in validation.worlds.iter().zip(&validation.runs) {
        let machines: Vec<(u64, &HostStats)> =
            runs.iter().filter_map(|run| Some((run.seed, run.machine.as_ref()?))).collect();
        if machines.is_empty() {
            continue;
        }
        let each = |of: fn(&HostStats) -> f64| machines.iter().map(move |(_, machine)| of(machine));
        let least = |of| each(of).fold(f64::INFINITY, f64::min);
        let most = |of| each(of).fold(f64::NEG_INFINITY, f64::max);
        lines.push(format!(
            "{world}: the machine was idle for {} to {}, other processes took up to {}; 99 % of packets left the link \
             within {:.0} µs of their time, 99 % of timers woke within {:.0} µs",
            MetricKind::Share.show(least(|m| m.idle)),
            MetricKind::Share.show(most(|m| m.idle)),
            MetricKind::Share.show(most(|m| m.others)),
            most(|m| m.late_us.p99),
            most(|m| m.wake_us.p99),
        ));
        for (seed, machine) in machines {
            if let Some(why) = &machine.disturbed {
                lines.push(format!("{world}, seed {seed} was disturbed, attempts: {}; {why}", machine.attempts));
            }
        }
    }
    lines
}
