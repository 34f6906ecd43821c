//! What every registered controller owes when feedback is doubled, replayed, forged, late or lost, through real bytes.
//! The registry is the test list; what does not control (`fixed`) is left out.

use crate::world::{Fate, Impair, Left, Setting, World, controller};
use crate::{any_media, kbps, ms, within};
use paceline::{Decision, Registry};
use paceline_flow::SenderEvent;
use paceline_units::{Rate, Streams, Time};
use paceline_wire::{CompoundWriter, GroupStep, NadaFeedback, ReportBlock, Rtcp, parse_compound};

fn controllers() -> Vec<&'static str> {
    let registry = Registry::standard();
    let names: Vec<&'static str> = registry.iter().filter(|e| e.controls()).map(|e| e.name()).collect();
    assert!(names.len() >= 3 && !names.contains(&"fixed"));
    names
}

/// 30 s at 700 kbit/s with 2 % loss, so that every kind of feedback has something to say.
fn call(name: &str, back: Impair, forged: Vec<(Time, Vec<u8>)>) -> World {
    let mut random = Streams::new(5).stream("loss");
    let mut setting = Setting::new(controller(name, kbps(2000), &[]), kbps(2000));
    setting.capacity = kbps(700);
    setting.forward = Box::new(move |_, _, _| if random.chance(0.02) { Fate::Drop } else { Fate::Pass });
    (setting.back, setting.forged) = (back, forged);
    let mut world = World::new(setting);
    world.run_secs(30);
    world
}

fn pass() -> Impair {
    Box::new(|_, _, _| Fate::Pass)
}

/// A path of 1 Mbit/s without loss.
fn megabit(name: &str, seconds: i64, back: Impair) -> World {
    let mut setting = Setting::new(controller(name, kbps(2000), &[]), kbps(2000));
    (setting.capacity, setting.back) = (kbps(1000), back);
    let mut world = World::new(setting);
    world.run_secs(seconds);
    world
}

fn is_request(bytes: &[u8]) -> bool {
    parse_compound(bytes).unwrap().into_iter().any(|p| matches!(p, Rtcp::Nack { .. } | Rtcp::Pli { .. }))
}

/// Feedback as it was sent, again after this time.
fn replayed(log: &[Left], after_ms: i64) -> Vec<(Time, Vec<u8>)> {
    log.iter().filter(|l| !is_request(&l.bytes)).map(|l| (l.at + ms(after_ms), l.bytes.clone())).collect()
}

fn target(world: &World, at: Time) -> Rate {
    decision(world, at).target
}
fn decision(world: &World, at: Time) -> Decision {
    let decisions =
        world.events.iter().filter_map(|(t, e)| if let SenderEvent::Decision(d) = e { Some((t, d)) } else { None });
    *decisions.rev().find(|(t, _)| **t <= at).expect("there is a first decision").1
}

#[test]
fn doubled_and_replayed_feedback_changes_nothing() {
    for name in controllers() {
        let plain = call(name, pass(), Vec::new());
        let steps = plain.events.iter().filter(|(_, e)| matches!(e, SenderEvent::Decision(_))).count();
        assert!(steps > 10, "{name}: {steps} decisions");
        // The copy comes with the original, just behind it, and when others have overtaken it.
        let back_ms = 20;
        for after_ms in [back_ms, back_ms + 7, back_ms + 130, back_ms + 2500, back_ms + 9000] {
            let again = call(name, pass(), replayed(&plain.back_log, after_ms));
            assert!(again.events == plain.events, "{name}: replayed after {after_ms} ms");
            assert!(again.forward_log == plain.forward_log, "{name}: replayed after {after_ms} ms");
        }
    }
}

#[test]
fn forged_feedback_changes_nothing() {
    let compound = |write: &dyn Fn(&mut CompoundWriter<'_>)| {
        let mut buffer = [0; 1024];
        let mut writer = CompoundWriter::new(&mut buffer);
        write(&mut writer);
        let len = writer.finish();
        buffer[..len].to_vec()
    };
    let block =
        |ssrc, highest_sequence| ReportBlock { ssrc, highest_sequence, fraction_lost: 200, ..Default::default() };
    let report = |ssrc, highest| compound(&|w| w.receiver_report(1, &[block(ssrc, highest)]).unwrap());
    let remb = |ssrc, highest, named: u32| {
        compound(&|w| {
            w.receiver_report(1, &[block(ssrc, highest)]).unwrap();
            w.remb(1, kbps(60), &[named]).unwrap();
        })
    };
    let nada = NadaFeedback { gradual: true, signal: ms(900), rate: kbps(60) };
    let step = GroupStep { gradient: ms(400), departure: ms(33), size: 0, rate: kbps(60) };
    let told = |w: &mut CompoundWriter<'_>| w.nada(1, &nada).and_then(|()| w.group_step(1, &step)).unwrap();
    let told_after = |ssrc, highest| {
        compound(&|w| {
            w.receiver_report(1, &[block(ssrc, highest)]).unwrap();
            told(w);
        })
    };
    let feedback = |ssrc, base| {
        compound(&|w| {
            w.transport_feedback(1, ssrc, base, 0, &[Some(1), None, None, Some(9000)]).unwrap();
        })
    };
    // Our streams are 1000 and 1001; media begin at 100, and some 1500 packets are sent in all.
    let kinds = [
        ("a report on another flow", report(77, 120)),
        ("a report from the future", report(1000, 60_000)),
        ("a report on packets before the first", report(1000, 99)),
        ("an old report", report(1000, 101)),
        ("an old report with a REMB", remb(1000, 101, 1000)),
        ("a REMB for another flow", remb(77, 120, 77)),
        ("receiver's messages with an old report", told_after(1000, 101)),
        ("receiver's messages with a report from the future", told_after(1000, 60_000)),
        ("receiver's messages for another flow", told_after(77, 120)),
        ("receiver's messages without a report", compound(&told)),
        ("another flow's feedback on packets that we have sent, too", feedback(77, 400)),
        ("feedback on packets not yet sent", feedback(1000, 20_000)),
        ("feedback on packets just ahead", feedback(1000, 5000)),
        ("feedback on packets long forgotten", feedback(1000, 40_000)),
    ];
    for name in controllers() {
        let plain = call(name, pass(), Vec::new());
        for (what, bytes) in &kinds {
            let forged = call(
                name,
                pass(),
                vec![(Time::from_millis(10_003), bytes.clone()), (Time::from_millis(20_001), bytes.clone())],
            );
            assert!(forged.events == plain.events && forged.forward_log == plain.forward_log, "{name}: {what}");
            assert!(forged.sender_refused() >= 2, "{name}: {what}");
        }
    }
}

#[test]
fn reports_that_are_a_second_late_do_not_starve_a_flow() {
    for name in controllers() {
        let world = megabit(name, 90, Box::new(|_, _, _| Fate::Late(ms(1000))));
        let rate = world.sent_bps(any_media, Time::from_secs(45), Time::from_secs(90));
        within(rate, 500e3, 1200e3, name);
    }
}

#[test]
fn silence_makes_a_flow_fall_and_it_recovers() {
    for name in controllers() {
        let (quiet, loud) = (Time::from_secs(30), Time::from_secs(45));
        let back = move |_: u64, now: Time, _: &[u8]| if now >= quiet && now < loud { Fate::Drop } else { Fate::Pass };
        let world = megabit(name, 120, Box::new(back));
        let at = |ms| target(&world, Time::from_millis(ms)).as_bps_f64();
        // The last word came within 1.3 s before 30 s; a controller may do more on its own.
        let before = at(30_100);
        assert!(before > 300e3, "{name}: {before}");
        assert!(at(34_500) <= 0.81 * before, "{name}: {before}, 4.5 s later {}", at(34_500));
        for s in 35..44 {
            let (now, next) = (at(s * 1000), at((s + 1) * 1000));
            assert!(next <= (0.81 * now).max(50e3), "{name}: {now} at {s} s, then {next}");
        }
        assert!(at(45_000) <= 0.12 * before, "{name}: {before}, then {}", at(45_000));
        let after = at(119_000);
        within(after, 0.5 * before, 4e6, name);
    }
}

/// At the start of a call there is no feedback to be missed, only packets that nobody answers.
#[test]
fn silence_from_the_start_makes_a_flow_fall() {
    for name in controllers() {
        let world = megabit(name, 20, Box::new(|_, _, _| Fate::Drop));
        let at = |ms| target(&world, Time::from_millis(ms)).as_bps_f64();
        within(at(2900), 50e3, 600e3, name);
        within(at(4000) / at(2900), 0.1, 0.81, name);
        assert_eq!(at(15_000), 50e3, "{name}");
        let sent = world.sent_bps(any_media, Time::from_secs(14), Time::from_secs(20));
        // No less than the source's 30 kbit/s and their headers.
        within(sent, 30e3, 110e3, name);
    }
}

/// Requests and reports without news of packets do not count as heard: nothing that is sent arrives.
#[test]
fn a_receiver_that_hears_nothing_does_not_count_as_heard() {
    for name in controllers() {
        let mut setting = Setting::new(controller(name, kbps(2000), &[]), kbps(2000));
        setting.capacity = kbps(1000);
        let gone = Time::from_secs(30);
        setting.forward = Box::new(move |_, now, _| if now >= gone { Fate::Drop } else { Fate::Pass });
        let mut world = World::new(setting);
        world.run_secs(50);
        let reports = world.back_log.iter().filter(|l| l.at > Time::from_secs(32)).count();
        within(reports as f64, 10.0, 200.0, "reports while nothing arrives");
        let at = |s| target(&world, Time::from_secs(s)).as_bps_f64();
        assert!(at(48) <= 0.1 * at(30), "{name}: {} then {}", at(30), at(48));
    }
}
