// SPDX-License-Identifier: MIT OR Apache-2.0
//! The quantities of congestion control as types: times of two clocks, rates, data sizes, fractions and ids. With the
//! feature `random`, also named random streams. The feature `std`, which is on by default, adds `Clock`, which converts
//! between these times and `std::time::Instant`; without it, the crate needs only `core` and `alloc`.
//!
//! Public functions of Paceline take these types instead of bare numbers. All of them are integers (nanoseconds, bits per
//! second, bytes), except [`Fraction`]. Only [`round_to_u64`] and [`round_to_i64`] convert a float to an integer, so that
//! every platform computes the same bits.
//!
//! ```
//! use paceline_units::{DataSize, Rate, TimeDelta};
//! let rate: Rate = "2.5 Mbps".parse()?;
//! let packet = DataSize::from_bytes(1250);
//! assert_eq!(packet / rate, TimeDelta::from_millis(4));
//! # Ok::<(), paceline_units::ParseError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[macro_use]
extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

#[cfg(feature = "std")]
mod clock;
mod dscp;
mod ecn;
mod ids;
mod parse;
mod quantity;
#[cfg(feature = "random")]
mod random;
#[cfg(feature = "serde")]
mod text;
mod time;

#[cfg(feature = "std")]
pub use clock::Clock;
pub use dscp::Dscp;
pub use ecn::Ecn;
pub use ids::{FlowId, StreamId};
pub use parse::ParseError;
pub use quantity::{DataSize, Fraction, Rate};
#[cfg(feature = "random")]
pub use random::{RandomStream, RandomStreams};
pub use time::{RemoteTime, Time, TimeDelta};

/// Rounds to the nearest integer, ties away from zero. Negative values and NaN become 0; the result saturates.
#[inline]
pub fn round_to_u64(x: f64) -> u64 {
    (x + 0.5) as u64 // truncates and saturates
}

/// Rounds to the nearest integer, ties away from zero. NaN becomes 0; the result saturates.
#[inline]
pub fn round_to_i64(x: f64) -> i64 {
    (if x < 0.0 { x - 0.5 } else { x + 0.5 }) as i64
}
