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

/// Ours: a cap holds the rate constant to this share for this time. Controllers change their rate more, and within a second.
const CONSTANT: f64 = 0.005;
const HOLDS: TimeDelta = TimeDelta::from_millis(2500);
/// Ours: statistics have one sample a second.
const HOLDS_COARSE: TimeDelta = TimeDelta::from_millis(3500);
/// Ours: estimates and caps that fall to more than this share of their value vary by themselves.
const FELL: f64 = 0.8;
/// Ours: the rate and the announced limit differ by at most this share, because limits count payload and rates whole packets.
const NEAR: f64 = 0.12;

/// Ours: without a target, the lower rate must last for this time, up to this multiple. Rates of encoders vary by less.
const LASTS: TimeDelta = TimeDelta::from_secs(5);
const UP_TO: f64 = 1.3;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let episode = facts.episode;
    let (quantity, series) = facts.flow.rate()?;
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
    let is_flat = |from, to| stays(series, from, to);
    let clean = facts.loss().is_none_or(|(share, _)| share < LOSS)
        && facts.delays().is_none_or(|delays| delays.rise < queue_threshold(&delays))
        && frames::spread(facts).is_none();
    let flat = match episode.kind {
        EpisodeKind::Drop => {
            // Between two samples a value holds in any case.
            let coarse = HOLDS_COARSE.max(facts.flow.interval.scale(3.5));
            let holds = if facts.is_coarse() { coarse } else { HOLDS };
            // Without reports, a rate stays as it is.
            let reported =
                facts.flow.get(Quantity::Feedback).is_none_or(|f| f.sum(episode.end, episode.end + holds) > 0.0);
            let until = episode.end + holds;
            // The target of encoders follows a REMB only roughly; the estimate equals it.
            let is_flat = is_flat(episode.end, until) || estimate_steps(facts, until);
            reported && is_flat && facts.flow.span.1 >= until
        }
        EpisodeKind::Plateau => is_flat(episode.start + TimeDelta::from_secs(1), episode.end),
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
    // The controllers that send REMB lower it for the reasons below: it is a cap only where nothing else shows.
    if let Some(cap) = announced.filter(|_| clean) {
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
    let is_step = episode.end - episode.start <= TimeDelta::from_millis(400).max(facts.flow.interval.scale(1.5));
    match (flat && clean, episode.kind) {
        (true, EpisodeKind::Plateau) => {
            Some(evidence(Strength::Weak, format!("the rate stays at exactly {}", rate(episode.to))))
        }
        (true, EpisodeKind::Drop) if is_step => Some(evidence(
            Strength::Strong,
            format!("the rate stepped to exactly {} without loss or delay", rate(episode.to)),
        )),
        _ => None,
    }
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
    fell && stays(estimate, end, until)
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
    let mut seconds = (0..LASTS.as_nanos() / second.as_nanos()).map(|index| end + second * index);
    seconds.all(|at| facts.sent(at, at + second).is_some_and(|sent| sent <= UP_TO * facts.episode.to))
}
