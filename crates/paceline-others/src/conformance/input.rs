// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both controllers are given, and what they return.

/// The lowest target, bit/s.
pub const MIN_BPS: u64 = 30_000;
/// The start rate, bit/s.
pub const START_BPS: u64 = 300_000;
/// The highest target, bit/s.
pub const MAX_BPS: u64 = 100_000_000;

/// An input, with its time in µs.
#[derive(Clone, Debug)]
pub enum Input {
    /// The start of the flow.
    Start(i64),
    /// A packet was sent.
    Sent(Sent),
    /// A feedback message arrived.
    Feedback {
        /// The time of arrival.
        at: i64,
        /// Its packets, in order of their numbers.
        packets: Vec<Packet>,
        /// The bytes in flight afterwards.
        in_flight: u64,
    },
    /// 25 ms have passed.
    Tick(i64),
    /// A round-trip time was measured, in ms.
    Rtt(i64, i64),
    /// A receiver report: lost packets, and lost and received ones together.
    Report(i64, u64, u64),
    /// The sum of the sources' maxima changed, bit/s.
    Allocation(i64, u64),
}

impl Input {
    /// Returns the time, µs.
    pub fn at(&self) -> i64 {
        match self {
            Self::Start(at)
            | Self::Feedback { at, .. }
            | Self::Tick(at)
            | Self::Rtt(at, _)
            | Self::Report(at, ..)
            | Self::Allocation(at, _) => *at,
            Self::Sent(sent) => sent.at,
        }
    }
}

/// A sent packet.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The number, from 0.
    pub number: u64,
    /// The send time in µs, whole milliseconds.
    pub at: i64,
    /// Bytes.
    pub size: u64,
    /// The bytes in flight before this packet.
    pub in_flight: u64,
    /// Its cluster.
    pub probe: Option<ProbeTag>,
}

/// A report on a packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The packet.
    pub sent: Sent,
    /// The arrival on the receiver's clock in µs, whole milliseconds; `None`: lost.
    pub arrival: Option<i64>,
}

/// The cluster of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTag {
    /// The number of the cluster.
    pub id: i32,
    /// The least number of packets.
    pub packets: i64,
    /// The least number of bytes.
    pub bytes: i64,
}

/// A probe cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its number.
    pub id: i32,
    /// Its rate, bit/s.
    pub bps: u64,
    /// Its length, µs.
    pub us: i64,
    /// The least number of packets.
    pub packets: i64,
}

/// What a controller returns after an input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The target, bit/s.
    pub target: u64,
    /// The pacing rate, bit/s.
    pub pacing: u64,
    /// The padding rate, bit/s.
    pub padding: u64,
    /// The rate that the congestion window leaves of the target, bit/s, as last published.
    pub pushed_back: u64,
    /// New clusters.
    pub clusters: Vec<Cluster>,
}
