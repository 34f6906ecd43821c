//! What the tests of the track share.

/// Whether this machine has a track; says so if not, and fails where `PACELINE_REQUIRE` names it.
pub fn track() -> bool {
    let missing = paceline_live::Testbed::missing();
    if let Some(missing) = &missing {
        let required =
            std::env::var("PACELINE_REQUIRE").is_ok_and(|all| all.split([',', ' ']).any(|one| one == "track"));
        assert!(!required, "there is no track, and PACELINE_REQUIRE asks for it: {missing}");
        eprintln!("SKIPPED: {missing}");
    }
    missing.is_none()
}
