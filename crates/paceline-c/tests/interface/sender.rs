// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders.

use crate::harness::*;
use paceline_abi::PacelineLimits;
use paceline_c::{
    PACELINE_ERROR_ARGUMENT, PACELINE_ERROR_CONTROLLER, PACELINE_ERROR_FULL, PACELINE_EVENT_CLOCK_STEPPED_BACK,
    PACELINE_EVENT_KEY_FRAME_REQUESTED, PACELINE_EVENT_PROBE_RESULT, PACELINE_EVENT_STREAM_RATES, PACELINE_NEEDS_ECN,
    PACELINE_NEEDS_FEEDBACK, PACELINE_NEEDS_RECEIVER, PACELINE_NEEDS_REMB, PACELINE_OK, PacelineArrival,
};

/// A report that a packet arrived, 20 ms after it was sent at `sent_ms`.
fn arrived(sequence: u64, sent_ms: i64) -> PacelineArrival {
    PacelineArrival { sequence, arrival_ns: ms(sent_ms + 20), arrived: 1, ecn: 0 }
}

#[test]
fn feedback_of_the_old_route_changes_nothing() {
    let (mut sender, mut receiver) = (Sender::new("googcc", LIMITS).unwrap(), Receiver::new("googcc"));
    for n in 0..20 {
        sender.packet_sent(ms(n));
        receiver.packet(ms(n + 20), received(n as u16));
    }
    sender.feedback(ms(50), &[arrived(0, 0), arrived(1, 1)]);
    assert_eq!((sender.snapshot().packets_arrived, sender.snapshot().outstanding_bytes), (2, 18 * 1200));
    sender.route_change(ms(60), LIMITS);
    let (expected, target) = (sender.snapshot(), sender.decision().target_bps);
    assert_eq!((expected.outstanding_bytes, expected.after_highest_bytes), (0, 0));
    let lost = PacelineArrival { arrived: 0, ..arrived(3, 3) };
    sender.feedback(ms(70), &[arrived(2, 2), lost]);
    for compound in receiver.rtcp(ms(100)) {
        assert_eq!(sender.rtcp(ms(100), &compound), PACELINE_OK);
    }
    let after = sender.snapshot();
    assert_eq!((after.packets_arrived, after.packets_lost), (2, 0));
    assert_eq!(sender.decision().target_bps, target);
    // Packets of the new route count.
    let sequence = sender.packet_sent(ms(110));
    assert_eq!((sequence, sender.snapshot().outstanding_bytes), (20, 1200));
    sender.feedback(ms(150), &[arrived(sequence, 110)]);
    assert_eq!((sender.snapshot().packets_arrived, sender.snapshot().after_highest_bytes), (3, 0));
}

#[test]
fn nothing_leaves_without_a_network() {
    let mut sender = Sender::new("googcc", LIMITS).unwrap();
    assert_eq!(sender.push_frame(0, 3), PACELINE_OK);
    assert!(sender.poll(0).is_some());
    sender.availability(ms(1), false);
    assert_eq!(sender.push_frame(ms(2), 1), PACELINE_ERROR_FULL);
    assert!(last_error().contains("no network"), "{}", last_error());
    assert_eq!(sender.poll_until(ms(3), ms(1000)).len(), 0);
    // A new route does not bring the network back.
    sender.route_change(ms(1001), LIMITS);
    assert_eq!(sender.push_frame(ms(1002), 1), PACELINE_ERROR_FULL);
    assert_eq!(sender.poll_until(ms(1002), ms(1100)).len(), 0);
    sender.availability(ms(1101), true);
    assert_eq!(sender.push_frame(ms(1102), 1), PACELINE_OK);
    let sent = sender.poll_until(ms(1102), ms(1300));
    assert_eq!(sent.iter().filter(|(_, packet)| packet.token == 7).count(), 3, "two waited");
}

#[test]
fn clusters_above_a_new_maximum_are_dropped() {
    let probes = |max: Option<u64>| {
        let mut sender = Sender::new("googcc", LIMITS).unwrap();
        assert_eq!(sender.push_frame(0, 1), PACELINE_OK);
        let mut sent = sender.poll_until(0, ms(5));
        max.iter().for_each(|max| assert_eq!(sender.bounds(ms(5), 50_000, *max), PACELINE_OK));
        sent.clear();
        sent.extend(sender.poll_until(ms(5), ms(100)));
        sent.iter().filter(|(_, packet)| is_probe(packet)).count()
    };
    // The first clusters have 900 kbit/s and 1.8 Mbit/s.
    assert!(probes(None) > 10, "{}", probes(None));
    assert_eq!(probes(Some(400_000)), 0);
}

/// The window of SCReAM is full for 100 ms. The pacer does not make up for this time when it opens.
#[test]
fn no_burst_follows_a_full_window() {
    let mut sender = Sender::new("scream", PacelineLimits { start_bps: 5_000_000, ..LIMITS }).unwrap();
    let mut waiting: Vec<PacelineArrival> = Vec::new();
    for step in (0..1100).step_by(10) {
        // Feedback arrives 20 ms after a packet left, until it stops for 100 ms.
        if step < 1000 {
            let (old, new): (Vec<_>, _) = waiting.into_iter().partition(|packet| packet.arrival_ns <= ms(step));
            sender.feedback(ms(step), &old);
            waiting = new;
        }
        let status = sender.push_frame(ms(step), 5);
        assert!([PACELINE_OK, PACELINE_ERROR_FULL].contains(&status));
        let sent = sender.poll_until(ms(step), ms(step + 9));
        waiting.extend(sent.iter().map(|(at, packet)| arrived(packet.sequence, at / 1_000_000)));
    }
    sender.feedback(ms(1100), &waiting);
    let snapshot = sender.snapshot();
    assert!(snapshot.queued_bytes > 10 * 1200 && sender.decision().pacing_bps > 3_000_000, "{snapshot:?}");
    let at_once = std::iter::from_fn(|| sender.poll(ms(1100))).count();
    assert_eq!(at_once, 1, "{snapshot:?}");
}

/// A program with a pacer of its own reports its packets and polls none, so no probe is due.
#[test]
fn program_with_its_own_pacer_has_no_probe_due() {
    let (mut own, mut ours) = (Sender::new("googcc", LIMITS).unwrap(), Sender::new("googcc", LIMITS).unwrap());
    assert_eq!(ours.push_frame(0, 1), PACELINE_OK);
    own.packet_sent(0);
    assert!(ours.next_timeout() <= 0, "the first clusters wait");
    for step in 0..20 {
        let sequence = own.packet_sent(ms(10 * step));
        own.feedback(ms(10 * step + 20), &[arrived(sequence, 10 * step)]);
        own.on_timeout(ms(10 * step + 20));
        assert!(own.next_timeout() > ms(10 * step + 20), "{step}: {}", own.next_timeout());
    }
    assert!(own.poll(ms(1000)).is_none());
}

/// SCReAM version 2 of the authors' program has 100 ms for a frame in the queue of the sender.
#[test]
fn frames_are_refused_while_one_waits_longer_than_the_controller_allows() {
    for (name, refused_at) in [("scream-v2-cpp", Some(101)), ("googcc", None)] {
        let mut sender = Sender::new(name, LIMITS).unwrap();
        // 24 packets are 230 kbit, which take more than half a second.
        assert_eq!(sender.push_frame(0, 24), PACELINE_OK);
        sender.poll_until(0, ms(50));
        assert_eq!(sender.push_frame(ms(100), 1), PACELINE_OK, "{name}");
        let status = sender.push_frame(ms(101), 1);
        assert_eq!(status == PACELINE_ERROR_FULL, refused_at.is_some(), "{name}: {}", last_error());
    }
}

/// Sends frames from `from` to `to`, ms, each with feedback at once. Returns the number of packets that left.
fn send(sender: &mut Sender, from: i64, to: i64) -> usize {
    let mut left = 0;
    for now in from..to {
        if now % 33 == 0 {
            sender.push_frame(ms(now), 2);
        }
        while let Some(packet) = sender.poll(ms(now)) {
            left += 1;
            sender.feedback(ms(now), &[arrived(packet.sequence, now)]);
        }
    }
    left
}

#[test]
fn wrong_time_does_not_freeze_a_sender() {
    let mut sender = Sender::new("googcc", LIMITS).unwrap();
    send(&mut sender, 0, 5000);
    sender.events();
    sender.push_frame(ms(3_605_000), 1);
    sender.on_timeout(ms(5000));
    let steps = sender.events().iter().filter(|event| event.kind == PACELINE_EVENT_CLOCK_STEPPED_BACK).count();
    assert_eq!(steps, 1);
    assert!((40..4000).contains(&send(&mut sender, 5000, 10_000)));
}

#[test]
fn controller_says_what_it_needs_and_rejects_what_it_cannot_use() {
    assert_eq!(needs("googcc"), PACELINE_NEEDS_FEEDBACK);
    assert_eq!(needs("scream-v2"), PACELINE_NEEDS_FEEDBACK | PACELINE_NEEDS_ECN);
    assert_eq!((needs("gcc-2016"), needs("nada")), (PACELINE_NEEDS_REMB, PACELINE_NEEDS_RECEIVER));
    for name in ["gcc-2016", "nada"] {
        let mut sender = Sender::new(name, LIMITS).unwrap();
        sender.packet_sent(0);
        assert_eq!(sender.try_feedback(ms(50), &[arrived(0, 0)]), PACELINE_ERROR_CONTROLLER);
        assert!(last_error().contains("uses no reports on packets"), "{}", last_error());
    }
    for name in ["googcc", "drc", "gcc-2016"] {
        assert_eq!(Sender::new(name, LIMITS).unwrap().remb(0, 200_000), PACELINE_OK, "{name}");
    }
}

#[test]
fn program_with_its_own_pacer_sends_the_probes() {
    let mut sender = Sender::new("googcc", LIMITS).unwrap();
    sender.packet_sent(0);
    sender.on_timeout(ms(25));
    let probe = sender.poll_probe().expect("probes follow the first packet");
    assert!(probe.rate_bps > LIMITS.start_bps && probe.rate_bps < 20 * LIMITS.start_bps, "{probe:?}");
    assert_eq!(sender.probe_sent(ms(26), 3, probe.id.into()), Ok(1));
    assert_eq!(sender.probe_sent(ms(27), 3, -1), Ok(2));
    assert_eq!(sender.probe_sent(ms(27), 3, 65_536), Err(PACELINE_ERROR_ARGUMENT));
    assert_eq!(sender.probe_sent(ms(27), 3, -2), Err(PACELINE_ERROR_ARGUMENT));
}

#[test]
fn probe_results_and_rates_are_events() {
    let mut sender = Sender::new("googcc", LIMITS).unwrap();
    sender.packet_sent(0);
    sender.on_timeout(ms(25));
    let id = sender.poll_probe().expect("probes follow the first packet").id.into();
    let sent: Vec<_> = (0..20).map(|n| (sender.probe_sent(ms(30 + n), 3, id).unwrap(), 30 + n)).collect();
    let reports: Vec<_> = sent.iter().map(|(sequence, at)| arrived(*sequence, *at)).collect();
    sender.feedback(ms(100), &reports);
    let events = sender.events();
    let of = |kind| events.iter().filter(move |event| event.kind == kind).collect::<Vec<_>>();
    let results = of(PACELINE_EVENT_PROBE_RESULT);
    assert!(results.len() == 1 && results[0].probe == id, "{events:?}");
    // One packet of 1200 bytes per ms.
    assert!((5_000_000..11_000_000).contains(&results[0].rate_bps), "{events:?}");
    let rates = of(PACELINE_EVENT_STREAM_RATES);
    assert!(rates.len() == 1 && rates[0].rate_bps == sender.decision().target_bps, "{events:?}");
}

/// An RTCP picture loss indication asks for a key frame; a program that polls no events for long gets it all the same.
#[test]
fn many_events_drop_no_key_frame_request() {
    let mut sender = Sender::new("googcc", LIMITS).unwrap();
    send(&mut sender, 0, 1000);
    let pli = [0x81, 206, 0, 2, 0, 0, 7, 0xd0, 0, 0, 3, 0xe8];
    assert_eq!(sender.rtcp(ms(1000), &pli), PACELINE_OK, "{}", last_error());
    for n in 0..2000 {
        sender.rtt(ms(1000), ms(20 + n % 50));
        sender.loss(ms(1000), (n % 10) as f64 / 100.0);
        assert_eq!(sender.bounds(ms(1000), 50_000, 1_000_000 + n.unsigned_abs()), PACELINE_OK);
        sender.push_frame(ms(1000), 500);
    }
    send(&mut sender, 1000, 20_000);
    let events = sender.events();
    assert!(
        events.len() < 80 && events.iter().any(|event| event.kind == PACELINE_EVENT_KEY_FRAME_REQUESTED),
        "{events:?}"
    );
}
