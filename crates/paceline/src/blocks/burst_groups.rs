//! Grouping by departure: packets that were sent within some milliseconds after the first packet of a group belong to
//! it, and so does a burst that a link releases after a pause (libwebrtc's `InterArrival`; draft-ietf-rmcat-gcc-02,
//! section 5.2).
//!
//! ```text
//! new group:   T - T_first > group,   unless the packet belongs to the burst:
//! burst:       T = T_last (to the ms), or  (t - t_last) - (T - T_last) < 0  and  t - t_last <= burst
//!                                          and  t - t_first < burst_max
//! ```
//!
//! where `T` are departures (abs-send-time) and `t` arrivals. Without `burst_max`, packets that arrive back to back on a full
//! link may form one burst for seconds, during which no delta is measured. The departure of a group is that of its last packet. This
//! grouping does not need RTP timestamps, so all streams of a flow form one sequence of groups.

use super::GroupDelta;
use crate::params;
use paceline_units::{DataSize, RemoteTime, Time, TimeDelta};

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
    }
}

impl BurstConfig {
    /// libwebrtc today.
    pub const LIBWEBRTC: Self = Self { burst_max: TimeDelta::from_millis(100), ..Self::Y2018 };
}

/// Builds groups from departures and arrivals.
#[derive(Clone, Debug)]
pub struct BurstGroups {
    config: BurstConfig,
    current: Option<Group>,
    previous: Option<Complete>,
}

/// The current group.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: Time,
    first_arrival: RemoteTime,
    /// Packets sent up to this time belong to the group: its last packet, or the end of the group's length.
    until: Time,
    departure: Time,
    /// Not rounded yet; it is rounded when the group is complete.
    arrival: RemoteTime,
    bytes: i64,
}

#[derive(Clone, Copy, Debug)]
struct Complete {
    departure: Time,
    arrival: RemoteTime,
    bytes: i64,
}

impl BurstGroups {
    /// Creates a grouping without packets.
    pub fn new(config: BurstConfig) -> Self {
        Self { config, current: None, previous: None }
    }

    /// Handles a packet. Returns a delta when it completes the second of two groups. A packet that was sent before the
    /// first one of the current group is ignored.
    #[inline]
    pub fn handle_arrival(&mut self, now: RemoteTime, sent: Time, size: DataSize) -> Option<GroupDelta> {
        let bytes = size.as_bytes() as i64;
        let Some(current) = &mut self.current else {
            self.current = Some(Group::new(now, sent, bytes, self.config.group));
            return None;
        };
        if sent < current.first {
            return None;
        }
        // The departure of a group never decreases: a packet that was reordered within a burst still belongs to it.
        // libwebrtc computes modulo 2^32 here and places such a packet 64 s later.
        if sent <= current.until {
            current.departure = current.departure.max(sent);
            current.arrival = now;
            current.bytes += bytes;
            return None;
        }
        self.next(now, sent, bytes)
    }

    /// Handles a packet that was sent after the end of the group's length: it belongs to a burst or starts the next
    /// group.
    fn next(&mut self, now: RemoteTime, sent: Time, bytes: i64) -> Option<GroupDelta> {
        let (c, current) = (&self.config, self.current.as_mut()?);
        let arrival = rounded(current.arrival, c.resolution);
        let at = rounded(now, c.resolution);
        let may_last =
            !c.burst_max.is_positive() || at.since(rounded(current.first_arrival, c.resolution)) < c.burst_max;
        if is_burst(at.since(arrival), sent.since(current.departure), c.burst, may_last) {
            (current.departure, current.until, current.arrival) = (sent, sent, now);
            current.bytes += bytes;
            return None;
        }
        let complete = Complete { departure: current.departure, arrival, bytes: current.bytes };
        *current = Group::new(now, sent, bytes, c.group);
        let previous = self.previous.replace(complete)?;
        Some(GroupDelta {
            arrival: complete.arrival.since(previous.arrival),
            departure: complete.departure.since(previous.departure),
            size: complete.bytes - previous.bytes,
        })
    }

    /// Forgets both groups: the next delta follows two new ones.
    pub fn restart(&mut self) {
        (self.current, self.previous) = (None, None);
    }
}

impl Group {
    fn new(arrival: RemoteTime, sent: Time, bytes: i64, length: TimeDelta) -> Self {
        Self { first: sent, first_arrival: arrival, until: sent + length, departure: sent, arrival, bytes }
    }
}

/// Returns whether a packet left the queue together with the previous one, whose burst may last or has reached its limit.
/// Departures are rounded to milliseconds, as in libwebrtc.
fn is_burst(arrival: TimeDelta, departure: TimeDelta, burst: TimeDelta, may_last: bool) -> bool {
    const MILLISECOND: TimeDelta = TimeDelta::from_millis(1);
    let departure = TimeDelta::from_millis((departure + MILLISECOND / 2).as_nanos() / MILLISECOND.as_nanos());
    departure == TimeDelta::ZERO || (arrival < departure && arrival <= burst && may_last)
}

/// Rounds an arrival time to a resolution; zero: no rounding.
#[inline]
pub(crate) fn rounded(now: RemoteTime, resolution: TimeDelta) -> RemoteTime {
    if !resolution.is_positive() {
        return now;
    }
    let (now, step) = (now.as_nanos(), resolution.as_nanos());
    RemoteTime::from_nanos(now.saturating_add(step / 2).div_euclid(step) * step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Takes packets as (sent, arrived) in µs and bytes. Returns deltas as (arrival, departure) in µs and bytes.
    fn deltas(packets: &[(i64, i64, u64)]) -> Vec<(i64, i64, i64)> {
        deltas_of(BurstConfig::LIBWEBRTC, packets)
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
}
