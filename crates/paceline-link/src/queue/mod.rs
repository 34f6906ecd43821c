//! Queue disciplines: who waits, who is dropped, who goes next.
//!
//! To add one: a file here, a line in [`DISCIPLINES`], and its name in the scenario's queue table.

mod drop_tail;

pub use drop_tail::{DropTail, DropTailLimit};

use crate::{Descriptor, DropCause};
use paceline_units::{DataSize, Rate, Time};

/// Every discipline: its name in a scenario, and a line on it.
pub const DISCIPLINES: &[(&str, &str)] = &[(
    "drop-tail",
    "first in, first out; a full queue drops the arriving packet, above a mark it marks (ECN); both in time, bytes or packets",
)];

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The packet.
    pub packet: Descriptor,
    /// When it came.
    pub arrived: Time,
}

/// A queue with its rules. Called twice a packet, with times that never go back.
pub trait Discipline: Send {
    /// A packet arrives at `now` while the link runs at `rate`. `Err` names why it is dropped at once.
    fn enqueue(&mut self, now: Time, packet: Descriptor, rate: Rate) -> Result<(), DropCause>;
    /// The server is free at `now`: the packet to serve. Packets that the discipline drops on the way go to `drops`.
    fn dequeue(&mut self, now: Time, drops: &mut Vec<Waiting>) -> Option<Waiting>;
    /// From now on so much may wait; who waits already stays.
    fn set_limit(&mut self, limit: DropTailLimit);
    /// Nobody waits.
    fn is_empty(&self) -> bool;
    /// Bytes that wait.
    fn backlog(&self) -> DataSize;
}
