//! Google Congestion Control, generation by generation: each an assembly of [`blocks`](crate::blocks).

pub mod gcc2016;
mod rate_controller;
mod remb;

pub use rate_controller::{RateConfig, RateController, RateState};
pub use remb::RembTimer;
