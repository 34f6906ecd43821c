// SPDX-License-Identifier: MIT OR Apache-2.0
//! SCReAM version 2 as libwebrtc has it (f3ae3eb62e, 2026-08; `modules/congestion_controller/scream`): the averages of reports in
//! `averages.rs`, and one part in each other file.
//!
//! ```text
//! feedback ── ReportSummary ─┬─ QueueDelay (BaseDelay) ─┬─▶ ReferenceWindow ─┬─▶ send window ─┬─▶ push-back ─▶ streams
//!                            ├─ L4sAlpha ───────────────┤     (growth)       │                │
//!                            ├─ LossLevel ──────────────┤                    └─▶ TargetRate ──┴─▶ pacing, Padding
//!                            ├─ VirtualRtt ─────────────┤                         (drain)
//!                            └─ ReceivedRate ── ALR     │
//! sent ───── Flight ── FlightMax ───────────────────────┘
//! ```
//!
//! `core.rs` has the order of the parts, `sender.rs` their input and output, `switch.rs` the modes of the field trial.
//! `docs/algorithms/scream-libwebrtc.md` lists the differences to libwebrtc and to the draft.

mod averages;
mod config;
mod core;
mod flight;
mod loss_level;
mod padding;
mod pushback;
mod queue_delay;
mod report;
mod rounding;
mod sender;
mod signals;
mod switch;
mod target_rate;
mod window;

pub use config::ScreamLibwebrtcConfig;

use self::signals::ScreamLibwebrtcSignal;
use self::switch::Switch;
use crate::{Config, Controller, Entry, Setup, SignalName, SignalTables};
use alloc::sync::Arc;

pub(crate) fn entry() -> Entry {
    Entry::new(
        "scream-libwebrtc",
        "SCReAM version 2 of libwebrtc's field trial, also as the successor of GoogCC after the first CE mark",
        "libwebrtc f3ae3eb62e (2026-08-21), modules/congestion_controller/scream",
        ScreamLibwebrtcConfig::LIBWEBRTC,
    )
}

impl Config for ScreamLibwebrtcConfig {
    const SIGNALS: SignalTables = (ScreamLibwebrtcSignal::TABLE, &[]);

    fn halves(&self, setup: &Setup) -> Controller {
        let switch = Switch::new(&Arc::new(self.clone()), setup);
        Controller::from_reports(switch, self.feedback, self.feedback_longest, true)
    }
}
