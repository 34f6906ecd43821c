//! The numbers of delivery-rate control.

use crate::params::config;
use paceline_units::TimeDelta;

config! {
    /// The parameters of delivery-rate control. `docs/algorithms/drc.md` gives the reason of each.
    ///
    /// The queue that a flow holds alone is longer than the reference, because the growth by `additive` balances the drain: about 28 ms
    /// on 2 Mbit/s and a round-trip time of 50 ms, 10 to 16 ms without it.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DrcConfig {
        /// The default values.
        default const DEFAULT;

        /// Shortest interval of feedback.
        feedback as "feedback_ms": TimeDelta = TimeDelta::from_millis(25), in 1.0..=1e4;
        /// Longest interval of feedback.
        feedback_longest as "feedback_longest_ms": TimeDelta = TimeDelta::from_millis(100), in 1.0..=1e4;
        /// Whether packets are ECT(1); otherwise they are Not-ECT.
        ecn: bool = true;
        /// Whether the flow competes with others that keep a queue; otherwise it yields to them.
        compete: bool = true;
        /// Whether an excess of loss lowers the rate; otherwise loss is ignored.
        loss: bool = true;
        /// Shortest window W of the delivery rate D.
        delivery as "delivery_ms": TimeDelta = TimeDelta::from_millis(200), in 100.0..=800.0;
        /// `b`: distance to D within which the own rate counts.
        band: f64 = 0.2, in 0.0..=1.0;
        /// `q_0`: queue that is always allowed, in addition to jitter.
        reference as "reference_ms": TimeDelta = TimeDelta::from_millis(8), in 1.0..=1e3;
        /// `k`: allowed jitter over the measured one.
        jitter_factor: f64 = 2.0, in 0.0..=10.0;
        /// `T_min`: shortest time in which an excess of the queue is drained.
        drain as "drain_ms": TimeDelta = TimeDelta::from_millis(400), in 10.0..=1e4;
        /// `a`: added to the rate in the time T at 1 Mbit/s.
        additive as "additive_bps": f64 = 65e3, unit "bit/s", in 0.0..=1e6;
        /// `gamma`: growth in the time L by a factor, on an empty path.
        growth: f64 = 0.18, in 0.0..=1.0;
        /// `q_window`: queue for which the window has room.
        window_queue as "window_ms": TimeDelta = TimeDelta::from_millis(60), in 1.0..=1e4;
        /// Pacing rate over rate, when no frame waits.
        pacing_factor: f64 = 1.25, in 1.0..=10.0;
        /// `tau`: the target is lower by what waits in the sender, divided by this time.
        backlog as "backlog_ms": TimeDelta = TimeDelta::from_millis(80), in 1.0..=1e5;
        /// `tau_p`: the pacing rate is higher by what waits in the sender, divided by this time.
        pace_backlog as "pace_backlog_ms": TimeDelta = TimeDelta::from_millis(33), in 1.0..=1e5;
    }
}
