// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frame grouping: packets with the same RTP timestamp form a group. Consecutive groups give the measured one-way delay
//! gradient
//!
//! ```text
//! d_m(i) = (t_i - t_{i-1}) - (T_i - T_{i-1})                                      (mmsys16, eq. 4)
//! ```
//!
//! where `t_i` is the arrival of the frame's last packet and `T_i` the departure of its first packet (the paper) or its
//! last (the draft, libwebrtc), or the time in its RTP timestamp (fhmn13). A frame is complete when a packet of the
//! next one arrives, so a delta is one frame late. Packets of an earlier frame than the current one are ignored. Only
//! differences within one clock are used, so neither the origin of the clocks nor a constant offset between them
//! matters.

use super::GroupDelta;
use crate::Arrival;
use paceline_units::{RemoteTime, Time, TimeDelta};

/// The packet whose departure counts as the departure of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The first packet (mmsys16, figure 2).
    First,
    /// The last packet (draft-ietf-rmcat-gcc-02, section 5.2).
    Last,
    /// None: the capture time in the frame's RTP timestamp at 90 kHz (fhmn13, section 2.2).
    Timestamp,
}

/// Builds groups from arrivals.
#[derive(Clone, Debug)]
pub struct FrameGroups {
    departure: Departure,
    current: Option<Group>,
    previous: Option<Group>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    timestamp: u32,
    departure: Time,
    arrival: RemoteTime,
    bytes: i64,
}

impl FrameGroups {
    /// Creates a grouping without frames.
    pub fn new(departure: Departure) -> Self {
        Self { departure, current: None, previous: None }
    }

    /// Handles a packet of the stream. Returns a delta when it completes the second of two frames.
    #[inline]
    pub fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival) -> Option<GroupDelta> {
        let sent = match self.departure {
            Departure::First | Departure::Last => arrival.sent?,
            Departure::Timestamp => Time::ZERO, // not used
        };
        let bytes = arrival.size.as_bytes() as i64;
        let fresh = Group { timestamp: arrival.timestamp, departure: sent, arrival: now, bytes };
        let Some(current) = &mut self.current else {
            self.current = Some(fresh);
            return None;
        };
        let ahead = arrival.timestamp.wrapping_sub(current.timestamp);
        if ahead == 0 {
            current.arrival = now;
            current.bytes += bytes;
            current.departure = match self.departure {
                Departure::First => current.departure.min(sent), // the first packet sent, even if it was reordered
                Departure::Last => current.departure.max(sent),
                Departure::Timestamp => sent,
            };
            return None;
        }
        if ahead >= 1 << 31 {
            return None; // a packet of an earlier frame
        }
        let complete = *current;
        *current = fresh;
        let previous = self.previous.replace(complete)?;
        Some(GroupDelta {
            arrival: complete.arrival - previous.arrival,
            departure: match self.departure {
                Departure::First | Departure::Last => complete.departure - previous.departure,
                Departure::Timestamp => ticks(complete.timestamp.wrapping_sub(previous.timestamp)),
            },
            size: complete.bytes - previous.bytes,
        })
    }

    /// Forgets both frames: the next delta follows two new ones.
    pub fn restart(&mut self) {
        (self.current, self.previous) = (None, None);
    }
}

/// Converts a difference of RTP timestamps at 90 kHz.
fn ticks(difference: u32) -> TimeDelta {
    TimeDelta::from_nanos(i64::from(difference) * 100_000 / 9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::arrival;
    use alloc::vec::Vec;

    fn deltas(departure: Departure, packets: &[(u32, i64, i64, u64)]) -> Vec<(i64, i64, i64)> {
        let mut groups = FrameGroups::new(departure);
        let mut out = Vec::new();
        for &(timestamp, sent_ms, arrived_ms, bytes) in packets {
            let packet = Arrival { timestamp, ..arrival(sent_ms, bytes) };
            if let Some(d) = groups.handle_arrival(RemoteTime::from_millis(arrived_ms), &packet) {
                let ms = |d: TimeDelta| d.as_nanos() / 1_000_000;
                out.push((ms(d.arrival), ms(d.departure), d.size));
            }
        }
        out
    }

    #[test]
    fn deltas_follow_the_departure_rule() {
        // timestamp, sent, arrived, bytes: frames at 0, 33, 66 ms of two packets each, the clocks 500 ms apart.
        let packets = [
            (0, 10, 500, 700),
            (0, 0, 512, 300), // sent first, reordered
            (3000, 33, 535, 700),
            (0, 11, 536, 100), // late, from an earlier frame
            (3000, 41, 555, 500),
            (6000, 66, 566, 900),
            (9000, 99, 600, 900),
        ];
        // First: t 512, 555, 566; T 0, 33, 66; sizes 1000, 1200, 900.
        assert_eq!(deltas(Departure::First, &packets), [(43, 33, 200), (11, 33, -300)]);
        // Last: T 10, 41, 66.
        assert_eq!(deltas(Departure::Last, &packets), [(43, 31, 200), (11, 25, -300)]);
        // By timestamp: 3000 ticks are 33.3 ms, whatever the send times.
        assert_eq!(deltas(Departure::Timestamp, &packets), [(43, 33, 200), (11, 33, -300)]);
        let packets = [(0, 0, 0, 1), (9000, 1, 50, 1), (9090, 2, 60, 1), (18_000, 3, 90, 1)];
        assert_eq!(deltas(Departure::Timestamp, &packets), [(50, 100, 0), (10, 1, 0)]);
    }

    #[test]
    fn timestamps_may_wrap() {
        let packets = [(u32::MAX - 1000, 0, 0, 1), (2000, 33, 33, 1), (5000, 66, 70, 1)];
        assert_eq!(deltas(Departure::First, &packets), [(33, 33, 0)]);
        assert_eq!(deltas(Departure::Timestamp, &packets), [(33, 33, 0)], "3001 ticks across the wrap");
    }
}
