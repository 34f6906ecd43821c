// SPDX-License-Identifier: MIT OR Apache-2.0
//! The known deviations of the oracle from libwebrtc that concern it, by the names of the list. Each is shown to exist, so
//! that a comparison may exclude it.
//!
//! | name | how it is excluded |
//! |---|---|
//! | `CR-CWND-TICK` | no congestion window in [`Case::WithoutWindow`] |
//! | `CR-ALLLOST-PANIC` | scripts have no feedback without a received packet |
//! | `CR-ALR-CLOCK` | scripts have no periodic probes |
//! | `CR-BAYES-1000` | both use the robust estimator, which is the default |
//! | `CR-NSE-CLUSTER` | there are no network state estimates |
//! | `CR-P-VINTAGE` | rules of 2024 in [`Case::EXACT`] |
//! | `CR-KBPS` (not in the list) | repeated in [`Case::EXACT`] |
//! | `WEBRTC-MS` | arrivals of scripts are whole milliseconds |
//!
//! The others concern ports that are no oracle here.

use goog_cc::transport::StreamsConfig;
use paceline::GoogCcConfig;
use paceline_others::conformance::{Case, Input, Oracle, Output, Packet, Rule, Script, Sent, Subject, compare, trials};
use paceline_units::TimeDelta;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Both controllers and a steady flow of packets.
struct Pair {
    oracle: Oracle,
    subject: Subject,
    now: i64,
    sent: Vec<Sent>,
    outputs: Vec<(i64, Output, Output)>,
}

impl Pair {
    fn new(streams: StreamsConfig, config: &GoogCcConfig) -> Self {
        let oracle = Oracle::new(trials(Case::Preset2024.vintage(), true), streams);
        let (now, sent, outputs) = (0, Vec::new(), Vec::new());
        let mut pair = Self { oracle, subject: Subject::new(config), now, sent, outputs };
        pair.handle(&Input::Start(0));
        pair
    }

    fn handle(&mut self, input: &Input) {
        let (oracle, subject) = (self.oracle.handle(input).clone(), self.subject.handle(input).clone());
        self.outputs.push((input.at(), oracle, subject));
    }

    /// Sends a packet of this size each 5 ms, with feedback and ticks, for this time. `arrival` returns the time of arrival of a
    /// packet in µs; `None`: lost.
    fn send(&mut self, ms: i64, size: u64, in_flight: u64, arrival: impl Fn(&Sent) -> Option<i64>) {
        let end = self.now + ms * 1000;
        while self.now < end {
            let sent = Sent { number: self.sent.len() as u64, at: self.now, size, in_flight, probe: None };
            self.sent.push(sent);
            self.handle(&Input::Sent(sent));
            self.now += 5000;
            if self.now % 50_000 == 0 {
                let last = self.sent.len() - 10;
                let packets = self.sent[last..].iter().map(|sent| Packet { sent: *sent, arrival: arrival(sent) });
                let packets = packets.collect();
                self.handle(&Input::Feedback { at: self.now + 40, packets, in_flight });
            }
            if self.now % 25_000 == 0 {
                self.handle(&Input::Tick(self.now));
            }
        }
    }

    fn last(&self) -> (&Output, &Output) {
        let (_, oracle, subject) = self.outputs.last().expect("there is an output");
        (oracle, subject)
    }
}

fn steady(sent: &Sent) -> Option<i64> {
    Some(sent.at + 20_000)
}

/// The crate sets the bytes in flight to the window at each tick, so the push-back is weak although nothing was acknowledged.
#[test]
fn cwnd_tick_replaces_the_bytes_in_flight() {
    let mut pair = Pair::new(StreamsConfig::default(), &Case::Preset2024.config());
    pair.send(3000, 1200, 5000, steady);
    let (oracle, subject) = pair.last();
    assert_eq!((oracle.target, subject.pushed_back), (subject.target, subject.target), "no push-back");
    // A packet with 1 MB in flight, then ticks alone.
    let number = pair.sent.len() as u64;
    pair.handle(&Input::Sent(Sent { number, at: pair.now, size: 1200, in_flight: 1_000_000, probe: None }));
    for _ in 0..8 {
        pair.now += 25_000;
        pair.handle(&Input::Tick(pair.now));
    }
    let (oracle, subject) = pair.last();
    assert_eq!(oracle.target, subject.target, "the target keeps the estimate");
    let share = |output: &Output| output.pushed_back as f64 / output.target as f64;
    assert!((share(subject) - 0.387_420_489).abs() < 1e-5, "0.9 at the packet and at each tick: {}", share(subject));
    // The window grows with the target, so the fill is a little above 1: 0.95 at each tick.
    assert!(share(oracle) > 0.5, "{}", share(oracle));
}

#[test]
fn feedback_without_a_received_packet_panics_in_the_crate_alone() {
    let mut pair = Pair::new(StreamsConfig::default(), &Case::Preset2024.config());
    pair.send(1000, 1200, 5000, steady);
    let packets = pair.sent[..3].iter().map(|sent| Packet { sent: *sent, arrival: None }).collect();
    let input = Input::Feedback { at: pair.now + 40, packets, in_flight: 5000 };
    let before = pair.subject.handle(&Input::Tick(pair.now)).target;
    assert_eq!(pair.subject.handle(&input).target, before);
    assert!(catch_unwind(AssertUnwindSafe(|| pair.oracle.handle(&input).target)).is_err());
}

/// The crate takes the start of the application-limited region from the system's clock, which is at zero here. A periodic
/// probe is then due 5 s after the last probe, although the region has just begun.
#[test]
fn alr_clock_is_the_systems() {
    let streams = StreamsConfig { requests_alr_probing: Some(true), ..StreamsConfig::default() };
    let mut config = Case::Preset2024.config();
    config.probes.periodic = true;
    let mut pair = Pair::new(streams, &config);
    // 240 kbit/s of 300; the target grows to 370, and the flow becomes application-limited.
    let mut began = 0;
    while pair.now < 20_000_000 {
        pair.send(50, 150, 5000, steady);
        if pair.subject.is_in_alr() && began == 0 {
            began = pair.now;
        }
    }
    let first = |of: fn(&(i64, Output, Output)) -> &Output| {
        let later = pair.outputs.iter().filter(|(at, ..)| *at > 2_000_000);
        later.clone().find(|output| !of(output).clusters.is_empty()).expect("a probe").0
    };
    let (oracle, subject) = (first(|output| &output.1), first(|output| &output.2));
    assert!((began + 4_900_000..began + 5_100_000).contains(&subject), "{began} {subject}");
    assert!(oracle < subject - 1_000_000, "{oracle} {subject}");
}

/// libwebrtc rounds arrivals down to milliseconds; ports keep 250 µs.
#[test]
fn arrivals_within_a_millisecond_count_in_the_crate() {
    let arrival = |sent: &Sent| Some(sent.at + 20_000 + (sent.number as i64 * 7919 % 64) * 250 + sent.at / 200);
    let mut fine = Case::Preset2024.config();
    fine.groups.resolution = TimeDelta::ZERO;
    let differences = |config: &GoogCcConfig| {
        let mut pair = Pair::new(StreamsConfig::default(), config);
        pair.send(30_000, 1200, 5000, arrival);
        let differs = |(_, oracle, subject): &&(i64, Output, Output)| {
            oracle.target.abs_diff(subject.target) > oracle.target / 1000
        };
        (pair.outputs.iter().filter(differs).count(), pair.outputs.len())
    };
    let (count, _) = differences(&fine);
    assert_eq!(count, 0);
    let (count, of) = differences(&Case::Preset2024.config());
    assert!((20..of).contains(&count), "{count} of {of}");
}

/// Each rule of today, alone, against the crate with its rules of 2024. `true`: decisions or probes differ.
#[test]
fn rules_of_today_differ_where_they_should() {
    let differs = |rule| {
        Script::all().filter(|script| script.seed < 3).any(|script| {
            let tally = compare(&script, Case::With(rule)).0;
            (tally.agree, tally.same_probes) != (tally.decisions, tally.probes)
        })
    };
    for rule in [Rule::WholeKbps, Rule::BeforeReport, Rule::Allocation] {
        assert!(differs(rule), "{rule:?}");
    }
    // A tie needs whole kbit/s, and the others change what is published, not the target.
    for rule in [Rule::Ties, Rule::AlrRounding, Rule::AlrPublished] {
        assert!(!differs(rule), "{rule:?}");
    }
}
