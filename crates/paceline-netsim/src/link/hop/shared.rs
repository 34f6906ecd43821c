// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server of a link on a shared medium, which grants turns ([`Medium`](crate::link::Medium)).

use super::Link;
use crate::link::medium_plan::Batch;
use crate::link::output::Output;
use crate::link::queue::{Descriptor, LinkRate, QueuedPacket};
use crate::records::DropReason;
use paceline_units::{DataSize, Rate, Time};

/// The server of a link that shares a medium. Its private server never serves: [`Link::free`] is [`Time::MAX`].
pub struct SharedServer {
    batch: Batch,
    /// The time since which the link requests the medium, if it has packets; [`Time::MAX`] if the queue holds them until
    /// the next arrival, or the capacity never serves them.
    pub requested_since: Time,
    /// A packet that has left the queue and did not fit into the last batch, or that an outage interrupted.
    next: Option<QueuedPacket>,
    /// Whether the medium holds packets that have left the queue and that it will transmit again.
    is_unfinished: bool,
    /// The start of service of `next` and the part of it that was transmitted, if an outage interrupted it.
    interrupted: Option<(Time, DataSize)>,
}

impl SharedServer {
    pub fn new(batch: Batch) -> Self {
        Self { batch, requested_since: Time::MAX, next: None, is_unfinished: false, interrupted: None }
    }

    /// Requests the medium from the arrival of a packet on, unless the link does already.
    pub fn handle_arrival(&mut self, now: Time, was_empty: bool) {
        let is_requested = self.next.is_some() || self.is_unfinished || !was_empty && self.requested_since <= now;
        if !is_requested {
            self.requested_since = now; // also in an outage, whose end the next grant finds again
        }
    }
}

impl Link {
    /// Returns the time since which the link requests its shared medium; `None` if it does not.
    pub(in crate::link) fn requested_since(&self) -> Option<Time> {
        let shared = self.shared.as_ref()?;
        let has_packets = shared.next.is_some() || shared.is_unfinished || !self.queue.is_empty();
        (has_packets && shared.requested_since != Time::MAX).then_some(shared.requested_since)
    }

    /// Serves a batch on the shared medium from `from` on, and returns the end of the turn; `None` if nothing was sent,
    /// because the queue dropped or held its packets, or the capacity is zero. A turn ends when an outage begins: the packet
    /// that it interrupts is completed in a later turn.
    pub(in crate::link) fn transmit(&mut self, from: Time) -> Option<Time> {
        let shared = self.shared.as_mut()?;
        if let Some(end) = self.hop.capacity.as_ref().and_then(|capacity| capacity.outage_end(from)) {
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
            let left = self.hop.capacity.as_mut().map_or(end, |capacity| capacity.finish(end, rest));
            let outage = self.hop.capacity.as_ref().and_then(|capacity| capacity.outage_start(from, left));
            let is_over = outage.is_some() || bytes + rest > batch.bytes || left - from > batch.airtime;
            if is_over && !sent.is_empty() {
                next = Some(queued);
                break;
            }
            if let (Some(outage), Some(capacity), Some(shared)) = (outage, &self.hop.capacity, &mut self.shared) {
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

    /// Returns the rate of the link at `now`; `None` in an outage, until the end of which the link requests no medium.
    pub(in crate::link) fn available_rate(&mut self, now: Time) -> Option<Rate> {
        let end = self.hop.capacity.as_ref().and_then(|capacity| capacity.outage_end(now));
        match (end, &mut self.shared) {
            (Some(end), Some(shared)) => {
                shared.requested_since = end;
                None
            }
            _ => Some(LinkRate::at(self.hop.capacity.as_ref(), now).get()),
        }
    }

    /// Requests the medium from `now` on if it holds packets of the link that it will transmit again.
    pub(in crate::link) fn set_unfinished(&mut self, now: Time, is_unfinished: bool) {
        if let Some(shared) = &mut self.shared {
            shared.is_unfinished = is_unfinished;
            if is_unfinished {
                shared.requested_since = shared.requested_since.min(now);
            }
        }
    }

    /// Loses a packet on the shared medium, with its last transmission until `left`.
    pub(in crate::link) fn lose(&mut self, left: Time, packet: Descriptor) {
        let due = left + *self.hop.delay.at(left);
        self.wire.insert(Output::Dropped { packet, reason: DropReason::Loss, due, left: Some(left) });
    }

    /// Removes the next packet of a batch from the queue.
    pub(in crate::link) fn dequeue_shared(&mut self, now: Time) -> Option<QueuedPacket> {
        if self.queue.is_empty() {
            return None;
        }
        let rate = LinkRate::at(self.hop.capacity.as_ref(), now);
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
}
