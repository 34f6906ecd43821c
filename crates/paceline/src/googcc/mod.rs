//! GoogCC: the congestion control at the sender of libwebrtc, as of 2026-08 (f3ae3eb62e), one file for each block.
//!
//! ```text
//! feedback -> InterArrival -> DelayDetector -> Aimd -> Bandwidth -> target -> pacing rate, padding
//!      |          5 ms       trendline, gamma    ^        ^   ^
//!      |--> Throughput R ------------------------|--> LossV2  '-- REMB, receiver reports, RttBackoff
//!      '--> ProbeEstimator ----------------------'
//! sent --> AlrDetector --> ProbeController --> clusters
//!      '-> WindowPushback --> padding, or the target
//! ```
//!
//! The preset `googcc-2024` has the defaults of 2024-12 (da2a3d6c4d). `docs/algorithms/googcc.md` lists the differences to
//! libwebrtc, with reasons.

mod aimd;
mod alr;
mod bandwidth;
mod capacity_tracker;
mod config;
mod delay_based;
mod delay_detector;
mod inter_arrival;
mod loss_v1;
mod loss_v2;
mod probe_controller;
mod probing_config;
mod rtt_backoff;
mod sender;
mod throughput;
pub mod units;
mod window_pushback;

pub use config::GoogCcConfig;
pub(crate) use config::Y2024;
pub use loss_v2::LossState;
pub use sender::{GoogCc, SenderSignal};
pub use window_pushback::{PushbackConfig, WindowPushback};

use crate::{Config, Controller, Entry, FeedbackRequirement, FieldVisitor, Setup, SignalName, SignalTables};
use alloc::sync::Arc;

pub(crate) fn entry() -> Entry {
    Entry::new(
        "googcc",
        "GoogCC of today's libwebrtc: delay and loss at the sender, with probing",
        "libwebrtc f3ae3eb62e (2026-08-21), modules/congestion_controller/goog_cc",
        Arc::new(GoogCcConfig::default()),
    )
}

/// All halves of a config share it.
impl Config for Arc<GoogCcConfig> {
    const SIGNALS: SignalTables = (SenderSignal::TABLE, &[]);

    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        Arc::make_mut(self).visit(fields);
    }

    fn couples(&self) -> bool {
        !self.window.bounds_flight()
    }

    fn halves(&self, setup: &Setup) -> Controller {
        let (interval, longest) = (self.feedback, self.feedback_longest.max(self.feedback));
        let feedback = Some(FeedbackRequirement { ecn: false, interval, longest });
        Controller { feedback, ..Controller::from_sender(GoogCc::new(self, setup)) }
    }
}
