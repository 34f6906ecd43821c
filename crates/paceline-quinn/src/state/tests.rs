// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use paceline::{Decision, Event, SendHalf};
use std::sync::{Mutex, PoisonError};

const MTU: u16 = 1452;
const PACKET: u64 = 1200;
const RTT: Duration = Duration::from_millis(50);

/// The time of a report, the packets in it, and whether each one arrived.
type Passed = (Time, Vec<(u64, bool)>);

/// A controller of a constant rate that records the reports.
#[derive(Clone, Debug, Default)]
struct Recorder(std::sync::Arc<Mutex<Vec<Passed>>>);

impl SendHalf for Recorder {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, _signals: &mut Signals) {
        if let Event::Feedback(feedback) = event {
            let packets = feedback.packets.iter().map(|packet| (packet.sequence, packet.arrival.is_some()));
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((now, packets.collect()));
        }
    }

    fn decision(&self) -> Decision {
        Decision::new(Rate::from_kbps(5000))
    }
}

/// A state that quinn calls, with times in ms. Packet `n` has quinn's number `n + 10`.
struct Calls {
    state: State,
    start: Instant,
    recorder: Recorder,
}

impl Calls {
    #[allow(clippy::disallowed_methods, reason = "an instant has no other origin; only differences matter")]
    fn new() -> Self {
        let (start, recorder) = (Instant::now(), Recorder::default());
        let rate = Rate::from_kbps(5000);
        let encoder = Encoder::new(Target {
            rate,
            stable_rate: rate,
            pacing: rate,
            application_limited: false,
            rtt: INITIAL_RTT,
            updated: start,
        });
        let controller = Controller::from_sender(recorder.clone());
        let mut state = State::new(controller, &Setup::new(rate, rate, rate), encoder, start, MTU);
        state.bursts.skip(HANDSHAKE_PACKETS - 1);
        Self { state, start, recorder }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn send(&mut self, ms: u64) {
        let number = HANDSHAKE_PACKETS + self.state.sender.packets_sent();
        self.state.handle_sent(self.at(ms), PACKET, number, true);
    }

    /// Handles an ACK of packets that were sent at these times.
    fn ack(&mut self, ms: u64, sent: &[u64]) {
        for &sent in sent {
            self.state.handle_ack(self.at(ms), self.at(sent), PACKET, true, RTT);
        }
    }

    fn passed(&self) -> Vec<Passed> {
        self.recorder.0.lock().unwrap().clone()
    }
}

/// Packet `n` is sent at `n` ms. After a report, two ACKs come within the interval of reports.
#[test]
fn packets_of_several_acks_are_sorted() {
    for (first, second, is_unordered) in [(&[12][..], &[5, 13][..], true), (&[5, 12], &[13], false)] {
        let mut calls = Calls::new();
        (0..14).for_each(|ms| calls.send(ms));
        calls.ack(50, &[0]);
        calls.ack(60, first);
        calls.ack(70, second);
        assert_eq!(calls.state.is_unordered, is_unordered);
        calls.state.sort_packets();
        let numbers: Vec<u64> = calls.state.report.packets.iter().map(|packet| packet.number).collect();
        assert_eq!(numbers, [5, 12, 13]);
    }
}

/// Packets are sent at 0 to 8 ms. An ACK at 100 ms covers the one at 8 ms, and quinn declares the others lost.
#[test]
fn window_is_the_least_one_after_persistent_congestion() {
    let window_at = |mtu: u16| 2 * u64::from(mtu) + 1;
    for is_persistent in [true, false] {
        let mut calls = Calls::new();
        let has_least_window = |calls: &Calls| calls.state.window() == window_at(calls.state.mtu);
        (0..9).for_each(|ms| calls.send(ms));
        calls.ack(100, &[8]);
        calls.state.handle_loss(calls.at(100), calls.at(7), 8 * PACKET, is_persistent);
        assert_eq!(has_least_window(&calls), is_persistent);
        calls.state.handle_mtu(1400);
        assert_eq!(has_least_window(&calls), is_persistent, "after a change of the MTU");
        // The report with the losses leaves with this packet.
        calls.send(130);
        assert_eq!(calls.passed().len(), 1);
        assert_eq!(has_least_window(&calls), is_persistent, "after the report with the losses");
        calls.state.pass(Time::from_millis(140), false);
        assert_eq!(has_least_window(&calls), is_persistent, "after a timeout");
        calls.ack(180, &[130]);
        calls.send(210);
        assert_eq!(calls.passed().len(), 2);
        assert!(!has_least_window(&calls), "a packet arrived that was sent later");
    }
}

/// An ACK at 60 ms covers packet 1. quinn's timer declares packet 0 lost at 120 ms, after the report on the ACK or, if no packet is sent
/// in between, with it.
#[test]
fn reports_have_the_time_of_the_ack_or_of_the_loss() {
    let ms = Time::from_millis;
    let run = |sent: Option<u64>| {
        let mut calls = Calls::new();
        (0..3).for_each(|ms| calls.send(ms));
        calls.ack(50, &[2]);
        calls.ack(60, &[1]);
        sent.into_iter().for_each(|ms| calls.send(ms));
        calls.state.handle_loss(calls.at(120), calls.at(0), PACKET, false);
        (calls.passed(), calls.state.report.written)
    };
    let first = (ms(50), vec![(2, true)]);
    let (with_packet, written) = run(Some(90));
    assert_eq!(with_packet, [first.clone(), (ms(60), vec![(1, true)]), (ms(120), vec![(0, false)])]);
    assert_eq!(written, remote(ms(120)));
    let (without, written) = run(None);
    assert_eq!(without, [first, (ms(60), vec![(0, false), (1, true)])]);
    assert_eq!(written, remote(ms(60)));
}
