//! The guard that every send half runs under: a sender that hears nothing slows down, whatever its controller would do
//! (RFC 8836, requirement 10: missing feedback is a sign of over-use).
//!
//! ```text
//! nothing heard for 3 s while sending:   cap = 0.8 A, and again each second, down to the minimum
//! heard again:                           the cap doubles each second, until it no longer binds
//! ```
//!
//! The fall is libwebrtc's back-off of the round-trip time: `SendSideBandwidthEstimation` lowers its rate that way once
//! the round-trip time, corrected by the age of the last feedback, exceeds 3 s. There the rate then grows by the loss
//! controller's 8 % a second; here the controller has kept its own rate, and the cap's way back to it takes the fall's
//! number of seconds, or fewer.
//!
//! What counts as sent is media, of which every receiver reports; padding and retransmissions have no report of their own
//! without per-packet feedback. What counts as heard is news of packets that were sent: per-packet feedback, a report on
//! new packets. A message of a receive half is no news by itself: the report in its compound is, if it names new packets,
//! so a receiver that goes on telling while nothing arrives does not keep a sender going. What is doubled, forged or too
//! old is no news; the flow drops it before it comes here. While feedback comes the guard changes nothing. Reports must
//! come more often than every 3 s.

use crate::{Decision, Feedback, Message, PacketKind, ReceiverReport, SendHalf, SentPacket, Signals, StreamState};
use libm::exp2;
use paceline_units::{Rate, StreamId, Time, TimeDelta};

/// So long a sender goes on without a word (libwebrtc's `kDefaultRttLimit`).
const PATIENCE: TimeDelta = TimeDelta::from_secs(3);
/// Time between two falls (libwebrtc's `kDefaultDropInterval`).
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// What a fall leaves (libwebrtc's `kDefaultDropFraction`).
const KEPT: f64 = 0.8;

/// A send half under the guard.
pub(crate) struct Guard {
    half: Box<dyn SendHalf>,
    min: Rate,
    /// When the next fall is due if nothing is heard; [`Time::MAX`]: nothing was sent since something was.
    fall: Time,
    /// Media was sent since the last fall, or since something was heard.
    sent: bool,
    /// No more than this is sent; none: what the half says.
    cap: Option<Rate>,
    /// When the cap last changed.
    changed: Time,
}

impl Guard {
    pub fn new(half: Box<dyn SendHalf>, min: Rate) -> Self {
        Self { half, min, fall: Time::MAX, sent: false, cap: None, changed: Time::ZERO }
    }

    #[inline]
    fn hear(&mut self, now: Time) {
        (self.fall, self.sent) = (Time::MAX, false);
        if let Some(cap) = self.cap {
            self.rise(now, cap);
        }
    }

    #[cold]
    fn rise(&mut self, now: Time, cap: Rate) {
        let dt = (now - self.changed).min(INTERVAL);
        let cap = grown(cap, dt);
        (self.cap, self.changed) = (Some(cap).filter(|cap| *cap < self.half.decision().target), now);
    }

    #[cold]
    fn fall(&mut self, now: Time) {
        let target = self.decision().target;
        // A controller that sends below its minimum on its own is not raised to it.
        let cap = target.scale(KEPT).max(self.min.min(target));
        (self.cap, self.changed) = (Some(cap), now);
        // A clock that leaps is one silence, not many.
        self.fall = now + INTERVAL;
    }

    #[cold]
    fn capped(&self) -> Decision {
        let d = self.half.decision();
        let Some((target, share)) = self.share(d.target) else { return d };
        Decision { target, pacing: d.pacing.scale(share).max(target), window: d.window, padding: d.padding.min(target) }
    }

    /// The cap, if it binds, and what share of the target it leaves.
    fn share(&self, target: Rate) -> Option<(Rate, f64)> {
        let cap = self.cap.filter(|cap| *cap < target)?;
        Some((cap, cap.as_bps_f64() / target.as_bps_f64()))
    }
}

/// Doubles each second.
fn grown(cap: Rate, dt: TimeDelta) -> Rate {
    cap.scale(exp2(dt.as_secs_f64()))
}

impl SendHalf for Guard {
    #[inline]
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        if packet.kind == PacketKind::Media {
            self.sent = true;
            if self.fall == Time::MAX {
                self.fall = now + PATIENCE;
            }
        }
        self.half.handle_sent(now, packet);
    }
    fn handle_heard(&mut self, now: Time) {
        self.hear(now);
        self.half.handle_heard(now);
    }
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        self.half.handle_feedback(now, feedback, signals);
        if !feedback.packets.is_empty() {
            self.hear(now);
        }
    }
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.half.handle_report(now, report, signals);
        self.hear(now);
    }
    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        self.half.handle_message(now, message, signals);
    }
    fn handle_stream(&mut self, now: Time, stream: &StreamState) {
        self.half.handle_stream(now, stream);
    }
    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        if self.half.poll_timeout() <= now {
            self.half.handle_timeout(now, signals);
        }
        if self.fall <= now {
            match core::mem::take(&mut self.sent) {
                true => self.fall(now),
                // Who is silent is not answered.
                false => self.fall = Time::MAX,
            }
        }
    }
    #[inline]
    fn poll_timeout(&self) -> Time {
        self.half.poll_timeout().min(self.fall)
    }
    #[inline]
    fn decision(&self) -> Decision {
        if self.cap.is_none() { self.half.decision() } else { self.capped() }
    }
    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let rate = self.half.stream_rate(stream)?;
        Some(self.share(self.half.decision().target).map_or(rate, |(_, share)| rate.scale(share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketKind;
    use paceline_units::{DataSize, Fraction};

    /// A half that always wants a megabit, and its own timeout at 10 s.
    struct Stubborn {
        timeouts: Vec<Time>,
    }

    impl SendHalf for Stubborn {
        fn handle_timeout(&mut self, now: Time, _: &mut Signals) {
            self.timeouts.push(now);
        }
        fn poll_timeout(&self) -> Time {
            if self.timeouts.is_empty() { at(10_000) } else { Time::MAX }
        }
        fn decision(&self) -> Decision {
            let target = Rate::from_kbps(1000);
            Decision { target, pacing: Rate::from_kbps(1500), window: None, padding: target }
        }
        fn stream_rate(&self, _: StreamId) -> Option<Rate> {
            Some(Rate::from_kbps(400))
        }
    }

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }
    fn guard() -> Guard {
        Guard::new(Box::new(Stubborn { timeouts: Vec::new() }), Rate::from_kbps(300))
    }
    /// Sends each 100 ms until then, and answers the targets that were new, with their times in ms.
    fn send(guard: &mut Guard, from: i64, to: i64) -> Vec<(i64, u64)> {
        let mut targets = Vec::new();
        let mut last = guard.decision().target;
        for ms in (from..to).step_by(100) {
            if guard.poll_timeout() <= at(ms) {
                guard.handle_timeout(at(ms), &mut Signals::unheard());
            }
            let size = DataSize::from_bytes(1200);
            let packet = SentPacket { sequence: 0, size, stream: StreamId(0), kind: PacketKind::Media };
            guard.handle_sent(at(ms), &packet);
            let target = guard.decision().target;
            if target != last {
                targets.push((ms, target.as_bps()));
            }
            last = target;
        }
        targets
    }
    fn report(guard: &mut Guard, ms: i64) -> u64 {
        let report = ReceiverReport { fraction_lost: Fraction::from_q8(0), rtt: None };
        guard.handle_report(at(ms), &report, &mut Signals::unheard());
        guard.decision().target.as_bps()
    }

    /// V4.7: 1000 kbit/s fall to 800; then by the same each second, to the minimum.
    #[test]
    fn it_falls_in_silence_and_comes_back() {
        let mut guard = guard();
        assert_eq!(guard.poll_timeout(), at(10_000), "nothing was sent, so nothing is waited for");
        let targets = send(&mut guard, 0, 9000);
        let kbps = [800_000, 640_000, 512_000, 409_600, 327_680, 300_000];
        assert_eq!(targets, kbps.iter().zip(3..).map(|(bps, s)| (s * 1000, *bps)).collect::<Vec<_>>());
        let d = guard.decision();
        assert_eq!((d.pacing, d.padding), (Rate::from_kbps(450), Rate::from_kbps(300)));
        assert_eq!(guard.stream_rate(StreamId(0)), Some(Rate::from_kbps(120)));
        // A second after the last fall twice as much, half a second later half of that again: 300 · 2^1.5 = 848.5.
        assert_eq!(report(&mut guard, 9000), 600_000);
        assert_eq!(send(&mut guard, 9000, 9500), []);
        assert!((report(&mut guard, 9500) as f64 - 848_528.0).abs() < 2.0);
        assert_eq!(report(&mut guard, 9800), 1_000_000);
        assert_eq!(guard.cap, None);
        assert_eq!(guard.stream_rate(StreamId(0)), Some(Rate::from_kbps(400)));
    }

    #[test]
    fn feedback_within_three_seconds_changes_nothing_and_neither_does_a_pause() {
        let mut guard = guard();
        for s in 0..20 {
            assert_eq!(send(&mut guard, s * 2900, (s + 1) * 2900), []);
            assert_eq!(report(&mut guard, (s + 1) * 2900), 1_000_000);
        }
        // Nothing is sent for a minute: nothing can be heard.
        assert_eq!(guard.poll_timeout(), Time::MAX);
        assert_eq!(send(&mut guard, 118_000, 120_900), []);
        assert_eq!(send(&mut guard, 121_000, 121_100), [(121_000, 800_000)]);
    }

    /// A receiver to which nothing gets through may go on telling what it has told before.
    #[test]
    fn a_message_is_no_news() {
        let mut guard = guard();
        let mut targets = Vec::new();
        for ms in (0..5000).step_by(100) {
            targets.extend(send(&mut guard, ms, ms + 100));
            guard.handle_message(at(ms), &Message::Remb(Rate::from_kbps(2000)), &mut Signals::unheard());
        }
        assert_eq!(targets, [(3000, 800_000), (4000, 640_000)]);
    }

    /// A camera that pauses leaves padding, of which receiver reports say nothing; and whoever sent one packet before a
    /// pause, and lost it, falls once and not to the minimum.
    #[test]
    fn neither_padding_nor_the_silent_are_waited_for() {
        let mut guard = guard();
        let padding =
            SentPacket { sequence: 0, size: DataSize::from_bytes(250), stream: StreamId(0), kind: PacketKind::Padding };
        guard.handle_sent(at(0), &padding);
        assert_eq!(guard.fall, Time::MAX);
        send(&mut guard, 100, 200);
        for ms in [3100, 4100, 5100] {
            guard.handle_timeout(at(ms), &mut Signals::unheard());
        }
        assert_eq!((guard.decision().target.as_bps(), guard.fall), (800_000, Time::MAX));
        assert_eq!(send(&mut guard, 6000, 9100), [(9000, 640_000)], "sending again, and unheard again");
    }

    #[test]
    fn a_clock_that_leaps_is_one_fall_and_the_halfs_own_timeouts_come() {
        let mut guard = guard();
        send(&mut guard, 0, 100);
        assert_eq!(send(&mut guard, 86_400_000, 86_400_100), [(86_400_000, 800_000)]);
        assert_eq!(guard.poll_timeout(), at(86_401_000));
        let mut guard = Guard::new(Box::new(Stubborn { timeouts: Vec::new() }), Rate::from_kbps(300));
        guard.handle_timeout(at(9000), &mut Signals::unheard());
        assert_eq!(guard.half.poll_timeout(), at(10_000), "not before its time");
        guard.handle_timeout(at(10_000), &mut Signals::unheard());
        assert_eq!(guard.half.poll_timeout(), Time::MAX);
    }
}
