//! Other traffic fills the queue: delay stays although less is sent.

use super::{Cause, Evidence, Strength, ms, queue_threshold};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::model::Quantity;

pub(super) const CAUSE: Cause = Cause {
    id: "cross-traffic",
    title: "cross traffic: others filled the queue",
    advice: "stop uploads and downloads beside the call, or give it a queue of its own (FQ-CoDel, DSCP, L4S)",
    examine,
};

/// Ours, for statistics: after the drop this share of the rise remains.
const REMAINS: f64 = 0.25;

/// Ours: a rise of the delay that the own packets do not explain.
const FOREIGN: f64 = 0.025;
const FOREIGN_SHARE: f64 = 0.35;
/// Ours: the spread of the delays within an interval.
const FRAMES: f64 = 1.2;
/// Ours: a queue that the controller does not drain in seconds is kept by others.
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
    let remains = match facts.foreign_queue(delays.base) {
        // Frames raise the delay of their own last packets.
        Some(foreign) => foreign >= FOREIGN.max(FOREIGN_SHARE * delays.rise).max(FRAMES * (delays.spike - delays.rise)),
        None => delays.after >= REMAINS * delays.rise,
    };
    let stood = facts.stood(delays.base).is_some_and(|least| least >= STANDS.max(STANDS_SHARE * delays.rise));
    let loss = facts.loss().map_or(0.0, |(share, _)| share);
    ((remains || stood) && loss < TCP_LOSS).then(|| Evidence {
        strength: Strength::Strong,
        text: match stood && !remains {
            true => format!("a queue of {} stood for seconds before the drop", ms(delays.rise)),
            false => format!(
                "delay rose by {}, and came back or stayed while less was sent than was carried",
                ms(delays.rise)
            ),
        },
        series: vec![Quantity::DelayLow, Quantity::RoundTrip, Quantity::SentRate],
        span: facts.window(),
    })
}
