// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared helpers of the tests on the testbed.

/// Returns whether the testbed is available. If not, prints why, and fails if `PACELINE_REQUIRE` contains `track`.
pub fn is_testbed_available() -> bool {
    let missing = paceline_live::testbed::Testbed::missing();
    if let Some(missing) = &missing {
        let required =
            std::env::var("PACELINE_REQUIRE").is_ok_and(|all| all.split([',', ' ']).any(|one| one == "track"));
        assert!(!required, "PACELINE_REQUIRE contains track, which is not available: {missing}");
        eprintln!("SKIPPED: {missing}");
    }
    missing.is_none()
}
