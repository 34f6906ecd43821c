//! The quantities of congestion control as types: times of two clocks, rates, sizes, fractions, ids,
//! and random streams that carry a name.
//!
//! No public signature in Paceline takes a bare number where one of these fits. All of them are integers
//! underneath (nanoseconds, bits per second, bytes), except [`Fraction`]; where a float has to become an
//! integer, [`round_to_u64`] and [`round_to_i64`] are the only two functions that do it, so that every
//! platform gets the same bits.
//!
//! ```
//! use paceline_units::{DataSize, Rate, TimeDelta};
//! let rate: Rate = "2.5 Mbps".parse()?;
//! let packet = DataSize::from_bytes(1250);
//! assert_eq!(packet / rate, TimeDelta::from_millis(4));
//! # Ok::<(), paceline_units::ParseError>(())
//! ```

mod ecn;
mod ids;
mod parse;
mod quantity;
mod random;
#[cfg(feature = "serde")]
mod text;
mod time;

pub use ecn::Ecn;
pub use ids::{FlowId, StreamId};
pub use parse::ParseError;
pub use quantity::{DataSize, Fraction, Rate};
pub use random::{RandomStream, Streams};
pub use time::{RemoteTime, Time, TimeDelta};

/// Rounds to the nearest integer, ties away from zero; negative and NaN become 0, too large becomes the maximum.
#[inline]
pub fn round_to_u64(x: f64) -> u64 {
    (x + 0.5) as u64 // the cast truncates and saturates; for x >= 0 that is "nearest"
}

/// Rounds to the nearest integer, ties away from zero; NaN becomes 0, the rest saturates.
#[inline]
pub fn round_to_i64(x: f64) -> i64 {
    (if x < 0.0 { x - 0.5 } else { x + 0.5 }) as i64
}
