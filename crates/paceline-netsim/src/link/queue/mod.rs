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
mod srtcm;
mod step;
mod trtcm;
mod update_timer;

pub use codel::{CoDel, CoDelQueue};
pub use drop_tail::DropTail;
pub use drops::Drops;
pub use limit::{LimitCheck, QueueLimit};
pub use registry::{DISCIPLINES, QueueEntry, QueuePlan, QueueSetup};

use super::capacity::Capacity;
use paceline_units::{DataSize, Dscp, Ecn, FlowId, Rate, Time};
use std::any::Any;

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket {
    /// The packet.
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
