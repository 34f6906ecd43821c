//! Grouping by departure: packets sent within some milliseconds of a group's first are one group, and so is a burst
//! that a paused link lets go at once (libwebrtc's `InterArrival`; draft-ietf-rmcat-gcc-02, section 5.2).
//!
//! ```text
//! new group:   T - T_first > group,   unless the packet belongs to the burst:
//! burst:       T = T_last (to the ms), or  (t - t_last) - (T - T_last) < 0  and  t - t_last <= burst
//! ```
//!
//! with `T` departures (abs-send-time) and `t` arrivals. A group departs with its last packet. Unlike frame grouping it
//! asks for no RTP timestamp, so all streams of a flow make one sequence of groups.

use super::GroupDelta;
use crate::{Block, Fields};
use paceline_units::{DataSize, RemoteTime, Time, TimeDelta};

/// Numbers of the grouping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstConfig {
    /// Packets sent within this of a group's first belong to it (libwebrtc: 5 ms).
    pub group: TimeDelta,
    /// A packet that arrives within this of the one before may belong to a burst (libwebrtc: 5 ms).
    pub burst: TimeDelta,
    /// Arrivals are rounded to this (libwebrtc's clock: 1 ms); zero: taken as they are.
    pub resolution: TimeDelta,
}

impl BurstConfig {
    /// libwebrtc's, of every year.
    pub const LIBWEBRTC: Self = Self {
        group: TimeDelta::from_millis(5),
        burst: TimeDelta::from_millis(5),
        resolution: TimeDelta::from_millis(1),
    };
}

impl Block for BurstConfig {
    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields
            .millis("group_ms", (0.0, 1000.0), &mut self.group)
            .says("packets sent within this of a group's first belong to it");
        fields
            .millis("burst_ms", (0.0, 1000.0), &mut self.burst)
            .says("packets that arrive within this of the one before may be a burst");
        fields.millis("clock_ms", (0.0, 100.0), &mut self.resolution).says("arrivals are rounded to this");
    }
}

/// Builds groups from departures and arrivals.
#[derive(Clone, Debug)]
pub struct BurstGroups {
    config: BurstConfig,
    current: Option<Group>,
    previous: Option<Complete>,
}

/// A group that may go on.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: Time,
    /// Whatever was sent until then belongs to it: the last of it, or what is sent within the group's length.
    until: Time,
    departure: Time,
    /// On the receiver's clock as it is: when the group is complete, it is rounded.
    arrival: RemoteTime,
    bytes: i64,
}

/// What is left of a group that is over.
#[derive(Clone, Copy, Debug)]
struct Complete {
    departure: Time,
    arrival: RemoteTime,
    bytes: i64,
}

impl BurstGroups {
    /// No packet yet.
    pub fn new(config: BurstConfig) -> Self {
        Self { config, current: None, previous: None }
    }

    /// A packet arrived. Answers a delta when it completes the second of two groups. A packet sent before the current
    /// group began is ignored.
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
        // Departures of groups never fall: overtaken within a burst, a packet still belongs to it. libwebrtc computes
        // modulo 2^32 there and takes such a packet for one of 64 s later.
        if sent <= current.until {
            current.departure = current.departure.max(sent);
            current.arrival = now;
            current.bytes += bytes;
            return None;
        }
        self.next(now, sent, bytes)
    }

    /// A packet that was sent later than the group's length: of a burst, or the first of another group.
    fn next(&mut self, now: RemoteTime, sent: Time, bytes: i64) -> Option<GroupDelta> {
        let (c, current) = (&self.config, self.current.as_mut()?);
        let arrival = rounded(current.arrival, c.resolution);
        if is_burst(rounded(now, c.resolution).since(arrival), sent.since(current.departure), c.burst) {
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

    /// Forgets both groups: the next delta comes after two new ones.
    pub fn restart(&mut self) {
        (self.current, self.previous) = (None, None);
    }
}

impl Group {
    fn new(arrival: RemoteTime, sent: Time, bytes: i64, length: TimeDelta) -> Self {
        Self { first: sent, until: sent + length, departure: sent, arrival, bytes }
    }
}

/// Whether a packet left the queue with the one before it. Departures count in whole milliseconds, as libwebrtc's do.
fn is_burst(arrival: TimeDelta, departure: TimeDelta, burst: TimeDelta) -> bool {
    const MILLISECOND: TimeDelta = TimeDelta::from_millis(1);
    let departure = TimeDelta::from_millis((departure + MILLISECOND / 2).as_nanos() / MILLISECOND.as_nanos());
    departure == TimeDelta::ZERO || (arrival < departure && arrival <= burst)
}

/// An arrival on a clock of this resolution; zero: as it is.
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

    /// Packets as (sent, arrived) in µs and bytes; deltas as (arrival, departure) in µs and bytes.
    fn deltas(packets: &[(i64, i64, u64)]) -> Vec<(i64, i64, i64)> {
        let mut groups = BurstGroups::new(BurstConfig::LIBWEBRTC);
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
    fn five_milliseconds_of_departures_are_a_group() {
        // Groups at 0 (3 packets), 20 and 40 ms; the packet 6 ms after the first of its group begins another.
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

    /// After a pause a link lets go of what it held: five frames sent 33 ms apart arrive 1 ms apart and are one group.
    #[test]
    fn a_burst_is_one_group() {
        let mut packets = vec![(0, 50_000, 100), (33_000, 83_000, 100)];
        packets.extend((2..7).map(|i| (33_000 * i, 400_000 + 1000 * i, 100)));
        packets.extend([(231_000, 450_000, 100), (264_000, 483_000, 100)]);
        // 33 and 0 ms: arrival 33, departure 33; the burst: (406 - 83, 198 - 33); the frame after: (450 - 406, 231 - 198).
        assert_eq!(deltas(&packets), [(33_000, 33_000, 0), (323_000, 165_000, 400), (44_000, 33_000, -400)]);
        // At 6 ms apart they are no burst.
        let slow: Vec<_> = (0..5).map(|i| (33_000 * i, 400_000 + 6_000 * i, 100)).collect();
        assert_eq!(deltas(&slow), [(6_000, 33_000, 0); 3]);
    }

    #[test]
    fn late_packets_begin_nothing() {
        // Sent before the group: ignored. Sent within a burst's span: part of it.
        let packets = [
            (100_000, 200_000, 100),
            (90_000, 220_000, 5_000),
            (120_000, 230_000, 100),
            (140_000, 231_000, 100), // a burst with the one before
            (130_000, 260_000, 100), // overtaken, 10 ms after the group's first
            (160_000, 280_000, 100),
            (180_000, 300_000, 100),
        ];
        assert_eq!(deltas(&packets), [(60_000, 40_000, 200), (20_000, 20_000, -200)]);
    }
}
