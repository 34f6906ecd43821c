// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two weaknesses of GCC of 2013 that fhmn13 found, and GCC of 2016 in the same experiments: against TCP, and two flows
//! against each other.
//!
//! Both generations run the experiments of `scenarios/fhmn13`; that of 2016 with the growth near convergence that
//! `scenarios/mmsys16` assumes.

use crate::fixtures::{metric, registry, simulator};
use paceline_lab::run::windows;
use paceline_scenario::{Catalogue, Changes, Window, load};
use paceline_units::Time;

/// A metric of a flow of a scenario.
struct Measured {
    scenario: &'static str,
    case: &'static [(&'static str, &'static str)],
    metric: &'static str,
    flow: &'static str,
    media: &'static [&'static str],
    from_s: i64,
    seeds: u64,
}

impl Measured {
    /// Returns the least and the largest value over the seeds, in the window of the scenario's claim.
    fn range(&self, controller: &str, growth: Option<&str>) -> (f64, f64) {
        let set = |growth: &str| {
            let of = |flow: &&str| format!("flow.{flow}.config.{growth}").parse().expect("KEY=VALUE");
            self.media.iter().map(of).collect()
        };
        let changes = Changes {
            case: self.case.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            settings: growth.map(set).unwrap_or_default(),
            controller: Some(controller.to_owned()),
            ..Changes::default()
        };
        let origin = Catalogue.find(self.scenario).unwrap();
        let scenario = load(&origin, &changes, paceline_lab::registries(registry())).unwrap();
        assert_eq!(windows(&scenario), [Window { from: Time::from_secs(self.from_s), to: Time::from_secs(300) }]);
        let flow = scenario.plan.flows.iter().position(|f| f.id == self.flow);
        let runner = simulator();
        let value = |seed| metric(&runner.run(&scenario, seed, None).unwrap().windows[0], self.metric, flow);
        let values: Vec<f64> = (1..=self.seeds).map(|seed| value(seed).expect("it has one")).collect();
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
    }
}

const GROWTH_OF_2016: Option<&str> = Some("additive_rtt_ms=50");

/// Figure 7: a CUBIC flow joins on 1 Mbit/s. The static threshold leaves GCC an eighth of the link or less (fhmn13: 13 %),
/// the adaptive one more than a third: here four fifths, more than its share.
#[test]
fn adaptive_threshold_gets_its_share_against_tcp() {
    let beside_cubic = Measured {
        scenario: "fhmn13/fig7",
        case: &[("capacity", "1Mbps"), ("first", "gcc"), ("reading", "decrease")],
        metric: "utilization",
        flow: "video",
        media: &["video"],
        from_s: 100,
        seeds: 5,
    };
    let (least, most) = beside_cubic.range("gcc-2013", None);
    assert!(least >= 0.03 && most <= 0.20, "2013: {least} to {most}");
    let (least, most) = beside_cubic.range("gcc-2016", GROWTH_OF_2016);
    assert!(least >= 0.33 && most <= 0.95, "2016: {least} to {most}");
}

/// Figure 9: the share of the second of two flows on 1 Mbit/s varies widely in 2013, and is about half in 2016.
#[test]
fn adaptive_threshold_shares_between_two_flows() {
    let second = Measured {
        scenario: "fhmn13/fig9",
        case: &[],
        metric: "share",
        flow: "two",
        media: &["one", "two"],
        from_s: 50,
        seeds: 20,
    };
    let (least, most) = second.range("gcc-2013", None);
    assert!((0.0..0.2).contains(&least) && (0.6..1.0).contains(&most), "2013: {least} to {most}");
    let (least, most) = second.range("gcc-2016", GROWTH_OF_2016);
    assert!(least >= 0.35 && most <= 0.65, "2016: {least} to {most}");
}
