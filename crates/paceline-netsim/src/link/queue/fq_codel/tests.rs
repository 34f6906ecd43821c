// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::link::queue::testing;
use crate::parameter::Value;
use paceline_units::FlowId;

fn ms(t: i64) -> Time {
    Time::from_millis(t)
}

fn packet(id: u32, flow: u16, bytes: u64) -> Descriptor {
    let size = DataSize::from_bytes(bytes);
    Descriptor { flow: FlowId(flow), size, ..testing::packet(id, Ecn::NotEct) }
}

fn build(limit: u32, given: &[(&str, Value)]) -> Box<dyn Discipline> {
    testing::build(&ENTRY, limit, given)
}

/// Queues packets at one time; returns those that are dropped.
fn arrive(queue: &mut dyn Discipline, now: Time, packets: impl IntoIterator<Item = Descriptor>) -> Vec<u32> {
    testing::arrive(queue, now, packets).iter().map(|(id, _)| *id).collect()
}

/// Returns the next packets, by number.
fn leave(queue: &mut dyn Discipline, now: Time, count: usize) -> Vec<u32> {
    testing::leave(queue, now, count).0.iter().map(|queued| queued.packet.id).collect()
}

#[test]
fn queues_take_turns_of_a_quantum() {
    let mut queue = build(1000, &[]);
    // Flow 0: packets 0 to 9 of 1500 bytes; flow 1: 10 to 19 of 500 bytes. With 1514 bytes of credit, which may be overdrawn
    // by one packet, the first round sends two and four of them: 14 bytes are left after one of 1500, and of three of 500.
    arrive(&mut *queue, ms(0), (0..10).map(|id| packet(id, 0, 1500)));
    arrive(&mut *queue, ms(0), (10..20).map(|id| packet(id, 1, 500)));
    assert_eq!(leave(&mut *queue, ms(1), 6), [0, 1, 10, 11, 12, 13]);
    // Both are 1486 and 486 bytes short. Another quantum gives 28 and 1028.
    assert_eq!(leave(&mut *queue, ms(1), 4), [2, 14, 15, 16]);
    // 1472 and 472 short: 42 and 1042.
    assert_eq!(leave(&mut *queue, ms(1), 4), [3, 17, 18, 19]);
    assert_eq!(leave(&mut *queue, ms(1), 99), [4, 5, 6, 7, 8, 9]);
    assert!(queue.is_empty());
}

#[test]
fn a_new_flow_goes_before_those_with_a_backlog() {
    let mut queue = build(1000, &[]);
    arrive(&mut *queue, ms(0), (0..10).map(|id| packet(id, 0, 500)));
    // The fifth packet begins its second turn, as an old queue, with 1514 + 14 - 500 - 500 = 528 bytes left.
    assert_eq!(leave(&mut *queue, ms(1), 5), [0, 1, 2, 3, 4]);
    arrive(&mut *queue, ms(1), [packet(20, 5, 200)]);
    assert_eq!(leave(&mut *queue, ms(1), 2), [20, 5]);
    // The empty queue waits for its turn among the old ones, so the next packet of its flow is not preferred again.
    arrive(&mut *queue, ms(1), [packet(21, 5, 200)]);
    assert_eq!(leave(&mut *queue, ms(1), 2), [6, 21]);
}

#[test]
fn overflow_drops_half_of_the_longest_queue_from_its_head() {
    let mut queue = build(20, &[]);
    assert_eq!(arrive(&mut *queue, ms(0), (0..12).map(|id| packet(id, 0, 500))), [0_u32; 0]);
    assert_eq!(
        arrive(&mut *queue, ms(0), (20..28).map(|id| packet(id, 1, 1000))),
        [0_u32; 0],
        "the limit is 20 packets"
    );
    // Flow 1 has 8000 bytes, flow 0 has 6000.
    assert_eq!(arrive(&mut *queue, ms(0), [packet(40, 2, 100)]), [20, 21, 22, 23]);
    assert_eq!((queue.backlog(), leave(&mut *queue, ms(0), 99).len()), (DataSize::from_bytes(10_100), 17));
    // At most 64 at once, and the arriving packet if its queue is the longest.
    let mut queue = build(200, &[]);
    assert_eq!(arrive(&mut *queue, ms(0), (0..201).map(|id| packet(id, 0, 500))), (0..64).collect::<Vec<_>>());
    let mut queue = build(2, &[]);
    assert_eq!(arrive(&mut *queue, ms(0), [(0, 40), (1, 40), (2, 1500)].map(|(id, b)| packet(id, id as u16, b))), [2]);
}

#[test]
fn each_queue_is_under_a_control_law_of_its_own() {
    // A packet of flow 0 every 5 ms and of flow 1 every 50 ms; one leaves every 10 ms. Flow 0 offers twice its share.
    let mut queue = build(1000, &[("ecn", Value::Flag(false))]);
    let (mut drops, mut dropped, mut waited) = (Drops::default(), [0, 0], [TimeDelta::ZERO; 2]);
    for now in 0..20_000 {
        let now = ms(now);
        let count = now.as_nanos() / 1_000_000;
        if count % 5 == 0 {
            queue.enqueue(now, LinkRate::at(None, now), packet(count as u32, 0, 1500), &mut drops);
        }
        if count % 50 == 0 {
            queue.enqueue(now, LinkRate::at(None, now), packet(count as u32, 1, 1500), &mut drops);
        }
        if count % 10 == 0
            && let Some(queued) = queue.dequeue(now, LinkRate::at(None, now), &mut drops)
        {
            let waited = &mut waited[usize::from(queued.packet.flow.0)];
            *waited = (*waited).max(now - queued.arrived);
        }
        drops.drain().for_each(|(packet, reason)| {
            assert_eq!(reason, DropReason::Aqm);
            dropped[usize::from(packet.flow.0)] += 1;
        });
    }
    // CoDel needs a second and more to reach the drop rate that an unresponsive flow calls for.
    assert!((1_000..2_600).contains(&dropped[0]), "{dropped:?}");
    assert_eq!(dropped[1], 0);
    assert!(waited[1] <= TimeDelta::from_millis(20), "a sparse flow waits for one packet at most: {}", waited[1]);
    assert!(waited[0] > TimeDelta::from_millis(100), "{}", waited[0]);
}

#[test]
fn flows_share_a_queue_modulo_the_number_of_queues() {
    let mut queue = build(1000, &[("queues", Value::Count(4))]);
    let of = |flow| packet(u32::from(flow), flow, 1514);
    arrive(&mut *queue, ms(0), [of(0), of(4), of(1), of(8)]);
    // Flows 0, 4 and 8 are in one queue, which sends 1514 bytes with its credit of 1514, and again with the credit of 0.
    assert_eq!(leave(&mut *queue, ms(0), 9), [0, 4, 1, 8]);
}

#[test]
fn the_threshold_of_ce_marks_every_capable_packet_above_it() {
    let threshold = Value::Time(TimeDelta::from_millis(1));
    let mut queue = build(1000, &[("ce_threshold", threshold)]);
    let all = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1];
    arrive(&mut *queue, ms(0), (0..12).map(|id| Descriptor { ecn: all[id as usize % 3], ..packet(id, 0, 100) }));
    let mut marks =
        |now| testing::leave(&mut *queue, now, 3).0.iter().map(|queued| queued.packet.ecn).collect::<Vec<_>>();
    assert_eq!(marks(ms(1)), all, "at the threshold");
    assert_eq!(marks(ms(2)), [Ecn::NotEct, Ecn::Ce, Ecn::Ce]);
}
