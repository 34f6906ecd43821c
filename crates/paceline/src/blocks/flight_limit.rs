// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds what a controller without a window sends into a path that has stopped: libwebrtc's congestion window push-back
//! as an option of other controllers, which lowers the target itself.
//!
//! ```text
//! RTT       now − the earliest send time of the packets that a message acknowledges
//! window    (smallest RTT + allowed queue) · target, by WindowPushback
//! share     by WindowPushback: after each feedback message; without one, each 25 ms while packets leave
//! limit     share · target
//! ```

use super::{PushbackConfig, WindowPushback};
use crate::{Feedback, SentPacket};
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The time between two steps of the share without feedback (`kDefaultProcessInterval` of libwebrtc's
/// `RtpTransportControllerSend`).
const STEP: TimeDelta = TimeDelta::from_millis(25);

/// Limits the target by the bytes in flight.
#[derive(Clone, Debug)]
pub struct FlightLimit {
    window: WindowPushback,
    stepped: Time,
}

impl FlightLimit {
    /// Creates a limit that allows a queue of `queue`; `None` if this is zero.
    pub fn new(queue: TimeDelta) -> Option<Self> {
        let config = PushbackConfig { queue, drop_frames_only: false, ..PushbackConfig::LIBWEBRTC };
        queue.is_positive().then(|| Self { window: WindowPushback::new(config), stepped: Time::ZERO })
    }

    /// Handles a packet that left. Returns whether the limit may have changed.
    pub fn handle_sent(&mut self, now: Time, packet: &SentPacket) -> bool {
        self.window.set_in_flight(packet.in_flight.map_or(DataSize::ZERO, |before| before + packet.size));
        let due = now - self.stepped >= STEP;
        if due {
            self.step(now);
        }
        due
    }

    /// Handles a feedback message, with the target before the limit.
    pub fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, target: Rate) {
        let acknowledged = feedback.packets.iter().filter(|packet| packet.arrival.is_some());
        let Some(earliest) = acknowledged.map(|packet| packet.sent).min() else { return };
        self.window.handle_rtt(now - earliest);
        self.window.update_window(target);
        self.window.set_in_flight(feedback.outstanding);
        self.step(now);
    }

    fn step(&mut self, now: Time) {
        self.stepped = now;
        self.window.step();
    }

    /// Returns what the limit leaves of a target.
    pub fn limited(&self, target: Rate) -> Rate {
        self.window.limited(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketReport;
    use crate::testing::{at, sent};
    use paceline_units::RemoteTime;

    const TARGET: Rate = Rate::from_kbps(1000);

    /// A path of 100 ms: the window is 450 ms of 1 Mbit/s, 56,250 bytes.
    fn limit() -> FlightLimit {
        let mut limit = FlightLimit::new(TimeDelta::from_millis(350)).expect("an allowed queue");
        let size = DataSize::from_bytes(1200);
        let packets = [at(0), at(50)].map(|sent| PacketReport::new(0, sent, size, Some(RemoteTime::from_millis(7))));
        limit.handle_feedback(at(100), &Feedback::new(&packets, size, size), TARGET);
        limit
    }

    #[test]
    fn no_queue_is_no_limit() {
        assert!(FlightLimit::new(TimeDelta::ZERO).is_none());
    }

    /// By hand: a fill of 57,450 of 56,250 bytes is above 1, so each 25 ms leave 95 %; 85,200 bytes are above 1.5.
    #[test]
    fn unacknowledged_packets_lower_the_target() {
        let mut limit = limit();
        assert_eq!(limit.limited(TARGET), TARGET);
        let mut send = |ms, before| {
            let packet =
                SentPacket { in_flight: Some(DataSize::from_bytes(before)), ..sent(0, crate::PacketKind::Media, 1200) };
            (limit.handle_sent(at(ms), &packet), limit.limited(TARGET).as_bps())
        };
        assert_eq!(send(110, 56_250), (false, 1_000_000), "less than 25 ms after the feedback");
        assert_eq!(send(125, 56_250), (true, 950_000));
        assert_eq!(send(149, 84_000), (false, 950_000));
        assert_eq!(send(150, 84_000), (true, 855_000));
        let lowest = (0..100).map(|i| send(200 + 25 * i, 84_000).1).last();
        assert_eq!(lowest, Some(30_000), "never below libwebrtc's lowest rate");
        // Everything was acknowledged: the fill is below 0.1.
        let size = DataSize::from_bytes(1200);
        let packets = [PacketReport::new(0, at(2900), size, Some(RemoteTime::from_millis(7)))];
        limit.handle_feedback(at(3000), &Feedback::new(&packets, size, size), TARGET);
        assert_eq!(limit.limited(TARGET), TARGET);
    }
}
