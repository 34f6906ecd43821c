// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fuzz target `explain`: any input gives a call or an error, and every call an explanation.

use paceline_explain::document::explain;
use paceline_explain::readers;

/// Reads the bytes in whatever format they seem to be, and explains what was read.
pub fn check(bytes: &[u8]) {
    match readers::read_bytes(bytes) {
        Ok(call) => {
            let explanation = explain(&call);
            assert_eq!(explanation.flows.len(), call.flows.len());
            for flow in &explanation.flows {
                assert!(flow.findings.iter().all(|finding| finding.start_s <= finding.end_s), "{:?}", flow.findings);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.help().is_empty()),
    }
}
