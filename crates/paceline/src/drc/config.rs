// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of delivery-rate control.

use crate::params::config;
use paceline_units::TimeDelta;

config! {
    /// The parameters of delivery-rate control. `docs/algorithms/drc.md` gives the reason of each.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DrcConfig {
        /// The default values.
        default const DEFAULT;

        /// Shortest interval of feedback.
        feedback as "feedback_ms": TimeDelta = TimeDelta::from_millis(25), in 1.0..=1e4;
        /// `W`: memory of the delivery rate, and longest interval of feedback.
        delivery as "delivery_ms": TimeDelta = TimeDelta::from_millis(100), in 10.0..=1e4;
        /// Whether packets are ECT(1); otherwise they are Not-ECT.
        ecn: bool = true;
        /// Whether a queue that the flow cannot drain is left to others; otherwise the flow yields to them.
        compete: bool = true;
        /// Whether an excess of loss lowers the rate; otherwise loss is ignored.
        loss: bool = true;
        /// `q_0`: queue that is always allowed, in addition to jitter.
        reference as "reference_ms": TimeDelta = TimeDelta::from_millis(2), in 0.1..=1e3;
        /// `k`: allowed jitter over the measured one.
        jitter_factor: f64 = 8.0, in 0.0..=100.0;
        /// Weight of a message in the jitter, in the round-trip time and in the interval of feedback.
        gain: f64 = 0.02, in 1e-4..=1.0;
        /// `T_min`: shortest time in which an excess of the queue is drained.
        drain as "drain_ms": TimeDelta = TimeDelta::from_millis(400), in 10.0..=1e4;
        /// T over L.
        drain_factor: f64 = 1.5, in 0.5..=10.0;
        /// `a`: added to the rate in the time T at 1 Mbit/s.
        additive as "additive_bps": f64 = 65e3, unit "bit/s", in 0.0..=1e6;
        /// `g_0`: growth in the time L after a queue.
        growth: f64 = 0.005, in 0.0..=0.5;
        /// `e`: least excess of loss.
        excess: f64 = 0.01, in 1e-3..=0.3;
        /// `h`: evidence of loss that lowers the rate, a logarithm of odds.
        evidence: f64 = 7.0, in 0.1..=100.0;
        /// `P`: time in which losses and marks count.
        period as "period_ms": TimeDelta = TimeDelta::from_secs(1), in 10.0..=1e5;
        /// Fewest packets in which losses count.
        packets: f64 = 100.0, in 1.0..=1e4;
        /// `b`: rate after a loss, over what arrived.
        loss_factor: f64 = 0.85, in 0.1..=1.0;
        /// `M`: time in which a loss, and the queue of others, is forgotten.
        memory as "memory_ms": TimeDelta = TimeDelta::from_secs(30), in 1.0..=1e6;
        /// Times T after which a queue that is still there may be that of others.
        drains: f64 = 4.0, in 0.1..=100.0;
        /// `q_window`: queue for which the window has room.
        window_queue as "window_ms": TimeDelta = TimeDelta::from_millis(40), in 1.0..=1e4;
        /// Pacing rate over rate, when no frame waits, and rate over delivery rate in an experiment.
        pacing_factor: f64 = 1.25, in 1.0..=10.0;
        /// Pacing rate over rate, while packets are marked.
        marked_pacing: f64 = 1.1, in 1.0..=10.0;
        /// `tau`: the target is lower by what waits too long in the sender, divided by this time.
        backlog as "backlog_ms": TimeDelta = TimeDelta::from_millis(80), in 1.0..=1e5;
        /// `tau_p`: frames may wait this long. The pacing rate is higher by what waits longer, divided by it.
        pace_backlog as "pace_backlog_ms": TimeDelta = TimeDelta::from_millis(33), in 1.0..=1e5;
    }
}
