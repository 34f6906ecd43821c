//! Calls between the two endpoints over small worlds, each with bounds on both sides.

mod fec;
mod guarded;
mod messages;
mod rfc8888;
mod told;
mod transport_feedback;
mod world;

use paceline::{Controller, Decision, FeedbackKind, PacketKind, SendHalf, StreamState};
use paceline_flow::source::{Audio, AudioConfig};
use paceline_flow::{MediaKind, SenderEvent, Sent};
use paceline_units::{Ecn, Rate, StreamId, Streams, Time, TimeDelta};
use paceline_wire::{CompoundWriter, ExtensionIds, ReportBlock, Rtcp, RtpHeader, WireError, is_rtcp, parse_compound};
use world::{FPS, Fate, Setting, Shown, World, controller, fixed, stream, video};

const fn kbps(kbps: u64) -> Rate {
    Rate::from_kbps(kbps)
}
const fn ms(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}
fn is(kind: PacketKind) -> impl Fn(&Sent) -> bool {
    move |sent| matches!(sent, Sent::Media { kind: k, .. } if *k == kind)
}
fn any_media(sent: &Sent) -> bool {
    matches!(sent, Sent::Media { .. })
}
/// Number of a video frame, from its RTP timestamp.
fn frame_number(shown: &Shown) -> u64 {
    (shown.timestamp as f64 * FPS / 90_000.0).round() as u64
}
/// Time from capture until the frame was shown.
fn frame_delay(shown: &Shown) -> TimeDelta {
    shown.at - Time::from_secs_f64(frame_number(shown) as f64 / FPS)
}
fn within(value: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&value), "{what}: {value}, wanted {low} to {high}");
}

#[test]
fn a_clean_path_shows_every_frame_in_order_and_soon() {
    let mut world = World::new(Setting::new(fixed(kbps(1000)), kbps(2000)));
    world.run_secs(60);
    let numbers: Vec<u64> = world.shown.iter().map(frame_number).collect();
    within(numbers.len() as f64, 1798.0, 1800.0, "frames");
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "each once, in order");
    assert!(world.shown.iter().all(|s| s.dropped == 0));
    for s in &world.shown {
        // 20 ms of path and up to 33.3 / 1.5 = 22 ms of pacing.
        within(frame_delay(s).as_millis_f64(), 20.0, 20.0 + 24.0, "delay, ms");
    }
    assert_eq!(world.sender_refused(), 0);
    assert_eq!(world.receiver.refused().0.iter().sum::<u32>() + world.receiver.refused().1, 0);
    assert!(!world.events.iter().any(|(_, e)| matches!(e, SenderEvent::FrameDropped(_))));
}

#[test]
fn the_mean_rate_is_the_target_or_all_that_the_source_can_use() {
    let sent = |target, most| {
        let mut world = World::new(Setting::new(fixed(target), most));
        world.run_secs(60);
        (
            world.sent_bps(any_media, Time::from_secs(5), Time::from_secs(60)),
            world.sent_bps(is(PacketKind::Padding), Time::from_secs(5), Time::from_secs(60)),
        )
    };
    let (all, padding) = sent(kbps(1000), kbps(2000));
    within(all, 0.97e6, 1.03e6, "a source that can do more");
    within(padding, 0.0, 0.02e6, "padding beside it");
    // 800 kbps of payload with 56 bytes of headers on each 1112 are 840 kbps.
    let (all, padding) = sent(kbps(1000), kbps(800));
    within(all, 0.97 * 0.84e6, 1.03 * 0.84e6, "a source that cannot");
    within(padding, 0.0, 0.02e6, "padding beside it");
}

#[test]
fn losses_are_repaired() {
    let mut random = Streams::new(3).stream("loss");
    let mut setting = Setting::new(fixed(kbps(1000)), kbps(2000));
    setting.forward = Box::new(move |_, _, _| if random.chance(0.05) { Fate::Drop } else { Fate::Pass });
    let mut world = World::new(setting);
    world.run_secs(60);
    let numbers: Vec<u64> = world.shown.iter().map(frame_number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each once, in order");
    within(numbers.len() as f64, 0.995 * 1800.0, 1800.0, "frames");
    // A twentieth of the media is lost, and a twentieth of its retransmissions: 1 / 0.95 of it is sent again.
    let (media, rtx) = (world.count(is(PacketKind::Media)) as f64, world.count(is(PacketKind::Retransmission)) as f64);
    within(rtx / media, 0.9 * 0.05 / 0.95, 1.1 * 0.05 / 0.95, "retransmissions");
    within(world.sent_bps(any_media, Time::from_secs(5), Time::from_secs(60)), 0.96e6, 1.04e6, "rate");
}

#[test]
fn without_retransmission_a_key_frame_heals() {
    let mut setting = Setting::new(fixed(kbps(1000)), kbps(2000));
    setting.retransmit = false;
    // One media packet in the middle of a frame at 5 s.
    let mut dropped = false;
    setting.forward = Box::new(move |_, now, bytes| {
        let drop = !dropped && now >= Time::from_millis(5010) && !is_rtcp(bytes) && bytes[1] & 0x80 == 0;
        dropped |= drop;
        if drop { Fate::Drop } else { Fate::Pass }
    });
    let mut world = World::new(setting);
    world.run_secs(20);
    assert_eq!(world.count(is(PacketKind::Retransmission)), 0);
    let plis: Vec<Time> = world.back_log.iter().filter(|l| is_pli(&l.bytes)).map(|l| l.at).collect();
    assert_eq!(plis.len(), 1, "{plis:?}");
    // The hole opens at 5.03 s and is given up a second later; that instant asks.
    within(plis[0].as_secs_f64(), 6.02, 6.1, "PLI");
    let gap = world.shown.windows(2).max_by_key(|w| w[1].at - w[0].at).unwrap();
    // 20 ms there, at most one frame until the next, its pacing, and 20 ms back.
    within((gap[1].at - gap[0].at).as_secs_f64(), 1.04, 1.14, "freeze");
    within(gap[1].dropped as f64, 29.0, 33.0, "frames dropped");
    let lost: u64 = world.shown.iter().map(|s| s.dropped as u64).sum();
    assert_eq!(world.shown.len() as u64 + lost, frame_number(world.shown.last().unwrap()) + 1, "every frame accounted");
}

#[test]
fn a_lost_first_frame_is_asked_for() {
    let mut setting = Setting::new(fixed(kbps(1000)), kbps(2000));
    setting.retransmit = false;
    setting.forward = Box::new(|index, _, _| if index < 1 { Fate::Drop } else { Fate::Pass });
    let mut world = World::new(setting);
    world.run_secs(5);
    assert_eq!(world.back_log.iter().filter(|l| is_pli(&l.bytes)).count(), 1);
    // Lost at once, asked for after 20 ms, there after 40 ms, next frame at 66 ms.
    within(frame_number(&world.shown[0]) as f64, 1.0, 4.0, "first frame shown");
    within(world.shown.len() as f64, 145.0, 149.0, "frames");
}

#[test]
fn a_frame_that_does_not_fit_the_pacer_is_dropped_and_the_next_is_a_key_frame() {
    // The path's decision halves at once while the source goes on: at 50 kbps the source's 300 kbps do not fit.
    let mut setting = Setting::new(fixed(kbps(50)), kbps(300));
    let config = paceline_flow::source::IdealConfig { fps: FPS, min: kbps(300), max: kbps(300), start: kbps(300) };
    let source = paceline_flow::source::Ideal::new(config, Time::ZERO).unwrap();
    setting.streams = vec![stream(0, MediaKind::Video, Box::new(source))];
    setting.pacer_limit = ms(300);
    let mut world = World::new(setting);
    world.run_secs(30);
    let dropped = world.events.iter().filter(|(_, e)| matches!(e, SenderEvent::FrameDropped(_))).count();
    // 75 kbps of pacing for 313 kbps of frames: a quarter passes.
    within(dropped as f64 / 900.0, 0.72, 0.80, "dropped");
    let missed: u64 = world.shown.iter().map(|s| s.dropped as u64).sum();
    let last = frame_number(world.shown.last().unwrap());
    assert_eq!(world.shown.len() as u64 + missed, last + 1, "the receiver knows of each");
    assert!(world.back_log.iter().all(|l| !is_pli(&l.bytes)), "no packet is missing");
    for s in &world.shown {
        within(frame_delay(s).as_millis_f64(), 20.0, 20.0 + 300.0 + 25.0, "delay, ms");
    }
}

#[test]
fn reports_tell_loss_and_round_trip_time_whatever_the_receivers_clock() {
    for (hours, drift_ppm) in [(0, 0), (7, 100), (-7, -100)] {
        let mut setting = Setting::new(fixed(kbps(1000)), kbps(2000));
        setting.retransmit = false;
        (setting.forward_delay, setting.back_delay) = (ms(25), ms(35));
        (setting.clock_offset, setting.drift_ppm) = (TimeDelta::from_secs(3600 * hours), drift_ppm);
        setting.forward =
            Box::new(|index, _, bytes| if index % 10 == 9 && !is_rtcp(bytes) { Fate::Drop } else { Fate::Pass });
        let mut world = World::new(setting);
        world.run_secs(300);
        let rtts: Vec<f64> = world
            .events
            .iter()
            .filter_map(|(_, e)| if let SenderEvent::RoundTrip(rtt) = e { Some(rtt.as_millis_f64()) } else { None })
            .collect();
        within(rtts.len() as f64, 270.0, 330.0, "round trips");
        for rtt in rtts {
            within(rtt, 59.5, 60.8, "round trip, ms");
        }
        let lost: Vec<f64> = world
            .events
            .iter()
            .filter_map(|(_, e)| if let SenderEvent::FractionLost(f) = e { Some(f.get()) } else { None })
            .collect();
        within(lost.iter().sum::<f64>() / lost.len() as f64, 0.093, 0.103, "fraction lost");
        // RFC 3550, section 6.3: on average the deterministic interval, here its minimum of 1 s; between half and one
        // and a half of it, over the compensation of 1.218.
        let reports: Vec<Time> = world.back_log.iter().filter(|l| is_report(&l.bytes)).map(|l| l.at).collect();
        let gaps: Vec<f64> = reports.windows(2).map(|w| (w[1] - w[0]).as_secs_f64()).collect();
        within(gaps.iter().sum::<f64>() / gaps.len() as f64, 0.95, 1.05, "mean report interval");
        for gap in gaps {
            within(gap, 0.5 / 1.2183 - 1e-3, 1.5 / 1.2183 + 1e-3, "report interval");
        }
    }
}

#[test]
fn the_bytes_on_the_wire_say_when_and_in_which_order() {
    let mut setting = Setting::new(controller("gcc-2016", kbps(2000), &[]), kbps(2000));
    setting.forward = Box::new(|index, _, _| if index % 50 == 49 { Fate::Drop } else { Fate::Pass });
    let mut world = World::new(setting);
    world.run_secs(100);
    let (mut number, mut first) = (0u16, None);
    for left in world.forward_log.iter().filter(|l| !is_rtcp(&l.bytes)) {
        let (header, _) = RtpHeader::parse(&left.bytes, &ExtensionIds::default()).unwrap();
        assert_eq!(header.transport_sequence, Some(number), "consecutive over media, retransmissions and padding");
        number = number.wrapping_add(1);
        // Within half a unit of 3.8 us, modulo 64 s.
        let shown = header.abs_send_time.unwrap().bits() as f64 * 1e9 / 262_144.0;
        let error = (shown - left.at.as_nanos() as f64 + 32e9).rem_euclid(64e9) - 32e9;
        within(error, -1950.0, 1950.0, "abs-send-time, ns");
        // 90 kHz timestamps of frames that were captured at most 100 ms before.
        let Some(Sent::Media { kind: PacketKind::Media, .. }) = left.sent else { continue };
        let age = left.at.as_secs_f64() - header.timestamp as f64 / 90_000.0;
        within(age, -1e-4, 0.1, "age of the frame, s");
        let sequence = *first.get_or_insert(header.sequence);
        assert_eq!(header.sequence, sequence);
        first = Some(sequence.wrapping_add(1));
    }
    assert!(number > 2000);
}

#[test]
fn sequence_and_timestamp_wraps_change_nothing() {
    let run = |first_sequence, timestamp_offset: u32| {
        let mut random = Streams::new(3).stream("loss");
        let mut setting = Setting::new(controller("gcc-2016", kbps(2000), &[]), kbps(2000));
        setting.capacity = kbps(900);
        setting.streams[0].first_sequence = first_sequence;
        setting.streams[0].timestamp_offset = timestamp_offset;
        setting.forward = Box::new(move |_, _, _| if random.chance(0.03) { Fate::Drop } else { Fate::Pass });
        let mut world = World::new(setting);
        world.run_secs(60);
        let shown: Vec<Shown> =
            world.shown.iter().map(|s| Shown { timestamp: s.timestamp.wrapping_sub(timestamp_offset), ..*s }).collect();
        assert_eq!(world.sender_refused(), 0);
        (shown, world.events, world.rembs)
    };
    let plain = run(100, 0);
    assert!(plain.0.len() > 1700);
    for (sequence, offset) in [(65_530, u32::MAX - 3000 * 17), (65_535, u32::MAX), (0, 1 << 31), (32_760, 5)] {
        assert_eq!(run(sequence, offset), plain, "from {sequence}, {offset}");
    }
}

#[test]
fn duplicates_and_reordering_are_harmless() {
    let run = |fate: fn(u64) -> Fate| {
        let mut setting = Setting::new(fixed(kbps(1000)), kbps(2000));
        setting.forward = Box::new(move |index, _, _| fate(index));
        let mut world = World::new(setting);
        world.run_secs(60);
        world
    };
    let plain = run(|_| Fate::Pass);
    let twice = run(|index| if index % 7 == 0 { Fate::Twice } else { Fate::Pass });
    assert_eq!(twice.shown, plain.shown, "duplicates leave no trace");
    assert_eq!(twice.events, plain.events);
    assert_eq!(twice.forward_log, plain.forward_log);
    // Full packets leave 6 ms apart: up to five overtake.
    let shuffled = run(|index| if index % 9 == 0 { Fate::Late(ms(1 + (index % 5) as i64 * 7)) } else { Fate::Pass });
    assert!(shuffled.shown.iter().map(frame_number).eq(0..shuffled.shown.len() as u64), "each once, in order");
    within(shuffled.shown.len() as f64, 1797.0, 1800.0, "frames");
    for s in &shuffled.shown {
        within(frame_delay(s).as_millis_f64(), 20.0, 20.0 + 24.0 + 30.0, "delay, ms");
    }
}

#[test]
fn forged_and_foreign_reports_change_nothing_and_are_counted() {
    let run = |forged: Vec<(Time, Vec<u8>)>| {
        let mut random = Streams::new(5).stream("loss");
        let mut setting = Setting::new(controller("gcc-2016", kbps(2000), &[]), kbps(2000));
        setting.capacity = kbps(700);
        setting.forged = forged;
        setting.forward = Box::new(move |_, _, _| if random.chance(0.02) { Fate::Drop } else { Fate::Pass });
        let mut world = World::new(setting);
        world.run_secs(60);
        world
    };
    let block =
        |ssrc, highest_sequence| ReportBlock { ssrc, highest_sequence, fraction_lost: 200, ..Default::default() };
    let compound = |write: &dyn Fn(&mut CompoundWriter<'_>)| {
        let mut buffer = [0; 256];
        let mut writer = CompoundWriter::new(&mut buffer);
        write(&mut writer);
        let len = writer.finish();
        buffer[..len].to_vec()
    };
    let rr = |ssrc, highest| compound(&|w| w.receiver_report(1, &[block(ssrc, highest)]).unwrap());
    let remb = compound(&|w| w.remb(1, kbps(50), &[77]).unwrap());
    let kinds: Vec<(&str, Vec<u8>)> = vec![
        ("REMB for a foreign SSRC", remb.clone()),
        ("REMB for nobody", compound(&|w| w.remb(1, kbps(50), &[]).unwrap())),
        ("RR on a foreign SSRC", rr(77, 120)),
        ("RR from the future", rr(1000, 60_000)),
        ("RR from a later cycle", rr(1000, 0x1_0000 + 500)),
        ("RR from the last cycle", rr(1000, 0xFFFF_0000 + 500)),
        ("RR on packets before the first", rr(1000, 99)),
        ("NACK for a foreign SSRC", compound(&|w| w.nack(1, 77, &[100, 101]).unwrap())),
        ("PLI for a foreign SSRC", compound(&|w| w.pli(1, 77).unwrap())),
        (
            "transport feedback that nobody asked for",
            compound(&|w| {
                w.transport_feedback(1, 1000, 5, 0, &[Some(1), Some(2)]).unwrap();
            }),
        ),
        ("a REMB cut short", remb[..remb.len() - 4].to_vec()),
        ("nothing", Vec::new()),
        ("one byte", vec![0x80]),
        ("version 1", [&[0x40][..], &remb[1..]].concat()),
    ];
    let plain = run(Vec::new());
    assert_eq!(plain.sender_refused(), 0);
    let mut everything = Vec::new();
    let mut at = Time::from_millis(10_007);
    for (what, bytes) in &kinds {
        let forged = run(vec![(Time::from_millis(20_003), bytes.clone()), (Time::from_millis(30_001), bytes.clone())]);
        assert_eq!(forged.events, plain.events, "{what}");
        assert_eq!(forged.forward_log, plain.forward_log, "{what}");
        assert_eq!(forged.sender_refused(), 2, "{what}");
        everything.push((at, bytes.clone()));
        at += ms(1501);
    }
    // Noise, some of it with RTCP's first two bytes.
    let mut random = Streams::new(9).stream("noise");
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
    within(noisy.sender_refused() as f64, (2014 - harmless) as f64, 2014.0 + 100.0, "refused");
    assert_eq!(noisy.sender.refused().0.len(), WireError::COUNT);
}

#[test]
fn a_report_after_an_outage_counts_again() {
    // 60 s of nothing: more packets than a receiver takes for one stream going on (3000), so its cycles begin anew.
    let mut setting = Setting::new(fixed(kbps(2000)), kbps(2000));
    setting.streams[0].first_sequence = 65_000;
    setting.forward =
        Box::new(
            |_, now, _| {
                if now >= Time::from_secs(30) && now < Time::from_secs(90) { Fate::Drop } else { Fate::Pass }
            },
        );
    let mut world = World::new(setting);
    world.run_secs(150);
    let reports = |from: i64, to: i64| {
        let within = |t: &Time| (Time::from_secs(from)..Time::from_secs(to)).contains(t);
        world.events.iter().filter(|(t, e)| within(t) && matches!(e, SenderEvent::FractionLost(_))).count()
    };
    within(reports(0, 30) as f64, 25.0, 35.0, "reports before");
    within(reports(95, 150) as f64, 50.0, 60.0, "reports after");
    let after = world.shown.iter().filter(|s| s.at >= Time::from_secs(95)).count();
    within(after as f64, 55.0 * FPS - 5.0, 55.0 * FPS + 5.0, "frames after");
    assert_eq!(world.sender_refused(), 0);
}

#[test]
fn an_outage_of_half_the_sequence_numbers_ends() {
    // About 36,000, 45,000 and 57,000 packets that never come.
    for seconds in [170, 215, 270] {
        let mut setting = Setting::new(fixed(kbps(2000)), kbps(2000));
        let gone = Time::from_secs(5)..Time::from_secs(5 + seconds);
        setting.forward = Box::new(move |_, now, _| if gone.contains(&now) { Fate::Drop } else { Fate::Pass });
        let mut world = World::new(setting);
        world.run_secs(5 + seconds + 10);
        let after: Vec<&Shown> = world.shown.iter().filter(|s| s.at >= Time::from_secs(5 + seconds)).collect();
        within(after.len() as f64, 10.0 * FPS - 5.0, 10.0 * FPS, "frames after");
        for s in after {
            within(frame_delay(s).as_millis_f64(), 20.0, 20.0 + 24.0, "delay, ms");
        }
        assert_eq!(world.count(is(PacketKind::Retransmission)), 0, "what cannot be decoded is not asked for");
    }
}

#[test]
fn two_streams_share_the_target() {
    let rates = |streams, target| {
        let mut setting = Setting::new(fixed(target), kbps(2000));
        setting.streams = streams;
        let mut world = World::new(setting);
        world.run_secs(40);
        let of = |id| {
            let of_stream =
                move |s: &Sent| matches!(s, Sent::Media { stream, kind: PacketKind::Media } if *stream == StreamId(id));
            world.sent_bps(of_stream, Time::from_secs(5), Time::from_secs(40))
        };
        (of(0), of(1), world.sent_bps(any_media, Time::from_secs(5), Time::from_secs(40)))
    };
    let audio = || stream(1, MediaKind::Audio, Box::new(Audio::new(AudioConfig::default(), Time::ZERO).unwrap()));
    for target in [kbps(150), kbps(1000)] {
        let (video_rate, audio_rate, all) = rates(vec![video(0, kbps(2000)), audio()], target);
        // 50 bytes each 20 ms, with 28 + 24 bytes of headers.
        within(audio_rate, 40e3, 41e3, "audio");
        let left = target.as_bps_f64() - 40.8e3;
        within(video_rate, 0.96 * left, 1.01 * left, "video gets the rest");
        within(all, 0.97 * target.as_bps_f64(), 1.03 * target.as_bps_f64(), "all");
    }
    let mut first = video(0, kbps(2000));
    first.priority = 2.0;
    let (a, b, all) = rates(vec![first, video(1, kbps(2000))], kbps(1200));
    // Priorities share what the minima of 30 kbps, headers of a third included, leave: 40 + 2/3 and 40 + 1/3 of 1120.
    within(a / b, 1.75, 1.95, "two to one beyond the minima");
    within(all, 0.97 * 1.2e6, 1.03 * 1.2e6, "all");
}

/// A half that divides the target itself: all that the heaviest stream makes at most, and the least to the others.
struct Divides(Vec<StreamState>);

impl SendHalf for Divides {
    fn handle_stream(&mut self, _: Time, stream: &StreamState) {
        self.0.retain(|known| known.stream != stream.stream);
        self.0.push(*stream);
    }
    fn decision(&self) -> Decision {
        Decision { target: kbps(3000), pacing: kbps(3000), window: None, padding: Rate::ZERO }
    }
    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let heaviest = self.0.iter().map(|known| known.priority).fold(0.0, f64::max);
        let known = self.0.iter().find(|known| known.stream == stream);
        Some(known.map_or(kbps(100), |known| if known.priority == heaviest { known.max } else { known.min }))
    }
}

#[test]
fn a_half_may_divide_the_target() {
    let send: Box<dyn SendHalf> = Box::new(Divides(Vec::new()));
    let divides = Controller { send: Some(send), receive: None, feedback: FeedbackKind::None, ecn: Ecn::NotEct };
    let mut setting = Setting::new(divides, kbps(300));
    setting.streams = vec![video(0, kbps(2000)), video(1, kbps(600))];
    setting.streams[1].priority = 1.5;
    let mut world = World::new(setting);
    world.run_secs(20);
    let of = |id| {
        let of_stream = move |s: &Sent| matches!(s, Sent::Media { stream, .. } if *stream == StreamId(id));
        world.sent_bps(of_stream, Time::from_secs(5), Time::from_secs(20))
    };
    // 30 and 600 kbit/s of media, with headers: about a third and 5 %.
    within(of(0), 40e3, 50e3, "the least");
    within(of(1), 615e3, 645e3, "the most");
}

#[test]
fn silence_for_a_day_is_survived() {
    for name in ["gcc-2016", "fixed"] {
        // One small frame a second, so that a day is quick; nothing passes for a day in either direction.
        let most = kbps(60);
        let slow = Rate::from_bps(800);
        let config = paceline_flow::source::IdealConfig { fps: 1.0, min: slow, max: slow, start: slow };
        let source = paceline_flow::source::Ideal::new(config, Time::ZERO).unwrap();
        let mut setting = Setting::new(controller(name, most, &[]), kbps(300));
        setting.streams = vec![stream(0, MediaKind::Video, Box::new(source))];
        let day = Time::from_secs(100)..Time::from_secs(86_500);
        let gone = day.clone();
        setting.forward = Box::new(move |_, now, _| if day.contains(&now) { Fate::Drop } else { Fate::Pass });
        setting.back = Box::new(move |_, now, _| if gone.contains(&now) { Fate::Drop } else { Fate::Pass });
        let mut world = World::new(setting);
        world.run_secs(86_600);
        let shown = |from: i64, to: i64| {
            world.shown.iter().filter(|s| (Time::from_secs(from)..Time::from_secs(to)).contains(&s.at)).count()
        };
        within(shown(0, 100) as f64, 99.0, 100.0, "frames before");
        assert_eq!(shown(101, 86_500), 0);
        within(shown(86_500, 86_600) as f64, 90.0, 100.0, "frames after");
        let reports = world
            .events
            .iter()
            .filter(|(t, e)| *t > Time::from_secs(86_505) && matches!(e, SenderEvent::FractionLost(_)))
            .count();
        // One packet a second, and a fraction lost is told of twenty.
        within(reports as f64, 3.0, 6.0, "reports after");
    }
}

/// The process slept for a day: neither endpoint was called, then both are.
#[test]
fn a_clock_that_leaps_a_day_is_survived() {
    let mut world = World::new(Setting::new(controller("gcc-2016", kbps(1000), &[]), kbps(1000)));
    world.run_secs(10);
    world.now = Time::from_secs(86_410);
    world.run_secs(86_440);
    let after: Vec<&Shown> = world.shown.iter().filter(|s| s.at > Time::from_secs(86_420)).collect();
    within(after.len() as f64, 580.0, 601.0, "frames of the last twenty seconds");
    for s in after {
        let delay = s.at.as_secs_f64() * 90_000.0 % 4_294_967_296.0 - s.timestamp as f64;
        within(delay / 90.0, 0.0, 3000.0, "delay, ms");
    }
    let sent: u64 =
        world.forward_log.iter().filter(|l| l.at >= Time::from_secs(86_410)).map(|l| l.size.as_bytes()).sum();
    within(sent as f64 * 8.0 / 30.0, 50e3, 1.5e6, "no burst after it");
}

fn is_pli(bytes: &[u8]) -> bool {
    parse_compound(bytes).unwrap().into_iter().any(|p| matches!(p, Rtcp::Pli { .. }))
}
fn is_report(bytes: &[u8]) -> bool {
    parse_compound(bytes).unwrap().into_iter().any(|p| matches!(p, Rtcp::Sdes { .. }))
}
