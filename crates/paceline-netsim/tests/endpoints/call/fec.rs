// SPDX-License-Identifier: MIT OR Apache-2.0
//! Forward error correction in a call: lost packets are recovered, and the encoder rate is reduced by the FEC rate.

use crate::call::harness::{CallConfig, Fate, TestCall, drop_if, fixed, random_loss};
use crate::call::{any_media, assert_within, frame_delay, frame_number, is_kind, kbps, ms};
use paceline::{FecScheme, PacketKind, Protection, ResendRule};
use paceline_netsim::flow::DatagramKind;
use paceline_units::{RandomStreams, Rate, Time};
use paceline_wire::is_rtcp;

fn protected(target: Rate) -> CallConfig {
    let mut config = CallConfig::new(fixed(target), kbps(3000));
    config.protection = Protection { fec: FecScheme::Ulpfec, resend: ResendRule::RoundTrip };
    config
}

fn shown_in_order(call: &TestCall) -> u64 {
    let numbers: Vec<u64> = call.rendered.iter().map(frame_number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each once and in order");
    numbers.len() as u64
}

fn refused(call: &TestCall) -> u32 {
    let (malformed, ignored) = call.receiver.rejected_packets();
    call.sender_rejected() + malformed.iter().sum::<u32>() + ignored
}

#[test]
fn no_fec_is_sent_without_loss() {
    let call = TestCall::run(protected(kbps(1000)), 30);
    assert_eq!(call.count(is_kind(PacketKind::Fec)), 0);
    assert_within(shown_in_order(&call) as f64, 898.0, 900.0, "frames");
    assert_within(call.sent_bps(any_media, Time::from_secs(5), Time::from_secs(30)), 0.97e6, 1.03e6, "rate");
    assert_eq!(refused(&call), 0);
}

/// 20 % loss for one second: FEC takes half of the target for the 10 s in which the loss is remembered.
#[test]
fn fec_takes_half_of_the_target_for_ten_seconds_after_a_loss() {
    let mut random = RandomStreams::new(3).stream("loss");
    let mut config = protected(kbps(2000));
    let second = Time::from_secs(10)..Time::from_secs(11);
    config.forward = drop_if(move |_, now, _| second.contains(&now) && random.chance(0.2));
    let call = TestCall::run(config, 40);
    let rate = |kind, from, to| call.sent_bps(is_kind(kind), Time::from_secs(from), Time::from_secs(to));
    assert_eq!(rate(PacketKind::Fec, 0, 10), 0.0);
    assert_within(rate(PacketKind::Fec, 14, 20) / 2e6, 0.45, 0.5, "FEC share of the target");
    assert_within(rate(PacketKind::Media, 14, 20) / 2e6, 0.48, 0.53, "media share of the target");
    assert_within(call.sent_bps(any_media, Time::from_secs(14), Time::from_secs(20)), 1.93e6, 2.03e6, "the target");
    assert_eq!(rate(PacketKind::Fec, 25, 40), 0.0, "the loss has expired");
    assert_within(rate(PacketKind::Media, 30, 40), 1.95e6, 2.05e6, "media uses the whole target again");
    assert_within(shown_in_order(&call) as f64, 1190.0, 1200.0, "frames");
    assert_eq!(refused(&call), 0);
}

/// 5 % random loss: FEC recovers nearly all packets within their frame; retransmission takes an additional round trip.
#[test]
fn fec_recovers_losses_before_they_are_requested() {
    let call = |fec| {
        let mut config = protected(kbps(2000));
        config.protection.fec = fec;
        (config.forward_delay, config.back_delay) = (ms(100), ms(100));
        config.forward = random_loss(3, 0.05);
        let call = TestCall::run(config, 60);
        assert_within(shown_in_order(&call) as f64, 0.98 * 1800.0, 1800.0, "frames");
        assert_eq!(refused(&call), 0);
        let late = call.rendered.iter().filter(|s| s.at >= Time::from_secs(10) && frame_delay(s) > ms(250)).count();
        let resent =
            call.count(is_kind(PacketKind::Retransmission)) as f64 / call.count(is_kind(PacketKind::Media)) as f64;
        (late as f64 / 1500.0, resent)
    };
    let (late, resent) = call(FecScheme::None);
    assert_within(late, 0.2, 0.9, "frames that waited for a retransmission");
    assert_within(resent, 0.045, 0.065, "retransmissions");
    let (late, resent) = call(FecScheme::Ulpfec);
    assert_within(late, 0.0, 0.1, "with FEC");
    assert_within(resent, 0.0, 0.012, "with FEC");
}

/// Drops the first three packets of every fifth frame once FEC is on. A frame of 5 packets has 4 or 5 FEC packets.
#[test]
fn fec_recovers_bursts_that_hit_each_mask_once() {
    let burst = |frame_fates: fn(u64) -> u32| {
        let mut config = protected(kbps(2000));
        config.retransmit = false;
        let (mut frames, mut left) = (0, 0);
        config.forward = Box::new(move |index, now, bytes| {
            if is_rtcp(bytes) || now < Time::from_secs(3) {
                return if index % 8 == 0 { Fate::Drop } else { Fate::Deliver };
            }
            // VP8 in RED with the start bit of a frame.
            if bytes[1] & 0x7F == 118 && bytes[24] == 96 && bytes[25] & 0x10 != 0 {
                frames += 1;
                left = if now > Time::from_secs(6) { frame_fates(frames) } else { 0 };
            }
            left = left.saturating_sub(1);
            if left > 0 { Fate::Drop } else { Fate::Deliver }
        });
        let call = TestCall::run(config, 12);
        call.rendered.iter().filter(|s| s.at > Time::from_secs(7)).map(|s| s.dropped as u32).sum::<u32>()
    };
    assert_eq!(burst(|frame| if frame % 5 == 0 { 4 } else { 0 }), 0, "three packets");
    let lost = burst(|frame| if frame == 120 { 8 } else { 0 });
    assert_within(lost as f64, 1.0, 60.0, "frames dropped after the loss of seven packets");
}

/// Reports count the packets that the network lost, including recovered ones.
#[test]
fn reports_count_losses_before_fec_recovery() {
    let mut config = protected(kbps(2000));
    config.forward = random_loss(5, 0.05);
    let call = TestCall::run(config, 120);
    let fractions: Vec<f64> = call.fractions_lost().map(|(_, fraction)| fraction).collect();
    assert_within(fractions.iter().sum::<f64>() / fractions.len() as f64, 0.042, 0.056, "mean fraction lost");
}

#[test]
fn lost_fec_is_not_retransmitted_and_duplicates_have_no_effect() {
    let mut random = RandomStreams::new(4).stream("fate");
    let mut config = protected(kbps(1000));
    // A third of the FEC and 2 % of the media are lost. Some packets are duplicated, some are delayed.
    config.forward = Box::new(move |_, _, bytes| {
        let fec = bytes.len() > 24 && bytes[1] & 0x7F == 118 && bytes[24] == 120;
        let draw = random.unit();
        match draw {
            _ if is_rtcp(bytes) => Fate::Deliver,
            d if d < if fec { 0.3 } else { 0.02 } => Fate::Drop,
            d if d > 0.95 => Fate::Duplicate,
            d if d > 0.90 => Fate::Delay(ms(15)),
            _ => Fate::Deliver,
        }
    });
    let call = TestCall::run(config, 60);
    let fec = call.count(is_kind(PacketKind::Fec)) as f64;
    assert_within(fec, 500.0, 5000.0, "FEC packets");
    let resent = call.count(is_kind(PacketKind::Retransmission)) as f64
        / call.count(|s| matches!(s, DatagramKind::Rtp { .. })) as f64;
    assert_within(resent, 0.0, 0.02, "retransmissions");
    assert_within(shown_in_order(&call) as f64, 0.99 * 1800.0, 1800.0, "frames");
    let gap = call.rendered.windows(2).map(|w| w[1].at - w[0].at).max().unwrap();
    assert_within(gap.as_millis_f64(), 34.0, 400.0, "longest time between frames, ms");
}
