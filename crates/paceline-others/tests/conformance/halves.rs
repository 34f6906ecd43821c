// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controllers of other libraries: each works in a simulated call, and its inputs and outputs are translated as stated.

use paceline::{
    Bounds, Decision, Event, Feedback, Guard, Message, PacketReport, ReceiverReport, Registry, RoundTrip, SendHalf,
    SentPacket, Setup, Signals,
};
use paceline_lab::results::RowKind;
use paceline_lab::run::{RunResult, Runner};
use paceline_lab::suite::Subject;
use paceline_lab::{load, yardsticks};
use paceline_others::{OTHERS, add, subject};
use paceline_scenario::{Catalogue, Changes};
use paceline_units::{DataSize, Fraction, Rate, RemoteTime, Time, TimeDelta};

const SETUP: Setup = Setup::new(Rate::from_kbps(1000), Rate::from_kbps(50), Rate::from_kbps(4000));

fn half(name: &str) -> Guard {
    add(Registry::standard()).get(name).unwrap().build(&SETUP, &[]).unwrap().send.unwrap()
}

fn run(controller: &str, settings: &[&str]) -> RunResult {
    let registry = add(Registry::standard());
    let changes = Changes {
        controller: Some(controller.to_owned()),
        settings: settings.iter().map(|setting| setting.parse().unwrap()).collect(),
        ..Changes::default()
    };
    let scenario = load(&Catalogue.find("mmsys16/table1").unwrap(), &changes, &registry).unwrap();
    Runner::simulator(&registry).run(&scenario, 1, None).unwrap()
}

fn give(half: &mut dyn SendHalf, ms: i64, event: &Event<'_>) {
    half.handle_event(Time::from_millis(ms), event, &mut Signals::disabled());
}

/// Sends and reports messages of five packets each 50 ms from `from` to `to`, in ms. `delay` returns the delay of the packet that is
/// sent at this time, or `None` for a lost one; both in ms. An RTCP report comes first, because libwebrtc of 2024 counts no losses before
/// one. Returns the target after each message.
fn feed(half: &mut dyn SendHalf, (from, to): (i64, i64), delay: impl Fn(i64) -> Option<i64>) -> Vec<Rate> {
    let (size, mut targets) = (DataSize::from_bytes(1200), Vec::new());
    let report = ReceiverReport::new(Fraction::ZERO);
    give(half, from, &Event::Report(&report));
    for message in (from..to).step_by(50) {
        let times: Vec<i64> = (0..5).map(|i| message + 10 * i).collect();
        let packet = |ms: i64| {
            let arrival = delay(ms).map(|delay| RemoteTime::from_millis(70_000 + ms + delay));
            PacketReport::new((ms / 10) as u64, Time::from_millis(ms), size, arrival)
        };
        for ms in &times {
            give(half, *ms, &Event::Sent(&SentPacket::new((ms / 10) as u64, size)));
        }
        let packets: Vec<PacketReport> = times.into_iter().map(packet).collect();
        let now = message + 49;
        give(half, now, &Event::Feedback(&Feedback::new(&packets, size, size)));
        if half.poll_timeout().is_some_and(|due| due <= Time::from_millis(now)) {
            give(half, now, &Event::Timeout);
        }
        targets.push(half.decision().target);
    }
    targets
}

#[test]
fn rows_are_marked_as_other_implementations() {
    let registry = add(yardsticks::add(Registry::standard()));
    let kind = |name: &str| subject(name, &registry).kind;
    assert_eq!(OTHERS.map(kind), [RowKind::OtherImplementation; 2]);
    assert_eq!((kind("googcc"), kind("faulty-constant")), (RowKind::Controller, RowKind::Faulty));
    assert_eq!(Subject::all(&Registry::standard()).iter().filter(|of| OTHERS.contains(&&*of.name)).count(), 0);
    let text = serde_json::to_string(&RowKind::OtherImplementation).unwrap();
    assert_eq!(text, "\"other-implementation\"");
}

/// 1, 2.5, 0.5 and 1 Mbit/s, 50 s each. GCC uses 75 to 95 % of them with a queue far below its limit of 300 ms.
#[test]
fn runs_are_sound_and_equal_for_the_same_seed() {
    for (name, least) in OTHERS.into_iter().zip([0.75, 0.3]) {
        let (first, second) = (run(name, &[]), run(name, &[]));
        assert_eq!(first.trace_hash, second.trace_hash, "{name}");
        let utilization = first.whole.link.utilization.unwrap();
        assert!((least..0.97).contains(&utilization), "{name}: {utilization}");
    }
}

/// `goog_cc` and `googcc-2024` follow the same revision of libwebrtc, and the conformance tests compare their decisions. In a whole call
/// small differences add up: whole milliseconds, and the push-back.
#[test]
fn goog_cc_is_close_to_the_preset_of_its_year() {
    let [other, own] = ["goog_cc-0.1.4", "googcc-2024"].map(|name| run(name, &[]).whole.link);
    let difference = (other.utilization.unwrap() - own.utilization.unwrap()).abs();
    assert!(difference < 0.03, "{other:?} {own:?}");
}

/// The delay grows by 15 ms from packet to packet. `rtc-interceptor` compares this with its threshold of 12.5 ms as it is, so slower growth
/// is no over-use for it.
#[test]
fn both_fall_with_growing_delay_and_with_loss() {
    for name in OTHERS {
        let steady = *feed(&mut *half(name), (0, 10_000), |_| Some(20)).last().unwrap();
        assert!(steady > SETUP.start, "{name}: {steady}");
        let growing = *feed(&mut *half(name), (0, 5000), |ms| Some(20 + ms * 3 / 2)).last().unwrap();
        assert!(growing < Rate::from_kbps(900), "{name}: {growing}");
        let lossy = *feed(&mut *half(name), (0, 10_000), |ms| (ms % 20 != 0).then_some(20)).last().unwrap();
        assert!(lossy < Rate::from_kbps(800), "{name}: {lossy}");
    }
}

/// The crate goog_cc panics at a message without an arrival. Its losses count with the next one.
#[test]
fn messages_without_an_arrival_are_handled() {
    let mut half = half("goog_cc-0.1.4");
    feed(&mut *half, (0, 2000), |_| Some(20));
    let lost = feed(&mut *half, (2000, 3000), |_| None);
    let after = feed(&mut *half, (3000, 3500), |_| Some(20));
    assert!(after.last().unwrap() < &lost[0], "{lost:?} {after:?}");
}

#[test]
fn limits_hold_at_once() {
    for name in OTHERS {
        let mut half = half(name);
        feed(&mut *half, (0, 1000), |_| Some(20));
        let bounds = Bounds::new(Rate::from_kbps(50), Rate::from_kbps(300));
        give(&mut *half, 1000, &Event::Bounds(&bounds));
        assert_eq!(half.decision().target, bounds.max, "{name}");
        assert!(feed(&mut *half, (1000, 3000), |_| Some(20)).iter().all(|target| *target <= bounds.max), "{name}");
        let bounds = Bounds::new(Rate::from_kbps(800), Rate::from_kbps(4000));
        give(&mut *half, 3000, &Event::Bounds(&bounds));
        assert!(half.decision().target >= bounds.min, "{name}");
    }
}

/// libwebrtc probes at 3 and 6 times the start rate, for 15 ms and 5 packets, and paces at 2.5 times the target in bursts of 40 ms.
#[test]
fn goog_cc_asks_for_clusters_and_paces_faster_than_its_target() {
    let mut half = half("goog_cc-0.1.4");
    give(&mut *half, 0, &Event::Sent(&SentPacket::new(0, DataSize::from_bytes(1200))));
    let clusters: Vec<_> = std::iter::from_fn(|| half.poll_probe(Time::ZERO)).collect();
    let rates: Vec<u64> = clusters.iter().map(|cluster| cluster.rate.as_bps() / 1000).collect();
    assert_eq!(rates, [3000, 4000], "6 times the start rate exceeds the maximum");
    assert!(clusters.iter().all(|of| (of.duration, of.packets) == (TimeDelta::from_millis(15), 5)), "{clusters:?}");
    let Decision { target, pacing, burst, .. } = half.decision();
    assert_eq!((target, pacing, burst), (SETUP.start, Rate::from_kbps(2500), TimeDelta::from_millis(40)));
    assert_eq!(half.poll_timeout(), Some(Time::from_millis(25)));
}

/// A REMB of 0.4 Mbit/s caps goog_cc. A round-trip time of 0 is left out, which would end it.
#[test]
fn goog_cc_takes_messages_and_round_trip_times() {
    let mut half = half("goog_cc-0.1.4");
    feed(&mut *half, (0, 1000), |_| Some(20));
    give(&mut *half, 1000, &Event::RoundTrip(&RoundTrip::after(None, TimeDelta::ZERO)));
    give(&mut *half, 1000, &Event::Message(&Message::Remb(Rate::from_kbps(400))));
    let after = feed(&mut *half, (1000, 2000), |_| Some(20));
    assert!(*after.last().unwrap() <= Rate::from_kbps(400), "{after:?}");
}

/// The token bucket holds 100 ms at the target, and at least 12 kbit: at 60 kbit/s that is 200 ms.
#[test]
fn rtc_interceptor_paces_at_its_target_in_bursts_of_its_bucket() {
    for (kbps, ms) in [(1000, 100), (60, 200)] {
        let setup = Setup::new(Rate::from_kbps(kbps), SETUP.min, SETUP.max).with_packet_size(SETUP.packet_size);
        let controller = add(Registry::standard()).get("rtc-interceptor-0.21").unwrap().build(&setup, &[]).unwrap();
        let half = controller.send.unwrap();
        let Decision { target, pacing, burst, padding, .. } = half.decision();
        assert_eq!((target, pacing, burst), (setup.start, setup.start, TimeDelta::from_millis(ms)));
        assert!(padding.is_zero() && half.poll_timeout().is_none());
    }
}

/// Without loss and over-use the rate grows by 8 % per second: 1000 kbit/s · 1.08^10 = 2159 kbit/s. The program that measures the crate in
/// its repository prints 73.0 % of 3 Mbit/s for the last 9 of 30 s from 300 kbit/s; by hand, growth by 8 % gives 72.6 %.
#[test]
fn rtc_interceptor_grows_by_8_percent_per_second() {
    let targets = feed(&mut *half("rtc-interceptor-0.21"), (0, 10_000), |_| Some(20));
    let last = targets.last().unwrap().as_bps() / 1000;
    assert!((2050..2250).contains(&last), "{last}");
}

#[test]
#[should_panic(expected = "cannot be branched")]
fn copies_of_the_state_are_refused() {
    let _ = half("rtc-interceptor-0.21").snapshot();
}
