// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model to findings: every episode with its cause, its evidence, and the causes that the input cannot exclude.

use crate::causes::{self, CAUSES, Evidence, Strength};
use crate::episodes::{self, Episode, EpisodeKind};
use crate::facts::Facts;
use crate::model::{Call, Flow};

/// An explained part of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What happened.
    pub episode: Episode,
    /// The id of the cause, or [`UNKNOWN`](causes::UNKNOWN).
    pub cause: &'static str,
    /// The evidence for it; `None` if the cause is unknown.
    pub evidence: Option<Evidence>,
    /// Other causes with evidence.
    pub others: Vec<(&'static str, Evidence)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FlowFindings {
    /// Name of the flow.
    pub flow: String,
    /// Its findings, in order of time.
    pub findings: Vec<Finding>,
}

/// Explains every flow of a call.
pub fn diagnose(call: &Call) -> Vec<FlowFindings> {
    call.flows.iter().map(|flow| FlowFindings { flow: flow.name.clone(), findings: of_flow(flow) }).collect()
}

/// Causes that usually go on after the drop. The rate then rises and falls around what they allow.
const LASTING: &[&str] = &["policer", "cross-traffic", "congestive-loss", "own-queue"];

/// Explains the episodes of a flow.
pub fn of_flow(flow: &Flow) -> Vec<Finding> {
    let (mut found, mut last, mut low) = (Vec::new(), None, None);
    for episode in episodes::find(flow) {
        let mut finding = explain(flow, episode);
        if episode.kind == EpisodeKind::Drop {
            low = Some(Low::next(flow, low, last.as_ref(), &episode));
            if let Some((last, low)) = last.as_ref().zip(low) {
                finding = repeated(flow, low.first, last, finding);
            }
            last = Some(finding.clone());
        }
        found.push(finding);
    }
    // A rate that stands still without any evidence needs no explanation: it is wanted.
    found.retain(|finding| finding.episode.kind != EpisodeKind::Plateau || finding.evidence.is_some());
    found
}

/// A time in which the rate is not back from a drop.
#[derive(Clone, Copy)]
struct Low {
    first: Episode,
    /// The highest rate since.
    highest: f64,
}

impl Low {
    /// Returns the time of a low rate in which a drop begins. If the rate had returned, this drop is its first.
    fn next(flow: &Flow, low: Option<Self>, last: Option<&Finding>, drop: &Episode) -> Self {
        let since = last.and_then(|last| flow.rate()?.1.max(last.episode.end, drop.start)).unwrap_or(0.0);
        let low = low.map(|low| Self { highest: low.highest.max(since), ..low });
        let goes_on = low.filter(|low| low.highest < episodes::RETURNED * low.first.from);
        goes_on.unwrap_or(Self { first: *drop, highest: 0.0 })
    }
}

/// Returns the finding of a drop. Without strong evidence of its own, in statistics and for few losses, it repeats the last drop if
/// the rate has not returned from the first.
fn repeated(flow: &Flow, first: Episode, last: &Finding, now: Finding) -> Finding {
    let own = now.evidence.as_ref().map(|evidence| evidence.strength);
    let is_coarse = Facts { flow, episode: &now.episode }.is_coarse();
    // Packets show a cause, except a short queue that is still full: its few losses look random.
    let is_open = own != Some(Strength::Strong) && (is_coarse || now.cause == "random-loss");
    let is_soon = now.episode.start - last.episode.end <= episodes::SLOW;
    let lasts = LASTING.contains(&last.cause) && last.cause != now.cause;
    let Some((quantity, _)) = flow.rate().filter(|_| is_open && is_soon && lasts && first != now.episode) else {
        return now;
    };
    let since = (first.start - flow.span.0).as_secs_f64();
    let evidence = Evidence {
        strength: Strength::Weak,
        text: format!("as the drop before: the rate has not returned since the drop at {since:.1} s"),
        series: vec![quantity],
        span: (first.start, now.episode.end),
    };
    // A queue that is not full any more is still a queue.
    let loses = Facts { flow, episode: &now.episode }.loss().is_some_and(|(_, lost)| lost > 0.0);
    let cause = if last.cause == "congestive-loss" && !loses { "own-queue" } else { last.cause };
    let own = now.evidence.map(|evidence| (now.cause, evidence));
    let (same, others): (Vec<_>, Vec<_>) = own.into_iter().chain(now.others).partition(|(other, _)| *other == cause);
    // What the drop shows by itself says more.
    let evidence = same.into_iter().next().map_or(evidence, |(_, evidence)| evidence);
    Finding { episode: now.episode, cause, evidence: Some(evidence), others }
}

fn explain(flow: &Flow, episode: Episode) -> Finding {
    let facts = Facts { flow, episode: &episode };
    let mut all: Vec<(&'static str, Evidence)> =
        CAUSES.iter().filter_map(|cause| Some((cause.id, (cause.examine)(&facts)?))).collect();
    // Stable: of equal strength the first cause of the registry is first.
    all.sort_by_key(|(_, evidence)| std::cmp::Reverse(evidence.strength));
    let mut all = all.into_iter();
    match all.next() {
        Some((cause, evidence)) => Finding { episode, cause, evidence: Some(evidence), others: all.collect() },
        None => Finding { episode, cause: causes::UNKNOWN, evidence: None, others: Vec::new() },
    }
}

impl Finding {
    /// Returns whether another cause has evidence as strong.
    pub fn is_ambiguous(&self) -> bool {
        self.others.iter().any(|(_, evidence)| evidence.strength == Strength::Strong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Quantity;
    use crate::test_flow::{packets, statistics};

    type Values<'a> = [(Quantity, &'a dyn Fn(f64) -> f64)];

    /// The causes of the drops of a flow with this rate. A queue of 150 ms stands at 20 s and at this time, s.
    fn causes(of: &dyn Fn(&Values<'_>) -> Flow, rate: &dyn Fn(f64) -> f64, again: f64) -> Vec<&'static str> {
        let is_queue = |at: f64| [20.0, again].into_iter().any(|queue| (-1.0..1.0).contains(&(at - queue)));
        let queue = |at: f64| if is_queue(at) { 0.15 } else { 0.0 };
        let delay = |at: f64| 0.05 + queue(at);
        let flow = of(&[
            (Quantity::Target, rate),
            (Quantity::SentRate, rate),
            (Quantity::RoundTrip, &delay),
            (Quantity::DelayLow, &queue),
            (Quantity::DelayHigh, &queue),
        ]);
        let drops = of_flow(&flow).into_iter().filter(|finding| finding.episode.kind == EpisodeKind::Drop);
        drops.map(|finding| finding.cause).collect()
    }

    /// Statistics without delays of packets.
    fn coarse(values: &Values<'_>) -> Flow {
        let mut flow = statistics(values);
        flow.series.remove(&Quantity::DelayLow);
        flow.series.remove(&Quantity::DelayHigh);
        flow
    }

    /// 2 Mbit/s until 20 s, then these rates, each from its time on, s. A constant rate would be a cap.
    fn steps(steps: &'static [(f64, f64)]) -> impl Fn(f64) -> f64 {
        move |at| {
            let varies = if at % 2.0 < 1.0 { 1.0 } else { 0.992 };
            varies * steps.iter().rev().find(|(from, _)| at >= *from).map_or(2e6, |(_, rate)| *rate)
        }
    }

    #[test]
    fn in_statistics_a_drop_without_a_sign_repeats_the_one_before() {
        let two = |of: &dyn Fn(&Values<'_>) -> Flow, second: &'static [(f64, f64)]| causes(of, &steps(second), 20.0);
        assert_eq!(two(&coarse, &[(20.0, 1e6), (27.0, 6e5)]), ["own-queue", "own-queue"]);
        assert_eq!(two(&coarse, &[(20.0, 1e6), (23.0, 1.75e6), (27.0, 6e5)]), ["own-queue", "unknown"], "it was back");
        assert_eq!(two(&coarse, &[(20.0, 1e6), (40.0, 6e5)]), ["own-queue", "unknown"], "long after");
        assert_eq!(two(&packets, &[(20.0, 1e6), (27.0, 6e5)]), ["own-queue", "unknown"], "packets would show a cause");
    }

    #[test]
    fn the_rate_is_back_where_it_was_before_the_first_drop() {
        // Before the third drop it is as high as before the second, which is half of what it was before the first.
        let rate = steps(&[(20.0, 1e6), (30.0, 6e5), (33.0, 1e6), (37.0, 6e5)]);
        assert_eq!(causes(&coarse, &rate, 30.0), ["own-queue", "own-queue", "own-queue"]);
        let rate = steps(&[(20.0, 1e6), (23.0, 2e6), (30.0, 1e6), (33.0, 1.9e6), (37.0, 6e5)]);
        assert_eq!(causes(&coarse, &rate, 30.0), ["own-queue", "own-queue", "unknown"]);
    }
}
