//! The numbers of delivery-rate control.

use crate::FieldVisitor;
use paceline_units::TimeDelta;

/// The numbers of delivery-rate control. `docs/algorithms/drc.md` gives the reason of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrcConfig {
    /// The shortest interval of feedback.
    pub(crate) feedback: TimeDelta,
    /// The longest interval of feedback.
    pub(crate) feedback_longest: TimeDelta,
    /// Whether packets are ECT(1).
    pub(crate) ecn: bool,
    /// Whether the flow competes with others that keep a queue.
    pub(crate) compete: bool,
    /// Whether an excess of loss lowers the rate.
    pub(crate) loss: bool,
    /// The least window of the delivery rate.
    pub(crate) delivery: TimeDelta,
    /// b: the distance to the delivery rate within which the own rate counts.
    pub(crate) band: f64,
    /// q_0: the queue that is always allowed, in addition to jitter.
    pub(crate) reference: TimeDelta,
    /// k: the jitter that is allowed, over the measured one.
    pub(crate) jitter_factor: f64,
    /// T_min: the least time in which an excess of the queue is drained.
    pub(crate) drain: TimeDelta,
    /// a: what is added to the rate in the time T at 1 Mbit/s, bit/s.
    pub(crate) additive: f64,
    /// gamma: the growth in a time L by a factor.
    pub(crate) growth: f64,
    /// q_window: the queue for which the window has room.
    pub(crate) window_queue: TimeDelta,
    /// Pacing rate over target.
    pub(crate) pacing_factor: f64,
}

impl Default for DrcConfig {
    fn default() -> Self {
        Self {
            feedback: TimeDelta::from_millis(25),
            feedback_longest: TimeDelta::from_millis(100),
            ecn: true,
            compete: true,
            loss: true,
            delivery: TimeDelta::from_millis(200),
            band: 0.2,
            reference: TimeDelta::from_millis(8),
            jitter_factor: 2.0,
            drain: TimeDelta::from_millis(400),
            additive: 65e3,
            growth: 0.18,
            window_queue: TimeDelta::from_millis(60),
            pacing_factor: 1.25,
        }
    }
}

impl DrcConfig {
    pub(super) fn visit(&mut self, fields: &mut FieldVisitor<'_>) {
        fields.millis("feedback_ms", (1.0, 1e4), &mut self.feedback).describe("shortest interval of feedback");
        fields
            .millis("feedback_longest_ms", (1.0, 1e4), &mut self.feedback_longest)
            .describe("longest interval of feedback");
        fields.flag("ecn", &mut self.ecn).describe("1: packets are ECT(1); 0: Not-ECT");
        fields
            .flag("compete", &mut self.compete)
            .describe("1: competes with flows that keep a queue; 0: yields to them");
        fields.flag("loss", &mut self.loss).describe("1: an excess of loss lowers the rate; 0: loss is ignored");
        fields
            .millis("delivery_ms", (100.0, 800.0), &mut self.delivery)
            .describe("least window W of the delivery rate D");
        fields
            .number("band", "", (0.0, 1.0), &mut self.band)
            .describe("b: distance to D within which the own rate counts");
        fields
            .millis("reference_ms", (1.0, 1e3), &mut self.reference)
            .describe("q_0: queue that is always allowed, in addition to jitter");
        fields
            .number("jitter_factor", "", (0.0, 10.0), &mut self.jitter_factor)
            .describe("k: allowed jitter over the measured one");
        fields
            .millis("drain_ms", (10.0, 1e4), &mut self.drain)
            .describe("T_min: least time in which an excess of the queue is drained");
        fields
            .number("additive_bps", "bit/s", (0.0, 1e6), &mut self.additive)
            .describe("a: added to the rate in the time T at 1 Mbit/s");
        fields
            .number("growth", "", (0.0, 1.0), &mut self.growth)
            .describe("gamma: growth in the time L by a factor, on an empty path");
        fields
            .millis("window_ms", (1.0, 1e4), &mut self.window_queue)
            .describe("q_window: queue for which the window has room");
        fields.number("pacing_factor", "", (1.0, 10.0), &mut self.pacing_factor).describe("pacing rate over target");
    }
}
