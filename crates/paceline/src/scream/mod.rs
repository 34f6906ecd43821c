// SPDX-License-Identifier: MIT OR Apache-2.0
//! SCReAM, Self-Clocked Rate Adaptation for Multimedia: one part in each file, assembled in [`v1`]. Version 2 is in [`v2`],
//! and as libwebrtc has it in [`libwebrtc`].

mod config;
mod flight;
pub mod libwebrtc;
mod media_rate;
mod missing;
mod rates;
mod stall;
mod target;
mod trend;
pub mod v1;
pub mod v2;
mod window;

#[cfg(feature = "unstable-internals")]
pub use self::{
    media_rate::{MediaRate, MediaRateConfig, MediaRateInput, RateStep, scale},
    trend::{prediction, qdelay_trend},
    window::{AckSummary, Congestion, CongestionWindow, WindowConfig, WindowGrowth},
};
pub use config::ScreamConfig;
