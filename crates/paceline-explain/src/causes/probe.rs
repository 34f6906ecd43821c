// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path is free again, and no probe finds out.

use super::{Cause, Evidence, LOSS, Strength, queue_threshold, rate};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::model::{MarkKind, Quantity};

pub(super) const CAUSE: Cause = Cause {
    id: "probe",
    title: "failed or missing probe: the path was free again, and no probe showed it",
    advice: "allow probing (transport-wide feedback, padding, RTX); in libwebrtc, probes in ALR or after a large drop",
    examine,
};

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    if facts.episode.kind != EpisodeKind::SlowReturn {
        return None;
    }
    let (from, to) = facts.window();
    let (loss, _) = facts.loss_within(from, to).unwrap_or((0.0, 0.0));
    let threshold = facts.delays().map_or(0.0, |delays| queue_threshold(&delays));
    let delay = facts.flow.get(Quantity::DelayLow).and_then(|series| {
        let base = series.quantile(from, to, 0.05)?;
        Some(series.quantile(from, to, 0.5)? - base)
    });
    if loss >= LOSS || delay.is_some_and(|delay| delay >= threshold) {
        return None;
    }
    let from = facts.episode.start;
    let failed = facts.flow.marks(from, to).filter(|mark| mark.kind == MarkKind::ProbeFailed).count();
    let sent = facts.flow.marks(from, to).filter(|mark| matches!(mark.kind, MarkKind::ProbeSent(_))).count();
    let probes = match (failed, sent) {
        (0, 0) => "the input shows no probe".to_owned(),
        (0, sent) => format!("{sent} probes did not raise it"),
        (failed, _) => format!("{failed} probes failed"),
    };
    Some(Evidence {
        strength: Strength::Strong,
        text: format!(
            "{:.0} s after the drop only {} of {}, without loss or delay; {probes}",
            (to - from).as_secs_f64(),
            rate(facts.episode.to),
            rate(facts.episode.from)
        ),
        series: vec![Quantity::Target, Quantity::Estimate, Quantity::DelayLow],
        span: (from, to),
    })
}
