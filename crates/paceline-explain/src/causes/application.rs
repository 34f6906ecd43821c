// SPDX-License-Identifier: MIT OR Apache-2.0
//! The application or the encoder sends less than it may.

use super::{Cause, Evidence, LOSS, PAUSED, Strength, rate};
use crate::episodes::EpisodeKind;
use crate::facts::{Facts, LOST_MIN, SHORT_QUEUE};
use crate::model::{Limit, MarkKind, Quantity};
use paceline_units::TimeDelta;

pub(super) const CAUSE: Cause = Cause {
    id: "application",
    title: "application limit: less was sent than the controller allowed",
    advice: "look at the source: muted or paused tracks, still pictures, limits of the encoder (maxBitrate, scaleResolutionDownBy)",
    examine,
};

/// Assumed, close to libwebrtc's detector of application-limited regions, which fires when 80 % of the budget is left over after
/// sending below 65 % (`alr_detector.cc`).
const USED: f64 = 0.75;

/// Assumed: while the rate returns, encoders follow late, so that less counts.
const USED_RETURNING: f64 = 0.5;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let episode = facts.episode;
    let (quantity, allowed) = facts.flow.rate()?;
    if let Some(why) = facts.paused() {
        return Some(Evidence {
            strength: Strength::Strong,
            text: format!("{why}, at {}", rate(episode.to)),
            series: vec![Quantity::FrameRate, Quantity::Target, Quantity::Estimate, Quantity::SentRate],
            span: facts.window(),
        });
    }
    if !matches!(quantity, Quantity::Target | Quantity::Estimate) {
        let lossless = facts.loss().is_none_or(|(share, _)| share < LOSS);
        // A short queue does not lower a rate to nearly nothing: GCC goes to 0.85 of what arrives.
        let short = facts.delays().is_none_or(|delays| delays.rise < SHORT_QUEUE);
        let (from, to) = facts.window();
        let unmarked = facts.flow.get(Quantity::CeArrived).is_none_or(|marked| marked.sum(from, to) < LOST_MIN);
        let free = lossless && short && unmarked;
        let paused = episode.kind == EpisodeKind::Drop && free && episode.to <= PAUSED * episode.from;
        // Packets of one direction without reports show nothing of the path.
        let (strength, path) = match facts.loss().is_none() && facts.delays().is_none() {
            true => (Strength::Weak, "; losses, delays and"),
            false => (Strength::Strong, ", without loss or a long queue;"),
        };
        let (is, sent) = (if strength == Strength::Weak { "are" } else { "is" }, rate(episode.to));
        return paused.then(|| Evidence {
            strength,
            text: format!("only {sent} was sent{path} the target {is} not in the input"),
            series: vec![Quantity::SentRate],
            span: facts.window(),
        });
    }
    let second = TimeDelta::from_secs(1);
    let span = match episode.kind {
        EpisodeKind::SentDrop => (episode.end, episode.end + second * 3),
        EpisodeKind::Plateau => (episode.start, episode.end),
        // The rate of a sender that sent too little before is lowered to what it sent.
        EpisodeKind::Drop => (episode.start - second * 3, episode.start - TimeDelta::from_millis(300)),
        EpisodeKind::SlowReturn => (episode.start + second, episode.end),
    };
    // A track that is muted or paused begins its encoder anew, which lowers the target and not the estimate.
    let after = (episode.end + second, episode.end + second * 4);
    let stopped = facts.spare_estimate().is_some() && episode.kind == EpisodeKind::Drop;
    if let Some(sent) = facts.sent(after.0, after.1).filter(|sent| stopped && *sent <= PAUSED * episode.to) {
        return Some(Evidence {
            strength: Strength::Strong,
            text: format!("{} was sent after it of {} allowed", rate(sent), rate(episode.to)),
            series: vec![Quantity::SentRate, Quantity::Target, Quantity::Estimate],
            span: after,
        });
    }
    let (sent, allowed) = (facts.sent(span.0, span.1)?, allowed.mean(span.0, span.1).or(allowed.at(span.0))?);
    // The receiver may allow less than the estimate.
    let cap = facts.flow.get(Quantity::Cap).and_then(|caps| caps.mean(span.0, span.1).or(caps.at(span.0)));
    let allowed = cap.map_or(allowed, |cap| cap.min(allowed));
    let paused = facts.flow.marks(span.0 - second * 2, span.1).any(|mark| mark.kind == MarkKind::Active(false));
    let says_so = facts.flow.marks(span.0 - second, span.1).any(|mark| mark.kind == MarkKind::ApplicationLimited(true));
    // Of an interval of many seconds the mean says less: too little was sent at both ends of it, and not for want of bandwidth.
    if facts.is_sparse() && matches!(episode.kind, EpisodeKind::Drop | EpisodeKind::SentDrop) && !paused {
        let interval = facts.flow.interval;
        let target = facts.flow.get(quantity)?;
        let has_spare = |from, to, at| {
            facts.sent(from, to).zip(target.at(at)).is_some_and(|(sent, allowed)| sent <= USED * allowed)
        };
        let ends = (episode.start.min(episode.end), episode.end);
        let both = has_spare(ends.0 - interval, ends.0, ends.0) && has_spare(ends.1, ends.1 + interval, ends.1);
        if !both || facts.limit() == Some(Limit::Bandwidth) {
            return None;
        }
    }
    let used = if episode.kind == EpisodeKind::SlowReturn { USED_RETURNING } else { USED };
    if sent > used * allowed && !paused {
        return None;
    }
    // As it does when it is shown again.
    let began = stopped && sent <= PAUSED * allowed;
    let strong = episode.kind != EpisodeKind::Drop || paused || says_so || began;
    Some(Evidence {
        strength: if strong { Strength::Strong } else { Strength::Weak },
        text: format!("{} was sent of {} allowed", rate(sent), rate(allowed)),
        series: vec![Quantity::SentRate, Quantity::Target, Quantity::Estimate],
        span,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episodes::Episode;
    use crate::model::Mark;
    use crate::test_flow::{drop_between, packets, statistics};
    use paceline_units::Time;

    /// Samples each 10 s: a target that falls at 30 s, what was sent in the intervals before and after, and the reason of the encoder.
    fn drop(before: f64, after: f64, limit: Limit) -> Option<Evidence> {
        let mut flow = statistics(&[
            (Quantity::Target, &|at| if at < 30.0 { 2e6 } else { 1e6 }),
            (Quantity::SentRate, &|at| if at < 30.0 { before } else { after }),
        ]);
        flow.interval = TimeDelta::from_secs(10);
        flow.marks.push(Mark { at: Time::from_secs(30), kind: MarkKind::Limited(limit) });
        examine(&Facts { flow: &flow, episode: &drop_between(29.9, 30.0) })
    }

    #[test]
    fn between_rare_samples_too_little_is_sent_at_both_ends_and_not_for_bandwidth() {
        assert!(drop(5e5, 3e5, Limit::Other).is_some());
        assert_eq!(drop(5e5, 9e5, Limit::Other), None, "as much as is allowed after it");
        assert_eq!(drop(1.9e6, 3e5, Limit::Other), None, "as much as was allowed before it");
        assert_eq!(drop(5e5, 3e5, Limit::Bandwidth), None);
    }

    /// A target of 0 is a pause if the estimate allows what was sent before, and not if it is below what video needs.
    #[test]
    fn a_target_of_zero_by_a_poor_estimate_is_no_pause() {
        let why = |before: f64, estimate: f64| {
            let flow = statistics(&[
                (Quantity::Target, &|at| if at < 30.0 { before } else { 0.0 }),
                (Quantity::Estimate, &|_| estimate),
            ]);
            let episode = Episode { from: before, to: 0.0, ..drop_between(29.9, 30.0) };
            Facts { flow: &flow, episode: &episode }.paused()
        };
        assert!(why(1.5e6, 2e6).is_some() && why(1.5e6, 1.5e6).is_some());
        assert_eq!([why(40e3, 45e3), why(1.5e6, 4e5)], [None, None]);
    }

    #[test]
    fn without_a_target_a_fall_after_marks_is_no_pause() {
        let is_pause = |marked: f64| {
            let flow = packets(&[
                (Quantity::SentRate, &|at| if at < 30.0 { 2e6 } else { 1e5 }),
                (Quantity::CeArrived, &|_| marked),
            ]);
            let episode = Episode { to: 1e5, ..drop_between(29.9, 30.0) };
            examine(&Facts { flow: &flow, episode: &episode }).is_some()
        };
        assert_eq!([is_pause(0.0), is_pause(1.0)], [true, false]);
    }

    #[test]
    fn packets_of_one_direction_without_reports_are_weak_evidence_of_a_pause() {
        let strength = |lost: f64| {
            let flow = packets(&[
                (Quantity::SentRate, &|at| if at < 30.0 { 2e6 } else { 1e5 }),
                (Quantity::PacketsSent, &|_| 10.0),
                (Quantity::PacketsLost, &|_| lost),
            ]);
            let episode = Episode { to: 1e5, ..drop_between(29.9, 30.0) };
            examine(&Facts { flow: &flow, episode: &episode }).unwrap().strength
        };
        assert_eq!([strength(0.0), strength(f64::NAN)], [Strength::Strong, Strength::Weak]);
    }
}
