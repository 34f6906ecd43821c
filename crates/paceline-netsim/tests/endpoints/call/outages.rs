// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recovery after outages, silence and clock jumps.

use crate::call::harness::{CallConfig, FPS, RenderedFrame, TestCall, controller, fixed, outage, video_source};
use crate::call::{assert_within, frame_delay, is_kind, kbps};
use paceline::PacketKind;
use paceline_units::{Rate, Time};

#[test]
fn reports_are_accepted_again_after_an_outage() {
    // In 60 s more packets are lost than the receiver accepts as one gap (3000), so its cycle count restarts.
    let mut config = CallConfig::new(fixed(kbps(2000)), kbps(2000));
    config.streams[0].first_sequence = 65_000;
    config.forward = outage(Time::from_secs(30)..Time::from_secs(90));
    let call = TestCall::run(config, 150);
    let reports = |from: i64, to: i64| {
        let during = |t: &Time| (Time::from_secs(from)..Time::from_secs(to)).contains(t);
        call.fractions_lost().filter(|(at, _)| during(at)).count()
    };
    assert_within(reports(0, 30) as f64, 25.0, 35.0, "reports before");
    assert_within(reports(95, 150) as f64, 50.0, 60.0, "reports after");
    let after = call.rendered.iter().filter(|s| s.at >= Time::from_secs(95)).count();
    assert_within(after as f64, 55.0 * FPS - 5.0, 55.0 * FPS + 5.0, "frames after");
    assert_eq!(call.sender_rejected(), 0);
}

#[test]
fn rendering_continues_after_an_outage_of_half_the_sequence_numbers() {
    // About 36,000, 45,000 and 57,000 lost packets.
    for seconds in [170, 215, 270] {
        let mut config = CallConfig::new(fixed(kbps(2000)), kbps(2000));
        let gone = Time::from_secs(5)..Time::from_secs(5 + seconds);
        config.forward = outage(gone);
        let call = TestCall::run(config, 5 + seconds + 10);
        let after: Vec<&RenderedFrame> =
            call.rendered.iter().filter(|s| s.at >= Time::from_secs(5 + seconds)).collect();
        assert_within(after.len() as f64, 10.0 * FPS - 5.0, 10.0 * FPS, "frames after");
        for s in after {
            assert_within(frame_delay(s).as_millis_f64(), 20.0, 20.0 + 24.0, "delay, ms");
        }
        assert_eq!(
            call.count(is_kind(PacketKind::Retransmission)),
            0,
            "packets that cannot be decoded are not requested"
        );
    }
}

#[test]
fn a_call_continues_after_a_day_without_packets() {
    for name in ["gcc-2016", "fixed"] {
        // One small frame per second keeps the test fast. For a day no packet is delivered in either direction.
        let most = kbps(60);
        let slow = Rate::from_bps(800);
        let mut config = CallConfig::new(controller(name, most, &[]), kbps(300));
        config.streams = vec![video_source(0, 1.0, slow, slow, slow)];
        let day = Time::from_secs(100)..Time::from_secs(86_500);
        let gone = day.clone();
        config.forward = outage(day);
        config.back = outage(gone);
        let call = TestCall::run(config, 86_600);
        let rendered = |from: i64, to: i64| {
            call.rendered.iter().filter(|s| (Time::from_secs(from)..Time::from_secs(to)).contains(&s.at)).count()
        };
        assert_within(rendered(0, 100) as f64, 99.0, 100.0, "frames before");
        assert_eq!(rendered(101, 86_500), 0);
        assert_within(rendered(86_500, 86_600) as f64, 90.0, 100.0, "frames after");
        let reports = call.fractions_lost().filter(|(at, _)| *at > Time::from_secs(86_505)).count();
        // One packet per second, and one fraction lost per twenty packets.
        assert_within(reports as f64, 3.0, 6.0, "reports after");
    }
}

/// Neither endpoint is called for a day, as when the process is suspended.
#[test]
fn a_call_continues_after_a_clock_jump_of_a_day() {
    let mut call = TestCall::run(CallConfig::new(controller("gcc-2016", kbps(1000), &[]), kbps(1000)), 10);
    call.now = Time::from_secs(86_410);
    call.run_secs(86_440);
    let after: Vec<&RenderedFrame> = call.rendered.iter().filter(|s| s.at > Time::from_secs(86_420)).collect();
    assert_within(after.len() as f64, 580.0, 601.0, "frames of the last twenty seconds");
    for s in after {
        let delay = s.at.as_secs_f64() * 90_000.0 % 4_294_967_296.0 - s.timestamp as f64;
        assert_within(delay / 90.0, 0.0, 3000.0, "delay, ms");
    }
    let sent: u64 =
        call.forward_log.iter().filter(|l| l.at >= Time::from_secs(86_410)).map(|l| l.size.as_bytes()).sum();
    assert_within(sent as f64 * 8.0 / 30.0, 50e3, 1.5e6, "rate after the jump");
}
