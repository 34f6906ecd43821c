//! The null sender: the same experiment with media at a constant rate and no congestion control. A published value that
//! this reproduces too says nothing about a controller.

use crate::plan::{ControllerPlan, FlowPlan, Plan};
use paceline_units::{Rate, Time};

/// What the null sender takes of its fair share.
const PART: f64 = 0.85;

/// The plan with every media flow under `fixed` at 85 % of its fair share of the mean capacity.
pub fn null_sender(plan: &Plan) -> Plan {
    let mut null = plan.clone();
    for (index, flow) in null.flows.iter_mut().enumerate() {
        if let (Some(media), Some(rate)) = (flow.media_mut(), rate(plan, &plan.flows[index])) {
            // 0 would mean all that the sources can use.
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

/// 85 % of a media flow's fair share, or all that its sources can use where that is less.
fn rate(plan: &Plan, flow: &FlowPlan) -> Option<Rate> {
    let most = flow.media()?.most();
    Some(fair_share(plan, flow).map_or(most, |share| share.scale(PART).min(most)))
}

/// The mean capacity of the slowest hop of its route over the whole run, shared by all flows that ever cross that hop.
/// None where no hop has a capacity.
fn fair_share(plan: &Plan, flow: &FlowPlan) -> Option<Rate> {
    let end = Time::ZERO + plan.duration;
    let volumes =
        flow.route.iter().filter_map(|h| Some((*h, plan.hops[*h].capacity.as_ref()?.volume(Time::ZERO, end))));
    let (hop, volume) = volumes.min_by_key(|(_, volume)| *volume)?;
    let sharing = plan.flows.iter().filter(|f| f.route.contains(&hop)).count();
    Some(Rate::from_bps_f64(volume.as_bits() as f64 / plan.duration.as_secs_f64() / sharing as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Changes, Origin, load};
    use paceline::Registry;

    fn plan(path: &str, flows: &str) -> Plan {
        let text = format!("id = \"a\"\ntitle = \"a\"\nduration = \"100s\"\n{path}\n{flows}");
        load(&Origin::from_text("a.toml", text), &Changes::default(), &Registry::standard()).unwrap()
    }

    fn media(id: &str, more: &str) -> String {
        format!("[[flow]]\nid = \"{id}\"\ncontroller = \"gcc-2016\"\n{more}\n")
    }

    #[track_caller]
    fn rates(plan: &Plan, kbps: &[f64]) {
        let null = null_sender(plan);
        for (flow, wanted) in null.flows.iter().zip(kbps) {
            let controller = &flow.media().unwrap().controller;
            let [(field, rate)] = controller.config.as_slice() else { panic!("{controller:?}") };
            assert_eq!((controller.name.as_str(), field.as_str()), ("fixed", "rate_bps"));
            assert!((rate / 1e3 - wanted).abs() < 0.01, "{}: {rate} bit/s, wanted {wanted} kbit/s", flow.id);
        }
    }

    #[test]
    fn three_staggered_flows() {
        // 3 Mbit/s among three, whenever they begin.
        let max = "encoder = { max = \"4Mbps\" }\nstart =";
        let flows = [("a", "0s"), ("b", "30s"), ("c", "60s")].map(|(id, s)| media(id, &format!("{max} \"{s}\"")));
        let plan = plan("[path.forward]\ncapacity = \"3Mbps\"", &flows.concat());
        rates(&plan, &[850.0, 850.0, 850.0]);
    }

    #[test]
    fn a_stepped_capacity_and_what_the_sources_can_use() {
        let path = "[path.forward]\ncapacity = [[\"0s\", \"1Mbps\"], [\"25s\", \"2.5Mbps\"], [\"50s\", \"500kbps\"]]";
        // (25 x 1 + 25 x 2.5 + 50 x 0.5) / 100 = 1.125 Mbit/s.
        rates(&plan(path, &media("a", "")), &[956.25]);
        // A source of at most 500 kbit/s of encoded media sends a little more than that with headers.
        let small = plan(path, &media("a", "encoder = { max = \"500kbps\" }"));
        let most = small.flows[0].media().unwrap().most().as_bps_f64() / 1e3;
        assert!((510.0..550.0).contains(&most), "{most}");
        rates(&small, &[most]);
        // Nothing to share where nothing is limited.
        rates(&plan("[path]", &media("a", "encoder = { max = \"500kbps\" }")), &[most]);
    }

    #[test]
    fn only_who_crosses_the_flow_s_own_bottleneck_counts() {
        let path =
            "[path.forward]\nhops = [{ id = \"a\", capacity = \"1Mbps\" }, { id = \"b\", capacity = \"2Mbps\" }]";
        let flows = media("both", "") + &media("first", "route = [\"a\"]") + &media("last", "route = [\"b\"]");
        let tcp = "[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\nroute = [\"b\"]\nstart = \"50s\"\n";
        // a: 1/2 each. b has `both`, `last` and the TCP, but `both` is held by a: 2/3.
        let plan = plan(path, &(flows + tcp));
        rates(&plan, &[425.0, 425.0, 566.667]);
        assert!(null_sender(&plan).flows[3].media().is_none());
    }
}
