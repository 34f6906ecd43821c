// SPDX-License-Identifier: MIT OR Apache-2.0
//! A path for the packets of any program, in both directions and in virtual time: for the tests of a stack.
//!
//! ```
//! use paceline_netsim::path::{Direction, Path};
//! use paceline_units::{DataSize, Ecn, Rate, Time, TimeDelta};
//!
//! let mut path = Path::builder().capacity(Rate::from_kbps(1000)).rtt(TimeDelta::from_millis(50)).queue("codel").build(1);
//! for n in 0..10u32 {
//!     path.send(Time::ZERO, Direction::Forward, DataSize::from_bytes(1250), Ecn::NotEct, n);
//! }
//! let mut arrivals = Vec::new();
//! while let Some(now) = path.poll_timeout() {
//!     while let Some(arrived) = path.poll(now) {
//!         arrivals.push((arrived.packet, arrived.at));
//!     }
//! }
//! assert_eq!(arrivals.last(), Some(&(9, Time::from_millis(125)))); // ten times 10 ms, and 25 ms
//! ```
//!
//! The program passes its datagrams to [`send`](Path::send), and gets them back from [`poll`](Path::poll) at the other end; between
//! both it may do anything. Time is what the program says: each call gets it, and it never decreases. The same packets with the same
//! seed have the same fate.

use crate::link::queue::{DISCIPLINES, Descriptor, QueueLimit, QueuePlan};
use crate::link::{Capacity, HopPlan, Link, LinkChange, LossModel, Output, Schedule};
use crate::parameter::Values;
use paceline_units::{DataSize, Dscp, Ecn, FlowId, Fraction, RandomStreams, Rate, Time, TimeDelta};

/// The way of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the sender to the receiver.
    Forward,
    /// Back.
    Reverse,
}

/// Builds a [`Path`]. Without a capacity a direction is unlimited; by default both are, without delay and loss.
#[derive(Clone, Debug)]
pub struct PathBuilder {
    /// The hops, forward and back, for what the methods do not offer.
    pub hops: [HopPlan; 2],
}

impl PathBuilder {
    /// Sets the capacity of the forward direction: a [`Rate`], or any [`Capacity`].
    pub fn capacity(mut self, capacity: impl Into<Capacity>) -> Self {
        self.hops[0].capacity = Some(capacity.into());
        self
    }

    /// Sets the capacity of the way back.
    pub fn reverse_capacity(mut self, capacity: impl Into<Capacity>) -> Self {
        self.hops[1].capacity = Some(capacity.into());
        self
    }

    /// Sets the round-trip time of an empty path, half of it each way.
    pub fn rtt(mut self, rtt: TimeDelta) -> Self {
        for hop in &mut self.hops {
            hop.delay = Schedule::constant(rtt / 2);
        }
        self
    }

    /// Sets the queue discipline of the forward direction by its name in scenarios, such as `fq-codel`, with its own limit.
    ///
    /// # Panics
    /// There is no such discipline.
    pub fn queue(mut self, name: &str) -> Self {
        let names = || DISCIPLINES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        let discipline = DISCIPLINES.iter().find(|entry| entry.name == name);
        let discipline = discipline.unwrap_or_else(|| panic!("`{name}` is no queue discipline: {}", names()));
        let values = Values::new(discipline.parameters, &[]);
        self.hops[0].queue = QueuePlan { discipline, limit: discipline.default_limit(), values };
        self
    }

    /// Sets the limit of the queue of the forward direction: a time at the capacity in force, bytes, or packets.
    pub fn queue_limit(mut self, limit: QueueLimit) -> Self {
        self.hops[0].queue.limit = limit;
        self
    }

    /// Sets the share of packets that the forward direction loses at random.
    ///
    /// # Panics
    /// The share is not from 0 to 1.
    pub fn loss(mut self, share: f64) -> Self {
        let share = Fraction::new(share).unwrap_or_else(|| panic!("the share lost must be from 0 to 1, not {share}"));
        self.hops[0].loss = Schedule::constant(LossModel::Bernoulli(share));
        self
    }

    /// Returns the path. `T` is what the program attaches to a packet: its bytes, or a number by which it finds them.
    pub fn build<T>(self, seed: u64) -> Path<T> {
        let streams = RandomStreams::new(seed);
        let ways = self.hops.map(|hop| Way { link: Link::new(hop, &streams), next: None, stats: WayStats::default() });
        Path { ways, packets: Vec::new(), free: Vec::new() }
    }
}

impl Default for PathBuilder {
    fn default() -> Self {
        let limit = QueueLimit::DrainTime(TimeDelta::from_millis(300));
        Self { hops: ["forward", "reverse"].map(|id| HopPlan::new(id, limit)) }
    }
}

/// A packet at the end of a path.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathArrival<T> {
    /// Its way.
    pub direction: Direction,
    /// The time at which it arrived.
    pub at: Time,
    /// What the program attached.
    pub packet: T,
    /// The ECN field on arrival.
    pub ecn: Ecn,
}

/// What one direction has done so far.
#[derive(Clone, Debug, Default)]
pub struct WayStats {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that were dropped or lost.
    pub dropped: u64,
    /// Departure from the link, size and queuing delay of each packet that arrived.
    served: Vec<(Time, DataSize, TimeDelta)>,
}

impl WayStats {
    /// Returns the rate of the packets that left the link in a span. Packets that are lost on the wire, or that were not polled yet,
    /// do not count: end the span a one-way delay before the last [`poll`](Path::poll).
    pub fn rate(&self, from: Time, to: Time) -> Rate {
        let within = self.served.iter().filter(|(left, ..)| (from..to).contains(left));
        Rate::from_size_and_time(within.map(|(_, size, _)| *size).sum(), to - from)
    }

    /// Returns a percentile of the queuing delay of the packets that were served in a span, from 0 to 100; zero without any.
    pub fn queue_delay(&self, from: Time, to: Time, percent: u8) -> TimeDelta {
        let within = self.served.iter().filter(|(left, ..)| (from..to).contains(left));
        let mut waits: Vec<TimeDelta> = within.map(|(.., wait)| *wait).collect();
        waits.sort_unstable();
        let place = (waits.len() * usize::from(percent.min(100))).div_ceil(100).saturating_sub(1);
        waits.get(place).copied().unwrap_or(TimeDelta::ZERO)
    }
}

struct Way {
    link: Link,
    /// The output that was polled and is not due before that of the other way.
    next: Option<Output>,
    stats: WayStats,
}

/// A path for the packets of a program.
pub struct Path<T> {
    ways: [Way; 2],
    /// What is attached to the packets under way, by handle.
    packets: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> core::fmt::Debug for Path<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Path").field("under_way", &(self.packets.len() - self.free.len())).finish_non_exhaustive()
    }
}

impl Path<()> {
    /// Begins to build a path.
    pub fn builder() -> PathBuilder {
        PathBuilder::default()
    }
}

impl<T> Path<T> {
    /// Sends a packet of this size, headers included.
    pub fn send(&mut self, now: Time, direction: Direction, size: DataSize, ecn: Ecn, packet: T) {
        self.send_as(now, direction, FlowId(0), size, ecn, packet);
    }

    /// Sends a packet of one of several flows, which disciplines such as `fq-codel` keep apart.
    pub fn send_as(&mut self, now: Time, direction: Direction, flow: FlowId, size: DataSize, ecn: Ecn, packet: T) {
        let id = self.free.pop().unwrap_or_else(|| {
            self.packets.push(None);
            self.packets.len() as u32 - 1
        });
        self.packets[id as usize] = Some(packet);
        let way = &mut self.ways[direction as usize];
        way.stats.sent += 1;
        way.link.handle_packet(now, Descriptor { id, flow, size, ecn, dscp: Dscp::DEFAULT });
    }

    /// Returns the next packet that has arrived by `now` at either end. Dropped packets are only counted.
    pub fn poll(&mut self, now: Time) -> Option<PathArrival<T>> {
        loop {
            for way in &mut self.ways {
                way.next = way.next.take().or_else(|| way.link.poll_output(now));
            }
            let due = |way: &Way| way.next.as_ref().map_or(Time::MAX, Output::due);
            let (direction, place) = if due(&self.ways[0]) <= due(&self.ways[1]) {
                (Direction::Forward, 0)
            } else {
                (Direction::Reverse, 1)
            };
            let way = &mut self.ways[place];
            match way.next.take()? {
                Output::Delivered { packet, waited, left, due } => {
                    way.stats.served.push((left, packet.size, waited));
                    let attached = self.remove(packet.id);
                    return Some(PathArrival { direction, at: due, packet: attached?, ecn: packet.ecn });
                }
                Output::Dropped { packet, .. } => {
                    way.stats.dropped += 1;
                    self.remove(packet.id);
                }
            }
        }
    }

    fn remove(&mut self, id: u32) -> Option<T> {
        self.free.push(id);
        self.packets[id as usize].take()
    }

    /// Returns the next time at which [`poll`](Self::poll) may return a packet; `None` if none is under way.
    pub fn poll_timeout(&self) -> Option<Time> {
        let of = |way: &Way| way.next.as_ref().map(Output::due).or_else(|| way.link.poll_timeout());
        self.ways.iter().filter_map(of).min()
    }

    /// Changes a direction from `now` on.
    pub fn change(&mut self, now: Time, direction: Direction, change: LinkChange) {
        self.ways[direction as usize].link.change(now, change);
    }

    /// Returns what a direction has done so far.
    pub fn stats(&self, direction: Direction) -> &WayStats {
        &self.ways[direction as usize].stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::{PacketHead, Registry, Setup};
    use paceline_units::RemoteTime;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const KBPS: fn(u64) -> Rate = Rate::from_kbps;

    /// Calls over a path, with the library's own sender as the stack.
    fn call(mut path: Path<PacketHead>, name: &str, seconds: i64) -> Path<PacketHead> {
        let setup = Setup::new(KBPS(300), KBPS(50), KBPS(10_000));
        let (mut sender, mut receiver) = Registry::standard().build(name, &setup).unwrap().endpoints::<()>(&setup);
        for ms in 0..1000 * seconds {
            let (now, remote) = (Time::from_millis(ms), RemoteTime::from_millis(ms));
            sender.handle_timeout(now);
            if ms % 33 == 0 {
                let bytes = (sender.target() * MS(33)).as_bytes();
                let count = bytes.div_ceil(1200);
                let _ = sender.push_video(now, false, (0..count).map(|_| ((), DataSize::from_bytes(bytes / count))));
            }
            while let Some(sent) = sender.poll_transmit(now) {
                path.send(now, Direction::Forward, sent.size, sent.ecn, sent.head);
            }
            while let Some(arrived) = path.poll(now) {
                receiver.handle_packet(remote, &arrived.packet, DataSize::from_bytes(1200), arrived.ecn);
            }
            receiver.handle_timeout(remote);
            while let Some(report) = receiver.poll_report(remote) {
                sender.handle_report(now, &report);
            }
        }
        path
    }

    /// A controller uses the path, and one that ignores its queue does not pass the same checks.
    #[test]
    fn a_stack_is_judged_by_rate_and_queue() {
        let build =
            || Path::builder().capacity(KBPS(2000)).rtt(MS(50)).queue_limit(QueueLimit::DrainTime(MS(300))).build(1);
        let checks = |name: &str| {
            let path = call(build(), name, 30);
            let stats = path.stats(Direction::Forward);
            let (from, to) = (Time::from_secs(10), Time::from_secs(30));
            (stats.rate(from, to).as_bps_f64() / 2e6, stats.queue_delay(from, to, 95), stats.dropped)
        };
        let (used, queue, dropped) = checks("drc");
        assert!((0.8..=1.0).contains(&used) && queue < MS(120) && dropped == 0, "{used} {queue} {dropped}");
        let (used, queue, dropped) = checks("fixed");
        assert!(used > 0.98 && queue > MS(280) && dropped > 1000, "{used} {queue} {dropped}");
    }

    /// By hand: 1250 B take 10 ms at 1 Mbit/s; half of the packets are lost, and none of the way back.
    #[test]
    fn packets_arrive_in_order_of_time_at_both_ends() {
        let mut path = Path::builder().capacity(KBPS(1000)).rtt(MS(40)).loss(0.5).build(3);
        let size = DataSize::from_bytes(1250);
        for n in 0..20 {
            path.send(Time::ZERO, Direction::Forward, size, Ecn::Ect1, n);
        }
        path.send(Time::ZERO, Direction::Reverse, size, Ecn::NotEct, 100);
        path.change(Time::ZERO, Direction::Reverse, LinkChange::Delay(Schedule::constant(MS(500))));
        path.send(Time::ZERO, Direction::Reverse, size, Ecn::NotEct, 101);
        let mut arrived = Vec::new();
        while let Some(now) = path.poll_timeout() {
            arrived.extend(core::iter::from_fn(|| path.poll(now)));
        }
        assert!(arrived.is_sorted_by_key(|packet| packet.at));
        let back: Vec<_> = arrived.iter().filter(|packet| packet.direction == Direction::Reverse).collect();
        assert_eq!(
            back.iter().map(|p| (p.packet, p.at)).collect::<Vec<_>>(),
            [(100, Time::from_millis(20)), (101, Time::from_millis(500))]
        );
        let there = arrived.iter().filter(|packet| packet.direction == Direction::Forward);
        for packet in there {
            assert_eq!((packet.at, packet.ecn), (Time::from_millis(20 + 10 * (packet.packet + 1)), Ecn::Ect1));
        }
        let waits = |percent| path.stats(Direction::Reverse).queue_delay(Time::ZERO, Time::from_secs(1), percent);
        assert_eq!([waits(0), waits(95), waits(100)], [TimeDelta::ZERO; 3], "no queue without a capacity");
        let served = vec![0, 10, 20].into_iter().map(|ms| (Time::ZERO, size, MS(ms))).collect();
        let stats = WayStats { served, ..WayStats::default() };
        assert_eq!([0, 50, 95].map(|p| stats.queue_delay(Time::ZERO, Time::from_secs(1), p)), [MS(0), MS(10), MS(20)]);
        let stats = path.stats(Direction::Forward);
        assert_eq!((stats.sent, stats.dropped + arrived.len() as u64 - 2), (20, 20));
        assert!((4..=16).contains(&stats.dropped));
        assert_eq!(format!("{path:?}"), "Path { under_way: 0, .. }");
    }

    #[test]
    #[should_panic(expected = "`codle` is no queue discipline: drop-tail, codel")]
    fn unknown_disciplines_are_named() {
        Path::builder().queue("codle");
    }
}
