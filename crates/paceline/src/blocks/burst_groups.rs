// SPDX-License-Identifier: MIT OR Apache-2.0
//! Grouping by departure: packets that were sent within some milliseconds after the first packet of a group belong to
//! it, and so does a burst that a link releases after a pause (libwebrtc's `InterArrival`; draft-ietf-rmcat-gcc-02,
//! section 5.2).
//!
//! ```text
//! new group:   T - T_first > group,   unless the packet belongs to the burst:
//! burst:       T = T_last,  or  (t - t_last) - (T - T_last) < 0  and  t - t_last <= burst  and  t - t_first < burst_max
//! delta:       of the last packets of two complete groups
//! ```
//!
//! where `T` are departures (abs-send-time) and `t` arrivals. Without `burst_max`, packets that arrive back to back on a full
//! link may form one burst for seconds, during which no delta is measured. This grouping does not need RTP timestamps, so all
//! streams of a flow form one sequence of groups.
//!
//! | | [`GroupForm::Y2018`] | [`GroupForm::Today`] (`InterArrivalDelta`) |
//! |---|---|---|
//! | a packet that was sent before the end of a burst | belongs to the burst | may begin a group |
//! | a group that seems to arrive before the previous one, or after the clock was set | replaces it; the caller checks the delta | the packet that would complete it is dropped |
//! | rounding | arrivals to the resolution, departures of a burst to milliseconds | none; the caller rounds all times |

use super::GroupDelta;
use super::units::floor_arrival;
use crate::params;
use paceline_units::{DataSize, RemoteTime, Time, TimeDelta};

/// How reordering and clocks that were set are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupForm {
    /// As in the generations until 2018.
    Y2018,
    /// As in libwebrtc today.
    Today,
}

params! {
    /// The parameters of the grouping.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct BurstConfig {
        /// libwebrtc until 2018, whose bursts have no limit.
        const Y2018;

        /// Packets that are sent within this time after the first packet of a group belong to it.
        group as "group_ms": TimeDelta = TimeDelta::from_millis(5), in 0.0..=1e3, from "kTimestampGroupLengthMs";
        /// A packet that arrives within this time after the previous one may belong to a burst.
        burst as "burst_ms": TimeDelta = TimeDelta::from_millis(5), in 0.0..=1e3, from "kBurstDeltaThresholdMs";
        /// A burst ends this time after the arrival of its first packet; 0: no limit.
        burst_max as "burst_max_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1e4, from "libwebrtc of 2018 has no limit";
        /// Resolution to which arrivals are rounded; 0: no rounding.
        resolution as "clock_ms": TimeDelta = TimeDelta::from_millis(1), in 0.0..=100.0,
            from "libwebrtc counts whole milliseconds";
        /// How reordering and clocks that were set are handled.
        form as _: GroupForm = GroupForm::Y2018;
    }
}

impl BurstConfig {
    /// libwebrtc of 2018 with the limit of today.
    pub const LIMITED: Self = Self { burst_max: TimeDelta::from_millis(100), ..Self::Y2018 };
    /// libwebrtc today.
    pub const LIBWEBRTC: Self = Self { form: GroupForm::Today, ..Self::LIMITED };
}

/// After this many groups in a row that seem to arrive before the previous one, the clock was set
/// (`kReorderedResetThreshold`, `inter_arrival_delta.h`).
const REORDERED_MAX: u8 = 3;
/// If arrivals advance by this much more than the time of feedback, the receiver's clock was set
/// (`kArrivalTimeOffsetThreshold`, `inter_arrival_delta.h`).
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);

/// Builds groups from departures and arrivals.
#[derive(Clone, Debug)]
pub struct BurstGroups {
    config: BurstConfig,
    current: Option<Group>,
    previous: Option<Complete>,
    /// The number of groups in a row that seemed to arrive before the previous one.
    reordered: u8,
}

/// The current group.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: Time,
    first_arrival: RemoteTime,
    /// Packets sent up to this time belong to the group: the end of the group's length, or its last packet.
    until: Time,
    /// The latest departure.
    departure: Time,
    /// The arrival of the last packet. It is rounded when the group is complete.
    arrival: RemoteTime,
    /// The time of the feedback on the last packet.
    reported: Time,
    bytes: i64,
}

#[derive(Clone, Copy, Debug)]
struct Complete {
    departure: Time,
    arrival: RemoteTime,
    reported: Time,
    bytes: i64,
}

impl BurstGroups {
    /// Creates a grouping without packets.
    pub fn new(config: BurstConfig) -> Self {
        Self { config, current: None, previous: None, reordered: 0 }
    }

    /// Handles a packet at the receiver. Returns a delta when it completes the second of two groups. A packet that was sent
    /// before the first one of the current group is ignored.
    #[inline]
    pub fn handle_arrival(&mut self, now: RemoteTime, sent: Time, size: DataSize) -> Option<GroupDelta> {
        self.handle_report(Time::ZERO, now, sent, size)
    }

    /// Handles a packet, in order of arrival, from feedback that arrived at `reported`.
    #[inline]
    pub fn handle_report(
        &mut self,
        reported: Time,
        arrival: RemoteTime,
        sent: Time,
        size: DataSize,
    ) -> Option<GroupDelta> {
        let packet = Packet { reported, arrival, sent, bytes: size.as_bytes() as i64 };
        let Some(current) = &mut self.current else {
            self.current = Some(Group::new(&packet, self.config.group));
            return None;
        };
        if sent < current.first {
            return None;
        }
        if sent <= current.until {
            current.add(&packet);
            return None;
        }
        self.next(&packet)
    }

    /// Handles a packet that was sent after the end of the group's length: it belongs to a burst or starts the next
    /// group.
    fn next(&mut self, packet: &Packet) -> Option<GroupDelta> {
        let (c, current) = (&self.config, self.current.as_mut()?);
        let joins_burst = c.form == GroupForm::Y2018;
        let (arrival, at) = (rounded(current.arrival, c.resolution), rounded(packet.arrival, c.resolution));
        let may_last =
            || !c.burst_max.is_positive() || at.since(rounded(current.first_arrival, c.resolution)) < c.burst_max;
        let departure = packet.sent.since(current.departure);
        let departure = if joins_burst { to_milliseconds(departure) } else { departure };
        if is_burst(at.since(arrival), departure, c.burst, may_last) {
            current.add(packet);
            if joins_burst {
                current.until = packet.sent;
            }
            return None;
        }
        let &mut Group { departure, reported, bytes, .. } = current;
        let complete = Complete { departure, arrival, reported, bytes };
        let Some(previous) = self.previous else {
            self.begin(complete, packet);
            return None;
        };
        let delta = complete.since(&previous);
        if !joins_burst && self.is_implausible(&delta, reported - previous.reported) {
            return None;
        }
        self.begin(complete, packet);
        Some(delta)
    }

    /// Begins a group with this packet.
    fn begin(&mut self, complete: Complete, packet: &Packet) {
        (self.previous, self.current) = (Some(complete), Some(Group::new(packet, self.config.group)));
    }

    /// Returns whether a delta is due to reordering or to a clock that was set. `reported` is the time between the feedback
    /// on the two groups. Forgets both groups if the clock was set.
    fn is_implausible(&mut self, delta: &GroupDelta, reported: TimeDelta) -> bool {
        if delta.arrival - reported >= CLOCK_JUMP {
            self.restart();
            return true;
        }
        if delta.arrival < TimeDelta::ZERO {
            self.reordered += 1;
            if self.reordered >= REORDERED_MAX {
                self.restart();
            }
            return true;
        }
        self.reordered = 0;
        false
    }

    /// Forgets both groups: the next delta follows two new ones.
    pub fn restart(&mut self) {
        (self.current, self.previous, self.reordered) = (None, None, 0);
    }
}

struct Packet {
    reported: Time,
    arrival: RemoteTime,
    sent: Time,
    bytes: i64,
}

impl Group {
    #[inline]
    fn new(packet: &Packet, length: TimeDelta) -> Self {
        let &Packet { reported, arrival, sent, bytes } = packet;
        let until = sent + length;
        Self { first: sent, first_arrival: arrival, until, departure: sent, arrival, reported, bytes }
    }

    /// The departure of a group never decreases: a packet that was reordered within it still belongs to it. libwebrtc of 2018
    /// computes modulo 2^32 here and places such a packet 64 s later.
    #[inline]
    fn add(&mut self, packet: &Packet) {
        self.departure = self.departure.max(packet.sent);
        (self.arrival, self.reported) = (packet.arrival, packet.reported);
        self.bytes += packet.bytes;
    }
}

impl Complete {
    fn since(&self, previous: &Self) -> GroupDelta {
        GroupDelta {
            arrival: self.arrival.since(previous.arrival),
            departure: self.departure.since(previous.departure),
            size: self.bytes - previous.bytes,
        }
    }
}

/// Returns whether a packet left the queue together with the previous one, whose burst may last or has reached its limit
/// (`BelongsToBurst`).
fn is_burst(arrival: TimeDelta, departure: TimeDelta, burst: TimeDelta, may_last: impl Fn() -> bool) -> bool {
    departure == TimeDelta::ZERO || (arrival < departure && arrival <= burst && may_last())
}

/// Rounds a span to whole milliseconds.
fn to_milliseconds(span: TimeDelta) -> TimeDelta {
    const MILLISECOND: TimeDelta = TimeDelta::from_millis(1);
    TimeDelta::from_millis((span + MILLISECOND / 2).as_nanos() / MILLISECOND.as_nanos())
}

/// Rounds an arrival time to a resolution; zero: no rounding.
#[inline]
pub(crate) fn rounded(now: RemoteTime, resolution: TimeDelta) -> RemoteTime {
    floor_arrival(now + resolution / 2, resolution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Takes packets as (sent, arrived) in µs and bytes. Returns deltas as (arrival, departure) in µs and bytes.
    fn deltas(packets: &[(i64, i64, u64)]) -> Vec<(i64, i64, i64)> {
        deltas_of(BurstConfig::LIMITED, packets)
    }

    fn deltas_of(config: BurstConfig, packets: &[(i64, i64, u64)]) -> Vec<(i64, i64, i64)> {
        let mut groups = BurstGroups::new(config);
        let at = |us: i64| us * 1000;
        packets
            .iter()
            .filter_map(|&(sent, arrived, bytes)| {
                let now = RemoteTime::from_nanos(at(arrived));
                groups.handle_arrival(now, Time::from_nanos(at(sent)), DataSize::from_bytes(bytes))
            })
            .map(|d| (d.arrival.as_nanos() / 1000, d.departure.as_nanos() / 1000, d.size))
            .collect()
    }

    #[test]
    fn packets_sent_within_five_milliseconds_form_a_group() {
        // Groups at 0 (3 packets), 20 and 40 ms; the packet 6 ms after the first of its group starts another one.
        let packets = [
            (0, 100_000, 1000),
            (2_000, 102_000, 500),
            (5_000, 105_400, 500),  // 105.4 ms: 105
            (20_000, 127_600, 700), // 127.6 ms: 128
            (26_000, 140_000, 900),
            (40_000, 150_000, 1),
        ];
        assert_eq!(deltas(&packets), [(23_000, 15_000, -1300), (12_000, 6_000, 200)]);
    }

    /// After a pause, five frames that were sent 33 ms apart arrive 1 ms apart.
    #[test]
    fn burst_forms_one_group() {
        let mut packets = vec![(0, 50_000, 100), (33_000, 83_000, 100)];
        packets.extend((2..7).map(|i| (33_000 * i, 400_000 + 1000 * i, 100)));
        packets.extend([(231_000, 450_000, 100), (264_000, 483_000, 100)]);
        // 33 and 0 ms: arrival 33, departure 33; the burst: (406 - 83, 198 - 33); the frame after: (450 - 406, 231 -
        // 198).
        assert_eq!(deltas(&packets), [(33_000, 33_000, 0), (323_000, 165_000, 400), (44_000, 33_000, -400)]);
        // 6 ms apart they are not a burst.
        let slow: Vec<_> = (0..5).map(|i| (33_000 * i, 400_000 + 6_000 * i, 100)).collect();
        assert_eq!(deltas(&slow), [(6_000, 33_000, 0); 3]);
    }

    #[test]
    fn a_burst_ends_after_its_longest_duration() {
        // Frames sent 20 ms apart arrive 2 ms apart from 500 ms on: without a limit one burst for 300 packets. With one, the
        // packet 100 ms after the first, number 50, starts the next group: 50 packets, 1000 ms of departures.
        let packets: Vec<_> = (0..300).map(|i| (20_000 * i, 500_000 + 2_000 * i, 100)).collect();
        assert_eq!(deltas(&packets), [(100_000, 1_000_000, 0); 4]);
        assert_eq!(deltas_of(BurstConfig::Y2018, &packets), []);
    }

    #[test]
    fn reordered_packets_start_no_group() {
        // A packet sent before the group is ignored; one sent within a burst belongs to it.
        let packets = [
            (100_000, 200_000, 100),
            (90_000, 220_000, 5_000),
            (120_000, 230_000, 100),
            (140_000, 231_000, 100), // a burst with the previous packet
            (130_000, 260_000, 100), // reordered, 10 ms after the group's first
            (160_000, 280_000, 100),
            (180_000, 300_000, 100),
        ];
        assert_eq!(deltas(&packets), [(60_000, 40_000, 200), (20_000, 20_000, -200)]);
    }

    /// Takes packets as (sent, arrived) in ms; feedback takes 100 ms. Returns deltas as (arrival, departure) in ms.
    fn deltas_of_today(packets: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut groups = BurstGroups::new(BurstConfig::LIBWEBRTC);
        let ms = |d: TimeDelta| d.as_nanos() / 1_000_000;
        let delta = |&(sent, arrived): &(i64, i64)| {
            let (now, size) = (Time::from_millis(sent + 100), DataSize::from_bytes(1200));
            groups.handle_report(now, RemoteTime::from_millis(arrived), Time::from_millis(sent), size)
        };
        packets.iter().filter_map(delta).map(|d| (ms(d.arrival), ms(d.departure))).collect()
    }

    #[test]
    fn reordered_packets_are_dropped_and_a_set_clock_restarts() {
        // The packet sent at 10 is older than its group.
        assert_eq!(deltas_of_today(&[(0, 50), (20, 70), (10, 75), (40, 90), (60, 110)]), [(20, 20), (20, 20)]);
        // The group of 20 ms seems to arrive before the end of that of 0 ms: each packet that would complete it is dropped.
        // The third one restarts the grouping, and two new groups follow.
        let backwards: Vec<_> =
            [(0, 100), (4, 500)].into_iter().chain((1..8).map(|i| (20 * i, 380 + 20 * i))).collect();
        assert_eq!(deltas_of_today(&backwards), [(20, 20)]);
        assert_eq!(deltas_of_today(&backwards[..8]), []);
        // Arrivals advance by 3 s more than the feedback.
        let jump = [(0, 50), (20, 3070), (40, 3090), (60, 3110), (80, 3130), (100, 3150)];
        assert_eq!(deltas_of_today(&jump), [(20, 20)]);
        let no_jump = [(0, 50), (20, 3069), (40, 3089)];
        assert_eq!(deltas_of_today(&no_jump), [(3019, 20)]);
    }
}
