// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guard around every registered send half: it lowers the rate when feedback stops, whatever the controller does
//! (RFC 8836, requirement 10: missing feedback is a sign of over-use).
//!
//! ```text
//! no feedback for 3 s while sending:   cap = A / 2, and again each second, down to the minimum
//!                                     A: the target at the first packet without feedback
//! feedback resumes:                    the cap doubles each second, until it exceeds the controller's target
//! ```
//!
//! The rate is halved as in TFRC when its nofeedback timer expires (RFC 5348, section 4.4). TFRC's timer has four round-trip
//! times; here it has the 3 s after which libwebrtc's `SendSideBandwidthEstimation` assumes congestion, then 1 s. A sender of
//! 1 Mbit/s therefore sends less than 5 kbit/s after 10 s without feedback, or its minimum. A controller that has kept its own
//! rate gets it back within the number of seconds that the decrease took, or less. One that is at or below the cap when feedback
//! resumes has lowered its rate itself, and is not limited.
//!
//! Only media packets start the timer: without per-packet feedback there is no report on padding and retransmissions.
//! Per-packet feedback on new packets and receiver reports that cover new packets stop it. Messages of the receive half
//! do not: a receiver may keep resending its last REMB although no packets arrive. The flow drops duplicate, forged and
//! outdated reports before they reach the guard. While feedback arrives, the guard changes nothing. Reports must arrive
//! more often than every 3 s.
//!
//! While the network is unavailable, no feedback is expected. A change of the route removes the cap.

use crate::{Bounds, Decision, Event, Failure, PacketKind, ProbeCluster, SendHalf, Signals};
use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};
use libm::exp2;
use paceline_units::{Rate, StreamId, Time, TimeDelta};

/// The first decrease follows after this time without feedback (libwebrtc's `kDefaultRttLimit`).
pub(crate) const FEEDBACK_TIMEOUT: TimeDelta = TimeDelta::from_secs(3);
/// The time between two decreases (libwebrtc's `kDefaultDropInterval`).
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// The share of the target that remains after a decrease (RFC 5348, section 4.4).
const DECREASE_FACTOR: f64 = 0.5;

/// What the guard allows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Everything.
    Off,
    /// Everything; the target when the timer started.
    Armed(Rate),
    /// At most this target.
    Cap(Rate),
}

impl Limit {
    fn cap(self) -> Option<Rate> {
        match self {
            Self::Cap(cap) => Some(cap),
            Self::Off | Self::Armed(_) => None,
        }
    }
}

/// A send half under the guard, or one that needs none.
#[derive(Clone, Debug)]
pub struct Guard {
    half: Box<dyn SendHalf>,
    /// Whether the rate falls without feedback.
    is_on: bool,
    min: Rate,
    /// The time at which the next decrease is due; [`Time::MAX`] if no media was sent since the last feedback.
    decrease_due: Time,
    /// Whether media was sent since the last decrease or feedback.
    sent: bool,
    limit: Limit,
    /// The time at which the cap last changed.
    changed: Time,
    /// Whether there is a network.
    available: bool,
}

impl Guard {
    /// Puts a half under the guard, which never lowers the target below `min`.
    pub fn new(half: Box<dyn SendHalf>, min: Rate) -> Self {
        Self { is_on: true, min, ..Self::off(half) }
    }

    /// Returns a half whose rate the guard does not change.
    pub fn off(half: Box<dyn SendHalf>) -> Self {
        Self {
            half,
            is_on: false,
            min: Rate::ZERO,
            decrease_due: Time::MAX,
            sent: false,
            limit: Limit::Off,
            changed: Time::ZERO,
            available: true,
        }
    }

    /// Returns the half without the guard.
    pub fn into_half(self) -> Box<dyn SendHalf> {
        self.half
    }

    fn start_timer(&mut self, now: Time) {
        self.decrease_due = now + FEEDBACK_TIMEOUT;
        if self.limit.cap().is_none() {
            self.limit = Limit::Armed(self.half.decision().target);
        }
    }

    /// Feedback resumes: removes a cap that the half has lowered its target to, before it handles the feedback.
    #[inline]
    fn release(&mut self) {
        if self.limit.cap().is_some_and(|cap| self.half.decision().target <= cap) {
            self.limit = Limit::Off;
        }
    }

    #[inline]
    fn stop_timer(&mut self, now: Time) {
        (self.decrease_due, self.sent) = (Time::MAX, false);
        if let Limit::Cap(cap) = self.limit {
            self.raise(now, cap);
        }
    }

    #[cold]
    fn raise(&mut self, now: Time, cap: Rate) {
        let dt = (now - self.changed).clamp(TimeDelta::ZERO, INTERVAL);
        let cap = cap.scale(exp2(dt.as_secs_f64()));
        let is_low = cap < self.half.decision().target;
        (self.limit, self.changed) = (if is_low { Limit::Cap(cap) } else { Limit::Off }, now);
    }

    #[cold]
    fn decrease(&mut self, now: Time) {
        let before = match self.limit {
            Limit::Armed(rate) | Limit::Cap(rate) => rate,
            Limit::Off => self.half.decision().target,
        };
        (self.limit, self.changed) = (Limit::Cap(before.scale(DECREASE_FACTOR).max(self.min)), now);
        // After a clock jump there is one decrease, not one for each second.
        self.decrease_due = now + INTERVAL;
    }

    #[cold]
    fn capped(&self) -> Decision {
        let d = self.half.decision();
        let Some((target, share)) = self.share(d.target) else { return d };
        Decision {
            target,
            stable_target: d.stable_target.min(target),
            pacing: d.pacing.scale(share).max(target),
            padding: d.padding.min(target),
            ..d
        }
    }

    /// Returns the cap and its share of the target, if it is below the target.
    fn share(&self, target: Rate) -> Option<(Rate, f64)> {
        let cap = self.limit.cap().filter(|cap| *cap < target)?;
        Some((cap, cap.as_bps_f64() / target.as_bps_f64()))
    }

    /// Handles the first media packet since the last feedback.
    #[inline(never)]
    fn handle_first(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        if self.is_on {
            self.start_timer(now);
        }
        self.half.handle_event(now, event, signals);
    }

    /// Passes on reports that prove that packets arrive.
    fn forward_report(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        self.release();
        self.half.handle_event(now, event, signals);
        self.stop_timer(now);
    }

    fn set_bounds(&mut self, bounds: &Bounds) {
        self.min = bounds.min;
        if let Limit::Armed(rate) | Limit::Cap(rate) = &mut self.limit {
            *rate = bounds.clamp(*rate);
        }
    }

    fn decrease_if_due(&mut self, now: Time) {
        if self.decrease_due <= now {
            match core::mem::take(&mut self.sent) {
                true => self.decrease(now),
                // No feedback is expected if nothing is sent.
                false => self.decrease_due = Time::MAX,
            }
        }
    }

    /// Handles an event that is not [`Event::Sent`].
    #[inline(never)]
    fn handle_other(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Feedback(feedback) if !feedback.packets.is_empty() => self.forward_report(now, event, signals),
            Event::Report(_) => self.forward_report(now, event, signals),
            Event::Liveness => {
                self.release();
                self.stop_timer(now);
                self.half.handle_event(now, event, signals);
            }
            Event::Bounds(bounds) => {
                self.half.handle_event(now, event, signals);
                self.set_bounds(bounds);
            }
            Event::RouteChange(setup) => {
                self.half.handle_event(now, event, signals);
                (self.min, self.decrease_due, self.sent, self.limit) = (setup.min, Time::MAX, false, Limit::Off);
                self.available = true;
            }
            // A repeated event must not restart the timer.
            Event::Availability(available) if self.is_on && available == self.available => {}
            Event::Availability(available) => {
                self.half.handle_event(now, event, signals);
                (self.available, self.decrease_due, self.sent) = (available, Time::MAX, false);
            }
            Event::Timeout => {
                if !self.is_on || self.half.poll_timeout().is_some_and(|due| due <= now) {
                    self.half.handle_event(now, event, signals);
                }
                self.decrease_if_due(now);
            }
            _ => self.half.handle_event(now, event, signals),
        }
    }
}

/// A guard is used as any half, also without the trait in scope.
impl Deref for Guard {
    type Target = dyn SendHalf;

    fn deref(&self) -> &Self::Target {
        self
    }
}

impl DerefMut for Guard {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self
    }
}

impl SendHalf for Guard {
    #[inline]
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        // The event of each packet. Without the other paths this is a short function.
        let &Event::Sent(packet) = event else { return self.handle_other(now, event, signals) };
        if packet.kind == PacketKind::Media {
            self.sent = self.is_on;
            if self.decrease_due == Time::MAX {
                return self.handle_first(now, event, signals);
            }
        }
        self.half.handle_event(now, event, signals);
    }
    #[inline]
    fn decides_on_sent(&self) -> bool {
        self.half.decides_on_sent()
    }
    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        match self.half.poll_timeout() {
            Some(due) => Some(due.min(self.decrease_due)),
            None => Some(self.decrease_due).filter(|due| *due != Time::MAX),
        }
    }
    /// While the guard limits the rate, no probe is sent.
    #[inline]
    fn poll_probe(&mut self, now: Time) -> Option<ProbeCluster> {
        if self.limit.cap().is_none() {
            return self.half.poll_probe(now);
        }
        while self.half.poll_probe(now).is_some() {}
        None
    }
    #[inline]
    fn decision(&self) -> Decision {
        if self.limit.cap().is_none() { self.half.decision() } else { self.capped() }
    }
    fn calculated_rate(&self) -> Option<Rate> {
        self.half.calculated_rate()
    }
    #[inline]
    fn poll_failure(&mut self) -> Option<Failure> {
        self.half.poll_failure()
    }
    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let rate = self.half.stream_rate(stream)?;
        Some(self.share(self.half.decision().target).map_or(rate, |(_, share)| rate.scale(share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Drive, at};
    use crate::{Message, Setup, testing};
    use alloc::vec::Vec;

    /// A half with a constant target of 1 Mbit/s, and a timeout at 10 s.
    #[derive(Clone, Debug)]
    struct ConstantRate {
        timeouts: Vec<Time>,
    }

    impl SendHalf for ConstantRate {
        fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
            if let Event::Timeout = event {
                self.timeouts.push(now);
            }
        }
        fn poll_timeout(&self) -> Option<Time> {
            self.timeouts.is_empty().then_some(at(10_000))
        }
        fn decision(&self) -> Decision {
            let target = Rate::from_kbps(1000);
            Decision { pacing: Rate::from_kbps(1500), padding: target, ..Decision::new(target) }
        }
        fn stream_rate(&self, _: StreamId) -> Option<Rate> {
            Some(Rate::from_kbps(400))
        }
    }

    fn guard() -> Guard {
        Guard::new(Box::new(ConstantRate { timeouts: Vec::new() }), Rate::from_kbps(50))
    }
    /// Sends a packet each 100 ms. Returns each new target with its time in ms.
    fn send(guard: &mut Guard, from: i64, to: i64) -> Vec<(i64, u64)> {
        let mut targets = Vec::new();
        let mut last = guard.decision().target;
        for ms in (from..to).step_by(100) {
            if guard.poll_timeout().is_some_and(|due| due <= at(ms)) {
                guard.on(ms, Event::Timeout);
            }
            guard.on(ms, Event::Sent(&testing::sent(0, PacketKind::Media, 1200)));
            let target = guard.decision().target;
            if target != last {
                targets.push((ms, target.as_bps()));
            }
            last = target;
        }
        targets
    }
    fn report(guard: &mut Guard, ms: i64) -> u64 {
        guard.on(ms, Event::Report(&testing::report(0.0))).as_bps()
    }

    /// A time that goes back, which callers must not pass, does not lower the cap.
    #[test]
    fn an_earlier_time_does_not_lower_the_cap() {
        let mut guard = guard();
        send(&mut guard, 0, 5000);
        let before = guard.decision().target;
        assert_eq!(report(&mut guard, 1000), before.as_bps());
        assert_eq!(report(&mut guard, 2000), 2 * before.as_bps());
    }

    #[test]
    fn half_without_the_guard_keeps_its_rate() {
        let mut guard = Guard::off(guard().into_half());
        assert_eq!(send(&mut guard, 0, 10_000), []);
        assert_eq!(guard.poll_timeout(), Some(at(10_000)), "the half's own");
        assert_eq!(guard.stream_rate(StreamId(0)), Some(Rate::from_kbps(400)));
    }

    /// 1000 kbit/s are halved after 3 s and then each second, to the minimum.
    #[test]
    fn decreases_without_feedback_and_recovers_with_it() {
        let mut guard = guard();
        assert_eq!(guard.poll_timeout(), Some(at(10_000)), "nothing was sent, so no feedback is expected");
        let targets = send(&mut guard, 0, 9000);
        assert_eq!(targets, [(3000, 500_000), (4000, 250_000), (5000, 125_000), (6000, 62_500), (7000, 50_000)]);
        let d = guard.decision();
        assert_eq!((d.pacing, d.padding), (Rate::from_kbps(75), Rate::from_kbps(50)));
        assert_eq!(guard.stream_rate(StreamId(0)), Some(Rate::from_kbps(20)));
        // Twice the rate a second after the last decrease; half a second later 50 · 2^1.5 = 141.4.
        assert_eq!(report(&mut guard, 9000), 100_000);
        assert_eq!(send(&mut guard, 9000, 9500), []);
        assert!((report(&mut guard, 9500) as f64 - 141_421.0).abs() < 2.0);
        assert!((report(&mut guard, 10_500) as f64 - 282_842.0).abs() < 4.0);
        assert!((report(&mut guard, 11_500) as f64 - 565_685.0).abs() < 8.0);
        assert_eq!(report(&mut guard, 12_500), 1_000_000);
        assert_eq!(guard.limit, Limit::Off);
        assert_eq!(guard.stream_rate(StreamId(0)), Some(Rate::from_kbps(400)));
    }

    /// A half that halves its target at each of its timeouts, one each 2 s, and takes 1 Mbit/s at the next report or message.
    #[derive(Clone, Debug)]
    struct Halving {
        target: Rate,
        due: Time,
    }

    impl SendHalf for Halving {
        fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
            match event {
                Event::Timeout => {
                    (self.target, self.due) = (self.target.scale(0.5), now + TimeDelta::from_secs(2));
                }
                Event::Report(_) | Event::Message(_) => self.target = Rate::from_kbps(1000),
                _ => {}
            }
        }
        fn poll_timeout(&self) -> Option<Time> {
            Some(self.due)
        }
        fn decision(&self) -> Decision {
            Decision::new(self.target)
        }
    }

    /// After 3, 4, and 5 s the guard allows 1/2, 1/4, and 1/8, and the first half is at 1/4, 1/4, and 1/8. The second half is at 1/4 when the
    /// guard allows 1/16, so the cap stays: 62.5 kbit/s, and 0.9 s later 2^0.9 times as much.
    #[test]
    fn half_that_lowers_its_rate_itself_is_not_limited_afterwards() {
        let guard = |first| {
            let half = Halving { target: Rate::from_kbps(1000), due: at(first) };
            Guard::new(Box::new(half), Rate::from_kbps(30))
        };
        let mut between = guard(3500);
        send(&mut between, 0, 3700);
        assert_eq!(between.decision().target, Rate::from_kbps(500));
        assert_eq!(report(&mut between, 3700), 1_000_000, "it was halved after the guard had acted");
        let mut early = guard(500);
        send(&mut early, 0, 5400);
        assert_eq!(early.decision().target, Rate::from_kbps(125));
        assert_eq!(report(&mut early, 5400), 1_000_000);
        let mut late = guard(2900);
        send(&mut late, 0, 6900);
        assert_eq!(late.decision().target, Rate::from_bps(62_500));
        let resumed = report(&mut late, 6900) as f64;
        assert!((resumed - 116_629.0).abs() < 2.0, "{resumed}");
    }

    /// A share of the rate of coupled flows goes to the controller, and the cap stays.
    #[test]
    fn share_of_coupled_flows_stays_below_the_cap() {
        let setup = Setup::new(Rate::from_kbps(1000), Rate::from_kbps(50), Rate::from_kbps(4000));
        let nada = crate::Config::halves(&crate::NadaConfig::default(), &setup).send.unwrap();
        let mut guard = Guard::new(nada.into_half(), Rate::from_kbps(50));
        assert_eq!(send(&mut guard, 0, 3100), [(3000, 500_000)]);
        guard.on(3100, Event::CoupledRate(Rate::from_kbps(2000)));
        assert_eq!(guard.calculated_rate(), Some(Rate::from_kbps(2000)));
        assert_eq!(guard.decision().target, Rate::from_kbps(500), "the cap");
        assert_eq!(
            guard.on(3200, Event::CoupledRate(Rate::from_kbps(400))),
            Rate::from_kbps(400),
            "a share below the cap"
        );
    }

    /// A half that has lowered its target, and raises it by a message of the receiver while feedback is missing.
    #[test]
    fn rate_that_rises_again_without_feedback_is_limited() {
        let half = Halving { target: Rate::from_kbps(1000), due: at(500) };
        let mut guard = Guard::new(Box::new(half), Rate::from_kbps(30));
        send(&mut guard, 0, 3500);
        assert_eq!(guard.decision().target, Rate::from_kbps(250), "below the 500 that the guard allows");
        assert_eq!(guard.on(3500, Event::Message(&Message::Remb(Rate::from_kbps(2000)))), Rate::from_kbps(500));
    }

    /// A new maximum counts at once: 300 kbit/s, of which a half is left at the next decrease.
    #[test]
    fn lower_maximum_lowers_what_is_allowed() {
        let mut guard = guard();
        send(&mut guard, 0, 1000);
        let bounds = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(300)).bounds();
        guard.on(1000, Event::Bounds(&bounds));
        assert_eq!(send(&mut guard, 1000, 3100), [(3000, 150_000)]);
    }

    #[test]
    fn regular_feedback_and_pauses_change_nothing() {
        let mut guard = guard();
        for s in 0..20 {
            assert_eq!(send(&mut guard, s * 2900, (s + 1) * 2900), []);
            assert_eq!(report(&mut guard, (s + 1) * 2900), 1_000_000);
        }
        // Nothing is sent for a minute, so no feedback is expected.
        assert_eq!(guard.poll_timeout(), None);
        assert_eq!(send(&mut guard, 118_000, 120_900), []);
        assert_eq!(send(&mut guard, 121_000, 121_100), [(121_000, 500_000)]);
    }

    #[test]
    fn messages_do_not_count_as_feedback() {
        let mut guard = guard();
        let mut targets = Vec::new();
        for ms in (0..5000).step_by(100) {
            targets.extend(send(&mut guard, ms, ms + 100));
            guard.on(ms, Event::Message(&Message::Remb(Rate::from_kbps(2000))));
        }
        assert_eq!(targets, [(3000, 500_000), (4000, 250_000)]);
    }

    /// A camera that pauses leaves only padding, which receiver reports do not cover. A sender that lost its last
    /// packet before a pause decreases once, and not to the minimum.
    #[test]
    fn padding_and_pauses_expect_no_feedback() {
        let mut guard = guard();
        guard.on(0, Event::Sent(&testing::sent(0, PacketKind::Padding, 250)));
        assert_eq!(guard.decrease_due, Time::MAX);
        send(&mut guard, 100, 200);
        for ms in [3100, 4100, 5100] {
            guard.on(ms, Event::Timeout);
        }
        assert_eq!((guard.decision().target.as_bps(), guard.decrease_due), (500_000, Time::MAX));
        assert_eq!(send(&mut guard, 6000, 9100), [(9000, 250_000)], "sending again without feedback");
    }

    #[test]
    fn clock_jump_causes_one_decrease() {
        let mut guard = guard();
        send(&mut guard, 0, 100);
        assert_eq!(send(&mut guard, 86_400_000, 86_400_100), [(86_400_000, 500_000)]);
        assert_eq!(guard.poll_timeout(), Some(at(86_401_000)));
    }

    #[test]
    fn timeouts_of_the_half_are_passed_on() {
        let mut guard = guard();
        guard.on(9000, Event::Timeout);
        assert_eq!(guard.half.poll_timeout(), Some(at(10_000)), "not before its time");
        guard.on(10_000, Event::Timeout);
        assert_eq!(guard.half.poll_timeout(), None);
    }
}
