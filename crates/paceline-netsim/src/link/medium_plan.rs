// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a hop in a medium that several links share.

use crate::parameter::Values;
use paceline_units::{DataSize, TimeDelta};

/// What a link may transmit in one turn on a shared medium. All packets of a batch leave at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Time that the turn takes besides the transmission of its packets, before the first of them.
    pub overhead: TimeDelta,
    /// The most packets, at least one.
    pub packets: u32,
    /// The most bytes; the first packet is sent in any case.
    pub bytes: DataSize,
    /// The longest turn, overhead included; the first packet is sent in any case.
    pub airtime: TimeDelta,
}

impl Batch {
    /// One packet per turn, without overhead.
    pub const SINGLE: Self = Self {
        overhead: TimeDelta::ZERO,
        packets: 1,
        bytes: DataSize::from_bytes(u64::MAX),
        airtime: TimeDelta::from_nanos(i64::MAX),
    };

    /// Returns the limits of a Wi-Fi frame.
    pub(super) fn of_frame(values: &Values) -> Self {
        Self {
            overhead: values.time("preamble"),
            packets: values.count("ampdu_packets"),
            bytes: values.size("ampdu_size"),
            airtime: values.time("ampdu_time"),
        }
    }
}

/// How links share a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumKind {
    /// They take turns: one of them transmits a batch at a time.
    HalfDuplex,
    /// They contend by IEEE 802.11.
    Wifi,
    /// One direction of a mobile cell, which no other hop shares.
    Cell,
}

impl MediumKind {
    /// Returns the name, in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::HalfDuplex => "half-duplex",
            Self::Wifi => "wifi",
            Self::Cell => "cell",
        }
    }
}

/// The part of one hop in a shared medium.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumPlan {
    /// The name of the medium; hops with equal names share it. Empty if no other hop can share it.
    pub name: String,
    /// How they share it.
    pub kind: MediumKind,
    /// The parameters of the hop.
    pub values: Values,
}

/// Parameters in which the hops of one channel are equal.
const OF_CHANNEL: [&str; 2] = ["slot", "sifs"];
/// Parameters in which the hops of one station are equal, besides `order`.
const OF_STATION: [&str; 5] = ["aifsn", "cw_min", "cw_max", "attempts", "full_rate_attempts"];

impl MediumPlan {
    /// Returns a parameter in which two hops of one medium contradict each other.
    pub fn conflict(&self, other: &Self) -> Option<&'static str> {
        if self.kind == MediumKind::HalfDuplex {
            return None;
        }
        let (one, other) = (&self.values, &other.values);
        let differs = |name: &&&str| one.get(name) != other.get(name);
        let of_channel = OF_CHANNEL.iter().find(differs).copied();
        let is_one_station = one.text("station").is_some() && one.text("station") == other.text("station");
        let order = (one.text("order") != other.text("order")).then_some("order");
        of_channel.or_else(|| is_one_station.then(|| OF_STATION.iter().find(differs).copied().or(order))?)
    }
}

/// The order in which a station serves its hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A frame of each hop in turn, as from a queue per receiver.
    RoundRobin,
    /// The hop whose first packet arrived first, as from one queue.
    Arrival,
}

impl Order {
    /// The names in scenarios.
    pub const NAMES: [&'static str; 2] = ["round-robin", "arrival"];

    /// Returns the order of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::RoundRobin, Self::Arrival]
            .into_iter()
            .zip(Self::NAMES)
            .find(|(_, of)| *of == name)
            .map(|(order, _)| order)
    }
}
