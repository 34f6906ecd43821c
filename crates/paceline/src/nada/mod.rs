// SPDX-License-Identifier: MIT OR Apache-2.0
//! NADA, one file for each generation. Both consist of the parts in this folder and of [`blocks`](crate::blocks):
//! `receiver` (an observer of arrivals and a report timer) and `sender` (rate update and rate shaping).

mod adaptation;
mod loss_intervals;
mod min_filter;
pub mod nada2015;
mod observer;
mod receiver;
pub mod rfc8698;
mod sender;
mod sequence_tracker;
mod shaping;
mod share_window;
mod signal;
mod smoothing;
mod warping;

#[cfg(feature = "unstable-internals")]
pub use self::{adaptation::ramp_gain, loss_intervals::average_loss_interval, observer::RatioSmoothing};
pub use adaptation::{GradualConfig, RampUpConfig, gradual, ramp_up};
pub use loss_intervals::LossIntervals;
pub use min_filter::MinFilter;
pub use observer::{Observer, ObserverConfig, ReceivedPacket};
pub use sequence_tracker::{SequencePosition, SequenceTracker};
pub use shaping::{Shaping, ShapingConfig};
pub use share_window::ShareWindow;
pub use signal::{PenaltyConfig, linear_signal, quadratic_signal, smoothed_ratio};
pub use smoothing::MedianEwma;
pub use warping::{exponential_warping, quartic_warping};
