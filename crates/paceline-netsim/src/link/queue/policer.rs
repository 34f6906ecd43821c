// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policers: they let packets pass up to a rate and a burst, and drop the rest at once, without delay. The meters are those of
//! RFC 2697 and RFC 2698, in colour-blind mode; behind them is a FIFO queue.

use super::fifo::Fifo;
use super::single::{Aqm, Single};
use super::{Descriptor, Discipline, LinkRate, QueueSetup};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{DataSize, Ecn, Rate, Time};

/// The result of a meter (RFC 2697, section 3; RFC 2698, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Green,
    Yellow,
    Red,
}

/// Measures packets against token buckets.
pub(super) trait Meter: Send + 'static {
    /// Returns the colour of a packet, and takes its tokens.
    fn measure(&mut self, now: Time, size: DataSize) -> Colour;
}

/// Tokens of one byte in units of a bit times a nanosecond, so that a rate provides a whole number of them in any time.
const BYTE: u128 = 8 * 1_000_000_000;

/// A token bucket of exact contents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    tokens: u128,
    size: u128,
}

impl Bucket {
    pub fn full(size: DataSize) -> Self {
        let size = u128::from(size.as_bytes()) * BYTE;
        Self { tokens: size, size }
    }

    /// Adds tokens, and returns those that do not fit.
    pub fn add(&mut self, tokens: u128) -> u128 {
        let fits = tokens.min(self.size - self.tokens);
        self.tokens += fits;
        tokens - fits
    }

    pub fn has(&self, size: DataSize) -> bool {
        self.tokens >= u128::from(size.as_bytes()) * BYTE
    }

    /// Removes the tokens of a packet, which it has.
    pub fn take(&mut self, size: DataSize) {
        self.tokens -= u128::from(size.as_bytes()) * BYTE;
    }

    #[cfg(test)]
    pub fn bytes(&self) -> u64 {
        (self.tokens / BYTE) as u64
    }
}

/// The clock of a meter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refill {
    last: Time,
}

impl Refill {
    pub const START: Self = Self { last: Time::ZERO };

    /// Returns the time since the last call, ns.
    pub fn elapsed(&mut self, now: Time) -> u128 {
        let elapsed = (now - self.last).as_nanos().max(0) as u128;
        self.last = self.last.max(now);
        elapsed
    }
}

/// Returns the tokens that a rate provides in a time in ns.
pub(super) fn tokens(rate: Rate, elapsed: u128) -> u128 {
    u128::from(rate.as_bps()).saturating_mul(elapsed)
}

/// The sizes of a bucket.
pub(super) const BUCKET_SIZE: ParameterKind = ParameterKind::Size(DataSize::ZERO, DataSize::from_bytes(1 << 40));

pub(super) const DROP_YELLOW: Parameter = Parameter::new("drop_yellow", ParameterKind::Flag, "false")
    .about("whether yellow packets are dropped, as red ones are");

pub(super) const ECN: Parameter = Parameter::new("ecn", ParameterKind::Flag, "false")
    .about("whether an ECN-capable yellow packet that passes is marked (the RFC leaves the treatment of colours open)");

/// Drops and marks packets by their colour. The queue behind it is FIFO.
pub(super) struct Policer<M> {
    meter: M,
    drops_yellow: bool,
    marks: bool,
}

impl<M: Meter> Policer<M> {
    pub fn boxed(meter: M, setup: &QueueSetup<'_>) -> Box<dyn Discipline> {
        let (drops_yellow, marks) = (setup.values.flag("drop_yellow"), setup.values.flag("ecn"));
        Box::new(Single::with(setup.limit, Self { meter, drops_yellow, marks }))
    }
}

impl<M: Meter> Aqm for Policer<M> {
    const CHECKS_LIMIT_FIRST: bool = false;

    fn admits(&mut self, now: Time, _: LinkRate<'_>, _: &Fifo, packet: &mut Descriptor) -> bool {
        match self.meter.measure(now, packet.size) {
            Colour::Red => return false,
            Colour::Yellow if self.drops_yellow => return false,
            Colour::Yellow if self.marks && packet.ecn.is_capable() => packet.ecn = Ecn::Ce,
            Colour::Yellow | Colour::Green => {}
        }
        true
    }
}
