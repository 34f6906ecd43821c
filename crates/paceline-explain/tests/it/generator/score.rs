// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs, explanations and the confusion matrix.

use super::formats::Made;
use super::{Format, Generated, generate};
use paceline_explain::causes::UNKNOWN;
use paceline_explain::diagnosis::{Finding, of_flow};
use paceline_explain::episodes::EpisodeKind;
use paceline_explain::facts::Facts;
use paceline_explain::model::{Call, Flow};
use paceline_units::Time;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A finding and what it should be.
pub struct Scored {
    /// Number of the capture.
    pub number: u64,
    /// The format.
    pub format: Format,
    /// Whether thresholds may be chosen on it.
    pub is_training: bool,
    /// How many causes act.
    pub causes: usize,
    /// The cause: that of the window (of two, the one that was said, else the first), `probe` for a slow return, or `none`.
    pub truth: &'static str,
    /// What was said.
    pub said: &'static str,
    /// What the series show, for people.
    pub details: String,
    /// The finding.
    pub finding: Finding,
}

/// The truth of a finding outside every window.
pub const NONE: &str = "none";
/// A rate up to this multiple of a limit is not above it. Assumed: rates of packets contain headers.
const ABOVE: f64 = 1.1;

/// Makes the capture and reads it in its format.
pub fn call(generated: &Generated) -> Call {
    let made = Made::new(generated);
    match generated.format {
        Format::Run => made.events(),
        Format::Capture => Made::read(&made.capture(false)),
        Format::SenderCapture => Made::read(&made.capture(true)),
        Format::Statistics => Made::read(made.statistics(generated.cpu, generated.window_s).as_bytes()),
    }
}

/// Explains a capture and scores what was said of the call. Findings of the first seconds, in which every controller looks for its
/// rate, do not count.
pub fn score(number: u64) -> Vec<Scored> {
    let generated = generate(number);
    let call = call(&generated);
    let Some(flow) = call.flows.iter().find(|flow| flow.is_sent) else { return Vec::new() };
    let fell = ["own-queue", "congestive-loss", "probe"];
    let overflows = match generated.causes.iter().any(|cause| fell.contains(cause)) {
        true => Made::new(&generated).overflows(),
        false => Vec::new(),
    };
    let settled = if generated.causes == ["policer"] { 5.0 } else { 10.0 };
    let origin = flow.span.0;
    let findings = of_flow(flow).into_iter().filter(|finding| finding.episode.kind != EpisodeKind::Plateau);
    let findings = findings.filter(|finding| (finding.episode.start - origin).as_secs_f64() >= settled);
    findings.map(|finding| scored(&generated, flow, &overflows, finding)).collect()
}

fn scored(generated: &Generated, flow: &Flow, overflows: &[f64], finding: Finding) -> Scored {
    let seconds = |at: Time| (at - flow.span.0).as_secs_f64();
    let (start, end, said) = (seconds(finding.episode.start), seconds(finding.episode.end), finding.cause);
    // The intervals of inputs without a target are as long as this.
    let blur = if generated.format == Format::Run { 0.0 } else { 1.0 };
    let acts = end + blur >= generated.window_s.0 && start <= generated.reacts_until_s;
    // Where the capacity fell, the full queue is the cause if it dropped packets before the rate fell, else the queue. One or two
    // dropped packets decide nothing.
    let dropped = overflows.iter().filter(|at| (start - 1.5..=end + 0.3).contains(*at)).count();
    let of_queue: &[&'static str] = match dropped {
        0 => &["own-queue"],
        1 | 2 => &["own-queue", "congestive-loss"],
        _ => &["congestive-loss"],
    };
    let is_below = generated.cap.is_some_and(|cap| finding.episode.from <= ABOVE * cap);
    let acting = generated.causes.iter().filter(|cause| !(is_below && **cause == "rate-cap"));
    let causes: Vec<&'static str> = acting
        .flat_map(|cause| match *cause {
            "own-queue" | "congestive-loss" | "probe" => of_queue.to_vec(),
            cause => vec![cause],
        })
        .collect();
    // A slow return begins with the drop: a cause explains it if it acts for half of the return, else the missing probe does.
    let acts_in_return = generated.reacts_until_s.min(end) - generated.window_s.0.max(start) >= 0.5 * (end - start);
    let named = causes.iter().copied().find(|cause| *cause == said);
    let truth = match finding.episode.kind {
        EpisodeKind::SlowReturn => named.filter(|_| acts_in_return).unwrap_or("probe"),
        _ if acts => named.or(causes.first().copied()).unwrap_or(NONE),
        _ => NONE,
    };
    Scored {
        number: generated.number,
        format: generated.format,
        is_training: generated.is_training,
        causes: generated.causes.len(),
        truth,
        said,
        details: {
            let facts = Facts { flow, episode: &finding.episode };
            format!("{:?} loss {:?}", facts.delays(), facts.loss())
        },
        finding,
    }
}

/// Scores captures on all threads, in order.
pub fn score_all(numbers: impl IntoIterator<Item = u64>) -> Vec<Scored> {
    let numbers: Vec<u64> = numbers.into_iter().collect();
    numbers.par_iter().map(|number| score(*number)).collect::<Vec<_>>().into_iter().flatten().collect()
}

impl Scored {
    /// Returns whether the label is right. Where nothing acts, `unknown` is right.
    pub fn is_right(&self) -> bool {
        self.said == self.truth || (self.truth == NONE && self.said == UNKNOWN)
    }

    /// Returns whether it is a drop.
    pub fn is_drop(&self) -> bool {
        self.finding.episode.kind != EpisodeKind::SlowReturn
    }
}

/// Counts by truth and label.
pub fn matrix<'a>(scored: impl IntoIterator<Item = &'a Scored>) -> BTreeMap<(&'static str, &'static str), usize> {
    let mut counts = BTreeMap::new();
    for one in scored {
        *counts.entry((one.truth, one.said)).or_insert(0) += 1;
    }
    counts
}

/// Returns right ones and all.
pub fn right<'a>(scored: impl IntoIterator<Item = &'a Scored>) -> (usize, usize) {
    scored.into_iter().fold((0, 0), |(right, all), one| (right + usize::from(one.is_right()), all + 1))
}
