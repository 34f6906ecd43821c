//! NADA, generation by generation: each an assembly of what stands here and of [`blocks`](crate::blocks).

mod adaptation;
mod config;
mod loss_intervals;
mod min_filter;
pub mod nada2015;
mod observer;
mod report_clock;
pub mod rfc8698;
mod sequences;
mod shaping;
mod share_window;
mod signal;
mod smoothing;
mod warping;

pub use adaptation::{GradualConfig, RampUpConfig, gradual, ramp_gain, ramp_up};
pub use config::NadaConfig;
pub use loss_intervals::{LossIntervals, average_loss_interval};
pub use min_filter::MinFilter;
pub use observer::{Observer, ObserverConfig, Seen, Smoothing};
pub use report_clock::ReportClock;
pub use sequences::{Place, Sequences};
pub use shaping::{Shaping, ShapingConfig};
pub use share_window::ShareWindow;
pub use signal::{PenaltyConfig, linear_signal, quadratic_signal, smoothed_ratio};
pub use smoothing::MedianEwma;
pub use warping::{exponential_warping, quartic_warping};
