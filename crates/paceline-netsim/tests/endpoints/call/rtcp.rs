// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sender and receiver reports, header fields, and injected RTCP.

use crate::call::harness::{
    CallConfig, Fate, Log, RecordingHalf, RenderedFrame, TestCall, compound, controller, drop_if, fixed, random_loss,
    video, video_source,
};
use crate::call::{assert_within, kbps, ms};
use paceline::{Controller, Decision, PacketKind};
use paceline_netsim::flow::{DatagramKind, SenderEvent};
use paceline_units::{RandomStreams, StreamId, Time, TimeDelta};
use paceline_wire::{ExtensionIds, ReportBlock, Rtcp, RtpHeader, WireError, is_rtcp, parse_compound};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn reports_give_loss_and_round_trip_time_for_any_receiver_clock() {
    for (hours, drift_ppm) in [(0, 0), (7, 100), (-7, -100)] {
        let mut config = CallConfig::new(fixed(kbps(1000)), kbps(2000));
        config.retransmit = false;
        (config.forward_delay, config.back_delay) = (ms(25), ms(35));
        (config.clock_offset, config.drift_ppm) = (TimeDelta::from_secs(3600 * hours), drift_ppm);
        config.forward = drop_if(|index, _, bytes| index % 10 == 9 && !is_rtcp(bytes));
        let call = TestCall::run(config, 300);
        let rtts: Vec<f64> = call
            .events
            .iter()
            .filter_map(|(_, e)| if let SenderEvent::RoundTrip(rtt) = e { Some(rtt.as_millis_f64()) } else { None })
            .collect();
        assert_within(rtts.len() as f64, 270.0, 330.0, "round trips");
        for rtt in rtts {
            assert_within(rtt, 59.5, 60.8, "round trip, ms");
        }
        let lost: Vec<f64> = call.fractions_lost().map(|(_, fraction)| fraction).collect();
        assert_within(lost.iter().sum::<f64>() / lost.len() as f64, 0.093, 0.103, "fraction lost");
        // RFC 3550, section 6.3: the mean is the deterministic interval, here its minimum of 1 s. The range is half to
        // one and a half times the interval, divided by the compensation of 1.218.
        let reports: Vec<Time> = call.back_log.iter().filter(|l| is_report(&l.bytes)).map(|l| l.at).collect();
        let gaps: Vec<f64> = reports.windows(2).map(|w| (w[1] - w[0]).as_secs_f64()).collect();
        assert_within(gaps.iter().sum::<f64>() / gaps.len() as f64, 0.95, 1.05, "mean report interval");
        for gap in gaps {
            assert_within(gap, 0.5 / 1.2183 - 1e-3, 1.5 / 1.2183 + 1e-3, "report interval");
        }
    }
}

/// The receiver of gcc-med16 reports each frame. Every tenth packet is 60 ms late, and none is lost: what one report counts
/// as lost, a later one takes back. Real losses count beside late packets.
#[test]
fn late_packets_are_not_reported_as_lost_for_long() {
    let mean = |lost: fn(u64) -> bool| {
        let mut config = CallConfig::new(controller("gcc-med16", kbps(2000), &[]), kbps(2000));
        config.retransmit = false;
        config.forward = Box::new(move |index, _, _| match index % 10 {
            3 => Fate::Delay(ms(60)),
            _ if lost(index) => Fate::Drop,
            _ => Fate::Deliver,
        });
        let call = TestCall::run(config, 60);
        let fractions: Vec<f64> = call.fractions_lost().map(|(_, fraction)| fraction).collect();
        assert_within(fractions.len() as f64, 50.0, 600.0, "reports over 20 packets");
        fractions.iter().sum::<f64>() / fractions.len() as f64
    };
    assert_within(mean(|_| false), 0.0, 0.03, "late packets alone");
    assert_within(mean(|index| index % 20 == 7), 0.04, 0.09, "and every twentieth lost");
}

/// Twelve streams: more SSRCs than the blocks of one datagram.
#[test]
fn every_report_covers_every_stream() {
    let mut config = CallConfig::new(fixed(kbps(6000)), kbps(500));
    config.streams = (0..12).map(|index| video(index, kbps(500))).collect();
    let ssrcs: BTreeSet<u32> = config.streams.iter().map(|stream| stream.info.ssrc).collect();
    config.forward = random_loss(7, 0.02);
    let call = TestCall::run(config, 20);
    for (log, sender_reports) in [(&call.back_log, false), (&call.forward_log, true)] {
        // The datagrams of one report leave at one instant.
        let mut reports: BTreeMap<Time, Vec<u32>> = BTreeMap::new();
        for datagram in log.iter().filter(|datagram| is_rtcp(&datagram.bytes)) {
            for packet in parse_compound(&datagram.bytes).unwrap() {
                match packet {
                    Rtcp::ReceiverReport { blocks, .. } if !sender_reports => {
                        let blocks: Vec<u32> = blocks.map(|block| block.ssrc).collect();
                        assert!((1..=8).contains(&blocks.len()), "{}", blocks.len());
                        reports.entry(datagram.at).or_default().extend(blocks);
                    }
                    Rtcp::SenderReport { ssrc, .. } if sender_reports => {
                        reports.entry(datagram.at).or_default().push(ssrc);
                    }
                    _ => {}
                }
            }
        }
        assert!((15..=25).contains(&reports.len()), "{} reports in 20 s", reports.len());
        for (at, named) in reports.iter().skip(2) {
            let distinct: BTreeSet<u32> = named.iter().copied().collect();
            assert_eq!(distinct.len(), named.len(), "no SSRC is reported twice at {at}");
            assert!(distinct.is_superset(&ssrcs), "{} of 12 streams at {at}", distinct.intersection(&ssrcs).count());
        }
    }
}

/// Twelve streams: each report takes two datagrams or three, whose blocks have the same time, so they give one sample. If the
/// first is lost, the next one gives it.
#[test]
fn a_report_of_several_datagrams_gives_one_round_trip_time() {
    for lost in [0, 1] {
        let mut config = CallConfig::new(fixed(kbps(6000)), kbps(500));
        config.streams = (0..12).map(|index| video(index, kbps(500))).collect();
        let mut last = Time::ZERO;
        config.back = Box::new(move |_, now, bytes| {
            let is_first = is_rtcp(bytes) && is_report(bytes) && now > last;
            if is_first {
                last = now;
            }
            if is_first && lost == 1 { Fate::Drop } else { Fate::Deliver }
        });
        let call = TestCall::run(config, 20);
        let reports: BTreeSet<Time> = call.back_log.iter().filter(|l| is_report(&l.bytes)).map(|l| l.at).collect();
        let samples = call.events.iter().filter(|(_, event)| matches!(event, SenderEvent::RoundTrip(_))).count();
        assert!((15..=25).contains(&reports.len()), "{} reports", reports.len());
        assert!(
            (reports.len() - 2..=reports.len()).contains(&samples),
            "{samples} samples of {} reports",
            reports.len()
        );
    }
}

/// The stream that is described has a report in the same compound. Without a stream there is no report.
#[test]
fn sender_reports_name_no_stream_that_ended() {
    let mut config = CallConfig::new(fixed(kbps(1000)), kbps(500));
    config.streams = (0..3).map(|index| video(index, kbps(500))).collect();
    let ssrcs: Vec<u32> = config.streams.iter().map(|stream| stream.info.ssrc).collect();
    let mut call = TestCall::new(config);
    for (second, ended) in [(5, 0), (10, 1), (15, 2)] {
        call.run_secs(second);
        assert!(call.sender.remove_stream(call.now, StreamId(ended)));
    }
    call.run_secs(20);
    let mut compounds = [0; 4];
    for datagram in call.forward_log.iter().filter(|datagram| is_rtcp(&datagram.bytes)) {
        let ended = (datagram.at.as_nanos() / 5_000_000_000) as usize;
        let (mut reported, mut described) = (Vec::new(), Vec::new());
        for packet in parse_compound(&datagram.bytes).unwrap() {
            match packet {
                Rtcp::SenderReport { ssrc, .. } => reported.push(ssrc),
                Rtcp::Sdes { chunks } => described.extend(chunks.map(|chunk| chunk.ssrc)),
                _ => {}
            }
        }
        assert_eq!((&reported[..], &described[..]), (&ssrcs[ended..], &ssrcs[ended..=ended]), "at {}", datagram.at);
        compounds[ended] += 1;
    }
    assert!(compounds[..3].iter().all(|count| (3..=8).contains(count)) && compounds[3] == 0, "{compounds:?}");
}

/// At eight packets a second a report covers fewer than the 20 packets that a fraction lost needs.
#[test]
fn every_round_trip_time_reaches_the_controller() {
    let (half, log) = RecordingHalf::new(Decision::new(kbps(60)).with_pacing(kbps(200)));
    let mut config = CallConfig::new(Controller::from_sender(half), kbps(1000));
    config.streams = vec![video_source(0, 8.0, kbps(30), kbps(60), kbps(60))];
    let call = TestCall::run(config, 30);
    let events = call.events.iter().filter(|(_, event)| matches!(event, SenderEvent::RoundTrip(_))).count();
    let Log { round_trips: samples, receiver_reports: losses, .. } = Log::take(&log);
    assert_eq!(samples.len(), events, "one call for each sample");
    assert!((25..=35).contains(&samples.len()) && (8..14).contains(&losses), "{} samples, {losses}", samples.len());
    for rtt in samples {
        assert_within(rtt.last.as_millis_f64(), 39.5, 41.5, "last, ms");
        assert_within(rtt.smoothed.as_millis_f64(), 39.5, 41.5, "smoothed, ms");
    }
}

#[test]
fn packets_carry_transport_sequence_and_send_time() {
    let mut config = CallConfig::new(controller("gcc-2016", kbps(2000), &[]), kbps(2000));
    config.forward = drop_if(|index, _, _| index % 50 == 49);
    let call = TestCall::run(config, 100);
    let (mut number, mut first) = (0u16, None);
    for left in call.forward_log.iter().filter(|l| !is_rtcp(&l.bytes)) {
        let (header, _) = RtpHeader::parse(&left.bytes, &ExtensionIds::default()).unwrap();
        assert_eq!(header.transport_sequence, Some(number), "consecutive over media, retransmissions and padding");
        number = number.wrapping_add(1);
        // Within half a unit of 3.8 us, modulo 64 s.
        let rendered = header.abs_send_time.unwrap().bits() as f64 * 1e9 / 262_144.0;
        let error = (rendered - left.at.as_nanos() as f64 + 32e9).rem_euclid(64e9) - 32e9;
        assert_within(error, -1950.0, 1950.0, "abs-send-time, ns");
        // 90 kHz timestamps of frames that were captured at most 100 ms before.
        let Some(DatagramKind::Rtp { kind: PacketKind::Media, .. }) = left.sent else { continue };
        let age = left.at.as_secs_f64() - header.timestamp as f64 / 90_000.0;
        assert_within(age, -1e-4, 0.1, "age of the frame, s");
        let sequence = *first.get_or_insert(header.sequence);
        assert_eq!(header.sequence, sequence);
        first = Some(sequence.wrapping_add(1));
    }
    assert!(number > 2000);
}

#[test]
fn sequence_number_and_timestamp_wraps_have_no_effect() {
    let run = |first_sequence, timestamp_offset: u32| {
        let mut config = CallConfig::new(controller("gcc-2016", kbps(2000), &[]), kbps(2000));
        config.capacity = kbps(900);
        config.streams[0].first_sequence = first_sequence;
        config.streams[0].timestamp_offset = timestamp_offset;
        config.forward = random_loss(3, 0.03);
        let call = TestCall::run(config, 60);
        let rendered: Vec<RenderedFrame> = call
            .rendered
            .iter()
            .map(|s| RenderedFrame { timestamp: s.timestamp.wrapping_sub(timestamp_offset), ..*s })
            .collect();
        assert_eq!(call.sender_rejected(), 0);
        (rendered, call.events, call.rembs)
    };
    let plain = run(100, 0);
    assert!(plain.0.len() > 1700);
    for (sequence, offset) in [(65_530, u32::MAX - 3000 * 17), (65_535, u32::MAX), (0, 1 << 31), (32_760, 5)] {
        assert_eq!(run(sequence, offset), plain, "from {sequence}, {offset}");
    }
}

#[test]
fn invalid_rtcp_has_no_effect_and_is_counted() {
    let run = |injected: Vec<(Time, Vec<u8>)>| {
        let mut config = CallConfig::new(controller("gcc-2016", kbps(2000), &[]), kbps(2000));
        config.capacity = kbps(700);
        config.injected = injected;
        config.forward = random_loss(5, 0.02);
        TestCall::run(config, 60)
    };
    let block =
        |ssrc, highest_sequence| ReportBlock { ssrc, highest_sequence, fraction_lost: 200, ..Default::default() };
    let rr = |ssrc, highest| compound(|w| w.receiver_report(1, &[block(ssrc, highest)]).unwrap());
    let remb = compound(|w| w.remb(1, kbps(50), &[77]).unwrap());
    let kinds: Vec<(&str, Vec<u8>)> = vec![
        ("REMB for a foreign SSRC", remb.clone()),
        ("REMB without SSRC", compound(|w| w.remb(1, kbps(50), &[]).unwrap())),
        ("RR on a foreign SSRC", rr(77, 120)),
        ("RR from the future", rr(1000, 60_000)),
        ("RR from a later cycle", rr(1000, 0x1_0000 + 500)),
        ("RR from the last cycle", rr(1000, 0xFFFF_0000 + 500)),
        ("RR on packets before the first", rr(1000, 99)),
        ("NACK for a foreign SSRC", compound(|w| w.nack(1, 77, &[100, 101]).unwrap())),
        ("PLI for a foreign SSRC", compound(|w| w.pli(1, 77).unwrap())),
        (
            "transport feedback that was not negotiated",
            compound(|w| {
                w.transport_feedback(1, 1000, 5, 0, &[Some(1), Some(2)]).unwrap();
            }),
        ),
        ("a truncated REMB", remb[..remb.len() - 4].to_vec()),
        ("an empty datagram", Vec::new()),
        ("one byte", vec![0x80]),
        ("version 1", [&[0x40][..], &remb[1..]].concat()),
    ];
    let plain = run(Vec::new());
    assert_eq!(plain.sender_rejected(), 0);
    let mut everything = Vec::new();
    let mut at = Time::from_millis(10_007);
    for (what, bytes) in &kinds {
        let injected =
            run(vec![(Time::from_millis(20_003), bytes.clone()), (Time::from_millis(30_001), bytes.clone())]);
        assert_eq!(injected.events, plain.events, "{what}");
        assert_eq!(injected.forward_log, plain.forward_log, "{what}");
        assert_eq!(injected.sender_rejected(), 2, "{what}");
        everything.push((at, bytes.clone()));
        at += ms(1501);
    }
    // Random bytes, half of them with the first two bytes of RTCP.
    let mut random = RandomStreams::new(9).stream("noise");
    for n in 0..2000u32 {
        let len = random.bits() as usize % 120;
        let mut bytes: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
        if n % 2 == 0 && len >= 2 {
            (bytes[0], bytes[1]) = (0x80 | bytes[0] & 0x1F, 200 + bytes[1] % 8);
        }
        everything.push((Time::from_millis(2000 + n as i64 * 25), bytes));
    }
    everything.sort_by_key(|(at, _)| *at);
    let noisy = run(everything.clone());
    assert_eq!(noisy.events, plain.events);
    assert_eq!(noisy.forward_log, plain.forward_log);
    let harmless = everything.iter().filter(|(_, b)| parse_compound(b).is_ok()).count() as u32;
    assert_within(noisy.sender_rejected() as f64, (2014 - harmless) as f64, 2014.0 + 100.0, "rejected");
    assert_eq!(noisy.sender.rejected_packets().0.len(), WireError::COUNT);
}

fn is_report(bytes: &[u8]) -> bool {
    parse_compound(bytes).unwrap().into_iter().any(|p| matches!(p, Rtcp::Sdes { .. }))
}
