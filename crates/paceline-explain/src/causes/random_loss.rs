// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets are lost without a queue.

use super::{Cause, Evidence, MUCH, QUEUE, Strength, percent, queue_threshold};
use crate::facts::Facts;
use crate::frames;
use crate::model::Quantity;

pub(super) const CAUSE: Cause = Cause {
    id: "random-loss",
    title: "random loss: packets were lost without a queue",
    advice: "look at the radio link or a bad cable; FEC and retransmission help, a lower rate does not",
    examine,
};

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let (share, _) = facts.notable_loss().filter(|_| facts.losses_last())?;
    let delays = facts.delays();
    let queued = frames::spread(facts).is_some()
        || delays.is_some_and(|delays| delays.rise >= queue_threshold(&delays).max(0.3 * delays.jitter));
    let is_random = facts.loses_at_random(delays.as_ref());
    // Statistics miss the queue of a few packets that a frame fills.
    let unseen = facts.is_coarse() && share < MUCH;
    let waited = delays.is_some_and(|delays| {
        delays.spike >= 2.0 * QUEUE && facts.losses_by_queue(&delays).is_some_and(|losses| losses.has_none_elsewhere())
    });
    Some(Evidence {
        strength: if (queued || unseen || waited) && !is_random { Strength::Weak } else { Strength::Strong },
        text: match (queued, waited) {
            _ if delays.is_none() => format!("{} of the packets lost; their delay is not in the input", percent(share)),
            (false, true) => format!("{} of the packets lost, only while others waited", percent(share)),
            (true, _) => format!("{} of the packets lost, with a queue and without", percent(share)),
            (false, false) => format!("{} of the packets lost, at unchanged delay", percent(share)),
        },
        series: vec![Quantity::PacketsLost, Quantity::DelayLow, Quantity::RoundTrip],
        span: facts.window(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episodes::{Episode, EpisodeKind};
    use crate::test_flow::{drop_between, packets, statistics};

    #[test]
    fn statistics_miss_a_short_queue_behind_a_few_losses() {
        let strength = |is_coarse: bool, share: f64, until: f64| {
            let during = |at: f64| (28.0..until).contains(&at);
            let (lost, sent) = if is_coarse { (100.0 * share, 100.0) } else { (10.0 * share, 10.0) };
            let lost = |at: f64| if during(at) { lost } else { 0.0 };
            let of = if is_coarse { statistics } else { packets };
            let flow = of(&[
                (Quantity::SentRate, &|_| 1e6),
                (Quantity::PacketsSent, &|_| sent),
                (Quantity::PacketsLost, &lost),
            ]);
            examine(&Facts { flow: &flow, episode: &drop_between(30.0, 31.0) }).map(|evidence| evidence.strength)
        };
        assert_eq!(strength(true, 0.08, 31.0), Some(Strength::Weak));
        assert_eq!(strength(true, 0.08, 50.0), Some(Strength::Strong), "they go on at the lower rate");
        assert_eq!(strength(true, 0.3, 31.0), Some(Strength::Strong));
        assert_eq!(strength(false, 0.08, 31.0), Some(Strength::Strong));
    }

    /// The losses of the last seconds end a plateau and do not hold it.
    #[test]
    fn losses_at_the_end_of_a_plateau_do_not_hold_it() {
        let found = |begin: f64| {
            let flow = packets(&[
                (Quantity::SentRate, &|_| 1e6),
                (Quantity::PacketsSent, &|_| 10.0),
                (Quantity::PacketsLost, &|at| if at >= begin { 5.0 } else { 0.0 }),
            ]);
            let episode = Episode { kind: EpisodeKind::Plateau, ..drop_between(2.0, 33.0) };
            examine(&Facts { flow: &flow, episode: &episode }).is_some()
        };
        assert_eq!([found(30.0), found(10.0)], [false, true]);
    }

    #[test]
    fn losses_where_packets_waited_may_be_those_of_a_queue() {
        let strength = |elsewhere: f64| {
            let waits = |at: f64| (29.0..31.0).contains(&at);
            let flow = packets(&[
                (Quantity::SentRate, &|_| 1e6),
                (Quantity::PacketsSent, &|_| 10.0),
                (Quantity::PacketsLost, &|at| if waits(at) { 1.0 } else { elsewhere }),
                (Quantity::DelayLow, &|_| 0.005),
                (Quantity::DelayHigh, &|at| if waits(at) { 0.06 } else { 0.01 }),
            ]);
            examine(&Facts { flow: &flow, episode: &drop_between(30.0, 31.0) }).map(|evidence| evidence.strength)
        };
        assert_eq!(strength(0.0), Some(Strength::Weak));
        assert_eq!(strength(1.0), Some(Strength::Strong));
    }
}
