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
use crate::commands::compare::add_ranking;
use crate::commands::host_recording::forget_frames;
use crate::commands::options::consecutive_seeds;
use crate::output;
use crate::progress::StatusLine;
use crate::table::Table;
use crate::view::View;
use miette::{Result, miette};
use paceline::Registry;
use paceline_lab::compare::{Ranked, difference, rank};
use paceline_lab::results::{Check, ComparedDifference};
use paceline_lab::run::{RunResult, Runner, summarise};
use paceline_live::hosts::report::{End, SendReport};
use paceline_live::hosts::sender::{Peer, Progress};
use paceline_live::hosts::world::TwoHosts;
use paceline_netsim::records::{Better, MetricKind, Summary};
use paceline_units::{RandomStreams, TimeDelta};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

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
    /// The ranking by score and the verdict, as in `compare`.
    #[serde(flatten)]
    ranked: Ranked,
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
    /// The score and its parts, by metric; none if the rendered frames are not known.
    #[serde(flatten)]
    score: BTreeMap<String, f64>,
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
    let (mut turns, mut runs) = (Vec::<Turn>::new(), Vec::new());
    let compared = quantities(first.terms.tcp);
    let count = planned.len();
    for PlannedTurn { round, controller, planned } in planned {
        let Planned { terms, scenario, .. } = planned;
        let (number, shown) = (turns.len() + 1, line.clone());
        let show = move |now: &Progress| shown.show(&format!("{number}/{count} {}", live_text(now, 0, "")));
        let hosts = TwoHosts::new(peer.clone(), terms.clone(), Box::new(show));
        let frozen = FrozenStreams::new(&scenario.plan);
        let started = Instant::now();
        let clock = || started.elapsed().as_secs_f64();
        let runner = Runner { clock: &clock, ..Runner::new(&hosts, registry) };
        let made = runner.run_to(scenario, terms.seed, Some(&mut &frozen), &|| hosts.lasted());
        line.clear();
        let report = match made.map_err(session_error) {
            Ok(run) => Ok((run, hosts.into_report().expect("the session was made"))),
            Err(error) if turns.is_empty() => return Err(error),
            Err(error) => Err(format!("failed: {error}")),
        };
        if peer.stop.load(Ordering::Relaxed) {
            break;
        }
        let report =
            report.and_then(|(run, report)| match report.tcp.as_ref().and_then(|tcp| tcp.sent.problem.as_ref()) {
                _ if report.end != End::Complete => Err("ended early".to_owned()),
                Some(problem) => Err(format!("lacks its TCP flow: {problem}")),
                None => Ok((run, report)),
            });
        let (mut run, report) = match report {
            Ok(made) => made,
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
        if !report.knows_frames {
            forget_frames(&mut run.whole);
        }
        let score = run.metrics(scenario).into_iter().filter(|(id, _)| id.starts_with("score")).collect();
        turns.push(Turn { round: *round, controller: controller.clone(), values, score });
        runs.push(run);
    }
    let rounds = turns.len() / controllers.len();
    let complete: Vec<&Turn> = turns.iter().filter(|turn| turn.round < rounds).collect();
    let quantities = (0..compared.len()).map(|index| row(&compared, index, controllers, &complete)).collect();
    runs.truncate(rounds * controllers.len());
    let ranked = if rounds == 0 { Ranked::default() } else { ranked(controllers, planned, &runs, registry) };
    let scenario = arguments.scenario.is_some().then_some(first.scenario.plan.id.as_str());
    let case = case(&first.scenario);
    let (world, peer) = (TwoHosts::NAME, peer.address);
    let document = SurveyDocument { world, peer, scenario, case, controllers, rounds, ranked, quantities, turns };
    let duration = TimeDelta::from_millis(first.terms.duration_ms as i64).to_string();
    output::print_results(arguments.json, &document, || describe(&document, &compared, &duration))?;
    Ok(ExitCode::from(u8::from(rounds < usize::from(arguments.turns))))
}

/// Ranks the controllers by the runs of complete rounds, which are in the order of the planned turns.
fn ranked(controllers: &[String], planned: &[PlannedTurn], runs: &[RunResult], registry: &Registry) -> Ranked {
    let of = |name: &String| {
        let turns = || planned.iter().zip(runs).filter(|(turn, _)| turn.controller == *name);
        let scenario = &turns().next().expect("a round has a turn of each controller").0.planned.scenario;
        (scenario.clone(), summarise(scenario, turns().map(|(_, run)| run.clone()).collect()))
    };
    let (scenarios, results): (Vec<_>, Vec<_>) = controllers.iter().map(of).unzip();
    rank(controllers, &scenarios, &results, registry, "--turns")
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
    let SurveyDocument { peer, scenario, case, controllers, rounds, ranked, quantities, .. } = document;
    let what: String = scenario.iter().copied().chain(case.as_deref()).map(|part| format!("{part}, ")).collect();
    let mut text = format!("{} to {peer}: {what}{rounds} turns of {duration} each\n\n", output::bold("hosts"));
    let mut view = View::default();
    if !ranked.verdict.is_empty() {
        view.line("", ranked.verdict.join(" "));
        view.gap();
    }
    add_ranking(&mut view, &ranked.ranking, true);
    text += &view.text();
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
    let has_no_score = |name: &&String| !ranked.ranking.iter().any(|entry| entry.controller == **name);
    let unscored: Vec<&str> = controllers.iter().filter(has_no_score).map(String::as_str).collect();
    let unscored = (*rounds > 0 && !unscored.is_empty()).then(|| {
        format!(
            "Without a score in each turn: {}. The receiver did not confirm its frames, or the source has no resolution.",
            unscored.join(", ")
        )
    });
    let tcp = compared.iter().any(|quantity| quantity.name == TCP);
    let notes = [
        "Scores take half of the first round-trip time as the smallest delay, because the clocks of the hosts are not synchronised."
            .to_owned(),
        "The score of the possible is left out: the oracle needs the capacity of the path, which is not known here.".to_owned(),
    ];
    let fair = "What TCP keeps of its fair share is left out for the same reason.".to_owned();
    let notes = notes.into_iter().chain(tcp.then_some(fair)).chain(unscored).chain([
        format!("Differences of other quantities are from {}, within rounds of one turn of each controller in random order.", controllers[0]),
        "A difference is larger than the variation of the path if its interval excludes zero; all intervals together hold with \
         95 %."
            .to_owned(),
        "Each turn includes the start of the controller.".to_owned(),
    ]);
    notes.for_each(|note| text += &format!("{}\n", output::hang("· ", &note)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use paceline_lab::results::Verdict;
    use paceline_scenario::Scenario;
    use paceline_units::Rate;

    fn names() -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    #[test]
    fn every_order_of_turns_occurs_as_often_as_others() {
        let (names, mut random) = (names(), RandomStreams::new(1).stream("survey/order"));
        let mut counts = BTreeMap::new();
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
                score: BTreeMap::new(),
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

    /// The command with its arguments, as the program parses it.
    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// The turns of a comparison, over a simulated path of 1 Mbit/s in place of a real one.
    #[test]
    fn ranking_and_its_text_are_those_of_compare() {
        let registry = Registry::standard();
        let command = ["send", "host", "--compare", "fixed,googcc,scream-v2", "--turns", "4", "--start-rate", "2Mbps"];
        let Command { arguments } = Command::parse_from(command);
        let mut planned = turns(&arguments, &registry).unwrap();
        let mut runs = Vec::new();
        for turn in &mut planned {
            let Planned { scenario, terms, .. } = &mut turn.planned;
            scenario.plan.hops[0].capacity = Some(paceline_netsim::link::Capacity::constant(Rate::from_kbps(1000)));
            runs.push(Runner::simulator(&registry).run(scenario, terms.seed, None).unwrap());
        }
        let controllers = &arguments.compare;
        let ranked = ranked(controllers, &planned, &runs, &registry);
        let (scenarios, results): (Vec<Scenario>, Vec<_>) = (controllers.iter())
            .map(|name| {
                let scenario = plan(&arguments, Some(name), 1, &registry).unwrap().scenario;
                let own = planned.iter().zip(&runs).filter(|(turn, _)| turn.controller == *name);
                (scenario.clone(), summarise(&scenario, own.map(|(_, run)| run.clone()).collect()))
            })
            .unzip();
        let compared = paceline_lab::compare::compare(controllers, &scenarios, results, &registry).table;
        assert_eq!(ranked.ranking, compared.ranking);
        assert_eq!(ranked.verdict.join(" ").replace("--turns", "--repeats"), compared.verdict.join(" "));
        let last = ranked.ranking.last().unwrap();
        assert!(last.controller == "fixed" && !last.tied && last.score.n == 4, "{last:?}");
        let document = SurveyDocument {
            world: TwoHosts::NAME,
            peer: SocketAddr::from(([192, 0, 2, 7], 9777)),
            scenario: None,
            case: None,
            controllers,
            rounds: 4,
            ranked,
            quantities: Vec::new(),
            turns: Vec::new(),
        };
        let text = describe(&document, &quantities(true), "10s");
        println!("{text}");
        assert!(text.lines().all(|line| textwrap::core::display_width(line) <= 80), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            &document.ranked.verdict[0],
            "lost to rate",
            "The score of the possible is left out",
            "fair share is left out",
        ] {
            assert!(words.contains(part), "{part} in {text}");
        }
        assert!(!words.contains("Without a score"), "{text}");
        let json = serde_json::to_value(&document).unwrap();
        let entry = &json["ranking"][2];
        let sum = ["lost_to_rate", "lost_to_delay", "lost_to_freezes"]
            .map(|part| entry[part].as_f64().unwrap())
            .iter()
            .sum::<f64>();
        assert!((entry["score"]["mean"].as_f64().unwrap() + sum - 100.0).abs() < 1e-9, "{entry}");
        // A controller with a turn whose frames are not known has no place.
        runs.iter_mut().take(3).for_each(|run| forget_frames(&mut run.whole));
        let without = super::ranked(controllers, &planned, &runs, &registry);
        assert!(without.ranking.is_empty(), "{without:?}");
        let text = describe(&SurveyDocument { ranked: without, ..document }, &quantities(false), "10s");
        assert!(text.contains("Without a score in each turn: fixed, googcc, scream-v2."), "{text}");
        assert!(!text.contains("fair share"), "{text}");
    }
}
