//! Google Congestion Control, generation by generation: each an assembly of [`blocks`](crate::blocks).

mod aimd;
mod dynamic_alpha;
pub mod gcc2013;
pub mod gcc2015;
pub mod gcc2016;
pub mod gcc_med16;
pub mod gcc_remb_2018;
pub mod gcc_tfb;
mod rate_controller;
mod region_control;
mod region_estimator;
mod remb;

pub use aimd::{Aimd, AimdConfig};
pub use dynamic_alpha::{Alpha, Branch, Reading, dynamic_alpha};
pub use rate_controller::{RateConfig, RateController, RateState};
pub use region_control::{Growth, Observation, Region, RegionConfig, RegionControl, eta};
pub use region_estimator::RegionEstimator;
pub use remb::RembTimer;
