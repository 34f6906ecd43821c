//! The hop itself: queue, server, wire.

use crate::queue::{Discipline, DropTailLimit, Waiting};
use crate::{Capacity, Jitter, JitterOrder, LossModel, Schedule};
use paceline_units::{DataSize, Ecn, FlowId, RandomStream, Streams, Time, TimeDelta};
use std::collections::VecDeque;

/// What a link knows of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The driver's handle; the link only carries it.
    pub id: u32,
    /// Whose packet it is.
    pub flow: FlowId,
    /// Bytes on this link, headers included.
    pub size: DataSize,
    /// ECN field.
    pub ecn: Ecn,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full.
    Overflow,
    /// Lost on the wire.
    Loss,
    /// Dropped by an active queue discipline.
    Early,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// It reaches the far end.
    Delivered {
        /// The packet, with its ECN field as it leaves.
        packet: Descriptor,
        /// How long it waited before its service began.
        waited: TimeDelta,
        /// When its last bit left the server.
        left: Time,
        /// When it is at the far end.
        due: Time,
    },
    /// It is gone.
    Dropped {
        /// The packet.
        packet: Descriptor,
        /// Why.
        cause: DropCause,
        /// When: on arrival for an overflow, at the far end for a loss.
        due: Time,
        /// When its last bit left the server, if it was served: a loss on the wire.
        left: Option<Time>,
    },
}

/// What a hop is made of.
pub struct LinkConfig {
    /// How fast it serves; `None` is unlimited, and then nobody ever waits.
    pub capacity: Option<Capacity>,
    /// A token bucket of this size in place of a line: so much may pass at once after a pause, as through a shaper
    /// between fast interfaces; `None`: every packet takes its own time. Only where capacity is a rate.
    pub burst: Option<DataSize>,
    /// Who waits and who is dropped.
    pub queue: Box<dyn Discipline>,
    /// Propagation delay, as in force when a packet leaves the server.
    pub delay: Schedule<TimeDelta>,
    /// Added to the delay.
    pub jitter: Option<Jitter>,
    /// Loss on the wire, as in force when a packet leaves the server.
    pub loss: Schedule<LossModel>,
}

/// What of a hop is another from now on. A schedule keeps the times of the world, as in [`LinkConfig`].
#[derive(Clone, Debug)]
pub enum Change {
    /// How fast it serves.
    Capacity(Option<Capacity>),
    /// Propagation delay.
    Delay(Schedule<TimeDelta>),
    /// Loss on the wire.
    Loss(Schedule<LossModel>),
    /// How much may wait.
    Limit(DropTailLimit),
}

/// A hop. Call [`handle_packet`](Self::handle_packet) with times that never go back, and drain
/// [`poll_output`](Self::poll_output) when [`poll_timeout`](Self::poll_timeout) comes.
pub struct Link {
    capacity: Option<Capacity>,
    burst: Option<DataSize>,
    /// With a token bucket: until when the tokens that came are spent.
    spent: Time,
    queue: Box<dyn Discipline>,
    delay: Schedule<TimeDelta>,
    jitter: Option<Jitter>,
    loss: Schedule<LossModel>,
    jitter_random: RandomStream,
    loss_random: RandomStream,
    /// The state of two-state loss; a scheduled change of model keeps it.
    loss_is_bad: bool,
    /// The server is busy until then.
    free: Time,
    /// Served or lost, in order of due time: what waits for its due time to come.
    wire: VecDeque<Output>,
    /// Due time of the last packet put on an order-keeping wire.
    last_due: Time,
    reorders: bool,
    dropped: Vec<Waiting>,
}

impl Link {
    /// A hop that draws its jitter and loss from the streams `<path>/jitter` and `<path>/loss`.
    pub fn new(config: LinkConfig, streams: &Streams, path: &str) -> Self {
        let LinkConfig { capacity, burst, queue, delay, jitter, loss } = config;
        Self {
            capacity,
            burst,
            spent: Time::ZERO,
            queue,
            delay,
            jitter,
            loss,
            jitter_random: streams.stream(&format!("{path}/jitter")),
            loss_random: streams.stream(&format!("{path}/loss")),
            loss_is_bad: false,
            free: Time::ZERO,
            wire: VecDeque::new(),
            last_due: Time::ZERO,
            reorders: jitter.is_some_and(|j| j.order == JitterOrder::Reorder),
            dropped: Vec::new(),
        }
    }

    /// A packet arrives.
    pub fn handle_packet(&mut self, now: Time, packet: Descriptor) {
        let Some(capacity) = &self.capacity else {
            return self.put_on_wire(now, packet, TimeDelta::ZERO);
        };
        let rate = capacity.rate_at(now);
        self.serve_until(now);
        if self.queue.is_empty() {
            self.free = self.free.max(now); // an idle server waited for this packet
        }
        match self.queue.enqueue(now, packet, rate) {
            Ok(()) => self.serve_until(now),
            Err(cause) => self.insert(Output::Dropped { packet, cause, due: now, left: None }),
        }
    }

    /// Changes the hop from `now` on. What was decided stays: the packet in service leaves when it would have left, and
    /// with the delay that it had; those on the wire arrive as they would have. Only a packet that would never leave, for
    /// the hop had come to rest, is served anew. Packets that wait stay, whatever the new limit is.
    pub fn change(&mut self, now: Time, change: Change) {
        self.serve_until(now);
        match change {
            Change::Delay(delay) => self.delay = delay,
            Change::Loss(loss) => self.loss = loss,
            Change::Limit(limit) => self.queue.set_limit(limit),
            Change::Capacity(capacity) => self.change_capacity(now, capacity),
        }
    }

    fn change_capacity(&mut self, now: Time, capacity: Option<Capacity>) {
        // What never leaves is the last on the wire: nothing is served after it.
        let stuck = self.wire.pop_back_if(|last| due(last) == Time::MAX);
        if stuck.is_some() {
            self.free = now;
        }
        if let (Some(burst), Some(old), Some(new)) = (self.burst, &self.capacity, &capacity) {
            // As many tokens as there are, in the time in which the new rate brings them.
            let from = if self.spent == Time::MAX { now } else { lead(old, burst, self.spent, now) };
            if from <= now {
                self.spent = lead(new, old.volume(from, now), Time::ZERO, now);
            }
        }
        self.capacity = capacity;
        if let Some(Output::Delivered { packet, waited, .. }) = stuck {
            let left = if self.capacity.is_some() { self.serve(now, packet.size) } else { now };
            self.free = left;
            self.put_on_wire(left, packet, waited);
        }
        // Nobody waits at an unlimited hop, but for the packet in service.
        let until = if self.capacity.is_some() { now } else { self.free.max(now) };
        self.serve_until(until);
    }

    /// The next packet whose fate is due at `now`; call until `None`.
    #[inline]
    pub fn poll_output(&mut self, now: Time) -> Option<Output> {
        if self.wire.is_empty() || self.reorders {
            self.serve_until(now);
        }
        if due(self.wire.front()?) > now {
            return None;
        }
        let output = self.wire.pop_front();
        self.serve_until(now);
        output
    }

    /// When the next output may be due; [`Time::MAX`] for never.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        // While order is kept, nobody who still waits can come before the first on the wire.
        match self.wire.front() {
            Some(first) if !self.reorders || self.queue.is_empty() => due(first),
            Some(first) => due(first).min(self.free),
            None if self.queue.is_empty() => Time::MAX,
            None => self.free,
        }
    }

    /// Bytes that wait in the queue, as of the last call.
    pub fn backlog(&self) -> DataSize {
        self.queue.backlog()
    }

    /// Begins every service that begins by `now`.
    #[inline]
    fn serve_until(&mut self, now: Time) {
        while self.free <= now && !self.queue.is_empty() {
            let start = self.free;
            let next = self.queue.dequeue(start, &mut self.dropped);
            while let Some(Waiting { packet, .. }) = self.dropped.pop() {
                self.insert(Output::Dropped { packet, cause: DropCause::Early, due: start, left: None });
            }
            let Some(Waiting { packet, arrived }) = next else { break };
            let left = self.serve(start, packet.size);
            self.free = left;
            self.put_on_wire(left, packet, start - arrived);
        }
    }

    /// When a packet whose service begins at `start` has left.
    #[inline]
    fn serve(&mut self, start: Time, size: DataSize) -> Time {
        // Without a capacity only those are served that waited when it went: see `change`.
        let Some(capacity) = &mut self.capacity else { return start };
        let Some(burst) = self.burst else { return capacity.finish(start, size) };
        // Tokens come at the link's rate, and a bucket full of them is a lead of `burst` bytes.
        self.spent = capacity.finish(self.spent.max(lead(capacity, burst, self.spent, start)), size);
        self.spent.max(start)
    }

    fn put_on_wire(&mut self, left: Time, packet: Descriptor, waited: TimeDelta) {
        if left == Time::MAX {
            return self.insert(Output::Delivered { packet, waited, left, due: Time::MAX });
        }
        let mut due = left + *self.delay.at(left);
        if let Some(jitter) = &self.jitter {
            due += jitter.draw(&mut self.jitter_random);
        }
        if !self.reorders {
            // Held back to the instant of the packet before it, and no further: see `JitterOrder::Keep`.
            due = due.max(self.last_due);
            self.last_due = due;
        }
        let output = match self.loss.at(left).draw(&mut self.loss_is_bad, &mut self.loss_random) {
            true => Output::Dropped { packet, cause: DropCause::Loss, due, left: Some(left) },
            false => Output::Delivered { packet, waited, left, due },
        };
        self.insert(output);
    }

    /// Keeps the wire in order of due time, equal times first come first.
    fn insert(&mut self, output: Output) {
        let at = due(&output);
        if self.wire.back().is_none_or(|last| due(last) <= at) {
            self.wire.push_back(output);
        } else {
            let index = self.wire.partition_point(|o| due(o) <= at);
            self.wire.insert(index, output);
        }
    }
}

/// Since when the link could have passed `burst` by `start`, but not before `from`.
fn lead(capacity: &Capacity, burst: DataSize, from: Time, start: Time) -> Time {
    if from >= start || capacity.volume(from, start) <= burst {
        return from;
    }
    let rate = capacity.rate_at(start);
    if !rate.is_zero() {
        // At a constant rate that is it, to the byte of rounding.
        let since = start - burst / rate;
        if since > from && capacity.volume(since, start).as_bytes().abs_diff(burst.as_bytes()) <= 1 {
            return since;
        }
    }
    // The rate has changed: halve the span until a nanosecond is left.
    let (mut early, mut late) = (from, start);
    while early < late {
        let middle = early + (late - early) / 2;
        match capacity.volume(middle, start) > burst {
            true => early = middle + TimeDelta::from_nanos(1),
            false => late = middle,
        }
    }
    early
}

#[inline]
fn due(output: &Output) -> Time {
    match output {
        Output::Delivered { due, .. } | Output::Dropped { due, .. } => *due,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{DropTail, DropTailLimit};
    use paceline_units::{Fraction, Rate};

    fn ms(t: i64) -> TimeDelta {
        TimeDelta::from_millis(t)
    }

    fn link(jitter: Option<Jitter>, loss: f64) -> Link {
        let points = vec![(Time::ZERO, Rate::from_kbps(1000)), (Time::from_millis(500), Rate::from_kbps(300))];
        let config = LinkConfig {
            capacity: Some(Capacity::rates(Schedule::new(points).unwrap(), crate::End::Hold).unwrap()),
            burst: None,
            queue: Box::new(DropTail::new(DropTailLimit::DrainTime(ms(100)))),
            delay: Schedule::new(vec![(Time::ZERO, ms(40)), (Time::from_millis(300), ms(5))]).unwrap(),
            jitter,
            loss: Schedule::constant(LossModel::Bernoulli { probability: Fraction::new(loss).unwrap() }),
        };
        Link::new(config, &Streams::new(1), "test/0")
    }

    fn packet(id: u32) -> Descriptor {
        Descriptor { id, flow: FlowId(0), size: DataSize::from_bytes(1250), ecn: Ecn::NotEct }
    }

    /// Sends 200 packets, one each 6 ms (1.67 Mbps into 1 then 0.3), polling whenever `poll` says so.
    fn run(mut link: Link, poll: impl Fn(u32) -> bool) -> Vec<Output> {
        let mut out = Vec::new();
        for id in 0..200 {
            let now = Time::from_millis(6 * id as i64);
            if poll(id) {
                out.extend(core::iter::from_fn(|| link.poll_output(now)));
            }
            link.handle_packet(now, packet(id));
        }
        loop {
            let next = link.poll_timeout();
            if next == Time::MAX {
                return out;
            }
            out.extend(core::iter::from_fn(|| link.poll_output(next)));
        }
    }

    fn sorted(mut outputs: Vec<Output>) -> Vec<Output> {
        outputs.sort_by_key(|o| match o {
            Output::Delivered { packet, .. } | Output::Dropped { packet, .. } => packet.id,
        });
        outputs
    }

    #[test]
    fn an_empty_link_adds_serialisation_and_delay_only() {
        let mut link = link(None, 0.0);
        link.handle_packet(Time::from_millis(7), packet(1));
        assert_eq!(link.poll_timeout(), Time::from_millis(7 + 10 + 40));
        assert_eq!(link.poll_output(Time::from_millis(56)), None);
        let Some(Output::Delivered { waited, left, due, .. }) = link.poll_output(Time::from_millis(57)) else {
            panic!("delivered when due")
        };
        assert_eq!((waited, left, due), (TimeDelta::ZERO, Time::from_millis(17), Time::from_millis(57)));
        assert_eq!(link.poll_timeout(), Time::MAX);
    }

    #[test]
    fn decisions_do_not_depend_on_when_the_link_is_polled() {
        for order in [None, Some(JitterOrder::Keep), Some(JitterOrder::Reorder)] {
            let jitter = order.map(|order| Jitter { std: ms(5), limit: ms(15), order });
            let often = run(link(jitter, 0.1), |_| true);
            let seldom = run(link(jitter, 0.1), |id| id % 37 == 0);
            assert_eq!(often.len(), 200, "every packet has exactly one fate");
            assert!(often.windows(2).all(|w| due(&w[0]) <= due(&w[1])), "outputs come in order of due time");
            assert_eq!(sorted(often), sorted(seldom));
        }
    }

    /// A line of 1 Mbit/s (a packet of 1250 bytes: 10 ms), 40 ms long, without loss, whose queue holds 100 ms.
    fn plain(burst: Option<DataSize>) -> Link {
        let config = LinkConfig {
            capacity: Some(Capacity::constant(Rate::from_kbps(1000))),
            burst,
            queue: Box::new(DropTail::new(DropTailLimit::DrainTime(ms(100)))),
            delay: Schedule::constant(ms(40)),
            jitter: None,
            loss: Schedule::constant(LossModel::NONE),
        };
        Link::new(config, &Streams::new(1), "test/0")
    }

    fn rate(kbps: u64) -> Change {
        Change::Capacity(Some(Capacity::constant(Rate::from_kbps(kbps))))
    }

    /// When each packet left the server and when it was at the far end, ms; all that are due by `until`.
    fn times(link: &mut Link, until: i64) -> Vec<(i64, i64)> {
        let whole = |t: Time| (t - Time::ZERO).as_nanos() / 1_000_000;
        let outputs = core::iter::from_fn(|| link.poll_output(Time::from_millis(until)));
        let delivered = outputs.filter_map(|o| match o {
            Output::Delivered { left, due, .. } => Some((whole(left), whole(due))),
            Output::Dropped { .. } => None,
        });
        delivered.collect()
    }

    #[test]
    fn a_change_of_capacity_leaves_the_packet_in_service_alone() {
        for seldom in [false, true] {
            let mut link = plain(None);
            (0..4).for_each(|id| link.handle_packet(Time::ZERO, packet(id)));
            let mut told = Vec::new();
            if !seldom {
                told.extend(times(&mut link, 15));
            }
            // The second is in service from 10 to 20 ms; the others take 5 ms each at 2 Mbit/s.
            link.change(Time::from_millis(15), rate(2000));
            told.extend(times(&mut link, 1000));
            assert_eq!(told, [(10, 50), (20, 60), (25, 65), (30, 70)], "polled seldom: {seldom}");
        }
    }

    #[test]
    fn an_outage_without_an_end_ends_with_the_next_change() {
        let mut link = plain(None);
        (0..2).for_each(|id| link.handle_packet(Time::ZERO, packet(id)));
        link.change(Time::from_millis(5), rate(0));
        link.handle_packet(Time::from_millis(6), packet(2));
        assert_eq!(times(&mut link, 100_000), [(10, 50)], "what was in service leaves, and nobody else");
        assert_eq!(link.backlog(), DataSize::from_bytes(1250), "one never leaves the server, one waits");
        link.change(Time::from_secs(200), rate(500));
        assert_eq!(times(&mut link, 300_000), [(200_020, 200_060), (200_040, 200_080)]);
        link.change(Time::from_secs(400), rate(0));
        link.handle_packet(Time::from_secs(400), packet(3));
        link.change(Time::from_secs(401), Change::Capacity(None));
        link.handle_packet(Time::from_secs(402), packet(4));
        assert_eq!(times(&mut link, 500_000), [(401_000, 401_040), (402_000, 402_040)], "unlimited: nobody waits");
    }

    #[test]
    fn nobody_waits_once_there_is_no_capacity_and_order_is_kept() {
        let mut link = plain(None);
        (0..4).for_each(|id| link.handle_packet(Time::ZERO, packet(id)));
        link.change(Time::from_millis(5), Change::Capacity(None));
        link.handle_packet(Time::from_millis(6), packet(4));
        assert_eq!(times(&mut link, 1000), [(10, 50), (10, 50), (10, 50), (10, 50), (6, 50)]);
        // And back: one after the other.
        link.change(Time::from_millis(1000), rate(1000));
        (0..2).for_each(|id| link.handle_packet(Time::from_millis(1000), packet(id)));
        assert_eq!(times(&mut link, 2000), [(1010, 1050), (1020, 1060)]);
    }

    #[test]
    fn a_change_of_delay_holds_for_who_leaves_later_and_order_is_kept() {
        let mut link = plain(None);
        (0..3).for_each(|id| link.handle_packet(Time::ZERO, packet(id)));
        // The first is on the wire, the second in service: both keep the 40 ms.
        link.change(Time::from_millis(12), Change::Delay(Schedule::constant(ms(1))));
        link.handle_packet(Time::from_millis(100), packet(3));
        assert_eq!(times(&mut link, 1000), [(10, 50), (20, 60), (30, 60), (110, 111)]);
    }

    #[test]
    fn a_change_of_loss_strikes_who_leaves_later() {
        let mut link = plain(None);
        (0..3).for_each(|id| link.handle_packet(Time::ZERO, packet(id)));
        let all = LossModel::Bernoulli { probability: Fraction::ONE };
        link.change(Time::from_millis(15), Change::Loss(Schedule::constant(all)));
        assert_eq!(times(&mut link, 500), [(10, 50), (20, 60)]);
        link.change(Time::from_millis(500), Change::Loss(Schedule::constant(LossModel::NONE)));
        link.handle_packet(Time::from_millis(500), packet(3));
        assert_eq!(times(&mut link, 1000), [(510, 550)]);
    }

    #[test]
    fn a_change_of_limit_bounds_who_comes_later_and_follows_capacity() {
        // How many of 30 packets at once have room, the one in service not counted.
        let room = |link: &mut Link, at: i64| {
            let before = link.backlog().as_bytes() / 1250;
            (0..30).for_each(|id| link.handle_packet(Time::from_millis(at), packet(id)));
            (before, link.backlog().as_bytes() / 1250)
        };
        let mut link = plain(None);
        assert_eq!(room(&mut link, 0), (0, 10), "100 ms at 1 Mbit/s");
        link.change(Time::from_millis(1), Change::Limit(DropTailLimit::DrainTime(ms(50))));
        assert_eq!(room(&mut link, 1), (10, 10), "those that wait stay, and nobody joins");
        times(&mut link, 1000);
        assert_eq!(room(&mut link, 1000), (0, 5));
        link.change(Time::from_millis(1000), rate(2000));
        assert_eq!(room(&mut link, 1000), (5, 10), "50 ms at 2 Mbit/s");
        times(&mut link, 2000);
        // In an outage the rate before it counts.
        link.change(Time::from_millis(2000), rate(0));
        link.change(Time::from_millis(2000), Change::Limit(DropTailLimit::DrainTime(ms(20))));
        assert_eq!(room(&mut link, 2000), (0, 4));
    }

    #[test]
    fn a_bucket_keeps_its_tokens_when_the_rate_changes() {
        let mut link = plain(Some(DataSize::from_bytes(5000)));
        // Full at 1 s: four packets at once, and then none are left; 10 ms bring the tokens of one.
        let at = Time::from_millis(1000);
        (0..4).for_each(|id| link.handle_packet(at, packet(id)));
        link.change(Time::from_millis(1020), rate(100));
        // Two packets' worth of tokens came at 1 Mbit/s; the third waits for 1250 bytes at 0.1 Mbit/s: 100 ms.
        (0..3).for_each(|id| link.handle_packet(Time::from_millis(1020), packet(id)));
        let left: Vec<i64> = times(&mut link, 3000).into_iter().map(|(left, _)| left).collect();
        assert_eq!(left, [1000, 1000, 1000, 1000, 1020, 1020, 1120]);
    }

    #[test]
    fn a_bucket_lets_a_burst_through_and_no_more() {
        let config = || LinkConfig {
            capacity: Some(Capacity::constant(Rate::from_kbps(1000))),
            burst: Some(DataSize::from_bytes(5000)),
            queue: Box::new(DropTail::new(DropTailLimit::Packets(50))),
            delay: Schedule::constant(TimeDelta::ZERO),
            jitter: None,
            loss: Schedule::constant(LossModel::NONE),
        };
        let run = |seldom: bool| {
            let mut link = Link::new(config(), &Streams::new(1), "test/0");
            let mut out = Vec::new();
            // Seven packets of 10 ms each at 1 s and at 2 s, one each 11 ms from 3 s on.
            let bursts = (0..14).map(|id| (1000 + 1000 * (id / 7), id));
            for (at, id) in bursts.chain((0..100).map(|n| (3000 + 11 * n, 14 + n))) {
                let now = Time::from_millis(at as i64);
                link.handle_packet(now, packet(id));
                if !seldom {
                    out.extend(core::iter::from_fn(|| link.poll_output(now)));
                }
            }
            out.extend(core::iter::from_fn(|| link.poll_output(Time::from_secs(10))));
            out
        };
        let left: Vec<i64> = run(false)
            .iter()
            .map(|o| match o {
                Output::Delivered { left, .. } => (*left - Time::ZERO).as_nanos() / 1_000_000,
                Output::Dropped { .. } => panic!("there is room for all"),
            })
            .collect();
        assert_eq!(&left[..7], [1000, 1000, 1000, 1000, 1010, 1020, 1030], "5000 bytes at once, then the rate");
        assert_eq!(&left[7..14], [2000, 2000, 2000, 2000, 2010, 2020, 2030]);
        assert!((0..100).all(|n| left[14 + n] == 3000 + 11 * n as i64), "below the rate nobody waits");
        assert_eq!(run(false), run(true), "whenever it is polled");
    }

    #[test]
    fn a_bucket_holds_what_it_holds_whatever_the_rate_was() {
        // Idle at 5 Mbit/s, or at nothing, then 0.5 Mbit/s from 10 s on: 5000 bytes at once, then one packet each 20 ms.
        for before in [5000, 0] {
            let rates = vec![(Time::ZERO, Rate::from_kbps(500)), (Time::from_secs(5), Rate::from_kbps(before))];
            let rates = [rates, vec![(Time::from_secs(10), Rate::from_kbps(500))]].concat();
            let config = LinkConfig {
                capacity: Some(Capacity::rates(Schedule::new(rates).unwrap(), crate::End::Hold).unwrap()),
                burst: Some(DataSize::from_bytes(5000)),
                queue: Box::new(DropTail::new(DropTailLimit::Packets(50))),
                delay: Schedule::constant(TimeDelta::ZERO),
                jitter: None,
                loss: Schedule::constant(LossModel::NONE),
            };
            let mut link = Link::new(config, &Streams::new(1), "test/0");
            let at = Time::from_millis(10_001);
            (0..7).for_each(|id| link.handle_packet(at, packet(id)));
            let outputs = core::iter::from_fn(|| link.poll_output(Time::from_secs(20)));
            let left: Vec<i64> = outputs
                .map(|o| match o {
                    Output::Delivered { left, .. } => ((left - at).as_nanos() + 500_000) / 1_000_000,
                    Output::Dropped { .. } => panic!("there is room for all"),
                })
                .collect();
            assert_eq!(left, [0, 0, 0, 0, 20, 40, 60], "before: {before} kbit/s");
        }
    }

    #[test]
    fn order_is_kept_or_not_as_asked() {
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

    /// How much later than `waited`, service and `least` each packet of a saturated 1 Mbps link is, by when it left:
    /// 1250 bytes every 10 ms, so that the server never rests.
    fn lateness(delay: Schedule<TimeDelta>, jitter: Option<Jitter>, packets: i64) -> Vec<(Time, TimeDelta)> {
        let config = LinkConfig {
            capacity: Some(Capacity::constant(Rate::from_kbps(1000))),
            burst: None,
            queue: Box::new(DropTail::new(DropTailLimit::Packets(50))),
            delay,
            jitter,
            loss: Schedule::constant(LossModel::NONE),
        };
        let mut link = Link::new(config, &Streams::new(1), "test/0");
        for id in 0..20 {
            link.handle_packet(Time::ZERO, packet(id)); // a queue that never empties
        }
        let mut out = Vec::new();
        for n in 1..=packets {
            let now = Time::from_millis(10 * n);
            link.handle_packet(now, packet(n as u32 + 20));
            out.extend(core::iter::from_fn(|| link.poll_output(now)));
        }
        out.iter()
            .map(|o| match o {
                Output::Delivered { left, due, .. } => (*left, *due - *left),
                Output::Dropped { .. } => panic!("nothing is lost here"),
            })
            .collect()
    }

    #[test]
    fn a_fall_of_delay_is_given_back_on_a_saturated_link() {
        let delay = Schedule::new(vec![(Time::ZERO, ms(200)), (Time::from_millis(1005), ms(20))]).unwrap();
        for (left, late) in lateness(delay, None, 300) {
            // The last packet before the fall leaves at 1000 ms and is due at 1200 ms. Those that leave from 1010 to
            // 1180 ms would be due before it, and wait for it.
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
    fn kept_order_adds_little_to_jitter_on_a_saturated_link() {
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
    fn the_queue_bounds_waiting_and_follows_capacity() {
        let outputs = run(link(None, 0.0), |_| true);
        let waited = |o: &Output| match o {
            Output::Delivered { waited, .. } => *waited,
            Output::Dropped { .. } => TimeDelta::ZERO,
        };
        let longest = outputs.iter().map(waited).max().unwrap();
        // 100 ms at 1 Mbps are 10 packets; after the fall to 0.3 Mbps those 10 take up to 333 ms to drain.
        assert!((ms(250)..=ms(345)).contains(&longest), "{longest}");
        let drops = outputs.iter().filter(|o| matches!(o, Output::Dropped { cause: DropCause::Overflow, .. })).count();
        assert!((80..140).contains(&drops), "{drops}");
    }
}
