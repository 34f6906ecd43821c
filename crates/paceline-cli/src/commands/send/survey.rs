// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline send --compare`: controllers in turns over the same path.
//!
//! Each round has one turn of every controller, in random order, so that slow changes of the path affect all alike. Differences are
//! taken within rounds. Their spread over the rounds is what the path itself varies; a difference counts if its interval, which is
//! corrected for the number of comparisons, excludes zero.

use super::frozen::FrozenStreams;
use super::live::live_text;
use super::scenario::{Planned, plan};
use super::{Arguments, case, session_error};
use crate::commands::options::consecutive_seeds;
use crate::output;
use crate::progress::StatusLine;
use crate::table::Table;
use miette::{Result, miette};
use paceline::Registry;
use paceline_lab::compare::difference;
use paceline_lab::results::{Check, ComparedDifference};
use paceline_live::hosts::report::{End, SendReport};
use paceline_live::hosts::sender::{Peer, Progress};
use paceline_live::hosts::world::TwoHosts;
use paceline_netsim::records::{Better, MetricKind, Summary};
use paceline_netsim::world::World;
use paceline_scenario::Scenario;
use paceline_units::{RandomStreams, TimeDelta};
use serde::Serialize;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A quantity that is compared: its name, its label, and its value in a session of this ratio of freezes.
struct Quantity {
    name: &'static str,
    label: &'static str,
    kind: MetricKind,
    better: Better,
    value: fn(&SendReport, Option<f64>) -> Option<f64>,
}

const fn quantity(
    (name, label): (&'static str, &'static str),
    kind: MetricKind,
    better: Better,
    value: fn(&SendReport, Option<f64>) -> Option<f64>,
) -> Quantity {
    Quantity { name, label, kind, better, value }
}

const QUANTITIES: [Quantity; 6] = {
    use Better::{Higher, Lower, Neither};
    use MetricKind::{Delay, Loss, Rate, Share};
    [
        quantity(("received_bps", "received"), Rate, Higher, |turn, _| Some(turn.measured.received_bps)),
        quantity(("delay_variation_p95_ms", "delay var. p95"), Delay, Lower, |turn, _| {
            turn.measured.delay_variation_ms.p95
        }),
        quantity(("rtt_p50_ms", "round trip, median"), Delay, Lower, |turn, _| turn.measured.rtt_ms.p50),
        quantity(("loss_ratio", "lost"), Loss, Lower, |turn, _| Some(turn.measured.loss_ratio)),
        quantity(("freeze_ratio", "frozen"), Share, Lower, |_, freeze_ratio| freeze_ratio),
        quantity((TCP, "TCP received"), Rate, Neither, |turn, _| turn.evidence.tcp_bps),
    ]
};

/// The quantity that only sessions beside a TCP flow have.
const TCP: &str = "tcp_received_bps";

/// Returns the quantities of a comparison, with a TCP flow beside the media or not.
fn quantities(tcp: bool) -> Vec<&'static Quantity> {
    QUANTITIES.iter().filter(|quantity| tcp || quantity.name != TCP).collect()
}

/// The result, as `--json` prints it.
#[derive(Serialize)]
struct SurveyDocument<'a> {
    world: &'static str,
    peer: SocketAddr,
    /// The scenario that every turn sends, if one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
    /// Its case, as `--case` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    case: Option<String>,
    controllers: &'a [String],
    /// Complete rounds: turns of each controller that count.
    rounds: usize,
    quantities: Vec<Row>,
    turns: Vec<Turn>,
}

/// A quantity under each controller.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    /// Mean over the turns of each controller, with the half-width of its 95 % interval.
    values: Vec<Option<Summary>>,
    /// Difference of each controller from the first one, within rounds; `null` for the first.
    differences: Vec<Option<ComparedDifference>>,
}

/// A turn.
#[derive(Serialize)]
struct Turn {
    round: usize,
    controller: String,
    /// The compared quantities, in their order.
    values: Vec<Option<f64>>,
}

/// A turn, planned.
pub(super) struct PlannedTurn {
    round: usize,
    controller: String,
    planned: Planned,
}

/// Plans every turn, in random order within each round: all errors come before the first turn. Empty without a comparison.
pub(super) fn turns(arguments: &Arguments, registry: &Registry) -> Result<Vec<PlannedTurn>> {
    let controllers = &arguments.compare;
    if controllers.len() == 1 {
        return Err(miette!(help = "for example --compare googcc,scream-v2", "--compare needs different controllers"));
    }
    let mut random = RandomStreams::new(arguments.seed).stream("survey/order");
    let mut turns = Vec::new();
    // All controllers of a round have the same frames.
    for (round, seed) in consecutive_seeds(arguments.seed, arguments.turns.into())?.into_iter().enumerate() {
        for controller in shuffled(controllers, &mut || random.unit()) {
            let planned = plan(arguments, Some(controller), seed, registry)?;
            turns.push(PlannedTurn { round, controller: controller.clone(), planned });
        }
    }
    Ok(turns)
}

/// Makes the turns and prints the comparison.
pub(super) fn survey(
    arguments: &Arguments,
    planned: &[PlannedTurn],
    registry: &Registry,
    peer: &Arc<Peer>,
    line: &StatusLine,
) -> Result<ExitCode> {
    let (controllers, first) = (&arguments.compare, &planned[0].planned);
    let mut turns: Vec<Turn> = Vec::new();
    let compared = quantities(first.terms.tcp);
    let count = planned.len();
    for PlannedTurn { round, controller, planned } in planned {
        let Planned { terms, scenario: Scenario { plan, .. }, .. } = planned;
        let (number, shown) = (turns.len() + 1, line.clone());
        let show = move |now: &Progress| shown.show(&format!("{number}/{count} {}", live_text(now, 0, "")));
        let hosts = TwoHosts::new(peer.clone(), terms.clone(), Box::new(show));
        let frozen = FrozenStreams::new(plan);
        let made = hosts.run(plan, registry, terms.seed, &mut &frozen);
        line.clear();
        let report = match made.map_err(session_error) {
            Ok(_) => Ok(hosts.into_report().expect("the session was made")),
            Err(error) if turns.is_empty() => return Err(error),
            Err(error) => Err(format!("failed: {error}")),
        };
        if peer.stop.load(Ordering::Relaxed) {
            break;
        }
        let report = report.and_then(|report| match report.tcp.as_ref().and_then(|tcp| tcp.sent.problem.as_ref()) {
            _ if report.end != End::Complete => Err("ended early".to_owned()),
            Some(problem) => Err(format!("lacks its TCP flow: {problem}")),
            None => Ok(report),
        });
        let report = match report {
            Ok(report) => report,
            Err(problem) => {
                eprintln!("turn {number} of {count}, {controller}, {problem}; the comparison ends here");
                break;
            }
        };
        let rate = MetricKind::Rate.show(report.measured.received_bps);
        let facts = report.evidence.host.describe().into_iter().map(|fact| format!("; {fact}"));
        eprintln!("turn {number} of {count}: {controller}, {rate}{}", facts.collect::<String>());
        let freezes = frozen.ratio_of(&report);
        let values = compared.iter().map(|quantity| (quantity.value)(&report, freezes)).collect();
        turns.push(Turn { round: *round, controller: controller.clone(), values });
    }
    let rounds = turns.len() / controllers.len();
    let complete: Vec<&Turn> = turns.iter().filter(|turn| turn.round < rounds).collect();
    let quantities = (0..compared.len()).map(|index| row(&compared, index, controllers, &complete)).collect();
    let scenario = arguments.scenario.is_some().then_some(first.scenario.plan.id.as_str());
    let case = case(&first.scenario);
    let (world, peer) = (TwoHosts::NAME, peer.address);
    let document = SurveyDocument { world, peer, scenario, case, controllers, rounds, quantities, turns };
    let duration = TimeDelta::from_millis(first.terms.duration_ms as i64).to_string();
    output::print_results(arguments.json, &document, || describe(&document, &compared, &duration))?;
    Ok(ExitCode::from(u8::from(rounds < usize::from(arguments.turns))))
}

/// Returns the names in random order (Fisher and Yates).
fn shuffled<'a>(names: &'a [String], unit: &mut dyn FnMut() -> f64) -> Vec<&'a String> {
    let mut order: Vec<&String> = names.iter().collect();
    for last in (1..order.len()).rev() {
        order.swap(last, ((unit() * (last + 1) as f64) as usize).min(last));
    }
    order
}

fn row(compared: &[&Quantity], index: usize, controllers: &[String], turns: &[&Turn]) -> Row {
    let Quantity { name, better, .. } = *compared[index];
    // In the order of rounds. A controller with a turn that lacks the value has none.
    let of_controller =
        |name: &String| turns.iter().filter(|turn| turn.controller == *name).map(|turn| turn.values[index]).collect();
    let values: Vec<Option<Vec<f64>>> = controllers.iter().map(of_controller).collect();
    let judged = compared.len() * (controllers.len() - 1);
    let differences = (0..controllers.len()).map(|other| {
        let (first, second) = (values[0].as_ref()?, values[other].as_ref().filter(|_| other > 0)?);
        let pairs: Vec<(f64, f64)> = first.iter().copied().zip(second.iter().copied()).collect();
        difference(&pairs, better, Check::Difference { margin: 0.0, comparisons: judged })
    });
    Row {
        name,
        differences: differences.collect(),
        values: values.iter().map(|of| of.as_ref().and_then(|of| Summary::from_values(of))).collect(),
    }
}

fn describe(document: &SurveyDocument<'_>, compared: &[&Quantity], duration: &str) -> String {
    let SurveyDocument { peer, scenario, case, controllers, rounds, quantities, .. } = document;
    let what: String = scenario.iter().copied().chain(case.as_deref()).map(|part| format!("{part}, ")).collect();
    let mut text = format!("{} to {peer}: {what}{rounds} turns of {duration} each\n\n", output::bold("hosts"));
    for (quantity, row) in compared.iter().zip(quantities) {
        let mut table = Table::new([quantity.label, "mean", "difference", "interval", ""], 1);
        for (index, controller) in controllers.iter().enumerate() {
            let show = |value: f64| if value.is_finite() { quantity.kind.show(value) } else { "–".to_owned() };
            let difference = row.differences[index].as_ref();
            table.row(vec![
                controller.clone(),
                row.values[index].map_or("–".to_owned(), |summary| show(summary.mean)),
                difference.map_or(String::new(), |d| show(d.mean)),
                difference.map_or(String::new(), |d| format!("± {}", show(d.interval))),
                difference.map_or(String::new(), ToString::to_string),
            ]);
        }
        text += &format!("{}\n", table.render());
    }
    let notes = [
        format!("Differences are from {}, within rounds of one turn of each controller in random order.", controllers[0]),
        "A difference is larger than the variation of the path if its interval excludes zero; all intervals together hold with \
         95 %."
            .to_owned(),
        "Each turn includes the start of the controller.".to_owned(),
    ];
    notes.iter().for_each(|note| text += &format!("{}\n", output::hang("· ", note)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_lab::results::Verdict;

    fn names() -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    #[test]
    fn every_order_of_turns_occurs_as_often_as_others() {
        let (names, mut random) = (names(), RandomStreams::new(1).stream("survey/order"));
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let order: String = shuffled(&names, &mut || random.unit()).into_iter().map(String::as_str).collect();
            *counts.entry(order).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_difference_counts_only_above_the_variation_of_the_path() {
        // The path varies by 400 kbit/s from round to round; b is always 200 above a, c differs by chance.
        let (path, chance) = ([2.0e6, 2.4e6, 1.8e6, 2.2e6, 2.1e6], [60e3, -70e3, 80e3, -40e3, 10e3]);
        let mut turns = Vec::new();
        for (round, path) in path.into_iter().enumerate() {
            // The order of turns does not matter.
            let more = [("c", chance[round]), ("b", 200e3 + chance[4 - round] / 10.0), ("a", 0.0)];
            turns.extend(more.map(|(name, more)| Turn {
                round,
                controller: name.to_owned(),
                values: vec![Some(path + more), Some(1.0), Some(2.0), Some(0.0)],
            }));
        }
        let found = row(&quantities(false), 0, &names(), &turns.iter().collect::<Vec<_>>());
        let verdicts: Vec<Option<Verdict>> =
            found.differences.iter().map(|d| d.as_ref().map(|d| d.judgement.verdict)).collect();
        assert_eq!(verdicts, [None, Some(Verdict::Holds), Some(Verdict::Undecided)]);
        assert_eq!(found.differences[1].as_ref().unwrap().to_string(), "better");
        let difference = found.differences[1].as_ref().unwrap().mean;
        assert!((190e3..210e3).contains(&difference), "{difference}");
    }
}
