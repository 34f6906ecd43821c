// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queue disciplines: which packets wait, which are dropped, which is served next.
//!
//! To add one: a file here with a [`QueueEntry`], and a line in [`DISCIPLINES`].

mod classes;
mod codel;
#[cfg(test)]
mod conformance;
mod drop_tail;
mod drops;
mod drr;
mod dual_pi2;
#[cfg(test)]
mod expiry;
mod fifo;
mod fq_codel;
mod limit;
mod pie;
mod policer;
mod priority;
mod red;
mod registry;
mod single;
mod srtcm;
mod step;
mod trtcm;
mod update_timer;

pub use codel::{CoDel, CoDelQueue};
pub use drop_tail::DropTail;
pub use drops::Drops;
pub use limit::{LimitCheck, QueueLimit};
pub use registry::{DISCIPLINES, QueueEntry, QueuePlan, QueueSetup};
pub use single::{Aqm, Single};

use super::capacity::Capacity;
use paceline_units::{DataSize, Dscp, Ecn, FlowId, Rate, Time};
use std::any::Any;

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket {
    pub packet: Descriptor,
    /// Arrival time.
    pub arrived: Time,
}

/// A queue discipline. It decides from arrival times, the rate of the link and its own random stream, and reads no
/// clock.
///
/// The link calls [`enqueue`](Self::enqueue) once per arriving packet and [`dequeue`](Self::dequeue) each time it can
/// serve one, with times that never decrease and that do not depend on how often the link is polled. The packet in service
/// is not in the queue. To mark an ECN-capable packet, set its `ecn` field to [`Ecn::Ce`] before or as it leaves.
///
/// Every packet that enters leaves exactly once: as a result of `dequeue`, or through `drops`.
pub trait Discipline: Any + Send {
    /// Handles a packet that arrives at `now`: queues it, or drops it. It may drop other packets as well.
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops);

    /// Returns the packet to serve at `now`, and may drop others. `None` from a queue that is not empty holds its
    /// packets: the link calls again at [`next_time`](Self::next_time), or after the next arrival if that is earlier. The
    /// link calls this only while the queue is not empty.
    fn dequeue(&mut self, now: Time, rate: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket>;

    /// Returns the time, later than `now`, at which a queue that holds its packets at `now` requests the next call;
    /// `None` for not before the next arrival. The default is for disciplines that never hold packets.
    fn next_time(&self, now: Time) -> Option<Time> {
        let _ = now;
        None
    }

    /// Returns whether `dequeue` may drop or hold packets; the same for the life of the queue. The link then calls at the
    /// time of each service. Otherwise it may call later, with the same `now`, which costs fewer events.
    fn acts_at_departure(&self) -> bool {
        true
    }

    /// Sets the limit for later arrivals. Waiting packets stay.
    fn set_limit(&mut self, limit: QueueLimit);

    /// Returns whether the queue is empty.
    fn is_empty(&self) -> bool;

    /// Returns the bytes in the queue.
    fn backlog(&self) -> DataSize;
}

/// The queue of a link. Most queues are drop-tail, which is called without a virtual call.
pub(super) enum Queue {
    DropTail(DropTail),
    Other(Box<dyn Discipline>),
}

impl Queue {
    pub fn new(discipline: Box<dyn Discipline>) -> Self {
        let any: &dyn Any = &*discipline;
        match any.downcast_ref::<DropTail>() {
            Some(drop_tail) => Self::DropTail(drop_tail.clone()),
            None => Self::Other(discipline),
        }
    }

    #[inline(always)]
    pub fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, rate, packet, drops),
            Self::Other(queue) => queue.enqueue(now, rate, packet, drops),
        }
    }

    #[inline]
    pub fn dequeue(&mut self, now: Time, rate: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket> {
        match self {
            Self::DropTail(queue) => queue.dequeue(now, rate, drops),
            Self::Other(queue) => queue.dequeue(now, rate, drops),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::DropTail(queue) => queue.is_empty(),
            Self::Other(queue) => queue.is_empty(),
        }
    }

    /// Returns the queue for calls that are rare.
    pub fn discipline(&mut self) -> &mut dyn Discipline {
        match self {
            Self::DropTail(queue) => queue,
            Self::Other(queue) => &mut **queue,
        }
    }

    /// Returns the bytes in the queue.
    pub fn backlog(&self) -> DataSize {
        match self {
            Self::DropTail(queue) => queue.backlog(),
            Self::Other(queue) => queue.backlog(),
        }
    }
}

/// The rate of the link at the time of a call, computed only if the discipline reads it.
#[derive(Clone, Copy, Debug)]
pub struct LinkRate<'a> {
    capacity: Option<&'a Capacity>,
    now: Time,
}

impl<'a> LinkRate<'a> {
    /// Returns the rate of a capacity at `now`; without capacity the link is unlimited.
    #[inline]
    pub fn at(capacity: Option<&'a Capacity>, now: Time) -> Self {
        Self { capacity, now }
    }

    /// Returns the rate: zero in an outage, [`Rate::MAX`] if the link is unlimited.
    #[inline]
    pub fn get(self) -> Rate {
        self.capacity.map_or(Rate::MAX, |capacity| capacity.rate_at(self.now))
    }
}

/// The properties of a packet that a link needs. The driver keeps the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Handle of the driver; the link does not interpret it.
    pub id: u32,
    /// The flow of the packet, by which disciplines classify. Of a packet whose flow the driver does not know, it is a hash of
    /// the five-tuple.
    pub flow: FlowId,
    /// Size on this link, headers included.
    pub size: DataSize,
    /// ECN field.
    pub ecn: Ecn,
    /// Differentiated Services codepoint.
    pub dscp: Dscp,
}

#[cfg(test)]
pub(crate) mod testing {
    //! Helpers of the tests of every discipline.

    use super::*;
    use crate::link::MTU;
    use crate::parameter::{Value, Values};
    use crate::records::DropReason;
    use paceline_units::RandomStreams;

    /// Returns a packet of flow 0 with 1250 bytes.
    pub fn packet(id: u32, ecn: Ecn) -> Descriptor {
        Descriptor { id, flow: FlowId(0), size: DataSize::from_bytes(1250), ecn, dscp: Dscp::DEFAULT }
    }

    /// Creates a queue with a limit in packets.
    pub fn build(discipline: &'static QueueEntry, limit: u32, given: &[(&str, Value)]) -> Box<dyn Discipline> {
        let (limit, values) = (QueueLimit::Packets(limit), Values::new(discipline.parameters, given));
        QueuePlan { discipline, limit, values }.build(&RandomStreams::new(1), "hop/test", MTU)
    }

    /// Queues packets at one time at an unlimited link. Returns those that are dropped.
    pub fn arrive(
        queue: &mut dyn Discipline,
        now: Time,
        packets: impl IntoIterator<Item = Descriptor>,
    ) -> Vec<(u32, DropReason)> {
        let mut drops = Drops::default();
        packets.into_iter().for_each(|packet| queue.enqueue(now, LinkRate::at(None, now), packet, &mut drops));
        drops.drain().map(|(packet, reason)| (packet.id, reason)).collect()
    }

    /// Returns the next packets, at most `count`, and the number of those that are dropped.
    pub fn leave(queue: &mut dyn Discipline, now: Time, count: usize) -> (Vec<QueuedPacket>, usize) {
        let mut drops = Drops::default();
        let next = std::iter::from_fn(|| queue.dequeue(now, LinkRate::at(None, now), &mut drops));
        (next.take(count).collect(), drops.drain().count())
    }

    /// What became of packets.
    #[derive(Debug, Default)]
    pub struct Counts {
        pub left: u32,
        pub dropped: u32,
        pub marked: u32,
        /// Sum of the delays, ms.
        delay: f64,
    }

    impl Counts {
        /// Returns the mean delay of those that left, ms.
        pub fn mean_delay(&self) -> f64 {
            self.delay / f64::from(self.left)
        }
    }

    /// Offers packets of 1250 bytes, each kind at an interval in µs, to a queue from which one leaves each 1 ms, and counts those
    /// of each kind from `from` to `to`, s.
    pub fn offer(queue: &mut dyn Discipline, offered: &[(Ecn, i64)], (from, to): (i64, i64)) -> Vec<Counts> {
        let mut counts: Vec<Counts> = offered.iter().map(|_| Counts::default()).collect();
        let mut drops = Drops::default();
        for us in (0..to * 1_000_000).step_by(50) {
            let now = Time::from_nanos(1000 * us);
            for (index, (ecn, every)) in offered.iter().enumerate() {
                if us % every == 0 {
                    let packet = Descriptor { flow: FlowId(index as u16), ..packet(0, *ecn) };
                    queue.enqueue(now, LinkRate::at(None, now), packet, &mut drops);
                }
            }
            let leaves = us % 1000 == 0 && !queue.is_empty();
            let next = if leaves { queue.dequeue(now, LinkRate::at(None, now), &mut drops) } else { None };
            let counted = us >= from * 1_000_000;
            for (packet, _) in drops.drain().filter(|_| counted) {
                counts[usize::from(packet.flow.0)].dropped += 1;
            }
            if let Some(QueuedPacket { packet, arrived }) = next.filter(|_| counted) {
                let of = &mut counts[usize::from(packet.flow.0)];
                of.left += 1;
                of.marked += u32::from(packet.ecn == Ecn::Ce);
                of.delay += (now - arrived).as_millis_f64();
            }
        }
        counts
    }
}
