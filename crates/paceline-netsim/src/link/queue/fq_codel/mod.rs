// SPDX-License-Identifier: MIT OR Apache-2.0
//! FQ-CoDel (RFC 8290): a queue for each flow, served in turn by deficit round robin, each under CoDel. A flow whose queue
//! was empty goes before those with a backlog.
//!
//! A packet belongs to the queue with the number of its flow modulo the number of queues. In the simulator flows are numbered
//! from 0, so that flows share a queue only if there are more of them than queues. A link of real packets gives the hash of
//! the five-tuple as the flow; two flows may then meet in one queue (RFC 8290, section 5.3).

mod fattest;

use super::fifo::Fifo;
use super::{CoDel, Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueEntry, QueueLimit, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind};
use crate::records::DropReason;
use fattest::Fattest;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};
use std::collections::VecDeque;

/// The most packets that one overflow drops: RFC 8290, section 4.1, "up to a maximum of 64 packets".
const OVERFLOW_BATCH: usize = 64;

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "fq-codel",
    summary: "FQ-CoDel, RFC 8290: a queue for each flow in turn, each under CoDel; new flows go first",
    limit: QueueEntry::limit(
        "10240 packets",
        "the level of all queues together above which the longest one loses half of its packets, at most 64 (RFC 8290, \
         sections 4.1 and 5.2.3)",
    ),
    parameters: &[
        Parameter::new("target", ParameterKind::Time(TimeDelta::from_nanos(1), TimeDelta::from_secs(10)), "5 ms")
            .about("the accepted standing delay of each queue (RFC 8290, section 5.2.2)"),
        Parameter::new("interval", ParameterKind::Time(TimeDelta::from_nanos(1), TimeDelta::from_secs(100)), "100 ms")
            .about(
                "the time for which packets must wait longer than the target before one is dropped; about the longest \
             round-trip time (RFC 8290, section 5.2.1)",
            ),
        Parameter::new("queues", ParameterKind::Count(1, 65_536), "1024").about(
            "the number of queues; a flow has the queue of its number, or of its hash in `paceline link`, modulo this \
             (RFC 8290, section 5.2.5, `flows`)",
        ),
        Parameter::new(
            "quantum",
            ParameterKind::Size(DataSize::from_bytes(1), DataSize::from_bytes(1_000_000)),
            "1514 B",
        )
        .about("the bytes that each queue sends in a round (RFC 8290, section 5.2.4)"),
        Parameter::new("ecn", ParameterKind::Flag, "true")
            .about("whether an ECN-capable packet is marked in place of being dropped (RFC 8290, section 5.2.6)"),
        Parameter::optional(
            "ce_threshold",
            ParameterKind::Time(TimeDelta::from_nanos(1), TimeDelta::from_secs(10)),
            "none",
        )
        .about("the delay above which every ECN-capable packet is marked, as for DCTCP (RFC 8290, section 5.2.7)"),
    ],
    build: |setup| {
        let values = setup.values;
        let law = CoDel::new(values.time("target"), values.time("interval"), values.flag("ecn"));
        Box::new(FqCoDel {
            law: law.with_max_packet(setup.mtu),
            ce_threshold: values.optional_time("ce_threshold"),
            quantum: values.size("quantum").as_bytes() as i64,
            queue_count: values.count("queues"),
            limit: LimitCheck::of_queue(setup.limit),
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: DataSize::ZERO,
            packets: 0,
            fattest: None,
        })
    },
};

/// The list that a queue is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Inactive,
    New,
    Old,
}

/// The queue of one flow, or of several that share it.
#[derive(Clone)]
struct FlowQueue {
    law: CoDel,
    fifo: Fifo,
    /// Bytes that it may still send in this round.
    credits: i64,
    list: List,
}

struct FqCoDel {
    /// The control law of an empty queue.
    law: CoDel,
    ce_threshold: Option<TimeDelta>,
    quantum: i64,
    queue_count: u32,
    limit: LimitCheck,
    /// The queues, up to the highest number that a packet had.
    flows: Vec<FlowQueue>,
    /// Numbers of the queues that have become active, and of those that have had a turn.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    bytes: DataSize,
    packets: usize,
    /// The bytes of each queue in order; from the first overflow on.
    fattest: Option<Fattest>,
}

impl FqCoDel {
    /// Returns the number of the queue of a packet, and creates the queue if it does not exist.
    #[inline]
    fn classify(&mut self, packet: &Descriptor) -> u32 {
        let number = u32::from(packet.flow.0) % self.queue_count;
        if self.flows.len() <= number as usize {
            let empty = FlowQueue { law: self.law.clone(), fifo: Fifo::default(), credits: 0, list: List::Inactive };
            self.flows.resize(number as usize + 1, empty);
        }
        number
    }

    /// Adjusts the sums after the queue `number`, which had these bytes and packets, has lost or got packets.
    #[inline]
    fn account(&mut self, number: u32, (bytes, packets): (DataSize, usize)) {
        let fifo = &self.flows[number as usize].fifo;
        self.bytes = self.bytes + fifo.bytes() - bytes;
        self.packets = self.packets + fifo.len() - packets;
        if let Some(fattest) = &mut self.fattest {
            fattest.set(number as usize, fifo.bytes().as_bytes());
        }
    }

    /// Drops half of the packets of the queue with the most bytes, at least one and at most 64, from its head (RFC 8290, section
    /// 4.1).
    #[cold]
    fn drop_from_fattest(&mut self, drops: &mut Drops) {
        let flows = &self.flows;
        let sizes = || flows.iter().map(|flow| flow.fifo.bytes().as_bytes());
        let number = self.fattest.get_or_insert_with(|| Fattest::new(sizes())).first() as u32;
        let fifo = &mut self.flows[number as usize].fifo;
        let before = (fifo.bytes(), fifo.len());
        for _ in 0..(fifo.len() / 2).clamp(1, OVERFLOW_BATCH) {
            if let Some(queued) = fifo.pop() {
                drops.push(queued.packet, DropReason::Overflow);
            }
        }
        self.account(number, before);
    }

    /// Makes every queue inactive. A link does not call an empty discipline, whose `dequeue` would remove the queues from their
    /// lists.
    fn deactivate_all(&mut self) {
        for number in self.new.drain(..).chain(self.old.drain(..)) {
            self.flows[number as usize].list = List::Inactive;
        }
    }

    /// Marks a packet that has waited longer than the threshold of CE.
    #[inline]
    fn mark_above_threshold(&self, now: Time, queued: &mut QueuedPacket) {
        if self.ce_threshold.is_some_and(|most| now - queued.arrived > most) && queued.packet.ecn.is_capable() {
            queued.packet.ecn = Ecn::Ce;
        }
    }
}

impl Discipline for FqCoDel {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        if self.packets == 0 {
            self.deactivate_all();
        }
        let number = self.classify(&packet);
        let flow = &mut self.flows[number as usize];
        let before = (flow.fifo.bytes(), flow.fifo.len());
        flow.fifo.push(now, packet);
        if flow.list == List::Inactive {
            (flow.list, flow.credits) = (List::New, self.quantum);
            self.new.push_back(number);
        }
        self.account(number, before);
        // The packet counts as queued: its own queue may be the longest.
        while self.packets > 0
            && !self.limit.fits(self.bytes.saturating_sub(packet.size), self.packets - 1, packet.size, rate)
        {
            self.drop_from_fattest(drops);
            if drops.as_slice().last().is_some_and(|(last, _)| last.id == packet.id) {
                break;
            }
        }
    }

    fn dequeue(&mut self, now: Time, _: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket> {
        loop {
            let (number, list) = match (self.new.front(), self.old.front()) {
                (Some(number), _) => (*number, List::New),
                (None, Some(number)) => (*number, List::Old),
                (None, None) => return None,
            };
            let lane = if list == List::New { &mut self.new } else { &mut self.old };
            let flow = &mut self.flows[number as usize];
            if flow.credits < 0 {
                flow.credits += self.quantum;
                flow.list = List::Old;
                lane.pop_front();
                self.old.push_back(number);
                continue;
            }
            let fifo = &mut flow.fifo;
            let before = (fifo.bytes(), fifo.len());
            let next = flow.law.dequeue(now, || fifo.pop().map(|head| (head, fifo.bytes())), drops);
            if let Some(queued) = &next {
                flow.credits -= queued.packet.size.as_bytes() as i64;
            } else {
                lane.pop_front();
                flow.list = if list == List::New { List::Old } else { List::Inactive };
            }
            if next.is_none() && list == List::New {
                self.old.push_back(number);
            }
            self.account(number, before);
            if let Some(mut queued) = next {
                self.mark_above_threshold(now, &mut queued);
                return Some(queued);
            }
        }
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit.set(limit);
    }

    fn is_empty(&self) -> bool {
        self.packets == 0
    }

    fn backlog(&self) -> DataSize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
