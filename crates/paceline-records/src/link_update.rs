//! A change of a hop during a run.

use paceline_units::{Fraction, Rate, TimeDelta};
use std::fmt;

/// A change of a hop that takes effect at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkUpdate {
    /// Sets the capacity to a constant rate.
    Capacity(Rate),
    /// Stops service for this time; then the former capacity applies again.
    Outage(TimeDelta),
    /// Sets the propagation delay.
    Delay(TimeDelta),
    /// Sets the loss ratio; each packet is lost independently.
    Loss(Fraction),
    /// Sets the queue limit, in drain time.
    Queue(TimeDelta),
    /// Restores everything that the scenario specifies for the current time.
    Scenario,
}

impl fmt::Display for LinkUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(rate) => write!(f, "capacity {rate}"),
            Self::Outage(time) => write!(f, "an outage of {time}"),
            Self::Delay(time) => write!(f, "delay {time}"),
            Self::Loss(fraction) => write!(f, "loss {fraction}"),
            Self::Queue(time) => write!(f, "a queue of {time}"),
            Self::Scenario => f.write_str("reset to the scenario"),
        }
    }
}
