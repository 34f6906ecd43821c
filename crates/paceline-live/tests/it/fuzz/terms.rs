// SPDX-License-Identifier: MIT OR Apache-2.0
//! Terms of a session: they are refused, or within the bounds of `docs/security.md`, and then both ends build their flows or refuse them.

use paceline::Registry;
use paceline_live::hosts::message::SessionId;
use paceline_live::hosts::session_flow::Flows;
use paceline_live::hosts::terms::Terms;
use paceline_units::TimeDelta;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::standard);

/// Checks one input. Returns whether it is accepted.
pub fn check(bytes: &[u8]) -> bool {
    let Some(terms) = Terms::from_bytes(bytes) else { return false };
    check_bounds(bytes, &terms);
    let again = terms.to_bytes();
    assert_eq!(Terms::from_bytes(&again), Some(terms.clone()));
    // Hundreds of flows take the time of thousands of other inputs.
    if terms.flows.iter().map(|flow| u32::from(flow.count)).sum::<u32>() > 8 {
        return true;
    }
    for is_sender in [true, false] {
        let Some(plans) = terms.plans(!is_sender, true, &REGISTRY) else { continue };
        let Ok(flows) = Flows::build(SessionId([7; 8]), &terms, is_sender, (&plans, false), &REGISTRY) else {
            continue;
        };
        let counts = [flows.sent.len(), flows.received.len()];
        assert_eq!(counts, [!is_sender, is_sender].map(|back| terms.count(back)));
        for flow in flows.sent.iter().chain(&flows.received) {
            assert!(TimeDelta::ZERO <= flow.start && flow.start < flow.stop && flow.stop <= terms.duration());
        }
    }
    true
}

fn check_bounds(bytes: &[u8], terms: &Terms) {
    assert!(bytes.len() <= 1100 && (1000..=3_600_000).contains(&terms.duration_ms), "{terms:?}");
    let is_name = |name: &String| {
        (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let is_config = |config: &BTreeMap<String, f64>| {
        config.len() <= 32 && config.iter().all(|(name, value)| is_name(name) && value.is_finite())
    };
    for back in [false, true] {
        let (mut count, mut streams, mut bps) = (0, 0, 0.0);
        for flow in terms.flows.iter().filter(|flow| flow.back == back) {
            let times = f64::from(flow.count);
            count += u32::from(flow.count);
            streams += flow.streams.len() * usize::from(flow.count);
            bps += times * flow.streams.iter().map(|stream| stream.max_bps as f64).sum::<f64>();
            assert!((1..=8).contains(&flow.streams.len()) && is_name(&flow.controller), "{flow:?}");
            assert!(is_config(&flow.config) && flow.streams.iter().all(|stream| is_config(&stream.config)), "{flow:?}");
            assert!(
                0 < flow.min_bps && flow.min_bps <= flow.start_bps && flow.start_ms < terms.duration_ms,
                "{flow:?}"
            );
            assert!(flow.streams.iter().all(|stream| is_name(&stream.source)), "{flow:?}");
        }
        assert!(count <= 256 && streams <= 256 && bps <= 10e9, "{terms:?}");
        assert!(count > 0 || back, "the sender sends");
    }
}
