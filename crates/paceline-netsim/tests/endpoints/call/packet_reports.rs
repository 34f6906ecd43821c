// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reports that the send half gets on each sent packet, for both kinds of per-packet feedback.

use crate::call::harness::{
    CallConfig, FPS, Fate, Impairment, Log, RecordingHalf, SentDatagram, TestCall, pass, random_loss, stream,
    video_source,
};
use crate::call::{assert_within, frame_delay, frame_number, ms};
use paceline::{Controller, Decision, FecScheme, FeedbackRequirement, Protection, Window};
use paceline_netsim::flow::source::{Frame, Ideal, Source, VideoConfig};
use paceline_netsim::flow::{MediaKind, SenderEvent};
use paceline_units::{DataSize, Ecn, Rate, Time, TimeDelta};
use paceline_wire::{TWCC_TICK, is_rtcp};
use std::sync::{Arc, Mutex};

pub const TRANSPORT_WIDE: FeedbackRequirement = FeedbackRequirement::new(ms(50), ms(50));
pub const RFC8888: FeedbackRequirement = TRANSPORT_WIDE.with_ecn(true);
/// RFC 8888: the error between two arrivals, half of 1/1024 s each and the clock's resolution of 1/65536 s.
pub const RFC8888_ERROR: TimeDelta = TimeDelta::from_micros(977 + 31);

/// A source that ends.
struct FiniteSource(Ideal, Time);

impl Source for FiniteSource {
    fn set_target(&mut self, now: Time, target: Rate) {
        self.0.set_target(now, target);
    }
    fn request_key_frame(&mut self, now: Time) {
        self.0.request_key_frame(now);
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        self.0.poll_frame(now)
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout().filter(|due| *due < self.1)
    }
    fn range(&self) -> (Rate, Rate) {
        self.0.range()
    }
}

/// A call with per-packet feedback.
pub struct Call {
    pub feedback: Option<FeedbackRequirement>,
    pub ecn: Ecn,
    pub rate: Rate,
    /// The duration of sending media; the log ends two seconds later.
    pub seconds: i64,
}

impl Call {
    pub fn config(&self, forward: Impairment, back: Impairment) -> (CallConfig, Arc<Mutex<Log>>) {
        let &Self { feedback, ecn, rate, seconds } = self;
        let (half, log) = RecordingHalf::new(Decision::new(rate).with_pacing(rate.scale(1.5)).with_ecn(ecn));
        let controller = Controller::from_sender(half).with_feedback(feedback);
        let config = VideoConfig { fps: FPS, min: Rate::from_kbps(30), max: rate, start: Rate::from_kbps(300) };
        let source = FiniteSource(Ideal::new(config, Time::ZERO).unwrap(), Time::from_secs(seconds));
        let mut config = CallConfig::new(controller, rate);
        config.streams = vec![stream(0, MediaKind::Video, Box::new(source))];
        (config.forward, config.back) = (forward, back);
        (config, log)
    }

    pub fn run(&self, forward: Impairment, back: Impairment) -> (TestCall, Log) {
        let (call, log) = self.run_with(forward, back, |_| {});
        assert_eq!(call.sender_rejected(), 0);
        (call, log)
    }

    pub fn run_with(
        &self,
        forward: Impairment,
        back: Impairment,
        change: impl FnOnce(&mut CallConfig),
    ) -> (TestCall, Log) {
        let (mut config, log) = self.config(forward, back);
        change(&mut config);
        let call = TestCall::run(config, self.seconds + 2);
        let log = Log::take(&log);
        assert_eq!(log.sent.len(), call.count(crate::call::any_media));
        for (n, (_, packet)) in log.sent.iter().enumerate() {
            assert_eq!(packet.sequence, n as u64);
        }
        (call, log)
    }
}

/// The fate of RTP packets by their number in the flow, without sender reports.
pub fn packets(mut fate: impl FnMut(u64, Time) -> Fate + 'static) -> Impairment {
    let mut number = 0;
    Box::new(move |_, now, bytes| {
        if is_rtcp(bytes) {
            return Fate::Deliver;
        }
        number += 1;
        fate(number - 1, now)
    })
}

/// The reports on each packet, in order: arrived or lost.
pub fn outcomes(log: &Log) -> Vec<Vec<bool>> {
    let mut outcomes = vec![Vec::new(); log.sent.len()];
    for (_, report) in &log.reports {
        let (at, sent) = log.sent[report.sequence as usize];
        assert_eq!((report.sent, report.size), (at, sent.size));
        outcomes[report.sequence as usize].push(report.arrival.is_some());
    }
    outcomes
}

/// Asserts that reported arrivals are the send times plus the path delay and `late`, within `error`.
pub fn assert_arrivals(log: &Log, error: TimeDelta, late: impl Fn(u64) -> TimeDelta) {
    let (mut first, most) = (None, error.as_nanos() as f64);
    for (_, report) in &log.reports {
        let Some(arrival) = report.arrival else { continue };
        // The path adds serialization at 100 Mbps and the delay.
        let expected = report.sent + report.size / Rate::from_kbps(100_000) + late(report.sequence);
        let (arrival_0, expected_0) = *first.get_or_insert((arrival, expected));
        let error = (arrival - arrival_0) - (expected - expected_0);
        assert_within(error.as_nanos() as f64, -most, most, "arrival, ns");
    }
}

/// Runs a call of 20 s with a target of 2 Mbit/s and a window of 6000 bytes. Returns the packets sent and the most bytes in flight.
pub fn windowed(feedback: FeedbackRequirement, back: Impairment) -> (usize, u64) {
    let (call, most) = windowed_call(feedback, back, ms(2000));
    (call.count(crate::call::any_media), most)
}

/// The same with this limit of the pacer. Returns the call and the most bytes in flight.
fn windowed_call(feedback: FeedbackRequirement, back: Impairment, pacer_limit: TimeDelta) -> (TestCall, u64) {
    windowed_call_with(feedback, back, pacer_limit, false)
}

/// The same; with forward error correction, 3 % of the packets are lost.
fn windowed_call_with(
    feedback: FeedbackRequirement,
    back: Impairment,
    pacer_limit: TimeDelta,
    fec: bool,
) -> (TestCall, u64) {
    let (most, window) = (Rate::from_kbps(2000), Window::Outstanding(DataSize::from_bytes(6000)));
    let decision = Decision::new(most).with_pacing(most.scale(1.5)).with_window(Some(window)).with_padding(most);
    let (half, log) = RecordingHalf::new(decision);
    let controller = Controller::from_sender(half).with_feedback(Some(feedback));
    let mut config = CallConfig::new(controller, most);
    config.streams = vec![video_source(0, FPS, Rate::from_kbps(30), most, most)];
    (config.back, config.pacer_limit) = (back, pacer_limit);
    if fec {
        config.protection = Protection { fec: FecScheme::Ulpfec, ..Protection::default() };
        config.forward = random_loss(7, 0.03);
    }
    let call = TestCall::run(config, 20);
    let most = Log::take(&log).outstanding.iter().max().unwrap().as_bytes();
    (call, most)
}

/// The pacing rate would empty a queue of 187 kB within the limit, but the window lets less than a quarter of that through.
#[test]
fn frames_wait_behind_a_window_no_longer_than_the_pacer_limit() {
    for (feedback, _) in KINDS {
        let (call, _) = windowed_call(feedback, pass(), ms(500));
        let longest = call.rendered.iter().map(|frame| frame_delay(frame).as_millis_f64()).fold(0.0, f64::max);
        assert_within(longest, 500.0, 700.0, "longest delay, ms");
    }
}

/// No feedback arrives for 3 s: frames of the outage that are older than the limit are not sent after it. The sequence numbers
/// continue, so no packet is missing, and with FEC what is recovered later is right.
#[test]
fn frames_of_an_outage_are_discarded() {
    for (feedback, _) in KINDS {
        for fec in [false, true] {
            let outage = Time::from_secs(10)..Time::from_secs(13);
            let during = outage.clone();
            let back: Impairment =
                Box::new(
                    move |_, now, _| {
                        if during.contains(&now) { Fate::Delay(during.end - now) } else { Fate::Deliver }
                    },
                );
            let (call, _) = windowed_call_with(feedback, back, ms(1000), fec);
            let during =
                |(at, e): &&(Time, SenderEvent)| outage.contains(at) && matches!(e, SenderEvent::FrameDropped(_));
            let dropped = call.events.iter().filter(during).count();
            assert_within(dropped as f64, 60.0, 130.0, "dropped of 90, and of the queue");
            let of_media =
                |l: &&SentDatagram| u32::from_be_bytes([l.bytes[8], l.bytes[9], l.bytes[10], l.bytes[11]]) == 1000;
            let media = call.forward_log.iter().filter(|l| !is_rtcp(&l.bytes)).filter(of_media);
            let numbers: Vec<u16> = media.map(|l| u16::from_be_bytes([l.bytes[2], l.bytes[3]])).collect();
            assert!(numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "a gap in the sequence");
            let (malformed, ignored) = call.receiver.rejected_packets();
            assert_eq!((malformed.iter().sum::<u32>(), ignored), (0, 0), "what FEC recovers is right");
            let frames: Vec<u64> = call.rendered.iter().map(frame_number).collect();
            assert!(frames.is_sorted_by(|a, b| a < b), "each once and in order");
            if !fec {
                // Of the first frame, packets had left before the outage. Lost packets would be sent again after it.
                let after = call.rendered.iter().filter(|frame| frame.at > outage.end).skip(1);
                let longest = after.map(|frame| frame_delay(frame).as_millis_f64()).fold(0.0, f64::max);
                assert_within(longest, 500.0, 1300.0, "longest delay after the outage, ms");
                assert_eq!(call.fractions_lost().filter(|(_, fraction)| *fraction > 0.0).count(), 0, "nothing is lost");
            }
        }
    }
}

/// Both kinds of feedback, and the largest error of the arrival times.
const KINDS: [(FeedbackRequirement, TimeDelta); 2] = [(TRANSPORT_WIDE, TWCC_TICK), (RFC8888, RFC8888_ERROR)];

#[test]
fn sequence_numbers_and_report_timestamps_may_wrap() {
    for (feedback, error) in KINDS {
        let call = Call { feedback: Some(feedback), ecn: Ecn::NotEct, rate: Rate::from_kbps(30_000), seconds: 30 };
        let (_, log) = call.run_with(pass(), pass(), |config| {
            config.clock_offset = TimeDelta::from_secs(65_536 - 10); // RFC 8888: the 32-bit timestamp wraps after 10 s
        });
        assert_within(log.sent.len() as f64, 90_000.0, 110_000.0, "packets");
        assert!(outcomes(&log).iter().all(|outcomes| outcomes[..] == [true]));
        assert_arrivals(&log, error, |_| TimeDelta::ZERO);
        assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
        // At most 100 ms at 30 Mbps.
        assert!(log.outstanding.iter().all(|o| o.as_bytes() < 375_000));
    }
}

#[test]
fn duplicates_are_reported_once_and_late_packets_again() {
    for (feedback, error) in KINDS {
        let late = |n: u64| if n % 50 == 7 { ms(150) } else { TimeDelta::ZERO };
        let fate = packets(move |n, _| match n {
            _ if n % 50 == 7 => Fate::Delay(late(n)),
            _ if n % 9 == 0 => Fate::Duplicate,
            _ => Fate::Deliver,
        });
        let call = Call { feedback: Some(feedback), ecn: Ecn::NotEct, rate: Rate::from_kbps(1500), seconds: 60 };
        let (_, log) = call.run_with(fate, pass(), |config| config.retransmit = false);
        let outcomes = outcomes(&log);
        for (n, outcomes) in outcomes[..outcomes.len() - 60].iter().enumerate() {
            let expected = if n % 50 == 7 { &[false, true][..] } else { &[true][..] };
            assert_eq!(outcomes, expected, "packet {n}");
        }
        assert_arrivals(&log, error, late);
        assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    }
}
