// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenario text: it is a scenario, or an error that can be printed. A scenario that loads runs for a moment.

use crate::fixtures::registry;
use paceline_scenario::{Changes, Origin, load};

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = load(&Origin::from_text("fuzz.toml", text), &Changes::default(), registry()) {
        let report = format!("{:?}", miette::Report::new(error));
        assert!(report.contains('×'), "{report}");
    }
}
