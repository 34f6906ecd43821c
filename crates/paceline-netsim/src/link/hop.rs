//! The link of one hop: queue, server, wire.

use super::capacity::Capacity;
use super::delay::{Jitter, JitterOrder};
use super::loss::{LossModel, LossProcess};
use super::medium::Batch;
use super::queue::{Descriptor, Discipline, Drops, LinkRate, Queue, QueueLimit, QueuedPacket};
use super::rate_step::{RateStep, RateSteps};
use super::schedule::Schedule;
use super::wire::Wire;
use paceline_records::DropReason;
use paceline_units::{DataSize, RandomStream, RandomStreams, Time, TimeDelta};

/// The outcome for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The packet reaches the far end.
    Delivered {
        /// The packet, with the ECN field that it leaves with.
        packet: Descriptor,
        /// Queuing delay: from arrival to start of service.
        waited: TimeDelta,
        /// The time at which the last bit left the server.
        left: Time,
        /// Arrival time at the far end.
        due: Time,
    },
    /// The link dropped the packet.
    Dropped {
        /// The packet.
        packet: Descriptor,
        /// The reason.
        reason: DropReason,
        /// Time of the drop: at the far end for a loss, otherwise the time at which the queue dropped the packet.
        due: Time,
        /// The time at which the last bit left the server; `None` if the packet was not served. Only losses on the wire
        /// are served.
        left: Option<Time>,
    },
}

impl Output {
    /// Returns the packet.
    pub fn packet(&self) -> &Descriptor {
        match self {
            Self::Delivered { packet, .. } | Self::Dropped { packet, .. } => packet,
        }
    }

    /// Returns the time of the outcome.
    #[inline]
    pub fn due(&self) -> Time {
        match self {
            Self::Delivered { due, .. } | Self::Dropped { due, .. } => *due,
        }
    }
}

/// The configuration of a link.
pub struct LinkConfig {
    /// Rate of service over time; `None` means unlimited, and packets never wait.
    pub capacity: Option<Capacity>,
    /// Size of a token bucket that replaces serial transmission: after an idle period this much passes at once, as
    /// through a shaper between fast interfaces. `None`: each packet takes its serialisation time. Requires a capacity
    /// of rates.
    pub burst: Option<DataSize>,
    /// What a change of the rate does to the token bucket and the queue.
    pub rate_step: RateStep,
    /// The queue discipline.
    pub queue: Box<dyn Discipline>,
    /// Propagation delay; the value in force when a packet leaves the server applies.
    pub delay: Schedule<TimeDelta>,
    /// Jitter, added to the propagation delay.
    pub jitter: Option<Jitter>,
    /// Loss on the wire; the model in force when a packet leaves the server applies.
    pub loss: Schedule<LossModel>,
    /// Size of the largest packet that it carries, headers included; larger ones are dropped. The value in force when a
    /// packet arrives applies.
    pub mtu: Schedule<DataSize>,
    /// What the link transmits in one turn on a medium that it shares with others; `None` for a server of its own.
    /// Requires a capacity of rates, without a token bucket. A [`Medium`](super::Medium) grants the turns.
    pub batch: Option<Batch>,
}

/// A change of one parameter of a link. Schedules use absolute times, as in [`LinkConfig`].
#[derive(Clone, Debug)]
pub enum LinkChange {
    /// Sets the capacity.
    Capacity(Option<Capacity>),
    /// Sets the propagation delay.
    Delay(Schedule<TimeDelta>),
    /// Sets the loss on the wire.
    Loss(Schedule<LossModel>),
    /// Sets the queue limit.
    Limit(QueueLimit),
}

/// The link of one hop. Call [`handle_packet`](Self::handle_packet) with times that never decrease, and
/// [`poll_output`](Self::poll_output) until `None` at the time that [`poll_timeout`](Self::poll_timeout) returns.
pub struct Link {
    capacity: Option<Capacity>,
    burst: Option<DataSize>,
    /// Token bucket: tokens provided before this time are already spent.
    credit_start: Time,
    rate_step: RateStep,
    rate_steps: RateSteps,
    queue: Queue,
    delay: Schedule<TimeDelta>,
    jitter: Option<Jitter>,
    loss: Schedule<LossModel>,
    jitter_random: RandomStream,
    loss_random: RandomStream,
    /// State of the loss model; a scheduled change of model keeps it.
    loss_state: u32,
    mtu: Schedule<DataSize>,
    /// The smallest MTU of the schedule. Packets up to this size always pass.
    mtu_min: DataSize,
    /// The server is busy until this time, or calls the queue again at this time; [`Time::MAX`] if the packet in service
    /// never leaves, or the queue holds its packets until the next arrival.
    free: Time,
    /// Whether the server is idle because the queue holds its packets.
    is_held: bool,
    wire: Wire,
    /// Due time of the last packet on a wire that keeps the order.
    last_due: Time,
    reorders: bool,
    /// Whether a waiting packet may become an output before the first one on the wire.
    may_precede_wire: bool,
    drops: Drops,
    shared: Option<SharedServer>,
}

/// The server of a link that shares a medium. Its private server never serves: [`Link::free`] is [`Time::MAX`].
struct SharedServer {
    batch: Batch,
    /// The time since which the link requests the medium, if it has packets; [`Time::MAX`] if the queue holds them until
    /// the next arrival, or the capacity never serves them.
    requested_since: Time,
    /// A packet that has left the queue and did not fit into the last batch, or that an outage interrupted.
    next: Option<QueuedPacket>,
    /// The start of service of `next` and the part of it that was transmitted, if an outage interrupted it.
    interrupted: Option<(Time, DataSize)>,
}

impl Link {
    /// Creates a link that draws jitter and loss from the streams `<path>/jitter` and `<path>/loss`.
    pub fn new(config: LinkConfig, streams: &RandomStreams, path: &str) -> Self {
        let LinkConfig { capacity, burst, rate_step, queue, delay, jitter, loss, mtu, batch } = config;
        let reorders = jitter.is_some_and(|j| j.order == JitterOrder::Reorder);
        Self {
            rate_step,
            rate_steps: RateSteps::new(rate_step, capacity.as_ref(), Time::ZERO),
            capacity,
            burst,
            credit_start: Time::ZERO,
            may_precede_wire: reorders || queue.acts_at_departure() || rate_step == RateStep::DeleteAdd,
            queue: Queue::new(queue),
            delay,
            jitter,
            loss,
            jitter_random: streams.stream(&format!("{path}/jitter")),
            loss_random: streams.stream(&format!("{path}/loss")),
            loss_state: 0,
            mtu_min: mtu.points().iter().map(|(_, mtu)| *mtu).min().unwrap_or(DataSize::ZERO),
            mtu,
            free: if batch.is_some() { Time::MAX } else { Time::ZERO },
            is_held: false,
            wire: Wire::new(),
            last_due: Time::ZERO,
            reorders,
            drops: Drops::default(),
            shared: batch.map(|batch| SharedServer {
                batch,
                requested_since: Time::MAX,
                next: None,
                interrupted: None,
            }),
        }
    }

    /// Handles a packet that arrives at `now`. One that is larger than the MTU is dropped at once.
    pub fn handle_packet(&mut self, now: Time, packet: Descriptor) {
        if packet.size > self.mtu_min && packet.size > *self.mtu.at(now) {
            return self.drop_oversized(now, packet);
        }
        if self.capacity.is_none() && self.shared.is_none() && self.queue.is_empty() {
            return self.put_on_wire(now, packet, TimeDelta::ZERO);
        }
        self.serve_until(now);
        if self.is_held || self.queue.is_empty() {
            // An idle server begins no earlier than the arrival.
            self.free = if self.is_held { now } else { self.free.max(now) };
            self.is_held = false;
        }
        if let Some(shared) = &mut self.shared {
            shared.handle_arrival(now, self.queue.is_empty());
        }
        self.queue.enqueue(now, LinkRate::at(self.capacity.as_ref(), now), packet, &mut self.drops);
        self.insert_drops(now);
        self.serve_until(now);
    }

    #[cold]
    fn drop_oversized(&mut self, now: Time, packet: Descriptor) {
        self.serve_until(now); // the outputs that are due before this one come first
        self.wire.insert(Output::Dropped { packet, reason: DropReason::Mtu, due: now, left: None });
    }

    /// Changes the link from `now` on. Decisions already made stay: the packet in service keeps its departure time and
    /// delay, and packets on the wire keep their arrival times. Only a packet that would never leave, because the link
    /// had no capacity, is served again. Waiting packets stay in the queue, whatever the new limit is.
    pub fn change(&mut self, now: Time, change: LinkChange) {
        self.serve_until(now);
        match change {
            LinkChange::Delay(delay) => self.delay = delay,
            LinkChange::Loss(loss) => self.loss = loss,
            LinkChange::Limit(limit) => self.queue.discipline().set_limit(limit),
            LinkChange::Capacity(capacity) => self.change_capacity(now, capacity),
        }
        if let Some(shared) = &mut self.shared {
            shared.requested_since = shared.requested_since.min(now);
        } else if self.is_held {
            self.free = now; // the queue may release its packets earlier or later now
            self.serve_until(now);
        }
    }

    fn change_capacity(&mut self, now: Time, capacity: Option<Capacity>) {
        if self.shared.is_some() {
            self.capacity = capacity;
            return;
        }
        // A packet that never leaves is the last on the wire: nothing is served after it.
        let stuck = self.wire.pop_stuck();
        if stuck.is_some() {
            self.free = now;
        }
        if let (Some(burst), Some(old), Some(new)) = (self.burst, &self.capacity, &capacity) {
            // Keep the number of tokens: move the start to when the new rate would have provided them.
            let from =
                if self.credit_start == Time::MAX { now } else { old.provides_from(burst, self.credit_start, now) };
            if from <= now {
                self.credit_start = new.provides_from(old.volume(from, now), Time::ZERO, now);
            }
        }
        self.capacity = capacity;
        self.rate_steps = RateSteps::new(self.rate_step, self.capacity.as_ref(), now);
        if self.rate_step != RateStep::Keep {
            self.replace_bucket(now);
        }
        if let Some(Output::Delivered { packet, waited, .. }) = stuck {
            let left = if self.capacity.is_some() { self.serve(now, packet.size) } else { now };
            self.free = left;
            self.put_on_wire(left, packet, waited);
        }
        // At an unlimited link packets wait only for the packet in service.
        let until = if self.capacity.is_some() || self.is_held { now } else { self.free.max(now) };
        self.serve_until(until);
    }

    /// Returns the next output that is due by `now`. Call until `None`.
    #[inline]
    pub fn poll_output(&mut self, now: Time) -> Option<Output> {
        if self.wire.is_empty() || self.may_precede_wire {
            self.serve_until(now);
        }
        if self.wire.first_due() > now {
            return None;
        }
        let output = self.wire.pop_first();
        self.serve_until(now);
        output
    }

    /// Returns the time at which the next output may be due; `None` for never.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        let mut next = self.wire.first_due();
        if (self.wire.is_empty() || self.may_precede_wire) && !self.queue.is_empty() {
            next = next.min(self.free).min(self.rate_steps.next());
        }
        (next != Time::MAX).then_some(next)
    }

    /// Returns the bytes in the queue, as of the last call.
    pub fn backlog(&self) -> DataSize {
        self.queue.backlog()
    }

    /// Begins every service that is due by `now`.
    #[inline]
    fn serve_until(&mut self, now: Time) {
        loop {
            let step = self.rate_steps.next();
            if step <= now && (self.queue.is_empty() || step <= self.free) {
                self.rate_steps.advance();
                self.replace_bucket(step);
                continue;
            }
            if self.free > now || self.queue.is_empty() {
                return;
            }
            let start = self.free;
            let rate = LinkRate::at(self.capacity.as_ref(), start);
            let next = self.queue.dequeue(start, rate, &mut self.drops);
            self.insert_drops(start);
            let Some(QueuedPacket { packet, arrived }) = next else {
                self.hold(start);
                continue;
            };
            self.is_held = false;
            let left = self.serve(start, packet.size);
            let step = self.rate_steps.next();
            if left > step {
                self.interrupt(step, packet, start - arrived);
                continue;
            }
            self.free = left;
            self.put_on_wire(left, packet, start - arrived);
        }
    }

    /// A packet would still wait for tokens when the rate changes at `step`. The new bucket is full, so the packet leaves at
    /// once, or it is lost with the queue.
    #[cold]
    fn interrupt(&mut self, step: Time, packet: Descriptor, waited: TimeDelta) {
        self.free = step;
        match self.rate_step {
            RateStep::DeleteAdd => {
                self.wire.insert(Output::Dropped { packet, reason: DropReason::Purge, due: step, left: None });
            }
            RateStep::Change | RateStep::Keep => {
                self.rate_steps.advance();
                self.fill_bucket(step);
                let left = self.serve(step, packet.size);
                self.put_on_wire(left, packet, waited);
            }
        }
    }

    /// Fills the bucket at a change of the rate and, if the queue is replaced, drops the waiting packets.
    #[cold]
    fn replace_bucket(&mut self, step: Time) {
        self.fill_bucket(step);
        if self.rate_step != RateStep::DeleteAdd {
            return;
        }
        while !self.queue.is_empty() {
            let rate = LinkRate::at(self.capacity.as_ref(), step);
            let next = self.queue.dequeue(step, rate, &mut self.drops);
            self.insert_drops(step);
            let Some(QueuedPacket { packet, .. }) = next else { break };
            self.wire.insert(Output::Dropped { packet, reason: DropReason::Purge, due: step, left: None });
        }
    }

    /// Fills the token bucket at `at`.
    fn fill_bucket(&mut self, at: Time) {
        if let (Some(burst), Some(capacity)) = (self.burst, &self.capacity) {
            self.credit_start = capacity.provides_from(burst, Time::ZERO, at);
        }
    }

    /// Returns the time since which the link requests its shared medium; `None` if it does not.
    pub(super) fn requested_since(&self) -> Option<Time> {
        let shared = self.shared.as_ref()?;
        let has_packets = shared.next.is_some() || !self.queue.is_empty();
        (has_packets && shared.requested_since != Time::MAX).then_some(shared.requested_since)
    }

    /// Serves a batch on the shared medium from `from` on, and returns the end of the turn; `None` if nothing was sent,
    /// because the queue dropped or held its packets, or the capacity is zero. A turn ends when an outage begins: the packet
    /// that it interrupts is completed in a later turn.
    pub(super) fn transmit(&mut self, from: Time) -> Option<Time> {
        let shared = self.shared.as_mut()?;
        if let Some(end) = self.capacity.as_ref().and_then(|capacity| capacity.outage_end(from)) {
            shared.requested_since = end; // the others use the medium until then
            return None;
        }
        let (batch, mut next, mut interrupted) = (shared.batch, shared.next.take(), shared.interrupted.take());
        let mut end = from + batch.overhead;
        let (mut bytes, mut sent) = (DataSize::ZERO, Vec::new());
        while sent.len() < batch.packets as usize {
            let Some(queued) = next.take().or_else(|| self.dequeue_shared(from)) else { break };
            let (began, done) = interrupted.take().unwrap_or((from, DataSize::ZERO));
            let rest = queued.packet.size - done;
            let left = self.capacity.as_mut().map_or(end, |capacity| capacity.finish(end, rest));
            let outage = self.capacity.as_ref().and_then(|capacity| capacity.outage_start(from, left));
            let is_over = outage.is_some() || bytes + rest > batch.bytes || left - from > batch.airtime;
            if is_over && !sent.is_empty() {
                next = Some(queued);
                break;
            }
            if let (Some(outage), Some(capacity), Some(shared)) = (outage, &self.capacity, &mut self.shared) {
                shared.requested_since = capacity.outage_end(outage).unwrap_or(outage);
                (shared.next, shared.interrupted) = (Some(queued), Some((began, done + capacity.volume(end, outage))));
                return Some(outage);
            }
            bytes += rest;
            end = left;
            sent.push((queued.packet, began - queued.arrived));
        }
        if let Some(shared) = &mut self.shared {
            shared.next = next;
        }
        if sent.is_empty() {
            return None;
        }
        sent.into_iter().for_each(|(packet, waited)| self.put_on_wire(end, packet, waited));
        Some(end)
    }

    /// Removes the next packet of a batch from the queue.
    fn dequeue_shared(&mut self, now: Time) -> Option<QueuedPacket> {
        if self.queue.is_empty() {
            return None;
        }
        let rate = LinkRate::at(self.capacity.as_ref(), now);
        let next = self.queue.dequeue(now, rate, &mut self.drops);
        self.insert_drops(now);
        if next.is_none()
            && !self.queue.is_empty()
            && let Some(shared) = &mut self.shared
        {
            shared.requested_since = self.queue.discipline().next_time(now).unwrap_or(Time::MAX);
            assert!(shared.requested_since > now, "a queue that holds its packets at {now} must name a later time");
        }
        next
    }

    /// Lets an idle server wait until the queue requests the next call.
    #[cold]
    fn hold(&mut self, start: Time) {
        self.is_held = !self.queue.is_empty();
        if self.is_held {
            self.free = self.queue.discipline().next_time(start).unwrap_or(Time::MAX);
            assert!(self.free > start, "a queue that holds its packets at {start} must name a later time");
        }
    }

    /// Moves the packets that the queue dropped at `at` to the outputs, in order.
    #[inline]
    fn insert_drops(&mut self, at: Time) {
        if self.drops.is_empty() {
            return;
        }
        let mut drops = std::mem::take(&mut self.drops);
        for (packet, reason) in drops.drain() {
            self.wire.insert(Output::Dropped { packet, reason, due: at, left: None });
        }
        self.drops = drops;
    }

    /// Returns the time at which a packet whose service begins at `start` has left the server.
    #[inline]
    fn serve(&mut self, start: Time, size: DataSize) -> Time {
        // Without a capacity, only packets that waited when it was removed are served: see `change`.
        let Some(capacity) = &mut self.capacity else { return start };
        let Some(burst) = self.burst else { return capacity.finish(start, size) };
        // Tokens arrive at the rate of the link; a full bucket is a credit of `burst` bytes.
        let credit = capacity.provides_from(burst, self.credit_start, start);
        self.credit_start = capacity.finish(self.credit_start.max(credit), size);
        self.credit_start.max(start)
    }

    fn put_on_wire(&mut self, left: Time, packet: Descriptor, waited: TimeDelta) {
        if left == Time::MAX {
            return self.wire.insert(Output::Delivered { packet, waited, left, due: Time::MAX });
        }
        let mut due = left + *self.delay.at(left);
        if let Some(jitter) = &self.jitter {
            due += jitter.draw(&mut self.jitter_random);
        }
        if !self.reorders {
            // A packet waits for the arrival of the previous packet, and no longer: see `JitterOrder::Keep`.
            due = due.max(self.last_due);
            self.last_due = due;
        }
        let output = match self.loss.at(left).is_lost(&mut self.loss_state, &mut self.loss_random) {
            true => Output::Dropped { packet, reason: DropReason::Loss, due, left: Some(left) },
            false => Output::Delivered { packet, waited, left, due },
        };
        self.wire.insert(output);
    }
}

impl SharedServer {
    /// Requests the medium from the arrival of a packet on, unless the link does already.
    fn handle_arrival(&mut self, now: Time, was_empty: bool) {
        let is_requested = self.next.is_some() || !was_empty && self.requested_since <= now;
        if !is_requested {
            self.requested_since = now; // also in an outage, whose end the next grant finds again
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::queue::DropTail;
    use crate::link::{CapacityEnd, LossModel, MTU};
    use paceline_units::{Dscp, Ecn, FlowId, Fraction, Rate};

    fn ms(t: i64) -> TimeDelta {
        TimeDelta::from_millis(t)
    }

    fn kbps(steps: &[(i64, u64)]) -> Capacity {
        let points = steps.iter().map(|(at, kbps)| (Time::from_millis(*at), Rate::from_kbps(*kbps))).collect();
        Capacity::rates(Schedule::new(points).unwrap(), CapacityEnd::Hold).unwrap()
    }

    /// A line of 1 Mbit/s (a packet of 1250 bytes takes 10 ms) with 40 ms delay and a queue of 100 ms.
    fn config() -> LinkConfig {
        LinkConfig {
            capacity: Some(kbps(&[(0, 1000)])),
            burst: None,
            rate_step: RateStep::Keep,
            queue: Box::new(DropTail::new(QueueLimit::DrainTime(ms(100)))),
            delay: Schedule::constant(ms(40)),
            jitter: None,
            loss: Schedule::constant(LossModel::NONE),
            mtu: Schedule::constant(MTU),
            batch: None,
        }
    }

    /// The same line without delay, behind a token bucket of 5000 bytes and with a queue of 50 packets.
    fn bucket() -> LinkConfig {
        let queue = Box::new(DropTail::new(QueueLimit::Packets(50)));
        LinkConfig { burst: Some(DataSize::from_bytes(5000)), queue, delay: Schedule::constant(ms(0)), ..config() }
    }

    fn build(config: LinkConfig) -> Link {
        Link::new(config, &RandomStreams::new(1), "test/0")
    }

    fn link(jitter: Option<Jitter>, loss: f64) -> Link {
        build(LinkConfig {
            capacity: Some(kbps(&[(0, 1000), (500, 300)])),
            delay: Schedule::new(vec![(Time::ZERO, ms(40)), (Time::from_millis(300), ms(5))]).unwrap(),
            jitter,
            loss: Schedule::constant(LossModel::bernoulli(Fraction::new(loss).unwrap())),
            ..config()
        })
    }

    fn packet(id: u32) -> Descriptor {
        Descriptor { id, flow: FlowId(0), size: DataSize::from_bytes(1250), ecn: Ecn::NotEct, dscp: Dscp::DEFAULT }
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
        let all = LossModel::bernoulli(Fraction::ONE);
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
        let mut link = build(LinkConfig { burst: Some(DataSize::from_bytes(5000)), ..config() });
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
            let mut link = build(LinkConfig { capacity: Some(kbps(rates)), rate_step, ..bucket() });
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
            let mut link = build(LinkConfig { capacity, ..bucket() });
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
            let mut link = build(LinkConfig { mtu: Schedule::new(points.clone()).unwrap(), ..config() });
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
        let mut link = build(LinkConfig { capacity: None, mtu, ..config() });
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
        let mut link = build(LinkConfig { burst: None, delay, jitter, ..bucket() });
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
        let drops =
            outputs.iter().filter(|o| matches!(o, Output::Dropped { reason: DropReason::Overflow, .. })).count();
        assert!((80..140).contains(&drops), "{drops}");
    }
}
