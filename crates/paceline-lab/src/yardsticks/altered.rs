//! GoogCC with an alteration: a change of its numbers, of what it receives, or of what it decides.

use core::fmt::Debug;
use paceline::googcc::GoogCcConfig;
use paceline::{
    Bounds, Config, Controller, Decision, Feedback, FieldVisitor, Message, Parameters, ProbeCluster, QueuedFrame,
    ReceiverReport, RoundTrip, SendHalf, SentPacket, Setup, SignalTables, Signals, StreamState,
};
use paceline_units::{Rate, StreamId, Time};
use std::sync::Arc;

/// A change of what a send half receives or decides. The defaults change nothing.
pub trait Alteration: Clone + Debug + Send + Sync + 'static {
    /// Passes the parameters of the alteration to the visitor.
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        let _ = fields;
    }
    /// Returns the alteration at the start of a call, or after a change of the route.
    fn started(&self, setup: &Setup) -> Self {
        let _ = setup;
        self.clone()
    }
    /// Passes on a packet that was sent.
    fn handle_sent(&mut self, half: &mut dyn SendHalf, now: Time, packet: &SentPacket) {
        half.handle_sent(now, packet);
    }
    /// Passes on a feedback message.
    fn handle_feedback(&mut self, half: &mut dyn SendHalf, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        half.handle_feedback(now, feedback, signals);
    }
    /// Passes on the loss of a receiver report.
    fn handle_report(&mut self, half: &mut dyn SendHalf, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        half.handle_report(now, report, signals);
    }
    /// Passes on a message of the receive half.
    fn handle_message(&mut self, half: &mut dyn SendHalf, now: Time, message: &Message, signals: &mut Signals) {
        half.handle_message(now, message, signals);
    }
    /// Passes on a change of the route. The alteration then starts again.
    fn handle_route_change(&mut self, half: &mut dyn SendHalf, now: Time, setup: &Setup, signals: &mut Signals) {
        half.handle_route_change(now, setup, signals);
    }
    /// Passes on the next probe cluster.
    fn poll_probe(&mut self, half: &mut dyn SendHalf, now: Time) -> Option<ProbeCluster> {
        half.poll_probe(now)
    }
    /// Handles new limits of the target.
    fn handle_bounds(&mut self, bounds: &Bounds) {
        let _ = bounds;
    }
    /// Handles the decision of the half after each event.
    fn update(&mut self, now: Time, decision: &Decision) {
        let _ = (now, decision);
    }
    /// Returns the time at which to call [`update`](Self::update), if at all.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    /// Returns the decision in place of that of the half.
    fn decision(&self, decision: Decision) -> Decision {
        decision
    }
}

/// The alteration that changes nothing, for a fault that lies in the numbers.
#[derive(Clone, Copy, Debug)]
pub struct NoAlteration;

impl Alteration for NoAlteration {}

/// The config of GoogCC with an alteration.
#[derive(Clone, Debug)]
pub struct Altered<A> {
    config: Arc<GoogCcConfig>,
    alteration: A,
}

impl<A: Alteration> Altered<A> {
    /// Alters GoogCC with its default numbers.
    pub fn googcc(alteration: A) -> Self {
        Self { config: Arc::default(), alteration }
    }

    /// Sets a number of GoogCC.
    ///
    /// # Panics
    /// Panics if GoogCC has no such number.
    #[must_use]
    pub fn with_number(self, name: &str, value: f64) -> Self {
        assert!(self.config.numbers().iter().any(|number| number.name == name), "googcc has no `{name}`");
        Self { config: Arc::new(self.config.with_number(name, value)), ..self }
    }
}

impl<A: Alteration> Parameters for Altered<A> {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        self.alteration.fields(fields);
    }
}

impl<A: Alteration> Config for Altered<A> {
    const SIGNALS: SignalTables = GoogCcConfig::SIGNALS;

    fn couples(&self) -> bool {
        self.config.couples()
    }

    fn halves(&self, setup: &Setup) -> Controller {
        let Controller { send, receive, feedback } = self.config.halves(setup);
        let alteration = self.alteration.started(setup);
        let altered = |half| -> Box<dyn SendHalf> { Box::new(AlteredHalf { half, alteration }) };
        Controller { send: send.map(altered), receive, feedback }
    }
}

/// Returns a decision with this share of each rate.
pub fn scaled(decision: Decision, share: f64) -> Decision {
    Decision {
        target: decision.target.scale(share),
        stable_target: decision.stable_target.scale(share),
        pacing: decision.pacing.scale(share),
        padding: decision.padding.scale(share),
        ..decision
    }
}

#[derive(Clone, Debug)]
struct AlteredHalf<A> {
    half: Box<dyn SendHalf>,
    alteration: A,
}

impl<A: Alteration> AlteredHalf<A> {
    fn update(&mut self, now: Time) {
        self.alteration.update(now, &self.half.decision());
    }
}

impl<A: Alteration> SendHalf for AlteredHalf<A> {
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        self.alteration.handle_sent(&mut *self.half, now, packet);
        self.update(now);
    }
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        self.alteration.handle_feedback(&mut *self.half, now, feedback, signals);
        self.update(now);
    }
    fn handle_rtt(&mut self, now: Time, rtt: &RoundTrip, signals: &mut Signals) {
        self.half.handle_rtt(now, rtt, signals);
        self.update(now);
    }
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.alteration.handle_report(&mut *self.half, now, report, signals);
        self.update(now);
    }
    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        self.alteration.handle_message(&mut *self.half, now, message, signals);
        self.update(now);
    }
    fn on_liveness(&mut self, now: Time) {
        self.half.on_liveness(now);
        self.update(now);
    }
    fn handle_stream(&mut self, now: Time, stream: &StreamState) {
        self.half.handle_stream(now, stream);
        self.update(now);
    }
    fn handle_frame(&mut self, now: Time, frame: &QueuedFrame) {
        self.half.handle_frame(now, frame);
    }
    fn handle_application_limit(&mut self, now: Time, limited: bool) {
        self.half.handle_application_limit(now, limited);
        self.update(now);
    }
    fn handle_stream_removed(&mut self, now: Time, stream: StreamId) {
        self.half.handle_stream_removed(now, stream);
        self.update(now);
    }
    fn handle_bounds(&mut self, now: Time, bounds: &Bounds, signals: &mut Signals) {
        self.half.handle_bounds(now, bounds, signals);
        self.alteration.handle_bounds(bounds);
        self.update(now);
    }
    fn handle_route_change(&mut self, now: Time, setup: &Setup, signals: &mut Signals) {
        self.alteration.handle_route_change(&mut *self.half, now, setup, signals);
        self.alteration = self.alteration.started(setup);
    }
    fn handle_availability(&mut self, now: Time, available: bool) {
        self.half.handle_availability(now, available);
        self.update(now);
    }
    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        if self.half.poll_timeout().is_some_and(|due| due <= now) {
            self.half.handle_timeout(now, signals);
        }
        self.update(now);
    }
    fn poll_timeout(&self) -> Option<Time> {
        [self.half.poll_timeout(), self.alteration.poll_timeout()].into_iter().flatten().min()
    }
    fn poll_probe(&mut self, now: Time) -> Option<ProbeCluster> {
        self.alteration.poll_probe(&mut *self.half, now)
    }
    fn decision(&self) -> Decision {
        self.alteration.decision(self.half.decision())
    }
    fn calculated_rate(&self) -> Option<Rate> {
        self.half.calculated_rate()
    }
    fn set_coupled_rate(&mut self, now: Time, share: Rate, signals: &mut Signals) {
        self.half.set_coupled_rate(now, share, signals);
        self.update(now);
    }
    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let (rate, before) = (self.half.stream_rate(stream)?, self.half.decision().target);
        if before.is_zero() {
            return Some(rate);
        }
        Some(rate.scale(self.decision().target.as_bps_f64() / before.as_bps_f64()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use paceline::PacketReport;
    use paceline_units::{DataSize, RemoteTime};

    pub(crate) const SETUP: Setup = Setup::new(Rate::from_kbps(1000), Rate::from_kbps(50), Rate::from_kbps(4000));

    pub(crate) fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    /// Feeds messages of five packets each 50 ms from `from` to `to`, in ms. `delay` returns the delay of the packet that is sent at
    /// this time, or `None` for a lost one; both in ms. Returns the target after each message, in kbit/s.
    pub(crate) fn feed(
        half: &mut dyn SendHalf,
        (from, to): (i64, i64),
        delay: impl Fn(i64) -> Option<i64>,
    ) -> Vec<u64> {
        let mut targets = Vec::new();
        for message in (from..to).step_by(50) {
            let sent = |i: i64| message + 10 * i;
            for i in 0..5 {
                half.handle_sent(at(sent(i)), &SentPacket::new((sent(i) / 10) as u64, DataSize::from_bytes(1200)));
            }
            let packets: Vec<PacketReport> = (0..5)
                .map(|i| {
                    let arrival = delay(sent(i)).map(|delay| RemoteTime::from_millis(70_000 + sent(i) + delay));
                    PacketReport::new((sent(i) / 10) as u64, at(sent(i)), DataSize::from_bytes(1200), arrival)
                })
                .collect();
            let feedback = Feedback::new(&packets, DataSize::from_bytes(6000), DataSize::from_bytes(6000));
            let now = at(message + 49);
            half.handle_feedback(now, &feedback, &mut Signals::disabled());
            if half.poll_timeout().is_some_and(|due| due <= now) {
                half.handle_timeout(now, &mut Signals::disabled());
            }
            targets.push(half.decision().target.as_bps() / 1000);
        }
        targets
    }

    /// Without an alteration the decisions are those of GoogCC.
    #[test]
    fn wrapper_changes_nothing_by_itself() {
        let path = |ms: i64| if ms % 700 < 30 { None } else { Some(20 + ms / 100) };
        let config = Arc::new(GoogCcConfig::default());
        let mut plain = config.halves(&SETUP).send.unwrap();
        let mut altered = Altered::googcc(NoAlteration).halves(&SETUP).send.unwrap();
        let targets = feed(&mut *plain, (0, 20_000), path);
        assert_eq!(feed(&mut *altered, (0, 20_000), path), targets);
        assert!(targets.iter().any(|target| *target != targets[0]), "{targets:?}");
        assert_eq!((altered.poll_timeout(), altered.decision()), (plain.poll_timeout(), plain.decision()));
    }

    #[test]
    #[should_panic(expected = "googcc has no `gian`")]
    fn unknown_number_panics() {
        let _ = Altered::googcc(NoAlteration).with_number("gian", 0.0);
    }
}
