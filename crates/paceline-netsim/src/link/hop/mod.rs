// SPDX-License-Identifier: MIT OR Apache-2.0
//! The link of one hop: queue, server, wire.

mod shared;

use self::shared::SharedServer;
use super::capacity::Capacity;
use super::delay::JitterOrder;
use super::hop_plan::HopPlan;
use super::loss::LossModel;
use super::output::Output;
use super::queue::{Descriptor, Discipline, Drops, LinkRate, Queue, QueueLimit, QueuedPacket};
use super::rate_step::{RateStep, RateSteps};
use super::schedule::Schedule;
use super::server::Service;
use super::wire::Wire;
use crate::records::DropReason;
use paceline_units::{DataSize, RandomStream, RandomStreams, Time, TimeDelta};

/// A change of one parameter of a link. Schedules use absolute times, as in [`HopPlan`].
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
    /// The hop, with the changes until now.
    hop: HopPlan,
    /// Token bucket: tokens provided before this time are already spent.
    credit_start: Time,
    rate_steps: RateSteps,
    queue: Queue,
    jitter_random: RandomStream,
    loss_random: RandomStream,
    /// State of the loss model; a scheduled change of model keeps it.
    loss_state: u32,
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

impl Link {
    /// Creates the link of a hop. Its random streams are `hop/<id>/jitter`, `hop/<id>/loss` and `hop/<id>/queue`.
    pub fn new(hop: HopPlan, streams: &RandomStreams) -> Self {
        let queue = hop.queue.build(streams, &format!("hop/{}", hop.id), hop.interface_mtu());
        Self::with_queue(hop, queue, streams)
    }

    /// Creates the link of a hop with another queue than that of its plan.
    pub fn with_queue(hop: HopPlan, queue: Box<dyn Discipline>, streams: &RandomStreams) -> Self {
        let reorders = hop.jitter.is_some_and(|j| j.order == JitterOrder::Reorder);
        let Service { rate_step, batch, .. } = hop.server.service;
        Self {
            rate_steps: RateSteps::new(rate_step, hop.capacity.as_ref(), Time::ZERO),
            credit_start: Time::ZERO,
            may_precede_wire: reorders || queue.acts_at_departure() || rate_step == RateStep::DeleteAdd,
            queue: Queue::new(queue),
            jitter_random: streams.stream(&format!("hop/{}/jitter", hop.id)),
            loss_random: streams.stream(&format!("hop/{}/loss", hop.id)),
            loss_state: 0,
            mtu_min: hop.mtu.points().iter().map(|(_, mtu)| *mtu).min().unwrap_or(DataSize::ZERO),
            free: if batch.is_some() { Time::MAX } else { Time::ZERO },
            is_held: false,
            wire: Wire::new(),
            last_due: Time::ZERO,
            reorders,
            drops: Drops::default(),
            shared: batch.map(SharedServer::new),
            hop,
        }
    }

    /// Handles a packet that arrives at `now`. One that is larger than the MTU is dropped at once.
    #[inline]
    pub fn handle_packet(&mut self, now: Time, packet: Descriptor) {
        if packet.size > self.mtu_min && packet.size > *self.hop.mtu.at(now) {
            return self.drop_oversized(now, packet);
        }
        if self.hop.capacity.is_none() && self.shared.is_none() && self.queue.is_empty() {
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
        self.queue.enqueue(now, LinkRate::at(self.hop.capacity.as_ref(), now), packet, &mut self.drops);
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
            LinkChange::Delay(delay) => self.hop.delay = delay,
            LinkChange::Loss(loss) => self.hop.loss = loss,
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

    fn change_capacity(&mut self, now: Time, mut capacity: Option<Capacity>) {
        if self.shared.is_some() {
            self.hop.capacity = capacity;
            return;
        }
        // A packet that never leaves is the last on the wire: nothing is served after it.
        let stuck = self.wire.pop_stuck();
        if stuck.is_some() {
            self.free = now;
        }
        if let (Some(burst), Some(old), Some(new)) =
            (self.hop.server.service.burst, &mut self.hop.capacity, &mut capacity)
        {
            // Keep the number of tokens: move the start to when the new rate would have provided them.
            let from =
                if self.credit_start == Time::MAX { now } else { old.provides_from(burst, self.credit_start, now) };
            if from <= now {
                self.credit_start = new.provides_from(old.volume(from, now), Time::ZERO, now);
            }
        }
        self.hop.capacity = capacity;
        self.rate_steps = RateSteps::new(self.hop.server.service.rate_step, self.hop.capacity.as_ref(), now);
        if self.hop.server.service.rate_step != RateStep::Keep {
            self.replace_bucket(now);
        }
        if let Some(Output::Delivered { packet, waited, .. }) = stuck {
            let left = if self.hop.capacity.is_some() { self.serve(now, packet.size) } else { now };
            self.free = left;
            self.put_on_wire(left, packet, waited);
        }
        // At an unlimited link packets wait only for the packet in service.
        let until = if self.hop.capacity.is_some() || self.is_held { now } else { self.free.max(now) };
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

    /// Begins every service that is due by `now`. Most calls find none.
    #[inline]
    fn serve_until(&mut self, now: Time) {
        if self.rate_steps.next() <= now || (self.free <= now && !self.queue.is_empty()) {
            self.serve_due(now);
        }
    }

    fn serve_due(&mut self, now: Time) {
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
            let rate = LinkRate::at(self.hop.capacity.as_ref(), start);
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
        match self.hop.server.service.rate_step {
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
        if self.hop.server.service.rate_step != RateStep::DeleteAdd {
            return;
        }
        while !self.queue.is_empty() {
            let rate = LinkRate::at(self.hop.capacity.as_ref(), step);
            let next = self.queue.dequeue(step, rate, &mut self.drops);
            self.insert_drops(step);
            let Some(QueuedPacket { packet, .. }) = next else { break };
            self.wire.insert(Output::Dropped { packet, reason: DropReason::Purge, due: step, left: None });
        }
    }

    fn fill_bucket(&mut self, at: Time) {
        if let (Some(burst), Some(capacity)) = (self.hop.server.service.burst, &mut self.hop.capacity) {
            self.credit_start = capacity.provides_from(burst, Time::ZERO, at);
        }
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
        let Some(capacity) = &mut self.hop.capacity else { return start };
        let Some(burst) = self.hop.server.service.burst else { return capacity.finish(start, size) };
        // Tokens arrive at the rate of the link; a full bucket is a credit of `burst` bytes.
        let credit = capacity.provides_from(burst, self.credit_start, start);
        self.credit_start = capacity.finish(self.credit_start.max(credit), size);
        self.credit_start.max(start)
    }

    pub(super) fn put_on_wire(&mut self, left: Time, packet: Descriptor, waited: TimeDelta) {
        if left == Time::MAX {
            return self.wire.insert(Output::Delivered { packet, waited, left, due: Time::MAX });
        }
        let mut due = left + *self.hop.delay.at(left);
        if let Some(jitter) = &self.hop.jitter {
            due += jitter.draw(&mut self.jitter_random);
        }
        if !self.reorders {
            // A packet waits for the arrival of the previous packet, and no longer: see `JitterOrder::Keep`.
            due = due.max(self.last_due);
            self.last_due = due;
        }
        let output = match self.hop.loss.at(left).is_lost(&mut self.loss_state, &mut self.loss_random) {
            true => Output::Dropped { packet, reason: DropReason::Loss, due, left: Some(left) },
            false => Output::Delivered { packet, waited, left, due },
        };
        self.wire.insert(output);
    }
}

#[cfg(test)]
mod tests;
