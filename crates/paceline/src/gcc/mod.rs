//! Google Congestion Control, generation by generation: each an assembly of [`blocks`](crate::blocks).

mod aimd;
pub mod gcc2016;
pub mod gcc_remb_2018;
pub mod gcc_tfb;
mod rate_controller;
mod remb;

pub use aimd::{Aimd, AimdConfig};
pub use rate_controller::{RateConfig, RateController, RateState};
pub use remb::RembTimer;
