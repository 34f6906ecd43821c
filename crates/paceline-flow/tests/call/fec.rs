//! Forward error correction over a call: what is lost is shown all the same, at a price that the encoder pays.

use crate::world::{Fate, Setting, World, fixed};
use crate::{any_media, frame_delay, frame_number, is, kbps, ms, within};
use paceline::{FecScheme, PacketKind, Protection, ResendRule};
use paceline_flow::{SenderEvent, Sent};
use paceline_units::{Rate, Streams, Time};
use paceline_wire::is_rtcp;

fn protected(target: Rate) -> Setting {
    let mut setting = Setting::new(fixed(target), kbps(3000));
    setting.protection = Protection { fec: FecScheme::Ulpfec, resend: ResendRule::RoundTrip };
    setting
}

fn shown_in_order(world: &World) -> u64 {
    let numbers: Vec<u64> = world.shown.iter().map(frame_number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each once, in order");
    numbers.len() as u64
}

fn refused(world: &World) -> u32 {
    let (malformed, ignored) = world.receiver.refused();
    world.sender_refused() + malformed.iter().sum::<u32>() + ignored
}

#[test]
fn without_loss_there_is_no_fec_and_nothing_else_changes() {
    let mut world = World::new(protected(kbps(1000)));
    world.run_secs(30);
    assert_eq!(world.count(is(PacketKind::Fec)), 0);
    within(shown_in_order(&world) as f64, 898.0, 900.0, "frames");
    within(world.sent_bps(any_media, Time::from_secs(5), Time::from_secs(30)), 0.97e6, 1.03e6, "rate");
    assert_eq!(refused(&world), 0);
}

/// A second in which a fifth is lost, then none: FEC takes half of the target for the 10 s that the loss is remembered.
#[test]
fn after_a_loss_fec_takes_half_of_the_target_and_then_nothing() {
    let mut random = Streams::new(3).stream("loss");
    let mut setting = protected(kbps(2000));
    let second = Time::from_secs(10)..Time::from_secs(11);
    setting.forward =
        Box::new(move |_, now, _| if second.contains(&now) && random.chance(0.2) { Fate::Drop } else { Fate::Pass });
    let mut world = World::new(setting);
    world.run_secs(40);
    let rate = |kind, from, to| world.sent_bps(is(kind), Time::from_secs(from), Time::from_secs(to));
    assert_eq!(rate(PacketKind::Fec, 0, 10), 0.0);
    within(rate(PacketKind::Fec, 14, 20) / 2e6, 0.45, 0.5, "FEC of the target");
    within(rate(PacketKind::Media, 14, 20) / 2e6, 0.48, 0.53, "media of the target");
    within(world.sent_bps(any_media, Time::from_secs(14), Time::from_secs(20)), 1.93e6, 2.03e6, "the target");
    assert_eq!(rate(PacketKind::Fec, 25, 40), 0.0, "the loss is forgotten");
    within(rate(PacketKind::Media, 30, 40), 1.95e6, 2.05e6, "media has it all again");
    within(shown_in_order(&world) as f64, 1190.0, 1200.0, "frames");
    assert_eq!(refused(&world), 0);
}

/// 5 % at random: nearly all is restored within its frame, where retransmission alone takes a round trip more for each.
#[test]
fn what_is_lost_is_restored_before_it_is_asked_for() {
    let call = |fec| {
        let mut random = Streams::new(3).stream("loss");
        let mut setting = protected(kbps(2000));
        setting.protection.fec = fec;
        (setting.forward_delay, setting.back_delay) = (ms(100), ms(100));
        setting.forward = Box::new(move |_, _, _| if random.chance(0.05) { Fate::Drop } else { Fate::Pass });
        let mut world = World::new(setting);
        world.run_secs(60);
        within(shown_in_order(&world) as f64, 0.98 * 1800.0, 1800.0, "frames");
        assert_eq!(refused(&world), 0);
        let late = world.shown.iter().filter(|s| s.at >= Time::from_secs(10) && frame_delay(s) > ms(250)).count();
        let resent = world.count(is(PacketKind::Retransmission)) as f64 / world.count(is(PacketKind::Media)) as f64;
        (late as f64 / 1500.0, resent)
    };
    let (late, resent) = call(FecScheme::None);
    within(late, 0.2, 0.9, "frames that waited for a retransmission");
    within(resent, 0.045, 0.065, "retransmissions");
    let (late, resent) = call(FecScheme::Ulpfec);
    within(late, 0.0, 0.1, "with FEC");
    within(resent, 0.0, 0.012, "with FEC");
}

/// The first three packets of every fifth frame, once FEC is on: a frame of 5 packets has 4 or 5 of FEC.
#[test]
fn a_burst_hits_each_mask_once() {
    let burst = |frame_fates: fn(u64) -> u32| {
        let mut setting = protected(kbps(2000));
        setting.retransmit = false;
        let (mut frames, mut left) = (0, 0);
        setting.forward = Box::new(move |index, now, bytes| {
            if is_rtcp(bytes) || now < Time::from_secs(3) {
                return if index % 8 == 0 { Fate::Drop } else { Fate::Pass };
            }
            // VP8 in the envelope, whose descriptor says that a frame starts.
            if bytes[1] & 0x7F == 118 && bytes[24] == 96 && bytes[25] & 0x10 != 0 {
                frames += 1;
                left = if now > Time::from_secs(6) { frame_fates(frames) } else { 0 };
            }
            left = left.saturating_sub(1);
            if left > 0 { Fate::Drop } else { Fate::Pass }
        });
        let mut world = World::new(setting);
        world.run_secs(12);
        world.shown.iter().filter(|s| s.at > Time::from_secs(7)).map(|s| s.dropped as u32).sum::<u32>()
    };
    assert_eq!(burst(|frame| if frame % 5 == 0 { 4 } else { 0 }), 0, "three packets");
    let lost = burst(|frame| if frame == 120 { 8 } else { 0 });
    within(lost as f64, 1.0, 60.0, "frames given up after seven packets of one");
}

/// Reports say what the network lost, not what is missing after repair.
#[test]
fn reports_count_losses_before_repair() {
    let mut random = Streams::new(5).stream("loss");
    let mut setting = protected(kbps(2000));
    setting.forward = Box::new(move |_, _, _| if random.chance(0.05) { Fate::Drop } else { Fate::Pass });
    let mut world = World::new(setting);
    world.run_secs(120);
    let told: Vec<f64> = world
        .events
        .iter()
        .filter_map(|(_, e)| if let SenderEvent::FractionLost(f) = e { Some(f.get()) } else { None })
        .collect();
    within(told.iter().sum::<f64>() / told.len() as f64, 0.042, 0.056, "mean fraction lost");
}

#[test]
fn lost_fec_is_never_sent_again_and_duplicates_do_no_harm() {
    let mut random = Streams::new(4).stream("fate");
    let mut setting = protected(kbps(1000));
    // Of what is in an envelope with FEC in it, a third is lost; of the media a fiftieth. Some come twice, some late.
    setting.forward = Box::new(move |_, _, bytes| {
        let fec = bytes.len() > 24 && bytes[1] & 0x7F == 118 && bytes[24] == 120;
        let draw = random.unit();
        match draw {
            _ if is_rtcp(bytes) => Fate::Pass,
            d if d < if fec { 0.3 } else { 0.02 } => Fate::Drop,
            d if d > 0.95 => Fate::Twice,
            d if d > 0.90 => Fate::Late(ms(15)),
            _ => Fate::Pass,
        }
    });
    let mut world = World::new(setting);
    world.run_secs(60);
    let fec = world.count(is(PacketKind::Fec)) as f64;
    within(fec, 500.0, 5000.0, "FEC packets");
    let resent =
        world.count(is(PacketKind::Retransmission)) as f64 / world.count(|s| matches!(s, Sent::Media { .. })) as f64;
    within(resent, 0.0, 0.02, "retransmissions");
    within(shown_in_order(&world) as f64, 0.99 * 1800.0, 1800.0, "frames");
    let gap = world.shown.windows(2).map(|w| w[1].at - w[0].at).max().unwrap();
    within(gap.as_millis_f64(), 34.0, 400.0, "longest time between frames, ms");
}
