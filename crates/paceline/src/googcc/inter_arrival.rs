//! Grouping of packets by send time (libwebrtc's `InterArrivalDelta`), with the checks for reordering and for a clock that
//! was set.
//!
//! ```text
//! new group:   T - T_first > 5 ms, and the packet is not part of a burst
//! burst:       T = T_last,  or  (t - t_last) - (T - T_last) < 0  and  t - t_last <= 5 ms  and  t - t_first < 100 ms
//! delta:       of the last packets of two complete groups
//! ```
//!
//! where `T` are send times and `t` arrivals. [`BurstGroups`](crate::blocks::BurstGroups) is the older form with the same
//! numbers. It differs under reordering: there, a packet that was sent before the end of a burst belongs to that burst, and a
//! group that seems to arrive before the previous one replaces it. Here such a packet may begin a group, and the packet that
//! would complete such a group is dropped.

use crate::blocks::{BurstConfig, GroupDelta};
use paceline_units::{DataSize, RemoteTime, Time, TimeDelta};

/// After this many groups in a row that seem to arrive before the previous one, the clock was set
/// (`kReorderedResetThreshold`, `inter_arrival_delta.h`).
const REORDERED_MAX: u8 = 3;
/// If arrivals advance by this much more than the time of feedback, the receiver's clock was set
/// (`kArrivalTimeOffsetThreshold`, `inter_arrival_delta.h`).
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);

/// The grouping.
#[derive(Clone, Debug)]
pub struct InterArrival {
    config: BurstConfig,
    current: Option<Group>,
    previous: Option<Group>,
    /// The number of groups in a row that seemed to arrive before the previous one.
    reordered: u8,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Time,
    /// The latest send time.
    sent: Time,
    first_arrival: RemoteTime,
    /// The arrival of the last packet.
    arrival: RemoteTime,
    /// The time of the feedback on the last packet.
    reported: Time,
    bytes: i64,
}

impl InterArrival {
    /// Creates a grouping without packets. The resolution of `config` is not used: the caller rounds the times.
    pub fn new(config: BurstConfig) -> Self {
        Self { config, current: None, previous: None, reordered: 0 }
    }

    /// Handles a packet, in order of arrival, from feedback that arrived at `now`. Returns a delta when the packet begins a
    /// group and there are two complete ones (`InterArrivalDelta::ComputeDeltas`).
    #[inline]
    pub fn handle_packet(&mut self, now: Time, arrival: RemoteTime, sent: Time, size: DataSize) -> Option<GroupDelta> {
        let bytes = size.as_bytes() as i64;
        let Some(current) = &mut self.current else {
            self.current = Some(Group::new(now, arrival, sent, bytes));
            return None;
        };
        if sent < current.first_sent {
            return None;
        }
        if sent.since(current.first_sent) <= self.config.group || current.continues_with(arrival, sent, &self.config) {
            current.add(now, arrival, sent, bytes);
            return None;
        }
        self.begin(now, arrival, sent, bytes)
    }

    /// Completes the current group and begins the next one with this packet.
    fn begin(&mut self, now: Time, arrival: RemoteTime, sent: Time, bytes: i64) -> Option<GroupDelta> {
        let current = self.current?;
        let delta = match self.previous {
            None => None,
            Some(previous) => {
                let delta = GroupDelta {
                    arrival: current.arrival - previous.arrival,
                    departure: current.sent - previous.sent,
                    size: current.bytes - previous.bytes,
                };
                if self.is_implausible(&delta, current.reported - previous.reported) {
                    return None;
                }
                self.reordered = 0;
                Some(delta)
            }
        };
        self.previous = Some(current);
        self.current = Some(Group::new(now, arrival, sent, bytes));
        delta
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
        false
    }

    /// Forgets both groups: the next delta follows two new ones.
    pub fn restart(&mut self) {
        (self.current, self.previous, self.reordered) = (None, None, 0);
    }
}

impl Group {
    fn new(reported: Time, arrival: RemoteTime, sent: Time, bytes: i64) -> Self {
        Self { first_sent: sent, sent, first_arrival: arrival, arrival, reported, bytes }
    }

    #[inline]
    fn add(&mut self, reported: Time, arrival: RemoteTime, sent: Time, bytes: i64) {
        (self.sent, self.arrival, self.reported) = (self.sent.max(sent), arrival, reported);
        self.bytes += bytes;
    }

    /// Returns whether a packet left the queue in one burst with this group (`InterArrivalDelta::BelongsToBurst`).
    fn continues_with(&self, arrival: RemoteTime, sent: Time, config: &BurstConfig) -> bool {
        let (arrival_delta, sent_delta) = (arrival - self.arrival, sent - self.sent);
        if sent_delta == TimeDelta::ZERO {
            return true;
        }
        let may_last = !config.burst_max.is_positive() || arrival - self.first_arrival < config.burst_max;
        arrival_delta < sent_delta && arrival_delta <= config.burst && may_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Takes packets as (sent, arrived) in ms; feedback takes 100 ms. Returns deltas as (arrival, departure) in ms.
    fn deltas(packets: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut groups = InterArrival::new(BurstConfig::LIBWEBRTC);
        let ms = |d: TimeDelta| d.as_nanos() / 1_000_000;
        let delta = |&(sent, arrived): &(i64, i64)| {
            let (now, size) = (Time::from_millis(sent + 100), DataSize::from_bytes(1200));
            groups.handle_packet(now, RemoteTime::from_millis(arrived), Time::from_millis(sent), size)
        };
        packets.iter().filter_map(delta).map(|d| (ms(d.arrival), ms(d.departure))).collect()
    }

    #[test]
    fn packets_within_five_milliseconds_form_a_group() {
        // Groups of 0 to 5, 20 and 40 ms. The delta is that of the last packets, and a third group completes it.
        assert_eq!(deltas(&[(0, 50), (5, 55), (20, 72), (40, 90), (60, 110)]), [(17, 15), (18, 20)]);
        // 6 ms after the first packet a group begins, unless the packet is part of a burst.
        assert_eq!(deltas(&[(0, 50), (6, 56), (12, 62)]), [(6, 6)]);
    }

    #[test]
    fn burst_lasts_at_most_100_ms() {
        // Sent 10 ms apart, received 4 ms apart: one burst. The packet 100 ms after the first arrival begins a group.
        let burst: Vec<_> = (0..60).map(|i| (10 * i, 1000 + 4 * i)).collect();
        // 25 packets per burst: the groups end at i = 24 and i = 49.
        assert_eq!(deltas(&burst), [(100, 250)]);
        // Received 6 ms apart they are no burst.
        let slow: Vec<_> = (0..4).map(|i| (10 * i, 1000 + 6 * i)).collect();
        assert_eq!(deltas(&slow), [(6, 10); 2]);
    }

    #[test]
    fn reordered_packets_are_dropped_and_a_set_clock_restarts() {
        // The packet sent at 10 is older than its group.
        assert_eq!(deltas(&[(0, 50), (20, 70), (10, 75), (40, 90), (60, 110)]), [(20, 20), (20, 20)]);
        // The group of 20 ms seems to arrive before the end of that of 0 ms: each packet that would complete it is dropped.
        // The third one restarts the grouping, and two new groups follow.
        let backwards: Vec<_> =
            [(0, 100), (4, 500)].into_iter().chain((1..8).map(|i| (20 * i, 380 + 20 * i))).collect();
        assert_eq!(deltas(&backwards), [(20, 20)]);
        assert_eq!(deltas(&backwards[..8]), []);
        // Arrivals advance by 3 s more than the feedback.
        let jump = [(0, 50), (20, 3070), (40, 3090), (60, 3110), (80, 3130), (100, 3150)];
        assert_eq!(deltas(&jump), [(20, 20)]);
        let no_jump = [(0, 50), (20, 3069), (40, 3089)];
        assert_eq!(deltas(&no_jump), [(3019, 20)]);
    }
}
