//! What fhmn13 found wrong with GCC of 2013, and what became of it in 2016: beside TCP, and two flows among themselves.
//!
//! Both generations run the experiments of `scenarios/fhmn13`, start rate and all; that of 2016 with the growth near
//! convergence that `scenarios/mmsys16` assumes.

use paceline::Registry;
use paceline_lab::metrics::find;
use paceline_lab::plan::Window;
use paceline_lab::run::{Runner, windows};
use paceline_lab::scenario::{Catalogue, Changes, load};
use paceline_lab::sim::Simulator;
use paceline_units::Time;

/// What a scenario measures of one of its flows.
struct Measured {
    scenario: &'static str,
    case: &'static [(&'static str, &'static str)],
    metric: &'static str,
    flow: &'static str,
    /// Its media flows.
    media: &'static [&'static str],
    from_s: i64,
    seeds: u64,
}

impl Measured {
    /// Over the span that the scenario's claim has, seed by seed.
    fn under(&self, controller: &str, growth: Option<&str>) -> Vec<f64> {
        let registry = Registry::standard();
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
        let plan = load(&Catalogue.find(self.scenario).unwrap(), &changes, &registry).unwrap();
        assert_eq!(windows(&plan), [Window { from: Time::from_secs(self.from_s), to: Time::from_secs(300) }]);
        let flow = plan.flows.iter().position(|f| f.id == self.flow);
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let value = find(self.metric).expect("a metric").value;
        let of = |seed| value(&runner.run(&plan, seed, None).unwrap().windows[0], flow, &plan.measure);
        (1..=self.seeds).map(|seed| of(seed).expect("it has one")).collect()
    }
}

const GROWTH_OF_2016: Option<&str> = Some("additive_rtt_ms=50");

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
}

/// Figure 7: a CUBIC flow joins on 1 Mbit/s. The static threshold leaves GCC an eighth of the link or less (fhmn13: 13 %),
/// the adaptive one more than a third: here four fifths, more than its share.
#[test]
fn beside_tcp() {
    let beside_cubic = Measured {
        scenario: "fhmn13/fig7",
        case: &[("capacity", "1Mbps"), ("first", "gcc")],
        metric: "utilization",
        flow: "video",
        media: &["video"],
        from_s: 100,
        seeds: 5,
    };
    let (least, most) = range(&beside_cubic.under("gcc-2013", None));
    assert!(least >= 0.03 && most <= 0.20, "2013: {least} to {most}");
    let (least, most) = range(&beside_cubic.under("gcc-2016", GROWTH_OF_2016));
    assert!(least >= 0.33 && most <= 0.95, "2016: {least} to {most}");
}

/// Figure 9: what the second of two flows gets on 1 Mbit/s is anybody's guess in 2013 and about half in 2016.
#[test]
fn among_themselves() {
    let second = Measured {
        scenario: "fhmn13/fig9",
        case: &[],
        metric: "share",
        flow: "two",
        media: &["one", "two"],
        from_s: 50,
        seeds: 20,
    };
    let (least, most) = range(&second.under("gcc-2013", None));
    assert!((0.0..0.2).contains(&least) && (0.6..1.0).contains(&most), "2013: {least} to {most}");
    let (least, most) = range(&second.under("gcc-2016", GROWTH_OF_2016));
    assert!(least >= 0.35 && most <= 0.65, "2016: {least} to {most}");
}
