// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delivery of frames: rates, delays, repair of losses, and the pacer limit.

use crate::call::harness::{CallConfig, FPS, Fate, TestCall, drop_if, fixed, random_loss, video_source};
use crate::call::{any_media, assert_within, frame_delay, frame_number, is_kind, kbps, ms};
use paceline::PacketKind;
use paceline_netsim::flow::SenderEvent;
use paceline_units::Time;
use paceline_wire::{Rtcp, is_rtcp, parse_compound};

#[test]
fn all_frames_are_rendered_in_order_and_on_time_over_a_clean_path() {
    let call = TestCall::run(CallConfig::new(fixed(kbps(1000)), kbps(2000)), 60);
    let numbers: Vec<u64> = call.rendered.iter().map(frame_number).collect();
    assert_within(numbers.len() as f64, 1798.0, 1800.0, "frames");
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "each once and in order");
    assert!(call.rendered.iter().all(|s| s.dropped == 0));
    for s in &call.rendered {
        // 20 ms of path and up to 33.3 / 1.5 = 22 ms of pacing.
        assert_within(frame_delay(s).as_millis_f64(), 20.0, 20.0 + 24.0, "delay, ms");
    }
    assert_eq!(call.sender_rejected(), 0);
    assert_eq!(call.receiver.rejected_packets().0.iter().sum::<u32>() + call.receiver.rejected_packets().1, 0);
    assert!(!call.events.iter().any(|(_, e)| matches!(e, SenderEvent::FrameDropped(_))));
}

#[test]
fn mean_rate_is_the_target_or_the_maximum_of_the_source() {
    let sent = |target, most| {
        let call = TestCall::run(CallConfig::new(fixed(target), most), 60);
        (
            call.sent_bps(any_media, Time::from_secs(5), Time::from_secs(60)),
            call.sent_bps(is_kind(PacketKind::Padding), Time::from_secs(5), Time::from_secs(60)),
        )
    };
    let (all, padding) = sent(kbps(1000), kbps(2000));
    assert_within(all, 0.97e6, 1.03e6, "a source with a higher maximum");
    assert_within(padding, 0.0, 0.02e6, "padding");
    // 800 kbps of payload with 56 bytes of headers on each 1112 are 840 kbps.
    let (all, padding) = sent(kbps(1000), kbps(800));
    assert_within(all, 0.97 * 0.84e6, 1.03 * 0.84e6, "a source with a lower maximum");
    assert_within(padding, 0.0, 0.02e6, "padding");
}

#[test]
fn losses_are_repaired_by_retransmission() {
    let mut config = CallConfig::new(fixed(kbps(1000)), kbps(2000));
    config.forward = random_loss(3, 0.05);
    let call = TestCall::run(config, 60);
    let numbers: Vec<u64> = call.rendered.iter().map(frame_number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each once and in order");
    assert_within(numbers.len() as f64, 0.995 * 1800.0, 1800.0, "frames");
    // 5 % of the media is lost, and 5 % of its retransmissions: 5 % / 0.95 is retransmitted.
    let (media, rtx) =
        (call.count(is_kind(PacketKind::Media)) as f64, call.count(is_kind(PacketKind::Retransmission)) as f64);
    assert_within(rtx / media, 0.9 * 0.05 / 0.95, 1.1 * 0.05 / 0.95, "retransmissions");
    assert_within(call.sent_bps(any_media, Time::from_secs(5), Time::from_secs(60)), 0.96e6, 1.04e6, "rate");
}

#[test]
fn rendering_continues_at_a_key_frame_without_retransmission() {
    let mut config = CallConfig::new(fixed(kbps(1000)), kbps(2000));
    config.retransmit = false;
    // One media packet in the middle of a frame at 5 s.
    let mut dropped = false;
    config.forward = Box::new(move |_, now, bytes| {
        let drop = !dropped && now >= Time::from_millis(5010) && !is_rtcp(bytes) && bytes[1] & 0x80 == 0;
        dropped |= drop;
        if drop { Fate::Drop } else { Fate::Deliver }
    });
    let call = TestCall::run(config, 20);
    assert_eq!(call.count(is_kind(PacketKind::Retransmission)), 0);
    let plis: Vec<Time> = call.back_log.iter().filter(|l| is_pli(&l.bytes)).map(|l| l.at).collect();
    assert_eq!(plis.len(), 1, "{plis:?}");
    // The hole appears at 5.03 s and is given up a second later, when a key frame is requested.
    assert_within(plis[0].as_secs_f64(), 6.02, 6.1, "PLI");
    let gap = call.rendered.windows(2).max_by_key(|w| w[1].at - w[0].at).unwrap();
    // 20 ms each way, at most one frame interval until the next frame, and its pacing.
    assert_within((gap[1].at - gap[0].at).as_secs_f64(), 1.04, 1.14, "freeze");
    assert_within(gap[1].dropped as f64, 29.0, 33.0, "frames dropped");
    let lost: u64 = call.rendered.iter().map(|s| s.dropped as u64).sum();
    assert_eq!(
        call.rendered.len() as u64 + lost,
        frame_number(call.rendered.last().unwrap()) + 1,
        "every frame is rendered or counted as dropped"
    );
}

#[test]
fn a_key_frame_is_requested_when_the_first_frame_is_lost() {
    let mut config = CallConfig::new(fixed(kbps(1000)), kbps(2000));
    config.retransmit = false;
    config.forward = drop_if(|index, _, _| index < 1);
    let call = TestCall::run(config, 5);
    assert_eq!(call.back_log.iter().filter(|l| is_pli(&l.bytes)).count(), 1);
    // The request is sent after 20 ms and arrives after 40 ms; the next frame is at 66 ms.
    assert_within(frame_number(&call.rendered[0]) as f64, 1.0, 4.0, "first frame rendered");
    assert_within(call.rendered.len() as f64, 145.0, 149.0, "frames");
}

#[test]
fn frames_that_exceed_the_pacer_limit_are_dropped() {
    // The source cannot go below 300 kbps, which do not fit a target of 50 kbps.
    let mut config = CallConfig::new(fixed(kbps(50)), kbps(300));
    config.streams = vec![video_source(0, FPS, kbps(300), kbps(300), kbps(300))];
    config.pacer_limit = ms(300);
    let call = TestCall::run(config, 30);
    let dropped = call.events.iter().filter(|(_, e)| matches!(e, SenderEvent::FrameDropped(_))).count();
    // 75 kbps of pacing for 313 kbps of frames: a quarter is sent.
    assert_within(dropped as f64 / 900.0, 0.72, 0.80, "dropped");
    let missed: u64 = call.rendered.iter().map(|s| s.dropped as u64).sum();
    let last = frame_number(call.rendered.last().unwrap());
    assert_eq!(call.rendered.len() as u64 + missed, last + 1, "the receiver counts each dropped frame");
    assert!(call.back_log.iter().all(|l| !is_pli(&l.bytes)), "no packet is missing");
    for s in &call.rendered {
        assert_within(frame_delay(s).as_millis_f64(), 20.0, 20.0 + 300.0 + 25.0, "delay, ms");
    }
}

#[test]
fn duplicates_and_reordering_do_not_change_what_is_rendered() {
    let run = |fate: fn(u64) -> Fate| {
        let mut config = CallConfig::new(fixed(kbps(1000)), kbps(2000));
        config.forward = Box::new(move |index, _, _| fate(index));
        TestCall::run(config, 60)
    };
    let plain = run(|_| Fate::Deliver);
    let twice = run(|index| if index % 7 == 0 { Fate::Duplicate } else { Fate::Deliver });
    assert_eq!(twice.rendered, plain.rendered, "duplicates have no effect");
    assert_eq!(twice.events, plain.events);
    assert_eq!(twice.forward_log, plain.forward_log);
    // Full packets are sent 6 ms apart: up to five overtake a delayed one.
    let shuffled =
        run(|index| if index % 9 == 0 { Fate::Delay(ms(1 + (index % 5) as i64 * 7)) } else { Fate::Deliver });
    assert!(shuffled.rendered.iter().map(frame_number).eq(0..shuffled.rendered.len() as u64), "each once and in order");
    assert_within(shuffled.rendered.len() as f64, 1797.0, 1800.0, "frames");
    for s in &shuffled.rendered {
        assert_within(frame_delay(s).as_millis_f64(), 20.0, 20.0 + 24.0 + 30.0, "delay, ms");
    }
}

fn is_pli(bytes: &[u8]) -> bool {
    parse_compound(bytes).unwrap().into_iter().any(|p| matches!(p, Rtcp::Pli { .. }))
}
