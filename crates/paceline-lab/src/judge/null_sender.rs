//! The null sender: the same scenario with media at a constant rate and no congestion control. A published value that it
//! reproduces, too, is no evidence for a controller.

use paceline_netsim::plan::{ControllerPlan, FlowPlan};
use paceline_scenario::Scenario;
use paceline_units::{Rate, Time};

/// The rate of the null sender, as a part of its fair share.
const PART: f64 = 0.85;

/// Returns the scenario with every media flow under `fixed` at 85 % of its fair share of the mean capacity.
pub fn null_sender(scenario: &Scenario) -> Scenario {
    let mut null = scenario.clone();
    for (index, flow) in null.plan.flows.iter_mut().enumerate() {
        if let (Some(media), Some(rate)) = (flow.media_mut(), rate(scenario, &scenario.plan.flows[index])) {
            // 0 would mean the maximum of the sources.
            let rate_bps = rate.as_bps_f64().max(1.0);
            media.controller = ControllerPlan {
                name: "fixed".to_owned(),
                config: vec![("rate_bps".to_owned(), rate_bps)],
                overuse: None,
            };
        }
    }
    null
}

/// Returns 85 % of the fair share of a media flow, or the maximum of its sources if that is less.
fn rate(scenario: &Scenario, flow: &FlowPlan) -> Option<Rate> {
    let most = flow.media()?.max_rate();
    Some(fair_share(scenario, flow).map_or(most, |share| share.scale(PART).min(most)))
}

/// Returns the mean capacity, over the whole run, of the slowest hop of its route, divided by the number of flows that cross
/// this hop. `None` if no hop has a capacity.
fn fair_share(scenario: &Scenario, flow: &FlowPlan) -> Option<Rate> {
    let end = Time::ZERO + scenario.plan.duration;
    let volumes =
        flow.route.iter().filter_map(|h| Some((*h, scenario.plan.hops[*h].capacity.as_ref()?.volume(Time::ZERO, end))));
    let (hop, volume) = volumes.min_by_key(|(_, volume)| *volume)?;
    let sharing = scenario.plan.flows.iter().filter(|f| f.route.contains(&hop)).count();
    Some(Rate::from_bps_f64(volume.as_bits() as f64 / scenario.plan.duration.as_secs_f64() / sharing as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::Registry;
    use paceline_scenario::{Changes, Origin, load};

    fn scenario(path: &str, flows: &str) -> Scenario {
        let text = format!("id = \"a\"\ntitle = \"a\"\nduration = \"100s\"\n{path}\n{flows}");
        load(&Origin::from_text("a.toml", text), &Changes::default(), &Registry::standard()).unwrap()
    }

    fn media(id: &str, more: &str) -> String {
        format!("[[flow]]\nid = \"{id}\"\ncontroller = \"gcc-2016\"\n{more}\n")
    }

    #[track_caller]
    fn rates(scenario: &Scenario, kbps: &[f64]) {
        let null = null_sender(scenario);
        for (flow, wanted) in null.plan.flows.iter().zip(kbps) {
            let controller = &flow.media().unwrap().controller;
            let [(field, rate)] = controller.config.as_slice() else { panic!("{controller:?}") };
            assert_eq!((controller.name.as_str(), field.as_str()), ("fixed", "rate_bps"));
            assert!((rate / 1e3 - wanted).abs() < 0.01, "{}: {rate} bit/s, wanted {wanted} kbit/s", flow.id);
        }
    }

    #[test]
    fn staggered_flows_share_the_capacity() {
        // 3 Mbit/s for three flows, independent of their start.
        let max = "encoder = { max = \"4Mbps\" }\nstart =";
        let flows = [("a", "0s"), ("b", "30s"), ("c", "60s")].map(|(id, s)| media(id, &format!("{max} \"{s}\"")));
        let scenario = scenario("[path.forward]\ncapacity = \"3Mbps\"", &flows.concat());
        rates(&scenario, &[850.0, 850.0, 850.0]);
    }

    #[test]
    fn the_mean_capacity_and_the_sources_limit_the_rate() {
        let path = "[path.forward]\ncapacity = [[\"0s\", \"1Mbps\"], [\"25s\", \"2.5Mbps\"], [\"50s\", \"500kbps\"]]";
        // (25 x 1 + 25 x 2.5 + 50 x 0.5) / 100 = 1.125 Mbit/s.
        rates(&scenario(path, &media("a", "")), &[956.25]);
        // A source of at most 500 kbit/s of encoded media sends a little more than that with headers.
        let small = scenario(path, &media("a", "encoder = { max = \"500kbps\" }"));
        let most = small.plan.flows[0].media().unwrap().max_rate().as_bps_f64() / 1e3;
        assert!((510.0..550.0).contains(&most), "{most}");
        rates(&small, &[most]);
        // Without a capacity, the maximum of the sources.
        rates(&scenario("[path]", &media("a", "encoder = { max = \"500kbps\" }")), &[most]);
    }

    #[test]
    fn only_flows_across_the_own_bottleneck_share_it() {
        let path =
            "[path.forward]\nhops = [{ id = \"a\", capacity = \"1Mbps\" }, { id = \"b\", capacity = \"2Mbps\" }]";
        let flows = media("both", "") + &media("first", "route = [\"a\"]") + &media("last", "route = [\"b\"]");
        let tcp = "[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\nroute = [\"b\"]\nstart = \"50s\"\n";
        // Hop a: 1/2 each. Hop b: `both`, `last` and TCP, so 2/3; `both` is limited by a.
        let scenario = scenario(path, &(flows + tcp));
        rates(&scenario, &[425.0, 425.0, 566.667]);
        assert!(null_sender(&scenario).plan.flows[3].media().is_none());
    }
}
