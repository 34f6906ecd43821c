// SPDX-License-Identifier: MIT OR Apache-2.0
//! GoogCC with an alteration: a change of its numbers, of what it receives, or of what it decides.

use core::fmt::Debug;
use paceline::GoogCcConfig;
use paceline::{
    Config, Controller, Decision, Event, Failure, FieldVisitor, Guard, Parameters, ProbeCluster, SendHalf, Setup,
    SignalTables, Signals,
};
use paceline_units::{Rate, StreamId, Time};
use std::sync::Arc;

/// A change of what a send half receives or decides. The defaults change nothing.
pub trait Alteration: Clone + Debug + Send + Sync + 'static {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        let _ = fields;
    }
    /// Returns the alteration at the start of a call, or after a change of the route.
    fn started(&self, setup: &Setup) -> Self {
        let _ = setup;
        self.clone()
    }
    fn handle_event(&mut self, half: &mut dyn SendHalf, now: Time, event: &Event<'_>, signals: &mut Signals) {
        half.handle_event(now, event, signals);
    }
    fn poll_probe(&mut self, half: &mut dyn SendHalf, now: Time) -> Option<ProbeCluster> {
        half.poll_probe(now)
    }
    /// Handles the decision of the half after each event.
    fn update(&mut self, now: Time, decision: &Decision) {
        let _ = (now, decision);
    }
    /// Returns the time at which to call [`update`](Self::update), if at all.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
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
    pub fn with_number(mut self, name: &str, value: f64) -> Self {
        assert!(Arc::make_mut(&mut self.config).set(name, value), "googcc has no `{name}`");
        self
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
        let Controller { send, receive, feedback, .. } = self.config.halves(setup);
        let alteration = self.alteration.started(setup);
        let altered =
            |half: Guard| -> Box<dyn SendHalf> { Box::new(AlteredHalf { half: half.into_half(), alteration }) };
        Controller::new(send.map(altered), receive).with_feedback(feedback)
    }
}

pub fn scaled(mut decision: Decision, share: f64) -> Decision {
    let Decision { target, stable_target, pacing, padding, .. } = &mut decision;
    for rate in [target, stable_target, pacing, padding] {
        *rate = rate.scale(share);
    }
    decision
}

#[derive(Clone, Debug)]
struct AlteredHalf<A> {
    half: Box<dyn SendHalf>,
    alteration: A,
}

impl<A: Alteration> SendHalf for AlteredHalf<A> {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        let is_early = matches!(event, Event::Timeout) && self.half.poll_timeout().is_none_or(|due| due > now);
        if !is_early {
            self.alteration.handle_event(&mut *self.half, now, event, signals);
        }
        match *event {
            Event::RouteChange(setup) => self.alteration = self.alteration.started(setup),
            Event::Frame(_) => {}
            _ => self.alteration.update(now, &self.half.decision()),
        }
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
    fn poll_failure(&mut self) -> Option<Failure> {
        self.half.poll_failure()
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
    use paceline::{Feedback, PacketReport, SentPacket};
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
                half.handle_event(
                    at(sent(i)),
                    &Event::Sent(&SentPacket::new((sent(i) / 10) as u64, DataSize::from_bytes(1200))),
                    &mut Signals::disabled(),
                );
            }
            let packets: Vec<PacketReport> = (0..5)
                .map(|i| {
                    let arrival = delay(sent(i)).map(|delay| RemoteTime::from_millis(70_000 + sent(i) + delay));
                    PacketReport::new((sent(i) / 10) as u64, at(sent(i)), DataSize::from_bytes(1200), arrival)
                })
                .collect();
            let feedback = Feedback::new(&packets, DataSize::from_bytes(6000), DataSize::from_bytes(6000));
            let now = at(message + 49);
            half.handle_event(now, &Event::Feedback(&feedback), &mut Signals::disabled());
            if half.poll_timeout().is_some_and(|due| due <= now) {
                half.handle_event(now, &Event::Timeout, &mut Signals::disabled());
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
