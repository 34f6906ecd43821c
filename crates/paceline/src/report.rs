// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a [`Receiver`](crate::Receiver) reports to a [`Sender`](crate::Sender), as values. A program that uses RTP needs none of
//! this; others send these values in a format of their own.

use crate::Message;
use alloc::vec::Vec;
use paceline_units::{Ecn, RemoteTime, Time, TimeDelta};

/// A report of the receiver. To read one from a format of your own, begin with `Report::default()` and set the fields. A program may
/// leave out the ECN fields (`None`), and the messages if the controller has no receive half ([`Needs`](crate::Needs)). It covers the
/// packets since the last report, at most a few hundred at 10 Mbit/s, so that it can exceed a datagram only at high rates: then send it
/// in parts with the same number and time, one of which has `reception` and `messages`. Reports may be lost: each begins where the one
/// before it ended, and names lost packets, too, so that the sender finds out.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The number of the report, from 0. A report that arrives after a later one is used for its packets alone.
    pub number: u64,
    /// The time at which the report was written, on the receiver's clock.
    pub written: RemoteTime,
    /// The packets that arrived, and those that did not, by ascending number; empty if the controller needs no reports on
    /// packets.
    pub packets: Vec<PacketArrival>,
    /// Messages of the receive half of the controller.
    pub messages: Vec<Message>,
    /// What arrived so far; `None` before the first packet. The sender gets the round-trip time and the loss from it.
    pub reception: Option<Reception>,
}

impl Report {
    /// Returns the first of the packets without a gap up to the last one. Before them there are only packets that arrived late.
    pub(crate) fn begin(&self) -> Option<u64> {
        let mut begin = self.packets.last()?.number;
        for packet in self.packets.iter().rev().skip(1) {
            if packet.number.checked_add(1) != Some(begin) {
                break;
            }
            begin = packet.number;
        }
        Some(begin)
    }
}

/// The report on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketArrival {
    /// The number within the flow.
    pub number: u64,
    /// The arrival on the receiver's clock; `None` if the packet is lost.
    pub arrival: Option<RemoteTime>,
    /// The ECN field on arrival; `None` if it is unknown.
    pub ecn: Option<Ecn>,
}

impl PacketArrival {
    /// Returns the report on a packet that arrived, or was lost, without its ECN field.
    pub fn new(number: u64, arrival: Option<RemoteTime>) -> Self {
        Self { number, arrival, ecn: None }
    }
    /// Returns the report with the ECN field on arrival.
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn: Some(ecn), ..self }
    }
}

/// From this the sender computes loss and round-trip time, as from an RTCP receiver report (RFC 3550, section 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reception {
    /// One more than the highest number that arrived.
    pub end: u64,
    /// The number of packets that arrived.
    pub arrived: u64,
    /// The send time of the last packet that arrived, as its head states it.
    pub echo: Time,
    /// The time from its arrival to the report.
    pub held: TimeDelta,
}

impl Reception {
    /// Returns the statistics of `arrived` packets below number `end`; the last of them was sent at `echo` and arrived `held`
    /// before the report.
    pub fn new(end: u64, arrived: u64, echo: Time, held: TimeDelta) -> Self {
        Self { end, arrived, echo, held }
    }
}
