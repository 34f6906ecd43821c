//! SCReAM, Self-Clocked Rate Adaptation for Multimedia: one part in each file, assembled in [`v1`]. Version 2 is in [`v2`].

mod config;
mod flight;
mod media_rate;
mod missing;
mod rates;
mod rtp_queue;
mod target;
mod trend;
pub mod v1;
pub mod v2;
mod window;

pub use config::ScreamConfig;
pub use flight::MaxInFlight;
pub use media_rate::{MediaRate, MediaRateConfig, MediaRateInput, RATE_ADJUST_INTERVAL, RateStep, scale};
pub use missing::{MissingPackets, ReorderingConfig};
pub use rates::{Rates, Throughput};
pub use rtp_queue::RtpQueue;
pub use target::{DelayTarget, TargetConfig};
pub use trend::{Trend, TrendConfig, prediction, qdelay_trend};
pub use window::{AckSummary, Congestion, CongestionWindow, ResumeAfter, WindowConfig, WindowGrowth};
