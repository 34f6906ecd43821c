// SPDX-License-Identifier: MIT OR Apache-2.0
//! The session or the receiver allows no more.

use super::{Cause, Evidence, LOSS, PAUSED, Strength, queue_threshold, rate};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::frames;
use crate::model::{Flow, MarkKind, Quantity, Series};
use paceline_units::{Time, TimeDelta};

pub(super) const CAUSE: Cause = Cause {
    id: "rate-cap",
    title: "rate cap: the receiver or the session allows no more",
    advice: "look for REMB, b=AS or b=TIAS in the SDP, x-google-max-bitrate, and maxBitrate of setParameters",
    examine,
};

/// Assumed: a cap holds the rate constant to this share for this time. Controllers change their rate more, and within a second.
const CONSTANT: f64 = 0.005;
const HOLDS: TimeDelta = TimeDelta::from_millis(2500);
/// Assumed: statistics have one sample a second.
const HOLDS_COARSE: TimeDelta = TimeDelta::from_millis(3500);
/// Assumed: beside a short queue it holds it for so long. Controllers that probe raise the rate in less.
const LONG: TimeDelta = TimeDelta::from_secs(8);
/// Assumed: estimates and caps that fall to more than this share of their value vary by themselves.
const FELL: f64 = 0.8;
/// Assumed: the rate and the announced limit differ by at most this share, because limits count payload and rates whole packets.
const NEAR: f64 = 0.12;

/// Assumed: without a target, the lower rate must last for this time, up to this multiple. Rates of encoders vary by less.
const CAP_MIN_DURATION: TimeDelta = TimeDelta::from_secs(5);
const UP_TO: f64 = 1.3;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let episode = facts.episode;
    // Nothing to send needs no cap.
    let (quantity, series) = facts.flow.rate().filter(|_| facts.paused().is_none())?;
    let (from, to) = facts.window();
    let near = |cap: f64| (episode.to - cap).abs() <= NEAR * cap;
    let series_of = vec![quantity, Quantity::Cap];
    // A limit that was set before holds a plateau.
    let set_from = if episode.kind == EpisodeKind::Plateau { Time::ZERO } else { from };
    let said = facts.flow.marks(set_from, to).find_map(|mark| match mark.kind {
        MarkKind::CapSet(cap) if near(cap) => Some(cap),
        _ => None,
    });
    let announced =
        facts.flow.get(Quantity::Cap).and_then(|caps| caps.at(to)).filter(|cap| near(*cap) || cap_fell(facts, *cap));
    let clean = facts.loss().is_none_or(|(share, _)| share < LOSS)
        && facts.delays().is_none_or(|delays| delays.rise < queue_threshold(&delays))
        && frames::spread(facts).is_none();
    let flat = match episode.kind {
        // Between two samples a value holds in any case.
        EpisodeKind::Drop if facts.is_coarse() => {
            holds(facts, series, HOLDS_COARSE.max(facts.flow.interval.scale(3.5)))
        }
        EpisodeKind::Drop => holds(facts, series, HOLDS),
        EpisodeKind::Plateau => stays(series, episode.start + TimeDelta::from_secs(1), episode.end),
        EpisodeKind::SentDrop | EpisodeKind::SlowReturn => false,
    };
    let evidence = |strength, text| Evidence { strength, text, series: series_of.clone(), span: (from, to) };
    if let Some(cap) = said {
        return Some(evidence(Strength::Strong, format!("the limit {} was set", rate(cap))));
    }
    // The encoder stays below what the controller allows. Push-back lowers the target alone, too, but because of a queue.
    let spare = facts.spare_estimate().filter(|_| episode.kind == EpisodeKind::Plateau || clean);
    if let Some(estimate) = spare {
        let text = format!("the estimate allows {}, the target is {}", rate(estimate), rate(episode.to));
        return Some(evidence(Strength::Strong, text));
    }
    // The controllers that send REMB lower it for the reasons below: it is a cap where nothing else shows, or where it
    // stays for long after a queue.
    let stays_announced = || {
        let falls = matches!(episode.kind, EpisodeKind::Drop | EpisodeKind::SentDrop);
        let until = episode.end + LONG;
        falls
            && facts.flow.span.1 >= until
            && facts.flow.get(Quantity::Cap).is_some_and(|caps| stays(caps, episode.end, until))
    };
    if let Some(cap) = announced.filter(|_| clean || (drained(facts) && stays_announced())) {
        return Some(evidence(Strength::Strong, format!("the receiver announces {}", rate(cap))));
    }
    // Packets alone: a cap leaves a lower rate, a paused source leaves nearly nothing.
    if quantity == Quantity::SentRate
        && episode.kind == EpisodeKind::Drop
        && clean
        && episode.to > PAUSED * episode.from
        && lasts(facts)
    {
        let text =
            format!("the sent rate fell to {} without loss or delay; its target is not in the input", rate(episode.to));
        return Some(evidence(Strength::Weak, text));
    }
    let is_step = episode.end - episode.start <= step(facts) || estimate_steps(facts, episode.end + HOLDS);
    match (flat && clean, episode.kind) {
        (true, EpisodeKind::Plateau) => {
            Some(evidence(Strength::Weak, format!("the rate stays at exactly {}", rate(episode.to))))
        }
        (true, EpisodeKind::Drop) if is_step => Some(evidence(
            Strength::Strong,
            format!("the rate stepped to exactly {} without loss or delay", rate(episode.to)),
        )),
        (false, EpisodeKind::Drop) if flat && is_step && drained(facts) && holds(facts, series, LONG) => {
            Some(evidence(
                Strength::Strong,
                format!("the rate stepped to exactly {} and stayed there after the queue was empty", rate(episode.to)),
            ))
        }
        _ => None,
    }
}

/// Returns whether the rate, or the estimate, stays for this time at the value to which it fell, although reports arrive: without
/// them a rate stays as it is.
fn holds(facts: &Facts<'_>, series: &Series, time: TimeDelta) -> bool {
    let (end, until) = (facts.episode.end, facts.episode.end + time);
    let reported = facts.flow.get(Quantity::Feedback).is_none_or(|feedback| feedback.sum(end, until) > 0.0);
    // The target of encoders follows a REMB only roughly; the estimate equals it.
    reported && facts.flow.span.1 >= until && (stays(series, end, until) || estimate_steps(facts, until))
}

/// Returns whether a queue was gone soon after the drop. A queue that is gone does not hold a rate at one value.
fn drained(facts: &Facts<'_>) -> bool {
    facts.loss().is_none_or(|(share, _)| share < LOSS)
        && facts.delays().is_none_or(|delays| delays.after < queue_threshold(&delays))
        && frames::spread(facts).is_none()
}

/// Returns whether the sent rate fell with the cap, to a rate below it.
fn cap_fell(facts: &Facts<'_>, cap: f64) -> bool {
    let (from, end) = (facts.window().0, facts.episode.end);
    let fell = facts.flow.get(Quantity::Cap).and_then(|caps| caps.at(from)).is_some_and(|before| cap <= FELL * before);
    let sent = facts.sent(end, end + TimeDelta::from_secs(3));
    fell && facts.episode.kind == EpisodeKind::SentDrop && sent.is_some_and(|sent| sent <= (1.0 + NEAR) * cap)
}

/// Returns whether a series stays at one value.
fn stays(series: &Series, from: Time, to: Time) -> bool {
    let values = || series.within(from, to).iter().map(|point| point.1).chain(series.at(from));
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    high - low <= CONSTANT * high
}

/// Returns whether the estimate fell with the target to a value at which it stays until a time.
fn estimate_steps(facts: &Facts<'_>, until: Time) -> bool {
    let Some(estimate) = facts.flow.get(Quantity::Estimate) else { return false };
    let (start, end) = (facts.episode.start, facts.episode.end);
    let fell = estimate.at(start).zip(estimate.at(end)).is_some_and(|(before, after)| after <= FELL * before);
    fell && stays(estimate, end.min(start + step(facts)), until)
}

/// Returns how long a step takes at most.
fn step(facts: &Facts<'_>) -> TimeDelta {
    TimeDelta::from_millis(400).max(facts.flow.interval.scale(1.5))
}

/// Returns whether this rate is near a limit that was set or announced until a time.
pub(super) fn is_known(flow: &Flow, rate: f64, until: Time) -> bool {
    let set = flow.marks(Time::ZERO, until).filter_map(|mark| match mark.kind {
        MarkKind::CapSet(cap) => Some(cap),
        _ => None,
    });
    let announced = flow.get(Quantity::Cap).and_then(|caps| caps.at(until));
    set.chain(announced).any(|cap| (rate - cap).abs() <= NEAR * cap)
}

/// Returns whether each second after the drop had about its rate.
fn lasts(facts: &Facts<'_>) -> bool {
    let (end, second) = (facts.episode.end, TimeDelta::from_secs(1));
    let mut seconds = (0..CAP_MIN_DURATION.as_nanos() / second.as_nanos()).map(|index| end + second * index);
    seconds.all(|at| facts.sent(at, at + second).is_some_and(|sent| sent <= UP_TO * facts.episode.to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episodes::Episode;
    use crate::test_flow::{packets, statistics};

    /// A queue of 50 ms from 29 s to 31 s.
    fn queue(at: f64) -> f64 {
        if (29.0..31.0).contains(&at) { 0.05 } else { 0.0 }
    }

    #[test]
    fn a_rate_that_stays_for_long_is_capped_also_beside_a_short_queue() {
        let found = |until: f64, drains: bool| {
            let estimate = |at: f64| match at {
                at if at < 30.0 => 2e6,
                at if at < until => 1e6,
                at => 1e6 + 1e5 * (at - until + 1.0),
            };
            let delay = |at: f64| 0.05 + if drains || at < 31.0 { queue(at) } else { 0.05 };
            let flow = statistics(&[
                (Quantity::Target, &estimate),
                (Quantity::Estimate, &estimate),
                (Quantity::SentRate, &estimate),
                (Quantity::RoundTrip, &delay),
            ]);
            let episode = crate::test_flow::drop_between(29.9, 30.0);
            examine(&Facts { flow: &flow, episode: &episode }).map(|evidence| evidence.text)
        };
        let text = "the rate stepped to exactly 1.00 Mbit/s and stayed there after the queue was empty";
        assert_eq!(found(50.0, true).as_deref(), Some(text));
        assert_eq!(found(35.0, true), None, "a controller raises its rate after a queue");
        assert_eq!(found(50.0, false), None, "the queue is still there");
    }

    #[test]
    fn a_limit_that_is_announced_for_long_is_a_cap_also_beside_a_short_queue() {
        let found = |until: f64| {
            let cap = |at: f64| if (30.0..until).contains(&at) { 1e6 } else { 2e6 };
            let sent = |at: f64| if at < 30.0 { 2e6 } else { 0.9e6 };
            let flow = packets(&[
                (Quantity::Cap, &cap),
                (Quantity::SentRate, &sent),
                (Quantity::DelayLow, &queue),
                (Quantity::DelayHigh, &queue),
                (Quantity::Target, &|_| 3e6),
            ]);
            let drop = crate::test_flow::drop_between(29.5, 30.5);
            let episode = Episode { kind: EpisodeKind::SentDrop, to: 0.9e6, ..drop };
            examine(&Facts { flow: &flow, episode: &episode }).map(|evidence| evidence.text)
        };
        assert_eq!(found(50.0).as_deref(), Some("the receiver announces 1.00 Mbit/s"));
        assert_eq!(found(35.0), None, "a receiver that controls the rate raises it after a queue");
    }
}
