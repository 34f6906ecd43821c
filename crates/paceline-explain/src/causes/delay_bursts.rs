// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path holds packets for some tens of milliseconds again and again, as Wi-Fi and cellular links do.

use super::{Cause, Evidence, Strength, ms};
use crate::episodes::EpisodeKind;
use crate::facts::{Facts, REACTION};
use crate::frames;
use crate::model::{Quantity, sorted};
use paceline_units::{Time, TimeDelta};

pub(super) const CAUSE: Cause = Cause {
    id: "delay-bursts",
    title: "delay bursts: packets were held and came at once",
    advice: "try another access link: radio links that scan, roam, save power or share a channel hold packets, and so do busy hosts",
    examine,
};

/// Assumed, because libwebrtc joins packets that arrive within 5 ms of each other to bursts of at most 100 ms (`inter_arrival_delta.cc`), so
/// shorter gaps than 25 ms rarely matter.
const SPIKE: f64 = 0.025;
/// Assumed: nearly the whole delay arises between two packets; a queue grows packet by packet.
const AT_ONCE: f64 = 0.65;
/// Assumed: the delay is gone again after this time. A queue needs longer to drain.
const GONE: TimeDelta = TimeDelta::from_millis(800);
/// Assumed: the time in which a link at the highest delivered rate carries this many full packets is not a gap.
const PACKETS: f64 = 5.0;
const PACKET_BITS: f64 = 1228.0 * 8.0;
/// Assumed: such a gap is one also beside losses, s. A short queue explains no gap of this length.
const LARGE: f64 = 0.08;
/// The time before and after the drop. Assumed: gaps that come again do so within seconds.
const SPAN: TimeDelta = TimeDelta::from_millis(4000);

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    if facts.episode.kind == EpisodeKind::SlowReturn {
        return None;
    }
    let (from, to) = facts.window();
    if facts.flow.get(Quantity::ArrivalGap).is_none() {
        return by_jitter(facts);
    }
    // The first of several gaps may be the one that lowers the rate.
    let (from, to) = (from - SPAN, to + SPAN);
    let [low, high, gaps] = [Quantity::DelayLow, Quantity::DelayHigh, Quantity::ArrivalGap].map(|q| facts.flow.get(q));
    let (low, high, gaps) = (low?, high?, gaps?);
    let base = low.quantile(from, to, 0.1)?;
    // A slow link takes long for each packet. What comes after a gap comes at the rate of the link.
    let carried = facts.flow.get(Quantity::ReceivedRate).and_then(|series| series.max(from, to)).unwrap_or(f64::MAX);
    let least = SPIKE.max(PACKETS * PACKET_BITS / carried.max(1.0));
    let bins = high.within(from, to).iter().zip(gaps.within(from, to));
    let mut spikes = Vec::new();
    for ((at, delay), (_, gap)) in bins {
        let spike = delay - base;
        let after = low.within(*at, *at + GONE).iter().map(|point| point.1).fold(f64::MAX, f64::min);
        let is_spike = spike >= least && *gap >= AT_ONCE * spike && after - base <= 0.35 * spike;
        if is_spike && spikes.last().is_none_or(|(last, _)| *at - *last >= TimeDelta::from_millis(200)) {
            spikes.push((*at, spike));
        }
    }
    let largest = spikes.iter().map(|(_, spike)| *spike).fold(0.0, f64::max);
    // Between the bursts there is no queue.
    let median = low.quantile(from, to, 0.6)? - base;
    // Wi-Fi sends again what was lost: with losses, only gaps that no short queue explains count.
    let lossy = facts.loss().is_some_and(|(share, _)| share >= 2.5 * super::LOSS);
    if (lossy || frames::spread(facts).is_some()) && largest < LARGE {
        return None;
    }
    let is_cause = spikes.iter().any(|(at, _)| *at <= facts.window().1 && *at >= facts.episode.start - REACTION);
    (is_cause && spikes.len() >= 2 && median <= 0.35 * largest).then(|| Evidence {
        strength: Strength::Strong,
        text: format!("{} gaps of up to {}, after which packets came at once", spikes.len(), ms(largest)),
        series: vec![Quantity::DelayHigh, Quantity::ArrivalGap, Quantity::DelayLow],
        span: (from, to),
    })
}

/// Assumed: jitter of statistics. A queue that grows packet by packet has less.
const JITTER: f64 = 0.004;
/// Assumed: and so many times that of the rest of the call, whose jitter may always be high.
const TIMES: f64 = 2.0;

/// Assumed: the jitter of other rates is looked for so long before and after a drop.
const USUAL: TimeDelta = TimeDelta::from_secs(600);

/// Assumed: a longer rise of the round-trip time is a queue, s. Longer gaps are outages.
const LONGEST: f64 = 0.4;

/// Returns jitter over the sent rate, because the packets of larger frames wait longer for each other on any path.
fn per_bit(facts: &Facts<'_>, (at, jitter): (Time, f64)) -> Option<f64> {
    let sent = facts.sent(at - TimeDelta::from_secs(2), at + TimeDelta::from_secs(1))?;
    (sent > 0.0).then_some(jitter / sent)
}

fn by_jitter(facts: &Facts<'_>) -> Option<Evidence> {
    let lossless = facts.loss().is_none_or(|(share, _)| share < super::LOSS);
    let long = facts.delays().is_some_and(|delays| delays.rise > LONGEST);
    // A slow bottleneck raises the jitter too, and for longer.
    if !lossless || long || frames::spread(facts).is_some() {
        return None;
    }
    let jitter = facts.flow.get(Quantity::Jitter)?;
    let (from, to) = facts.window();
    let from = from - TimeDelta::from_secs(2);
    let usual = jitter.quantile(facts.flow.span.0, facts.flow.span.1, 0.25)?;
    let usual_per_bit = {
        let near = jitter.within(from - USUAL, to + USUAL).iter();
        let all = sorted(near.filter_map(|sample| per_bit(facts, *sample)));
        all.get(all.len() / 4).copied().unwrap_or(0.0)
    };
    let is_high = |sample: &&(Time, f64)| {
        sample.1 >= JITTER.max(TIMES * usual)
            && per_bit(facts, **sample).is_none_or(|per_bit| per_bit >= TIMES * usual_per_bit)
    };
    let high = jitter.within(from, to).iter().filter(is_high).map(|(_, jitter)| *jitter).reduce(f64::max);
    if let Some(high) = high {
        return Some(Evidence {
            strength: Strength::Weak,
            text: format!("jitter rose to {} from {}, without loss", ms(high), ms(usual)),
            series: vec![Quantity::Jitter, Quantity::RoundTrip],
            span: (from, to),
        });
    }
    let rise = facts.isolated_round_trip().filter(|rise| *rise >= SPIKE)?;
    Some(Evidence {
        strength: Strength::Weak,
        text: format!("a single round-trip time was {} longer, without loss", ms(rise)),
        series: vec![Quantity::RoundTrip],
        span: (from, to),
    })
}
