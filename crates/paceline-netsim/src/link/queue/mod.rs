//! Queue disciplines: which packets wait, which are dropped, which is served next.
//!
//! To add one: a file here, a line in [`DISCIPLINES`], and its name in the scenario's queue table.

mod drop_tail;

pub use drop_tail::{DropTail, DropTailLimit};

use paceline_records::DropReason;
use paceline_units::{DataSize, Ecn, FlowId, Rate, Time};

/// Every discipline: its name in scenarios, and a description.
pub const DISCIPLINES: &[(&str, &str)] = &[(
    "drop-tail",
    "first in, first out; a full queue drops the arriving packet, above a mark it marks (ECN); both in time, bytes or packets",
)];

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket {
    /// The packet.
    pub packet: Descriptor,
    /// Arrival time.
    pub arrived: Time,
}

/// A queue discipline. The link calls it twice per packet, with times that never decrease.
pub trait Discipline: Send {
    /// Queues a packet that arrives at `now`, while the link serves at `rate`.
    ///
    /// # Errors
    /// The reason for which the packet is dropped at once.
    fn enqueue(&mut self, now: Time, packet: Descriptor, rate: Rate) -> Result<(), DropReason>;
    /// Returns the packet to serve at `now`. Adds packets that the discipline drops instead to `drops`.
    fn dequeue(&mut self, now: Time, drops: &mut Vec<QueuedPacket>) -> Option<QueuedPacket>;
    /// Sets the limit for later arrivals. Waiting packets stay.
    fn set_limit(&mut self, limit: DropTailLimit);
    /// Returns whether the queue is empty.
    fn is_empty(&self) -> bool;
    /// Returns the bytes in the queue.
    fn backlog(&self) -> DataSize;
}

/// The properties of a packet that a link needs. The driver keeps the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Handle of the driver; the link does not interpret it.
    pub id: u32,
    /// The flow of the packet.
    pub flow: FlowId,
    /// Size on this link, headers included.
    pub size: DataSize,
    /// ECN field.
    pub ecn: Ecn,
}
