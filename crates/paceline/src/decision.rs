// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a send half decides.

use crate::setters::setters;
use paceline_units::{DataSize, Ecn, Rate, TimeDelta};

/// The instructions for encoder and pacer until the next decision. [`Decision::new`] has the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The sending rate of the flow, IP and UDP headers included.
    pub target: Rate,
    /// A rate up to the target that changes more slowly, for choices that are costly to revert, such as a resolution.
    pub stable_target: Rate,
    /// The rate at which the pacer empties its queue.
    pub pacing: Rate,
    /// If not zero, packets leave in bursts: at once until they take this time at the pacing rate, and then none for this time.
    /// The sender wakes up less often.
    pub burst: TimeDelta,
    /// If not zero, packets leave at multiples of this time only, one at each, as from a program that polls its pacer.
    pub tick: TimeDelta,
    /// The bound on bytes in flight, if the controller has one.
    pub window: Option<Window>,
    /// Padding fills what media leaves free up to this rate. Zero: no padding.
    pub padding: Rate,
    /// The ECN codepoint of RTP packets.
    pub ecn: Ecn,
    /// When the first frame in the pacer's queue has waited for this time, the frames of its stream in the queue are
    /// discarded, and a key frame follows. [`TimeDelta::MAX`]: the controller has no limit. The
    /// limit of the sender's own queue holds in addition.
    pub queue_max: TimeDelta,
}

impl Decision {
    /// Returns a decision whose packets leave at the target rate, without bursts, window, padding and ECN.
    #[inline]
    pub const fn new(target: Rate) -> Self {
        Self {
            target,
            stable_target: target,
            pacing: target,
            burst: TimeDelta::ZERO,
            tick: TimeDelta::ZERO,
            window: None,
            padding: Rate::ZERO,
            ecn: Ecn::NotEct,
            queue_max: TimeDelta::MAX,
        }
    }
    setters! {
        with_stable_target(stable_target: Rate),
        with_pacing(pacing: Rate),
        with_burst(burst: TimeDelta),
        with_tick(tick: TimeDelta),
        with_window(window: Option<Window>),
        with_padding(padding: Rate),
        with_ecn(ecn: Ecn),
        with_queue_max(queue_max: TimeDelta),
    }
}

/// The number of a probe cluster within its flow.
pub type ProbeId = u16;

/// Packets to send at a given rate, to find out whether the path has that capacity. The flow fills them with media that
/// waits in the pacer and with padding, and marks them in [`SentPacket::probe`](crate::SentPacket::probe).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbeCluster {
    /// The number, which the controller chooses.
    pub id: ProbeId,
    /// The rate of the packets.
    pub rate: Rate,
    /// The length of the cluster: it ends when the bytes of this time at its rate, and at least `packets` packets, have left.
    pub duration: TimeDelta,
    /// The least number of packets.
    pub packets: u16,
}

impl ProbeCluster {
    /// Returns a cluster.
    #[inline]
    pub const fn new(id: ProbeId, rate: Rate, duration: TimeDelta, packets: u16) -> Self {
        Self { id, rate, duration, packets }
    }
}

/// A bound on bytes in flight. The flow enforces it if it knows the bytes in flight, that is, with per-packet feedback.
/// The enum is exhaustive: a program that does not know a bound cannot enforce it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// A bound on the bytes that are neither acknowledged nor lost.
    Outstanding(DataSize),
    /// A bound on the bytes sent after the highest acknowledged packet (RFC 8298).
    AfterHighest(DataSize),
}
