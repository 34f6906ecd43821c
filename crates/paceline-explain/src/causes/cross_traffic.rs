//! Other traffic fills the queue: what is carried of the flow varies although the queue stands.

use super::{Cause, Evidence, Strength, ms, percent, queue_threshold};
use crate::carried;
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::frames;
use crate::model::Quantity;

pub(super) const CAUSE: Cause = Cause {
    id: "cross-traffic",
    title: "cross traffic: others filled the queue",
    advice: "stop uploads and downloads beside the call, or give it a queue of its own (FQ-CoDel, DSCP, L4S)",
    examine,
};

/// Ours: what is carried of a single flow while its queue stands varies by less. One packet of 1228 bytes in 500 ms is 20 kbit/s,
/// or 4 % of 500 kbit/s; statistics say neither when a round-trip time was measured nor what arrived.
const SHARED: f64 = 0.15;
const SHARED_COARSE: f64 = 0.25;

/// Ours, for statistics: after the drop this share of the rise remains.
const REMAINS: f64 = 0.25;
/// Ours, for statistics: a queue that the controller does not drain in seconds is kept by others.
const STANDS: f64 = 0.06;
const STANDS_SHARE: f64 = 0.4;
/// Above this share of lost packets TCP would not keep a queue: at 5 % and a round trip of 200 ms its rate is below 300 kbit/s
/// (RFC 5348, equation 1).
const TCP_LOSS: f64 = 0.05;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    if facts.episode.kind == EpisodeKind::SlowReturn {
        return None;
    }
    let delays = facts.delays()?;
    if delays.rise < queue_threshold(&delays).max(0.5 * delays.jitter) {
        return None;
    }
    let varies = carried::spread(facts, delays.base).unwrap_or(0.0);
    let loss = facts.loss().map_or(0.0, |(share, _)| share);
    let is_shared = if delays.is_one_way {
        varies >= SHARED && !(loss >= TCP_LOSS && facts.loses_at_random(&delays))
    } else {
        let stood = facts.stood(delays.base).is_some_and(|least| least >= STANDS.max(STANDS_SHARE * delays.rise));
        let remains = delays.after >= queue_threshold(&delays).max(REMAINS * delays.rise);
        // A slow bottleneck that the flow fills again and again has a queue too.
        let kept = (remains || stood) && frames::spread(facts).is_none();
        (varies >= SHARED_COARSE || kept) && loss < TCP_LOSS
    };
    is_shared.then(|| Evidence {
        strength: Strength::Strong,
        text: match varies >= SHARED {
            true => format!(
                "delay rose by {}, and what was carried varied by {} while the queue stood",
                ms(delays.rise),
                percent(varies)
            ),
            false => format!("a queue of {} stayed or came back although less was sent", ms(delays.rise)),
        },
        series: vec![Quantity::DelayLow, Quantity::RoundTrip, Quantity::ReceivedRate, Quantity::SentRate],
        span: facts.window(),
    })
}
