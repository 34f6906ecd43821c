//! The table of a comparison: quantities by controllers, and which differences are significant.

use super::verdict;
use crate::metrics::{StreamResult, WindowResult, find};
use crate::run_result::RunsResult;
use paceline_netsim::flow::MediaKind;
use paceline_netsim::plan::FlowPlan;
use paceline_netsim::records::{Better, Summary};
use paceline_results::{ComparedDifference, ComparisonRow, ComparisonTable, DifferenceVerdict, Role, Subject};
use paceline_scenario::Scenario;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The probability with which all intervals of a table contain the true means.
const CONFIDENCE: f64 = 0.95;
/// Differences below this fraction of the values are attributed to rounding.
const ROUNDING: f64 = 1e-12;

/// A compared quantity.
struct Quantity {
    metric: &'static str,
    label: &'static str,
    better: Better,
}

/// The quantities of a media flow, of TCP traffic and of the bottleneck: metrics with their names in tables. The better values are
/// those of the metric.
const MEDIA: &[(&str, &str)] = &[
    ("quality_mos", "estimated quality"),
    ("throughput_bps", "rate"),
    ("share", "share of traffic"),
    ("loss_ratio", "loss"),
    ("owd_p95_ms", "packet delay p95"),
];
const TRAFFIC: &[(&str, &str)] = &[("throughput_bps", "rate"), ("share", "share of traffic"), ("loss_ratio", "loss")];
const LINK: &[(&str, &str)] =
    &[("utilization", "utilization"), ("queue_p95_ms", "queuing delay p95"), ("jain", "Jain's index")];

/// A quantity of a stream.
struct StreamQuantity {
    metric: &'static str,
    label: &'static str,
    better: Better,
    /// The kind of stream that has it; none: each.
    kind: Option<MediaKind>,
    value: fn(&StreamResult) -> Option<f64>,
}

const STREAM: &[StreamQuantity] = &[
    StreamQuantity {
        metric: "quality_mos",
        label: "estimated quality",
        better: Better::Higher,
        kind: None,
        value: |s| s.quality_mos,
    },
    StreamQuantity {
        metric: "throughput_bps",
        label: "rate",
        better: Better::Higher,
        kind: Some(MediaKind::Video),
        value: |s| Some(s.throughput_bps),
    },
    StreamQuantity {
        metric: "frame_delay_p95_ms",
        label: "frame delay p95",
        better: Better::Lower,
        kind: None,
        value: |s| s.frame_delay_ms.map(|d| d.p95),
    },
    StreamQuantity {
        metric: "late_or_lost_ratio",
        label: "frames late or lost",
        better: Better::Lower,
        kind: Some(MediaKind::Video),
        value: |s| s.late_or_lost_ratio,
    },
    StreamQuantity {
        metric: "freeze_ratio",
        label: "frozen",
        better: Better::Lower,
        kind: Some(MediaKind::Video),
        value: |s| s.freeze_ratio,
    },
    StreamQuantity {
        metric: "audio_gap_ratio",
        label: "gaps",
        better: Better::Lower,
        kind: Some(MediaKind::Audio),
        value: |s| s.late_or_lost_ratio,
    },
];

/// What a row describes, and its value in each run of each controller.
struct Values {
    subject: Subject,
    quantity: Quantity,
    /// By controller, then by seed.
    values: Vec<Vec<Option<f64>>>,
}

/// Returns the table for the runs under each controller, which have the same seeds in the same order.
pub(super) fn table(names: &[String], scenarios: &[Scenario], results: &[RunsResult]) -> ComparisonTable {
    let scenario = &scenarios[0];
    let runs: Vec<Vec<&WindowResult>> = results.iter().map(|r| r.runs.iter().map(|run| &run.whole).collect()).collect();
    let values: Vec<Values> = values(scenario, &runs).into_iter().filter(|row| row.is_known()).collect();
    let judged = values.iter().filter(|row| row.quantity.better != Better::Neither).count() * (names.len() - 1);
    let rows: Vec<ComparisonRow> = values.into_iter().map(|row| row.compare(judged)).collect();
    let plan = &scenario.plan;
    let seeds: Vec<u64> = results[0].runs.iter().map(|run| run.seed).collect();
    let mut table = ComparisonTable {
        scenario: plan.id.clone(),
        title: plan.title.clone(),
        case: plan.case.clone(),
        changes: Vec::new(),
        world: results[0].runs.first().map(|run| run.world.clone()).unwrap_or_default(),
        controllers: names.to_vec(),
        seeds,
        command: String::new(),
        judged,
        rows,
        verdict: Vec::new(),
    };
    table.verdict = verdict::sentences(&table);
    table
}

/// Returns the rows: of media flows and their streams, then of TCP traffic, then of the bottleneck.
fn values(scenario: &Scenario, runs: &[Vec<&WindowResult>]) -> Vec<Values> {
    let flows = &scenario.plan.flows;
    let of = |subject: &Subject, (metric, label, better), value: &dyn Fn(&WindowResult) -> Option<f64>| Values {
        subject: subject.clone(),
        quantity: Quantity { metric, label, better },
        values: runs.iter().map(|runs| runs.iter().map(|run| value(run)).collect()).collect(),
    };
    let metric_of = |id: &str| find(id).expect("the metrics of the table are registered");
    let mut rows = Vec::new();
    for role in [Role::Media, Role::Traffic] {
        for (name, members) in groups(flows, role) {
            let subject = Subject { role, flow: Some(name.clone()), stream: None };
            for (id, label) in if role == Role::Media { MEDIA } else { TRAFFIC } {
                if *id == "share" && flows.len() == 1 {
                    continue;
                }
                let metric = metric_of(id);
                let value = |run: &WindowResult| {
                    mean(members.iter().map(|flow| (metric.value)(run, Some(*flow), &scenario.measure)))
                };
                rows.push(of(&subject, (*id, *label, metric.better), &value));
            }
            let streams = flows[members[0]].media().map_or(&[][..], |media| &media.streams);
            for (index, stream) in streams.iter().enumerate() {
                let subject = Subject { role, flow: Some(name.clone()), stream: Some(stream.id.clone()) };
                for quantity in STREAM.iter().filter(|q| q.kind.is_none_or(|kind| kind == stream.kind)) {
                    let value = |run: &WindowResult| {
                        mean(members.iter().map(|flow| (quantity.value)(run.flows[*flow].streams.get(index)?)))
                    };
                    rows.push(of(&subject, (quantity.metric, quantity.label, quantity.better), &value));
                }
            }
        }
    }
    let subject = Subject { role: Role::Link, flow: None, stream: None };
    for (id, label) in LINK {
        let metric = metric_of(id);
        rows.push(of(&subject, (*id, *label, metric.better), &|run| (metric.value)(run, None, &scenario.measure)));
    }
    rows
}

/// Returns the names of the flows with this role, with their indices. Equal flows of one table of the scenario have one name.
fn groups(flows: &[FlowPlan], role: Role) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    let has_role = |flow: &FlowPlan| flow.media().is_some() == (role == Role::Media);
    for (index, flow) in flows.iter().enumerate().filter(|(_, flow)| has_role(flow)) {
        let name = flow.group.as_ref().unwrap_or(&flow.id);
        match groups.iter_mut().find(|(known, _)| known == name) {
            Some((_, members)) => members.push(index),
            None => groups.push((name.clone(), vec![index])),
        }
    }
    groups
}

/// Returns the mean; `None` if a value is missing.
fn mean(values: impl ExactSizeIterator<Item = Option<f64>>) -> Option<f64> {
    let n = values.len();
    let sum: f64 = values.sum::<Option<f64>>()?;
    (n > 0).then(|| sum / n as f64)
}

impl Values {
    /// Returns whether the quantity has a value in some run.
    fn is_known(&self) -> bool {
        self.values.iter().flatten().any(Option::is_some)
    }

    /// Compares each controller with the first one.
    fn compare(self, judged: usize) -> ComparisonRow {
        let Self { subject, quantity: Quantity { metric, label, better }, values } = self;
        let complete: Vec<Option<Vec<f64>>> = values.into_iter().map(|of| of.into_iter().collect()).collect();
        let values: Vec<Option<Summary>> =
            complete.iter().map(|of| of.as_ref().and_then(|of| Summary::from_values(of))).collect();
        let means = || values.iter().flatten().map(|summary| summary.mean);
        let best = match better {
            Better::Higher => means().reduce(f64::max),
            Better::Lower => means().reduce(f64::min),
            Better::Neither => None,
        };
        let several = values.len() > 1;
        let best = values.iter().map(|v| several && v.zip(best).is_some_and(|(v, best)| v.mean == best)).collect();
        let differences = complete.iter().enumerate().map(|(index, of)| {
            let (baseline, of) = (complete[0].as_ref()?, of.as_ref().filter(|_| index > 0)?);
            let pairs: Vec<(f64, f64)> = baseline.iter().copied().zip(of.iter().copied()).collect();
            difference(&pairs, better, judged)
        });
        ComparisonRow {
            subject,
            metric: metric.to_owned(),
            label: label.to_owned(),
            better,
            best,
            differences: differences.collect(),
            values,
        }
    }
}

/// Returns the difference of paired values, second minus first, with an interval that is corrected for `judged` comparisons by
/// Bonferroni's method; `None` if there are no pairs.
pub fn difference(pairs: &[(f64, f64)], better: Better, judged: usize) -> Option<ComparedDifference> {
    let differences: Vec<f64> = pairs.iter().map(|(from, to)| to - from).collect();
    let Summary { mut mean, mut std, n, .. } = Summary::from_values(&differences)?;
    let largest = pairs.iter().flat_map(|(from, to)| [from.abs(), to.abs()]).fold(0.0, f64::max);
    if std <= ROUNDING * largest {
        std = 0.0;
        mean = if mean.abs() <= ROUNDING * largest { 0.0 } else { mean };
    }
    let interval = if n > 1 { quantile(judged, n - 1) * std / (n as f64).sqrt() } else { f64::INFINITY };
    let verdict = match better.judge(mean) {
        _ if n < 2 => DifferenceVerdict::OneSeed,
        _ if mean == 0.0 && std == 0.0 => DifferenceVerdict::Equal,
        _ if mean.abs() <= interval => DifferenceVerdict::NotSignificant,
        Some(true) => DifferenceVerdict::Better,
        Some(false) => DifferenceVerdict::Worse,
        None => DifferenceVerdict::Different,
    };
    Some(ComparedDifference { mean, interval, verdict })
}

/// Returns the two-sided quantile of Student's t for one of `comparisons` intervals, so that all of them together have
/// [`CONFIDENCE`].
fn quantile(comparisons: usize, freedom: usize) -> f64 {
    let tail = (1.0 - CONFIDENCE) / comparisons.max(1) as f64 / 2.0;
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| -t.inverse_cdf(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_widen_with_the_number_of_comparisons() {
        // Two-sided 95 %: t(4) = 2.776, t(9) = 2.262. For 5 and 25 comparisons: the quantiles of 99 % and 99.8 %, t(9) = 3.250 and
        // 4.297.
        for (comparisons, freedom, expected) in [(1, 4, 2.776), (1, 9, 2.262), (5, 9, 3.250), (25, 9, 4.297)] {
            let t = quantile(comparisons, freedom);
            assert!((t - expected).abs() < 1e-3, "{comparisons} {freedom}: {t}");
        }
    }

    #[test]
    fn significance_depends_on_all_comparisons_of_the_table() {
        // Differences 1 to 5: mean 3, standard deviation 1.581, so 2.776 * 1.581 / sqrt 5 = 1.963. For 40 comparisons
        // t(4) of 99.875 % is 7.995 and the interval 5.65.
        let pairs: Vec<(f64, f64)> = (1..=5).map(|n| (10.0, 10.0 + f64::from(n))).collect();
        let alone = difference(&pairs, Better::Higher, 1).unwrap();
        assert!(
            (alone.mean, alone.verdict) == (3.0, DifferenceVerdict::Better) && (alone.interval - 1.963).abs() < 2e-3
        );
        let among = difference(&pairs, Better::Higher, 40).unwrap();
        assert!(
            among.verdict == DifferenceVerdict::NotSignificant && (5.5..5.8).contains(&among.interval),
            "{among:?}"
        );
        assert_eq!(difference(&pairs, Better::Lower, 1).unwrap().verdict, DifferenceVerdict::Worse);
        assert_eq!(difference(&pairs, Better::Neither, 1).unwrap().verdict, DifferenceVerdict::Different);
        assert_eq!(difference(&pairs[..1], Better::Lower, 1).unwrap().verdict, DifferenceVerdict::OneSeed);
        assert_eq!(difference(&[(0.5, 0.5); 3], Better::Lower, 1).unwrap().verdict, DifferenceVerdict::Equal);
        // The same difference in each run is certain.
        assert_eq!(difference(&[(0.1, 0.3); 3], Better::Lower, 99).unwrap().verdict, DifferenceVerdict::Worse);
        assert_eq!(difference(&[], Better::Lower, 1), None);
    }
}
