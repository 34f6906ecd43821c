// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a ranking needs of the runs under each controller: the score, its losses, and what other flows keep. A score as text.

use crate::metrics::find;
use crate::results::RowKind;
use crate::run_result::RunsResult;
use crate::yardsticks;
use paceline::Registry;
use paceline_netsim::records::Summary;
use paceline_scenario::Scenario;
use std::collections::BTreeMap;

/// What costs points, with its metric.
pub(crate) const CAUSES: [(&str, &str); 3] =
    [("rate", "score_lost_to_rate"), ("delay", "score_lost_to_delay"), ("freezes", "score_lost_to_freezes")];

/// Describes a score with the points lost to rate, to delay and to freezes, the largest loss first:
/// `62.8 of 100: 36.4 lost to rate, 0.8 to freezes, 0.0 to delay`. The interval is infinite or that of the score.
pub fn score_text(score: f64, interval: f64, lost: [f64; 3]) -> String {
    let mut parts: Vec<(f64, &str)> = lost.into_iter().zip(CAUSES.map(|(cause, _)| cause)).collect();
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    // Without the sign of a loss that is 0 up to rounding.
    let parts = parts.iter().map(|(points, cause)| format!("{:.1} to {cause}", (points * 10.0).round() / 10.0 + 0.0));
    let interval = if interval.is_finite() { format!(" ± {interval:.1}") } else { String::new() };
    let parts = parts.collect::<Vec<_>>().join(", ").replacen(" to", " lost to", 1);
    format!("{score:.1}{interval} of 100: {parts}")
}

/// Describes the score in the means of metrics over runs, as [`score_text`]; `None` if a run has no score.
pub fn mean_score_text(metrics: &BTreeMap<String, Summary>) -> Option<String> {
    let score = metrics.get("score")?;
    let [rate, delay, freezes] = CAUSES.map(|(_, metric)| Some(metrics.get(metric)?.mean));
    Some(score_text(score.mean, score.ci95, [rate?, delay?, freezes?]))
}

#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) name: String,
    pub(super) kind: RowKind,
    pub(super) scores: Vec<f64>,
    /// In the order of [`CAUSES`].
    pub(super) lost: [Vec<f64>; 3],
    /// The part of their fair share that other flows receive.
    pub(super) others: Option<Vec<f64>>,
}

pub(super) fn scored(
    names: &[String],
    scenarios: &[Scenario],
    results: &[RunsResult],
    registry: &Registry,
) -> Vec<Scored> {
    let of = |((name, scenario), result): ((&String, &Scenario), &RunsResult)| {
        let values = |id: &str| -> Option<Vec<f64>> {
            let metric = find(id).expect("the metrics of the score are registered");
            result.runs.iter().map(|run| (metric.value)(&run.whole, None, &scenario.measure)).collect()
        };
        let [rate, delay, freezes] = CAUSES.map(|(_, metric)| values(metric));
        Some(Scored {
            name: name.clone(),
            kind: yardsticks::row_kind(name, registry),
            scores: values("score")?,
            lost: [rate?, delay?, freezes?],
            others: values("others_keep"),
        })
    };
    names.iter().zip(scenarios).zip(results).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Runner;
    use paceline_scenario::{Changes, Origin};

    const SCENARIO: &str = r#"
id = "x"
title = ""
duration = "12 s"
[path]
rtt = "40 ms"
[path.forward]
capacity = "2 Mbps"
[[flow]]
id = "call"
controller = "nada"
[[flow]]
id = "bulk"
kind = "tcp"
[[flow]]
id = "web"
kind = "tcp"
workload = { kind = "on-off", on = "1 s", off = "1 s" }
"#;

    #[test]
    fn texts_name_the_largest_loss_first() {
        let text = score_text(62.84, f64::INFINITY, [36.36, -1e-9, 0.84]);
        assert_eq!(text, "62.8 of 100: 36.4 lost to rate, 0.8 to freezes, 0.0 to delay");
        let text = score_text(38.0, 2.04, [19.0, 31.0, 12.0]);
        assert_eq!(text, "38.0 ± 2.0 of 100: 31.0 lost to delay, 19.0 to rate, 12.0 to freezes");
        let of = |values: &[f64]| Summary::from_values(values).unwrap();
        let lost = CAUSES.map(|(_, metric)| (metric.to_owned(), of(&[10.0])));
        let mut metrics: BTreeMap<_, _> = lost.into_iter().chain([("score".to_owned(), of(&[70.0]))]).collect();
        let text = "70.0 of 100: 10.0 lost to rate, 10.0 to delay, 10.0 to freezes";
        assert_eq!(mean_score_text(&metrics).as_deref(), Some(text));
        metrics.remove("score_lost_to_delay");
        assert_eq!(mean_score_text(&metrics), None);
    }

    /// Losses and score are 100 points, and faulty controllers are no controllers in use.
    #[test]
    fn scores_and_losses_are_of_each_run() {
        let registry = yardsticks::add(Registry::standard());
        let names = ["nada", "scream-v2", "faulty-oscillates"].map(str::to_owned);
        let load = |name: &String| {
            let changes = Changes { controller: Some(name.clone()), ..Changes::default() };
            paceline_scenario::load(&Origin::from_text("x", SCENARIO.to_owned()), &changes, &registry).unwrap()
        };
        let scenarios: Vec<Scenario> = names.iter().map(load).collect();
        let runner = Runner::simulator(&registry);
        let results: Vec<RunsResult> = scenarios.iter().map(|s| runner.run_all(s, &[1, 2]).unwrap()).collect();
        let scored = scored(&names, &scenarios, &results, &registry);
        let kinds = [RowKind::Controller, RowKind::Controller, RowKind::Faulty];
        assert_eq!(scored.iter().map(|of| of.kind).collect::<Vec<_>>(), kinds);
        for (of, result) in scored.iter().zip(&results) {
            let lost: f64 = of.lost.iter().map(|lost| lost[1]).sum();
            assert!((of.scores[1] + lost - 100.0).abs() < 1e-9, "{of:?}");
            assert_eq!(of.scores.iter().sum::<f64>() / 2.0, result.summary["score"].mean);
            assert!(of.others.as_ref().unwrap().iter().all(|part| (0.0..=1.0).contains(part)));
        }
    }
}
