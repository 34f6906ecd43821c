// SPDX-License-Identifier: MIT OR Apache-2.0
//! GoogCC: the congestion control at the sender of libwebrtc, as of 2026-08 (f3ae3eb62e), one file for each block.
//!
//! ```text
//! feedback -> BurstGroups -> DelayDetector -> Aimd -> Bandwidth -> target -> pacing rate, padding
//!      |          5 ms       trendline, gamma    ^        ^   ^
//!      |--> Throughput R ------------------------|--> LossV2  '-- REMB, receiver reports, RttBackoff
//!      '--> ProbeEstimator ----------------------'
//! sent --> AlrDetector --> ProbeController --> clusters
//!      '-> WindowPushback --> padding, or the target
//! ```
//!
//! `googcc-2024` has the defaults of 2024-12 (da2a3d6c4d). `docs/algorithms/googcc.md` lists the differences to
//! libwebrtc, with reasons.

mod alr;
mod bandwidth;
mod capacity_tracker;
mod config;
mod delay_based;
mod loss_v1;
mod loss_v2;
mod rtt_backoff;
mod sender;
mod throughput;

pub use config::GoogCcConfig;
pub use loss_v2::LossState;
pub use sender::{GoogCc, SenderSignal};
#[cfg(feature = "unstable-internals")]
pub use {
    alr::AlrConfig,
    bandwidth::{BandwidthConfig, LossModel},
    loss_v2::LossV2Config,
    rtt_backoff::BackoffConfig,
    throughput::ThroughputConfig,
};

use crate::{Config, Controller, Entry, FieldVisitor, Parameters, Setup, SignalName, SignalTables};
use alloc::sync::Arc;

pub(crate) fn entries() -> [Entry; 2] {
    [
        Entry::new(
            "googcc",
            "GoogCC of today's libwebrtc: delay and loss at the sender, with probing",
            "libwebrtc f3ae3eb62e (2026-08-21), modules/congestion_controller/goog_cc",
            Arc::new(GoogCcConfig::LIBWEBRTC),
        ),
        Entry::new(
            "googcc-2024",
            "GoogCC with the defaults of libwebrtc of 2024-12 (da2a3d6c4d)",
            "libwebrtc da2a3d6c4d (2024-12-09), modules/congestion_controller/goog_cc",
            Arc::new(GoogCcConfig::Y2024),
        ),
    ]
}

impl Config for GoogCcConfig {
    const SIGNALS: SignalTables = (SenderSignal::TABLE, &[]);

    fn couples(&self) -> bool {
        !self.window.bounds_flight()
    }

    fn halves(&self, setup: &Setup) -> Controller {
        Arc::new(self.clone()).halves(setup)
    }
}

impl Parameters for Arc<GoogCcConfig> {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        Arc::make_mut(self).fields(fields);
    }
}

/// All halves of a config share it.
impl Config for Arc<GoogCcConfig> {
    const SIGNALS: SignalTables = GoogCcConfig::SIGNALS;

    fn couples(&self) -> bool {
        GoogCcConfig::couples(self)
    }

    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_reports(GoogCc::new(self, setup), self.feedback, self.feedback_longest, false)
    }
}
