// SPDX-License-Identifier: MIT OR Apache-2.0
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bursts;
mod config;
mod controller;
mod encoder;
mod state;

pub use config::{ConfigError, ControllerConfig};
pub use controller::PacelineController;
pub use encoder::{Encoder, Target};
pub use paceline;
pub use paceline_units as units;

/// The guide, so that its program is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/quic.md")]
struct Guide;
