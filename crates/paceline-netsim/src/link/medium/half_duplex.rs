// SPDX-License-Identifier: MIT OR Apache-2.0
//! A medium on which links take turns: one of them transmits at a time, as the two directions of a half-duplex radio do.
//!
//! A link with packets requests the medium. The medium grants it from a time on; the link serves a [`Batch`](crate::link::Batch) and
//! releases the medium at the end of the batch, or when an outage of the link begins. Among the links that request it,
//! grants go round in the order of the links.
//!
//! ```text
//!  link 0  |==batch==|           |==batch==|
//!  link 1             |==batch==|           |==batch==|   time ->
//! ```
//!
//! Grants follow from arrival times, capacities and seed alone.

use super::Medium;
use crate::link::hop::Link;
use paceline_units::Time;

/// A medium on which links take turns.
#[derive(Clone, Debug)]
pub(super) struct HalfDuplex {
    members: Vec<usize>,
    /// The medium is in use until this time.
    free: Time,
    /// Position in `members` of the link that is preferred for the next grant.
    next: usize,
}

impl HalfDuplex {
    /// Creates an idle medium of these links. Each was created with a [`Batch`](crate::link::Batch).
    pub fn new(members: Vec<usize>) -> Self {
        Self { members, free: Time::ZERO, next: 0 }
    }
}

impl Medium for HalfDuplex {
    fn members(&self) -> &[usize] {
        &self.members
    }

    fn next_start(&self, links: &[Link]) -> Option<Time> {
        let since = self.members.iter().filter_map(|member| links[*member].requested_since()).min()?;
        Some(since.max(self.free))
    }

    fn advance(&mut self, now: Time, _: usize, links: &mut [Link]) -> bool {
        let mut granted = false;
        while let Some(start) = self.next_start(links).filter(|start| *start <= now) {
            let count = self.members.len();
            let mut turns = (0..count).map(|turn| (self.next + turn) % count);
            let requests = |turn: &usize| {
                let since = links[self.members[*turn]].requested_since();
                since.is_some_and(|since| since <= start)
            };
            let turn = turns.find(requests).expect("a link requests the medium at this time");
            if let Some(end) = links[self.members[turn]].transmit(start) {
                self.free = end;
                self.next = (turn + 1) % count;
            }
            granted = true;
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Batch;
    use crate::link::queue::{CoDel, CoDelQueue, Descriptor, Discipline, DropTail, QueueLimit, testing};
    use crate::link::server::{ServerPlan, Service};
    use crate::link::{Capacity, CapacityEnd, HopPlan, LinkChange, Output, Schedule};
    use paceline_units::{DataSize, Ecn, RandomStreams, Rate, TimeDelta};

    fn ms(t: i64) -> Time {
        Time::from_millis(t)
    }

    /// A link of 1 Mbit/s (10 ms a packet) without delay.
    fn link(batch: Batch, queue: Box<dyn Discipline>) -> Link {
        let service = Service { batch: Some(batch), ..Service::default() };
        let hop = HopPlan {
            capacity: Some(Capacity::constant(Rate::from_kbps(1000))),
            server: ServerPlan { service, ..ServerPlan::default() },
            ..HopPlan::new("test", QueueLimit::Packets(1))
        };
        Link::with_queue(hop, queue, &RandomStreams::new(1))
    }

    fn pair(batch: Batch) -> (HalfDuplex, Vec<Link>) {
        let drop_tail = || Box::new(DropTail::new(QueueLimit::Packets(1000)));
        (HalfDuplex::new(vec![0, 1]), vec![link(batch, drop_tail()), link(batch, drop_tail())])
    }

    fn packet(id: u32) -> Descriptor {
        testing::packet(id, Ecn::NotEct)
    }

    fn arrive(medium: &mut HalfDuplex, links: &mut [Link], at: i64, to: usize, ids: std::ops::Range<u32>) {
        for id in ids {
            medium.advance(ms(at), 0, links);
            links[to].handle_packet(ms(at), packet(id));
            medium.advance(ms(at), 0, links);
        }
    }

    /// Packets of a link that were delivered by `until`: id, start of service, arrival at the far end; ms.
    fn delivered(medium: &mut HalfDuplex, links: &mut [Link], of: usize, until: i64) -> Vec<(u32, i64, i64)> {
        medium.advance(ms(until), 0, links);
        let outputs = core::iter::from_fn(|| links[of].poll_output(ms(until)));
        let delivered = outputs.filter_map(|output| match output {
            Output::Delivered { packet, waited, left, due } => {
                assert_eq!(left, due, "there is no delay");
                Some((packet.id, (waited - TimeDelta::ZERO).as_nanos() / 1_000_000, due.as_nanos() / 1_000_000))
            }
            Output::Dropped { .. } => None,
        });
        delivered.collect()
    }

    #[test]
    fn saturated_directions_take_turns_and_share_the_capacity() {
        let (mut medium, mut links) = pair(Batch::SINGLE);
        arrive(&mut medium, &mut links, 0, 0, 0..60);
        arrive(&mut medium, &mut links, 0, 1, 100..160);
        // One packet of 10 ms each in turn: the first direction from 0, 20, 40 ms on, the other from 10, 30, 50 ms on.
        let first = delivered(&mut medium, &mut links, 0, 1000);
        let second = delivered(&mut medium, &mut links, 1, 1000);
        let expected = |id, offset: i64| move |n: i64| (id + n as u32, 20 * n + offset, 20 * n + offset + 10);
        assert_eq!(first, (0..50).map(expected(0, 0)).collect::<Vec<_>>(), "50 packets in 1 s: half of 1 Mbit/s");
        assert_eq!(second, (0..50).map(expected(100, 10)).collect::<Vec<_>>());
    }

    #[test]
    fn a_single_direction_has_all_of_the_capacity() {
        let (mut medium, mut links) = pair(Batch::SINGLE);
        arrive(&mut medium, &mut links, 0, 1, 0..120);
        let all = delivered(&mut medium, &mut links, 1, 1000);
        assert_eq!(all, (0..100).map(|n| (n as u32, 10 * n, 10 * n + 10)).collect::<Vec<_>>());
        assert_eq!(medium.next_start(&links), Some(ms(1010)), "packet 100 is in service at 1000 ms");
    }

    #[test]
    fn a_link_waits_for_the_packet_of_the_other_and_then_has_its_turn() {
        let (mut medium, mut links) = pair(Batch::SINGLE);
        arrive(&mut medium, &mut links, 0, 0, 0..4);
        arrive(&mut medium, &mut links, 3, 1, 10..11);
        // It arrives at 3 ms, waits 7 ms for the packet in service, and the others wait for it.
        assert_eq!(delivered(&mut medium, &mut links, 1, 100), [(10, 7, 20)]);
        assert_eq!(delivered(&mut medium, &mut links, 0, 100), [(0, 0, 10), (1, 20, 30), (2, 30, 40), (3, 40, 50)]);
        // After a pause the medium is idle: no wait, and the turn begins with the arrival.
        arrive(&mut medium, &mut links, 200, 0, 20..21);
        assert_eq!(delivered(&mut medium, &mut links, 0, 300), [(20, 0, 210)]);
    }

    #[test]
    fn a_batch_ends_at_each_of_its_limits_and_takes_its_overhead() {
        let whole = Batch { overhead: TimeDelta::from_millis(5), packets: 3, ..Batch::SINGLE };
        let bytes = Batch { packets: 9, bytes: DataSize::from_bytes(3750), ..whole };
        let airtime = Batch { packets: 9, airtime: TimeDelta::from_millis(44), ..whole };
        for batch in [whole, bytes, airtime] {
            let (mut medium, mut links) = pair(batch);
            // The first packet finds the medium idle and goes alone: 5 + 10 ms. Then three at a time take 5 + 30 ms, and
            // all leave at the end.
            arrive(&mut medium, &mut links, 0, 0, 0..8);
            let all = delivered(&mut medium, &mut links, 0, 1000);
            let ends: Vec<i64> = all.iter().map(|(_, _, end)| *end).collect();
            assert_eq!(ends, [15, 50, 50, 50, 85, 85, 85, 100], "{batch:?}");
            let waits: Vec<i64> = all.iter().map(|(_, waited, _)| *waited).collect();
            assert_eq!(waits, [0, 15, 15, 15, 50, 50, 50, 85], "{batch:?}");
        }
        // A packet above the limit of a batch goes alone.
        let small = Batch { packets: 9, bytes: DataSize::from_bytes(100), ..Batch::SINGLE };
        let (mut medium, mut links) = pair(small);
        arrive(&mut medium, &mut links, 0, 0, 0..3);
        assert_eq!(delivered(&mut medium, &mut links, 0, 100), [(0, 0, 10), (1, 10, 20), (2, 20, 30)]);
    }

    #[test]
    fn grants_do_not_depend_on_polling() {
        let run = |prompt: bool| {
            let batch = Batch { overhead: TimeDelta::from_millis(1), packets: 4, ..Batch::SINGLE };
            let law = || CoDel::new(TimeDelta::from_millis(5), TimeDelta::from_millis(100), false);
            let queue = || Box::new(CoDelQueue::with(QueueLimit::Packets(50), law()));
            let (mut medium, mut links) =
                (HalfDuplex::new(vec![0, 1]), vec![link(batch, queue()), link(batch, queue())]);
            let mut outputs = [Vec::new(), Vec::new()];
            for id in 0..400 {
                let at = 5 * i64::from(id);
                if prompt {
                    for now in at - 5..at {
                        medium.advance(ms(now), 0, &mut links);
                        for (link, outputs) in links.iter_mut().zip(&mut outputs) {
                            outputs.extend(core::iter::from_fn(|| link.poll_output(ms(now))));
                        }
                    }
                }
                arrive(&mut medium, &mut links, at, (id % 3 == 0).into(), id..id + 1);
            }
            medium.advance(Time::from_secs(60), 0, &mut links);
            for (link, outputs) in links.iter_mut().zip(&mut outputs) {
                outputs.extend(core::iter::from_fn(|| link.poll_output(Time::from_secs(60))));
            }
            outputs
        };
        let outputs = run(true);
        assert_eq!(outputs.iter().map(Vec::len).sum::<usize>(), 400, "each packet has exactly one outcome");
        let dropped = outputs.iter().flatten().filter(|o| matches!(o, Output::Dropped { .. })).count();
        assert!((20..250).contains(&dropped), "the queues act: {dropped}");
        assert!(outputs.iter().all(|of| of.windows(2).all(|pair| pair[0].due() <= pair[1].due())));
        assert_eq!(run(false), outputs);
    }

    #[test]
    fn a_link_in_an_outage_leaves_the_medium_to_the_other() {
        let (mut medium, mut links) = pair(Batch::SINGLE);
        links[0].change(ms(0), LinkChange::Capacity(Some(Capacity::constant(Rate::ZERO))));
        arrive(&mut medium, &mut links, 0, 0, 0..2);
        arrive(&mut medium, &mut links, 0, 1, 10..12);
        assert_eq!(delivered(&mut medium, &mut links, 1, 50), [(10, 0, 10), (11, 10, 20)]);
        links[0].change(ms(50), LinkChange::Capacity(Some(Capacity::constant(Rate::from_kbps(500)))));
        assert_eq!(delivered(&mut medium, &mut links, 0, 100), [(0, 50, 70), (1, 70, 90)]);
    }

    /// The outage from 0 to 50 ms is in the schedule. The first link transmits when it ends.
    #[test]
    fn a_scheduled_outage_leaves_the_medium_to_the_other() {
        let (mut medium, mut links) = pair(Batch::SINGLE);
        let steps = vec![(ms(0), Rate::ZERO), (ms(20), Rate::ZERO), (ms(50), Rate::from_kbps(1000))];
        let capacity = Capacity::rates(Schedule::new(steps).unwrap(), CapacityEnd::Hold).unwrap();
        links[0].change(ms(0), LinkChange::Capacity(Some(capacity)));
        arrive(&mut medium, &mut links, 0, 0, 0..2);
        arrive(&mut medium, &mut links, 0, 1, 10..12);
        arrive(&mut medium, &mut links, 30, 0, 2..3);
        assert_eq!(delivered(&mut medium, &mut links, 1, 49), [(10, 0, 10), (11, 10, 20)]);
        assert_eq!(delivered(&mut medium, &mut links, 0, 100), [(0, 50, 60), (1, 60, 70), (2, 40, 80)]);
    }
    /// Rates of the first link, kbit/s, each from its time in ms on.
    fn set_rates(links: &mut [Link], steps: &[(i64, u64)]) {
        let steps = steps.iter().map(|(at, kbps)| (ms(*at), Rate::from_kbps(*kbps))).collect();
        let capacity = Capacity::rates(Schedule::new(steps).unwrap(), CapacityEnd::Hold).unwrap();
        links[0].change(ms(0), LinkChange::Capacity(Some(capacity)));
    }

    /// The outage from 5 to 50 ms interrupts a packet after half of its 10 ms. The medium is free at once; the other half
    /// follows when the outage ends.
    #[test]
    fn an_outage_that_interrupts_a_packet_releases_the_medium() {
        let (mut medium, mut links) = pair(Batch::SINGLE);
        set_rates(&mut links, &[(0, 1000), (5, 0), (50, 1000)]);
        arrive(&mut medium, &mut links, 0, 0, 0..2);
        arrive(&mut medium, &mut links, 0, 1, 10..14);
        let second = delivered(&mut medium, &mut links, 1, 100);
        assert_eq!(second, [(10, 5, 15), (11, 15, 25), (12, 25, 35), (13, 35, 45)]);
        assert_eq!(delivered(&mut medium, &mut links, 0, 100), [(0, 0, 55), (1, 55, 65)]);
    }

    /// Packet 0 goes alone. Of the next batch, packet 1 ends before the outage from 25 to 60 ms; packet 2 is begun at 20 ms
    /// and completed from 60 to 65 ms.
    #[test]
    fn an_outage_ends_a_batch_before_the_packet_that_it_would_interrupt() {
        let (mut medium, mut links) = pair(Batch { packets: 3, ..Batch::SINGLE });
        set_rates(&mut links, &[(0, 1000), (25, 0), (60, 1000)]);
        arrive(&mut medium, &mut links, 0, 0, 0..3);
        arrive(&mut medium, &mut links, 22, 1, 10..11);
        assert_eq!(delivered(&mut medium, &mut links, 1, 100), [(10, 3, 35)]);
        assert_eq!(delivered(&mut medium, &mut links, 0, 100), [(0, 0, 10), (1, 10, 20), (2, 20, 65)]);
    }

    /// Windows of 4 ms are too short for a packet of 10 ms: it takes three of them, and the other link has the rest.
    #[test]
    fn a_packet_is_completed_over_several_outages() {
        let (mut medium, mut links) = pair(Batch::SINGLE);
        set_rates(&mut links, &[(0, 1000), (4, 0), (20, 1000), (24, 0), (40, 1000), (44, 0), (60, 1000)]);
        arrive(&mut medium, &mut links, 0, 0, 0..1);
        arrive(&mut medium, &mut links, 6, 1, 10..11);
        arrive(&mut medium, &mut links, 25, 1, 11..12);
        assert_eq!(delivered(&mut medium, &mut links, 1, 100), [(10, 0, 16), (11, 0, 35)]);
        assert_eq!(delivered(&mut medium, &mut links, 0, 100), [(0, 0, 42)]);
    }

    #[test]
    fn a_packet_that_an_endless_outage_interrupts_waits_for_a_change() {
        let (mut medium, mut links) = pair(Batch::SINGLE);
        set_rates(&mut links, &[(0, 1000), (5, 0)]);
        arrive(&mut medium, &mut links, 0, 0, 0..2);
        assert_eq!((delivered(&mut medium, &mut links, 0, 1000), medium.next_start(&links)), (vec![], None));
        links[0].change(ms(1000), LinkChange::Capacity(Some(Capacity::constant(Rate::from_kbps(500)))));
        assert_eq!(delivered(&mut medium, &mut links, 0, 2000), [(0, 0, 1010), (1, 1010, 1030)]);
    }
}
