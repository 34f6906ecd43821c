// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trace formats: a trace that is read has a finite mean rate and a description.

use paceline_scenario::trace::{Direction, Trace};

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for direction in [Direction::Downlink, Direction::Uplink] {
        match Trace::read(text, direction) {
            Ok(trace) => {
                assert!(trace.mean_rate().as_bps_f64().is_finite());
                assert!(!trace.describe().is_empty());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
