//! Shared helpers of the tests on the test track.

/// Returns whether the test track is available. If not, prints why, and fails if `PACELINE_REQUIRE` contains `track`.
pub fn track() -> bool {
    let missing = paceline_live::Testbed::missing();
    if let Some(missing) = &missing {
        let required =
            std::env::var("PACELINE_REQUIRE").is_ok_and(|all| all.split([',', ' ']).any(|one| one == "track"));
        assert!(!required, "PACELINE_REQUIRE contains track, which is not available: {missing}");
        eprintln!("SKIPPED: {missing}");
    }
    missing.is_none()
}
