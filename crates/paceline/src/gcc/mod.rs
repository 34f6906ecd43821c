// SPDX-License-Identifier: MIT OR Apache-2.0
//! Google Congestion Control, one file for each generation.
//!
//! Each generation assembles [`blocks`](crate::blocks) and the parts of this folder. The generations that estimate the
//! rate at the receiver share one pipeline: `arrivals` (grouping, incoming rate), an estimator (arrival filter,
//! over-use detector, rate controller), `remb_receiver` and `remb_sender`.

mod arrivals;
mod dynamic_alpha;
mod filtered_detector;
pub mod gcc2013;
pub mod gcc2015;
pub mod gcc2016;
pub mod gcc_draft_2015;
pub mod gcc_med16;
pub mod gcc_remb_2018;
pub mod gcc_tfb;
mod rate_controller;
mod region;
mod region_control;
mod region_estimator;
mod remb;
mod remb_receiver;
mod remb_sender;

#[cfg(feature = "unstable-internals")]
pub use self::{
    dynamic_alpha::{AlphaBranch, dynamic_alpha},
    rate_controller::NearGrowth,
    region_control::{GrowthLaw, eta},
};
pub use dynamic_alpha::{Alpha, AlphaVariant};
pub use rate_controller::{RateConfig, RateController};
pub use region::Region;
pub use region_control::{Observation, RegionConfig, RegionControl};
pub use remb::{RembRule, RembTimer};

use crate::Entry;
use paceline_units::TimeDelta;

/// After a pause of this length the groups and the filter restart (libwebrtc: `kStreamTimeOutMs`).
const STREAM_TIMEOUT: TimeDelta = TimeDelta::from_secs(2);

/// Returns every generation.
pub(crate) fn entries() -> impl Iterator<Item = Entry> {
    gcc2016::entries().into_iter().chain([gcc2013::entry()]).chain(gcc2015::entries()).chain([
        gcc_draft_2015::entry(),
        gcc_med16::entry(),
        gcc_remb_2018::entry(),
        gcc_tfb::entry(),
    ])
}
