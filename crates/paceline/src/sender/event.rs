// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a [`Sender`](super::Sender).

use crate::{Decision, ProbeId};
use paceline_units::{Fraction, Rate, StreamId, TimeDelta};

/// What changed in a [`Sender`](super::Sender).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SenderEvent {
    /// The controller changed its decision. The first one is an event, too.
    Decision(Decision),
    /// The streams' shares of the target changed: read [`Sender::stream_rate`](super::Sender::stream_rate), which is the target for a stream
    /// alone, less what repair takes.
    StreamRates,
    /// A report gave this round-trip time.
    RoundTrip(TimeDelta),
    /// Reports gave this fraction lost, over at least 20 packets.
    FractionLost(Fraction),
    /// Reports show that a probe cluster arrived at this rate, once 80 % of its packets and bytes have, within 1 s and not at more than twice
    /// the rate at which they were sent. Further packets of it refine the rate.
    ProbeResult {
        /// The cluster.
        id: ProbeId,
        /// The lower one of its send and receive rates, and less if the path was full (libwebrtc's `ProbeBitrateEstimator`).
        rate: Rate,
    },
    /// A frame was dropped: it did not fit into the queue of the pacer, or waited too long in it.
    FrameDropped(StreamId),
    /// The encoder of the stream should make a key frame.
    KeyFrameRequested(StreamId),
    /// No feedback has arrived for so long that the guard lowers the rate.
    FeedbackLost,
    /// Feedback arrives again after [`FeedbackLost`](Self::FeedbackLost).
    FeedbackResumed,
    /// The program passed a time that was this much before an earlier one. From then on its times are shifted, so that time
    /// never decreases for the controller.
    ClockSteppedBack(TimeDelta),
    /// The controller failed: read [`Sender::failure`](super::Sender::failure).
    ControllerFailed,
    /// The controller emitted the signal with this index of its signal table.
    Signal(u8, f64),
}
