// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::link::queue::{QueuePlan, testing};
use crate::link::server::ServerPlan;
use crate::link::{CapacityEnd, Jitter};
use paceline_units::{Ecn, Fraction, Rate};

fn ms(t: i64) -> TimeDelta {
    TimeDelta::from_millis(t)
}

fn kbps(steps: &[(i64, u64)]) -> Capacity {
    let points = steps.iter().map(|(at, kbps)| (Time::from_millis(*at), Rate::from_kbps(*kbps))).collect();
    Capacity::rates(Schedule::new(points).unwrap(), CapacityEnd::Hold).unwrap()
}

/// A line of 1 Mbit/s (a packet of 1250 bytes takes 10 ms) with 40 ms delay and a queue of 100 ms.
fn config() -> HopPlan {
    let (capacity, delay) = (Some(kbps(&[(0, 1000)])), Schedule::constant(ms(40)));
    HopPlan { capacity, delay, ..HopPlan::new("test", QueueLimit::DrainTime(ms(100))) }
}

fn token_bucket(rate_step: RateStep) -> ServerPlan {
    let service = Service { burst: Some(DataSize::from_bytes(5000)), rate_step, ..Service::default() };
    ServerPlan { service, ..ServerPlan::default() }
}

/// The same line without delay, behind a token bucket of 5000 bytes and with a queue of 50 packets.
fn bucket() -> HopPlan {
    let (server, queue) = (token_bucket(RateStep::Keep), QueuePlan::drop_tail(QueueLimit::Packets(50)));
    HopPlan { server, queue, delay: Schedule::constant(ms(0)), ..config() }
}

fn build(hop: HopPlan) -> Link {
    Link::new(hop, &RandomStreams::new(1))
}

fn link(jitter: Option<Jitter>, loss: f64) -> Link {
    build(HopPlan {
        capacity: Some(kbps(&[(0, 1000), (500, 300)])),
        delay: Schedule::new(vec![(Time::ZERO, ms(40)), (Time::from_millis(300), ms(5))]).unwrap(),
        jitter,
        loss: Schedule::constant(LossModel::Bernoulli(Fraction::new(loss).unwrap())),
        ..config()
    })
}

fn packet(id: u32) -> Descriptor {
    testing::packet(id, Ecn::NotEct)
}

/// Passes packets to the link at one time, ms.
fn arrive(link: &mut Link, at: i64, ids: std::ops::Range<u32>) {
    ids.for_each(|id| link.handle_packet(Time::from_millis(at), packet(id)));
}

fn outputs(link: &mut Link, until: Time) -> Vec<Output> {
    core::iter::from_fn(|| link.poll_output(until)).collect()
}

/// Sends 200 packets, one each 6 ms (1.67 Mbps into 1 then 0.3), and polls before each id for which `poll` is true.
fn run(mut link: Link, poll: impl Fn(u32) -> bool) -> Vec<Output> {
    let mut out = Vec::new();
    for id in 0..200 {
        let now = Time::from_millis(6 * id as i64);
        if poll(id) {
            out.extend(outputs(&mut link, now));
        }
        link.handle_packet(now, packet(id));
    }
    loop {
        let Some(next) = link.poll_timeout() else { return out };
        out.extend(outputs(&mut link, next));
    }
}

#[test]
fn empty_link_adds_serialisation_and_delay_only() {
    let mut link = link(None, 0.0);
    link.handle_packet(Time::from_millis(7), packet(1));
    assert_eq!(link.poll_timeout(), Some(Time::from_millis(7 + 10 + 40)));
    assert_eq!(link.poll_output(Time::from_millis(56)), None);
    let Some(Output::Delivered { waited, left, due, .. }) = link.poll_output(Time::from_millis(57)) else {
        panic!("delivered when due")
    };
    assert_eq!((waited, left, due), (TimeDelta::ZERO, Time::from_millis(17), Time::from_millis(57)));
    assert_eq!(link.poll_timeout(), None);
}

#[test]
fn decisions_do_not_depend_on_when_the_link_is_polled() {
    for order in [None, Some(JitterOrder::Keep), Some(JitterOrder::Reorder)] {
        let jitter = order.map(|order| Jitter { std: ms(5), limit: ms(15), order });
        let often = run(link(jitter, 0.1), |_| true);
        let seldom = run(link(jitter, 0.1), |id| id % 37 == 0);
        assert_eq!(often.len(), 200, "every packet has exactly one outcome");
        assert!(often.windows(2).all(|w| w[0].due() <= w[1].due()), "outputs come in order of due time");
        assert_eq!(often, seldom);
    }
}

fn rate(kbps: u64) -> LinkChange {
    LinkChange::Capacity(Some(Capacity::constant(Rate::from_kbps(kbps))))
}

/// Departure from the server and arrival at the far end of each packet that is due by `until`, ms.
fn times(link: &mut Link, until: i64) -> Vec<(i64, i64)> {
    let whole = |t: Time| (t - Time::ZERO).as_nanos() / 1_000_000;
    let delivered = |o| match o {
        Output::Delivered { left, due, .. } => Some((whole(left), whole(due))),
        Output::Dropped { .. } => None,
    };
    outputs(link, Time::from_millis(until)).into_iter().filter_map(delivered).collect()
}

#[test]
fn capacity_change_keeps_the_packet_in_service() {
    for seldom in [false, true] {
        let mut link = build(config());
        arrive(&mut link, 0, 0..4);
        let mut delivered = Vec::new();
        if !seldom {
            delivered.extend(times(&mut link, 15));
        }
        // The second is in service from 10 to 20 ms; the others take 5 ms each at 2 Mbit/s.
        link.change(Time::from_millis(15), rate(2000));
        delivered.extend(times(&mut link, 1000));
        assert_eq!(delivered, [(10, 50), (20, 60), (25, 65), (30, 70)], "polled seldom: {seldom}");
    }
}

#[test]
fn endless_outage_ends_with_the_next_change() {
    let mut link = build(config());
    arrive(&mut link, 0, 0..2);
    link.change(Time::from_millis(5), rate(0));
    link.handle_packet(Time::from_millis(6), packet(2));
    assert_eq!(times(&mut link, 100_000), [(10, 50)], "only the packet in service leaves");
    assert_eq!(link.backlog(), DataSize::from_bytes(1250), "one never leaves the server, one waits");
    link.change(Time::from_secs(200), rate(500));
    assert_eq!(times(&mut link, 300_000), [(200_020, 200_060), (200_040, 200_080)]);
    link.change(Time::from_secs(400), rate(0));
    link.handle_packet(Time::from_secs(400), packet(3));
    link.change(Time::from_secs(401), LinkChange::Capacity(None));
    link.handle_packet(Time::from_secs(402), packet(4));
    assert_eq!(times(&mut link, 500_000), [(401_000, 401_040), (402_000, 402_040)], "unlimited: no packet waits");
}

#[test]
fn unlimited_capacity_empties_the_queue_in_order() {
    let mut link = build(config());
    arrive(&mut link, 0, 0..4);
    link.change(Time::from_millis(5), LinkChange::Capacity(None));
    link.handle_packet(Time::from_millis(6), packet(4));
    assert_eq!(times(&mut link, 1000), [(10, 50), (10, 50), (10, 50), (10, 50), (6, 50)]);
    // Limited again: one packet after the other.
    link.change(Time::from_millis(1000), rate(1000));
    arrive(&mut link, 1000, 0..2);
    assert_eq!(times(&mut link, 2000), [(1010, 1050), (1020, 1060)]);
}

#[test]
fn delay_change_applies_to_later_departures_in_order() {
    let mut link = build(config());
    arrive(&mut link, 0, 0..3);
    // The first is on the wire, the second in service: both keep the 40 ms.
    link.change(Time::from_millis(12), LinkChange::Delay(Schedule::constant(ms(1))));
    link.handle_packet(Time::from_millis(100), packet(3));
    assert_eq!(times(&mut link, 1000), [(10, 50), (20, 60), (30, 60), (110, 111)]);
}

#[test]
fn loss_change_applies_to_later_departures() {
    let mut link = build(config());
    arrive(&mut link, 0, 0..3);
    let all = LossModel::Bernoulli(Fraction::ONE);
    link.change(Time::from_millis(15), LinkChange::Loss(Schedule::constant(all)));
    assert_eq!(times(&mut link, 500), [(10, 50), (20, 60)]);
    link.change(Time::from_millis(500), LinkChange::Loss(Schedule::constant(LossModel::NONE)));
    link.handle_packet(Time::from_millis(500), packet(3));
    assert_eq!(times(&mut link, 1000), [(510, 550)]);
}

#[test]
fn limit_change_applies_to_later_arrivals_and_follows_capacity() {
    // Packets in the queue before and after 30 arrivals, without the one in service.
    let room = |link: &mut Link, at: i64| {
        let before = link.backlog().as_bytes() / 1250;
        arrive(link, at, 0..30);
        (before, link.backlog().as_bytes() / 1250)
    };
    let mut link = build(config());
    assert_eq!(room(&mut link, 0), (0, 10), "100 ms at 1 Mbit/s");
    link.change(Time::from_millis(1), LinkChange::Limit(QueueLimit::DrainTime(ms(50))));
    assert_eq!(room(&mut link, 1), (10, 10), "waiting packets stay, and none is added");
    times(&mut link, 1000);
    assert_eq!(room(&mut link, 1000), (0, 5));
    link.change(Time::from_millis(1000), rate(2000));
    assert_eq!(room(&mut link, 1000), (5, 10), "50 ms at 2 Mbit/s");
    times(&mut link, 2000);
    // In an outage the rate before it applies.
    link.change(Time::from_millis(2000), rate(0));
    link.change(Time::from_millis(2000), LinkChange::Limit(QueueLimit::DrainTime(ms(20))));
    assert_eq!(room(&mut link, 2000), (0, 4));
}

#[test]
fn token_bucket_keeps_its_tokens_when_the_rate_changes() {
    let mut link = build(HopPlan { server: token_bucket(RateStep::Keep), ..config() });
    // Full at 1 s: four packets at once empty it; 10 ms provide the tokens of one packet.
    arrive(&mut link, 1000, 0..4);
    link.change(Time::from_millis(1020), rate(100));
    // 1 Mbit/s provided the tokens of two packets; the third waits for 1250 bytes at 0.1 Mbit/s: 100 ms.
    arrive(&mut link, 1020, 0..3);
    let left: Vec<i64> = times(&mut link, 3000).into_iter().map(|(left, _)| left).collect();
    assert_eq!(left, [1000, 1000, 1000, 1000, 1020, 1020, 1120]);
}

#[test]
fn token_bucket_passes_one_burst_then_the_rate() {
    let run = |seldom: bool| {
        let mut link = build(bucket());
        let mut left = Vec::new();
        // Seven packets of 10 ms each at 1 s and at 2 s, one each 11 ms from 3 s on.
        let bursts = (0..14).map(|id| (1000 + 1000 * (id / 7), id));
        for (at, id) in bursts.chain((0..100).map(|n| (3000 + 11 * n, 14 + n))) {
            arrive(&mut link, at, id as u32..id as u32 + 1);
            left.extend(times(&mut link, if seldom { 0 } else { at }));
        }
        left.extend(times(&mut link, 10_000));
        left.into_iter().map(|(left, _)| left).collect::<Vec<_>>()
    };
    let left = run(false);
    assert_eq!(left.len(), 114, "no packet is dropped");
    assert_eq!(&left[..7], [1000, 1000, 1000, 1000, 1010, 1020, 1030], "5000 bytes at once, then the rate");
    assert_eq!(&left[7..14], [2000, 2000, 2000, 2000, 2010, 2020, 2030]);
    assert!((0..100).all(|n| left[14 + n] == 3000 + 11 * n as i64), "below the rate no packet waits");
    assert_eq!(left, run(true), "independent of polling");
}

/// 5000 bytes of bucket, twelve packets of 1250 bytes at 1 s, and a step from 1 to 0.5 Mbit/s at 1035 ms, when half of
/// the tokens of the eighth packet are there. Kept: the rest takes 10 ms, then 20 ms a packet. Changed: the full
/// bucket passes four packets at once. Deleted and added: five packets are lost, and one at 1035 ms finds a full bucket.
#[test]
fn rate_step_keeps_or_fills_the_bucket_and_keeps_or_drops_the_queue() {
    let run = |rate_step, scheduled: bool, seldom: bool| {
        let rates: &[(i64, u64)] = if scheduled { &[(0, 1000), (1035, 500)] } else { &[(0, 1000)] };
        let mut link = build(HopPlan { capacity: Some(kbps(rates)), server: token_bucket(rate_step), ..bucket() });
        let (mut left, mut dropped) = (Vec::new(), Vec::new());
        let mut poll = |link: &mut Link, until: i64| {
            for output in outputs(link, Time::from_millis(until)) {
                match output {
                    Output::Delivered { left: at, .. } => {
                        left.push(((at - Time::ZERO).as_nanos() + 500_000) / 1_000_000)
                    }
                    Output::Dropped { packet, reason, due, .. } => {
                        assert_eq!(reason, DropReason::Purge);
                        dropped.push((packet.id, (due - Time::ZERO).as_nanos() / 1_000_000));
                    }
                }
            }
        };
        arrive(&mut link, 1000, 0..12);
        for at in 1000..1035 {
            if !seldom {
                poll(&mut link, at);
            }
        }
        if !scheduled {
            link.change(Time::from_millis(1035), rate(500));
        }
        arrive(&mut link, 1035, 12..13);
        poll(&mut link, 3000);
        (left, dropped)
    };
    let before = [1000, 1000, 1000, 1000, 1010, 1020, 1030];
    let after = |rest: &[i64]| before.iter().chain(rest).copied().collect::<Vec<i64>>();
    for seldom in [false, true] {
        let (left, dropped) = run(RateStep::Keep, true, seldom);
        assert_eq!((left, dropped), (after(&[1045, 1065, 1085, 1105, 1125, 1145]), vec![]));
        let (left, dropped) = run(RateStep::Change, true, seldom);
        assert_eq!((left, dropped), (after(&[1035, 1035, 1035, 1035, 1055, 1075]), vec![]));
        let (left, dropped) = run(RateStep::DeleteAdd, true, seldom);
        assert_eq!((left, dropped), (after(&[1035]), (7..12).map(|id| (id, 1035)).collect()));
    }
    // During a run the packet in service keeps its departure at 1040 ms.
    let (left, dropped) = run(RateStep::DeleteAdd, false, false);
    assert_eq!((left, dropped), (after(&[1040, 1040]), (8..12).map(|id| (id, 1035)).collect()));
}

#[test]
fn token_bucket_size_does_not_depend_on_the_earlier_rate() {
    // Idle at 5 Mbit/s or in an outage, then 0.5 Mbit/s from 10 s on: 5000 bytes at once, then one packet each 20
    // ms.
    for before in [5000, 0] {
        let capacity = Some(kbps(&[(0, 500), (5000, before), (10_000, 500)]));
        let mut link = build(HopPlan { capacity, ..bucket() });
        let at = Time::from_millis(10_001);
        arrive(&mut link, 10_001, 0..7);
        let left = |o| match o {
            Output::Delivered { left, .. } => ((left - at).as_nanos() + 500_000) / 1_000_000,
            Output::Dropped { .. } => panic!("no packet is dropped"),
        };
        let left: Vec<i64> = outputs(&mut link, Time::from_secs(20)).into_iter().map(left).collect();
        assert_eq!(left, [0, 0, 0, 0, 20, 40, 60], "before: {before} kbit/s");
    }
}

/// Ids of 1250 bytes; the MTU is 1250, 1249 from 1 s on, and 1500 from 2 s on.
#[test]
fn packets_above_the_mtu_are_dropped_as_they_arrive() {
    let size = DataSize::from_bytes;
    let points = vec![(Time::ZERO, size(1250)), (Time::from_secs(1), size(1249)), (Time::from_secs(2), size(1500))];
    for seldom in [false, true] {
        let mut link = build(HopPlan { mtu: Schedule::new(points.clone()).unwrap(), ..config() });
        let (mut dropped, mut delivered) = (Vec::new(), Vec::new());
        let mut poll = |link: &mut Link, until: i64| {
            for output in outputs(link, Time::from_millis(until)) {
                match output {
                    Output::Dropped { packet, reason, due, left } => {
                        assert_eq!((reason, left), (DropReason::Mtu, None));
                        dropped.push((packet.id, due));
                    }
                    Output::Delivered { packet, due, .. } => delivered.push((packet.id, due)),
                }
            }
        };
        // Three waiting packets of which the last leaves at 1020 ms: the MTU at their arrival counts.
        for (at, ids) in [(990, 0..3), (1000, 3..4), (1999, 4..5), (2000, 5..6)] {
            arrive(&mut link, at, ids);
            if !seldom {
                poll(&mut link, at);
            }
        }
        poll(&mut link, 3000);
        let ms = Time::from_millis;
        assert_eq!(dropped, [(3, ms(1000)), (4, ms(1999))], "polled seldom: {seldom}");
        assert_eq!(delivered, [(0, ms(1040)), (1, ms(1050)), (2, ms(1060)), (5, ms(2050))], "seldom: {seldom}");
    }
}

#[test]
fn packets_above_the_mtu_are_dropped_by_an_unlimited_link() {
    let mtu = Schedule::constant(DataSize::from_bytes(1249));
    let mut link = build(HopPlan { capacity: None, mtu, ..config() });
    arrive(&mut link, 5, 0..1);
    assert_eq!(link.poll_timeout(), Some(Time::from_millis(5)));
    let output = link.poll_output(Time::from_millis(5));
    assert!(matches!(output, Some(Output::Dropped { reason: DropReason::Mtu, .. })), "{output:?}");
    assert_eq!((link.poll_timeout(), link.backlog()), (None, DataSize::ZERO));
}

#[test]
fn jitter_order_determines_overtaking() {
    let overtakes = |order| {
        let jitter = Some(Jitter { std: ms(5), limit: ms(15), order });
        let ids: Vec<u32> = run(link(jitter, 0.0), |_| true)
            .into_iter()
            .filter_map(|o| match o {
                Output::Delivered { packet, .. } => Some(packet.id),
                Output::Dropped { .. } => None,
            })
            .collect();
        ids.windows(2).filter(|w| w[1] < w[0]).count()
    };
    assert_eq!(overtakes(JitterOrder::Keep), 0, "not even when the delay falls from 40 to 5 ms");
    let n = overtakes(JitterOrder::Reorder);
    assert!((1..40).contains(&n), "{n}");
}

/// Departure time of each packet of a saturated 1 Mbit/s link, and its delay from there: 1250 bytes every 10 ms
/// keep the server busy.
fn lateness(delay: Schedule<TimeDelta>, jitter: Option<Jitter>, packets: i64) -> Vec<(Time, TimeDelta)> {
    let mut link = build(HopPlan { server: ServerPlan::default(), delay, jitter, ..bucket() });
    arrive(&mut link, 0, 0..20); // a queue that never empties
    let mut out = Vec::new();
    for n in 1..=packets {
        let now = Time::from_millis(10 * n);
        link.handle_packet(now, packet(n as u32 + 20));
        out.extend(outputs(&mut link, now));
    }
    out.iter()
        .map(|o| match o {
            Output::Delivered { left, due, .. } => (*left, *due - *left),
            Output::Dropped { .. } => panic!("nothing is lost here"),
        })
        .collect()
}

#[test]
fn delay_decrease_takes_effect_on_a_saturated_link() {
    let delay = Schedule::new(vec![(Time::ZERO, ms(200)), (Time::from_millis(1005), ms(20))]).unwrap();
    for (left, late) in lateness(delay, None, 300) {
        // The last packet before the fall leaves at 1000 ms and is due at 1200 ms. Those that leave from 1010 to
        // 1180 ms would arrive before it, so they wait for it.
        let left_ms = (left - Time::ZERO).as_nanos() / 1_000_000;
        let expected = match left_ms {
            ..=1000 => 200,
            1001..=1180 => 1200 - left_ms,
            _ => 20,
        };
        assert_eq!(late, ms(expected), "left at {left}");
    }
}

#[test]
fn keeping_order_adds_little_jitter_on_a_saturated_link() {
    let jitter = Some(Jitter { std: ms(5), limit: ms(15), order: JitterOrder::Keep });
    let late = lateness(Schedule::constant(ms(40)), jitter, 20_000);
    let late: Vec<f64> = late.iter().map(|(_, d)| d.as_millis_f64() - 40.0).collect();
    assert!(late.len() > 19_000);
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    // The draw's own mean is 3.98 ms. Only a draw above 10 ms (4.6 % of them) can hold back the next packet, 10 ms
    // behind, and by at most 5 ms: it adds less than 0.046 * 5 = 0.23 ms.
    assert!((3.88..4.21).contains(&mean), "{mean}");
    assert!(late.iter().all(|d| (0.0..=15.0).contains(d)));
}

#[test]
fn queue_limit_bounds_waiting_and_follows_capacity() {
    let outputs = run(link(None, 0.0), |_| true);
    let waited = |o: &Output| match o {
        Output::Delivered { waited, .. } => *waited,
        Output::Dropped { .. } => TimeDelta::ZERO,
    };
    let longest = outputs.iter().map(waited).max().unwrap();
    // 100 ms at 1 Mbps are 10 packets; after the fall to 0.3 Mbps those 10 take up to 333 ms to drain.
    assert!((ms(250)..=ms(345)).contains(&longest), "{longest}");
    let drops = outputs.iter().filter(|o| matches!(o, Output::Dropped { reason: DropReason::Overflow, .. })).count();
    assert!((80..140).contains(&drops), "{drops}");
}
