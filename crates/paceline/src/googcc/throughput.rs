// SPDX-License-Identifier: MIT OR Apache-2.0
//! The acknowledged rate over a window of packets (libwebrtc's `RobustThroughputEstimator`): the lower one of the rates at
//! which the packets were sent and received.
//!
//! ```text
//! window:   at least 20 packets and 1 s, at most 500 packets or 5 s
//! R_recv  = (bytes - first received packet) / (t_last - t_first - largest gap + second largest gap)
//! R_send  = (bytes - last sent packet) / (T_last - T_first)
//! R       = min(R_send, R_recv)
//! ```
//!
//! Without the largest gap, a pause of the link does not lower the rate. The burst after the pause cannot raise it, because
//! the send rate bounds it.

use crate::blocks::units::rate_of;
use crate::params;
use alloc::collections::VecDeque;
use paceline_units::{DataSize, Rate, RemoteTime, Time, TimeDelta};

params! {
    /// The parameters of the window.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ThroughputConfig {
        /// libwebrtc (`RobustThroughputEstimatorSettings`, `acknowledged_bitrate_estimator_interface.h`).
        const LIBWEBRTC;

        /// Lowest number of packets of the acknowledged rate, unless they span the longest time.
        packets as "acked_packets": usize = 20, in 10..=1000, from "window_packets";
        /// Highest number of packets of the acknowledged rate.
        packets_max as "acked_packets_max": usize = 500, in 10..=1000, from "max_window_packets";
        /// Shortest span of the acknowledged rate, unless it has the highest number of packets.
        span as "acked_ms": TimeDelta = TimeDelta::from_secs(1), in 100.0..=3000.0, from "min_window_duration";
        /// Longest span of the acknowledged rate.
        span_max as "acked_max_ms": TimeDelta = TimeDelta::from_secs(5), in 1000.0..=15_000.0,
            from "max_window_duration";
        /// Number of packets below which there is no acknowledged rate.
        required as "acked_required": usize = 10, in 10..=1000, from "required_packets";
    }
}

/// A packet that arrives this much before the last one shows that the clock was set (`kMaxReorderingTime`,
/// `robust_throughput_estimator.cc`).
const REORDERING_MAX: TimeDelta = TimeDelta::from_secs(1);
/// The shortest span (`robust_throughput_estimator.cc`).
const SPAN_MIN: TimeDelta = TimeDelta::from_millis(1);

/// The estimator.
#[derive(Clone, Debug)]
pub struct Throughput {
    config: ThroughputConfig,
    /// In order of arrival.
    window: VecDeque<Packet>,
    /// The latest send time among the packets that left the window.
    discarded: Option<Time>,
    /// The bytes of the window.
    bytes: u64,
    /// The number of packets that were sent before the one in front of them.
    overtaken: usize,
    /// The number of the first packet of the window.
    first: u64,
    /// The two largest times between arrivals, each with the number of the later packet; of equal ones the newest. `None`: one of
    /// them has left the window.
    gaps: Option<[Gap; 2]>,
}

/// A time between two arrivals in nanoseconds, and the number of the later packet.
type Gap = (i64, u64);

/// No packet has this number.
const NO_GAP: Gap = (0, u64::MAX);

/// 20 bytes, of which a window has up to 512.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed(4))]
struct Packet {
    arrival: RemoteTime,
    sent: Time,
    bytes: u32,
}

impl Packet {
    /// A field of a packed struct has no reference.
    #[inline]
    fn arrival(self) -> RemoteTime {
        self.arrival
    }
    #[inline]
    fn sent(self) -> Time {
        self.sent
    }
    #[inline]
    fn bytes(self) -> u64 {
        u64::from(self.bytes)
    }
}

impl Throughput {
    pub fn new(config: ThroughputConfig) -> Self {
        Self {
            config,
            window: VecDeque::new(),
            discarded: None,
            bytes: 0,
            overtaken: 0,
            first: 0,
            gaps: Some([NO_GAP; 2]),
        }
    }

    /// Handles a packet that arrived. Call [`trim`](Self::trim) after the last packet of a message.
    #[inline]
    pub fn handle_arrival(&mut self, arrival: RemoteTime, sent: Time, size: DataSize) {
        let bytes = size.as_bytes().min(u32::MAX.into()) as u32;
        let last = self.window.back().copied();
        self.window.push_back(Packet { arrival, sent, bytes });
        self.bytes += u64::from(bytes);
        if let Some(last) = last {
            self.overtaken += usize::from(sent < last.sent());
            let gap = arrival.since(last.arrival()).as_nanos();
            if gap < 0 {
                self.sort_last();
            } else if let Some(gaps) = &mut self.gaps {
                insert_gap(gaps, (gap, self.first + self.window.len() as u64 - 1));
            }
        }
        // A long message must not extend the memory.
        if self.window.len() > self.config.packets_max {
            self.remove_first();
        }
    }

    /// Moves the last packet to its place in the order of arrival.
    #[cold]
    fn sort_last(&mut self) {
        let mut index = self.window.len() - 1;
        let arrival = self.window[index].arrival();
        while index > 0 && arrival < self.window[index - 1].arrival() {
            self.window.swap(index, index - 1);
            index -= 1;
        }
        if self.window.back().is_some_and(|last| last.arrival() - arrival > REORDERING_MAX) {
            self.window.clear();
            (self.discarded, self.bytes) = (None, 0);
        }
        self.gaps = None;
        let pairs = self.window.iter().zip(self.window.iter().skip(1));
        self.overtaken = pairs.filter(|(before, packet)| packet.sent() < before.sent()).count();
    }

    /// Removes packets that are outside the window.
    pub fn trim(&mut self) {
        while self.first_is_outside() {
            self.remove_first();
        }
        if self.gaps.is_none() {
            self.gaps = Some(self.largest_gaps());
        }
    }

    fn remove_first(&mut self) {
        if let Some(packet) = self.window.pop_front() {
            self.first += 1;
            self.gaps = self.gaps.filter(|gaps| gaps.iter().all(|(_, number)| *number != self.first));
            let sent = packet.sent();
            self.discarded = Some(self.discarded.map_or(sent, |before| before.max(sent)));
            self.bytes -= packet.bytes();
            self.overtaken -= usize::from(self.window.front().is_some_and(|next| next.sent() < packet.sent()));
        }
    }

    fn first_is_outside(&self) -> bool {
        let (Some(first), Some(last)) = (self.window.front(), self.window.back()) else { return false };
        let (packets, span, c) = (self.window.len(), last.arrival() - first.arrival(), &self.config);
        packets > c.packets_max || span > c.span_max || (packets > c.packets && span > c.span)
    }

    /// Returns the rate; `None` before there are enough packets.
    pub fn rate(&self) -> Option<Rate> {
        let (first, last) = (self.window.front()?, self.window.back()?);
        if self.window.len() < self.config.required {
            return None;
        }
        let [(largest, _), (second, _)] = self.gaps.unwrap_or_else(|| self.largest_gaps());
        let span = last.arrival() - first.arrival();
        let receiving = (span - TimeDelta::from_nanos(largest) + TimeDelta::from_nanos(second)).max(SPAN_MIN);
        let receive_rate = rate_of(DataSize::from_bytes(self.bytes - first.bytes()), receiving);
        let Some((bytes, sending)) = self.sent() else { return Some(receive_rate) };
        Some(receive_rate.min(rate_of(DataSize::from_bytes(bytes), sending.max(SPAN_MIN))))
    }

    #[cold]
    fn largest_gaps(&self) -> [Gap; 2] {
        let mut gaps = [NO_GAP; 2];
        let mut packets = self.window.iter();
        let Some(first) = packets.next() else { return gaps };
        let (mut last, mut number) = (first.arrival(), self.first);
        // In place of a loop: both parts of the ring are visited without a check per packet.
        packets.for_each(|packet| {
            number += 1;
            insert_gap(&mut gaps, (packet.arrival().since(last).as_nanos(), number));
            last = packet.arrival();
        });
        gaps
    }

    /// Returns the bytes without the last sent packet and the time in which they were sent; `None` if too few packets
    /// count. A packet that was sent before one that already left the window does not: its send time may be long ago.
    fn sent(&self) -> Option<(u64, TimeDelta)> {
        let (first, last) = (self.window.front()?, self.window.back()?);
        let discarded = self.discarded.unwrap_or(Time::from_nanos(i64::MIN));
        if self.overtaken > 0 || first.sent() < discarded {
            return self.sent_unordered(discarded);
        }
        // Of several packets with the last send time, the first one does not count.
        let at_end = self.window.iter().rev().take_while(|packet| packet.sent() == last.sent()).last()?;
        Some((self.bytes - at_end.bytes(), last.sent() - first.sent()))
    }

    #[cold]
    fn sent_unordered(&self, discarded: Time) -> Option<(u64, TimeDelta)> {
        let (mut bytes, mut packets, mut last_size) = (0, 0, 0);
        let (mut first_sent, mut last_sent) = (Time::MAX, Time::from_nanos(i64::MIN));
        for packet in self.window.iter().filter(|packet| packet.sent() >= discarded) {
            if packet.sent() > last_sent {
                (last_sent, last_size) = (packet.sent(), packet.bytes());
            }
            first_sent = first_sent.min(packet.sent());
            bytes += packet.bytes();
            packets += 1;
        }
        (packets >= self.config.required).then(|| (bytes - last_size, last_sent - first_sent))
    }
}

/// Keeps the two largest gaps.
#[inline]
fn insert_gap(gaps: &mut [Gap; 2], gap: Gap) {
    if gap.0 >= gaps[0].0 {
        *gaps = [gap, gaps[0]];
    } else if gap.0 >= gaps[1].0 {
        gaps[1] = gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn estimator(packets: impl IntoIterator<Item = (i64, i64, u64)>) -> Throughput {
        let mut estimator = Throughput::new(ThroughputConfig::LIBWEBRTC);
        for (sent, arrival, bytes) in packets {
            estimator.handle_arrival(
                RemoteTime::from_millis(arrival),
                Time::from_millis(sent),
                DataSize::from_bytes(bytes),
            );
            estimator.trim();
        }
        estimator
    }

    fn kbps(packets: impl IntoIterator<Item = (i64, i64, u64)>) -> Option<f64> {
        estimator(packets).rate().map(|rate| rate.as_bps_f64() / 1e3)
    }

    #[test]
    fn window_has_20_packets_and_a_second_but_not_500_packets_or_5_s() {
        let length = |n: i64, apart: i64| estimator((0..n).map(|i| (apart * i, apart * i, 100))).window.len();
        assert_eq!(length(300, 10), 101, "a second");
        assert_eq!(length(300, 100), 20, "twenty packets");
        assert_eq!(length(1000, 1), 500);
        assert_eq!(length(100, 500), 11, "five seconds");
        assert_eq!(length(100, 850), 6, "4.25 s, and not 5.1 s");
    }

    #[test]
    fn reordered_arrivals_are_sorted_and_a_set_clock_restarts() {
        let mut packets: Vec<_> = (0..20).map(|i| (10 * i, 500 + 10 * i, 1250)).collect();
        packets.swap(12, 15);
        assert_eq!(kbps(packets.clone()), Some(1000.0));
        packets.push((200, 500 + 190 - 1000, 1250));
        assert_eq!(estimator(packets.clone()).window.len(), 20 + 1, "1000 ms back");
        packets.push((210, 500 + 190 - 1001, 1250));
        assert_eq!(estimator(packets).window.len(), 0, "1001 ms back");
    }

    /// Packets in every order: the sums that are kept agree with those that are counted.
    #[test]
    fn ordered_and_unordered_windows_agree() {
        let mut estimator = Throughput::new(ThroughputConfig::LIBWEBRTC);
        for i in 0..3000i64 {
            let (sent, late) = (10 * (i / 2), if i % 97 < 5 { 70 * (i % 3) } else { 0 });
            let at = RemoteTime::from_millis(500 + sent + late);
            estimator.handle_arrival(at, Time::from_millis(sent), DataSize::from_bytes(500 + (i as u64 * 37) % 700));
            estimator.trim();
            let counted: u64 = estimator.window.iter().map(|packet| packet.bytes()).sum();
            assert_eq!(estimator.bytes, counted);
            assert_eq!(estimator.gaps, Some(estimator.largest_gaps()));
            let discarded = estimator.discarded.unwrap_or(Time::ZERO);
            if estimator.window.len() >= 20 {
                assert_eq!(estimator.sent(), estimator.sent_unordered(discarded), "packet {i}");
            }
        }
        assert!(estimator.overtaken > 0 || estimator.window.len() > 100);
    }
}
