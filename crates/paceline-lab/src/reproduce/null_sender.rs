//! The null sender: the same experiment with media at a constant rate and no congestion control. A published value that
//! this reproduces too says nothing about a controller.

use crate::plan::{ControllerPlan, FlowPlan, Plan};
use paceline_link::Capacity;
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
            media.controller =
                ControllerPlan { name: "fixed".to_owned(), config: vec![("rate_bps".to_owned(), rate_bps)] };
        }
    }
    null
}

/// 85 % of a media flow's fair share, or all that its sources can use where that is less.
fn rate(plan: &Plan, flow: &FlowPlan) -> Option<Rate> {
    let most = flow.media()?.most();
    Some(fair_share(plan, flow).map_or(most, |share| share.scale(PART).min(most)))
}

/// C(t)/N(t), averaged over a flow's life: the capacity of the slowest hop of its route over the number of flows that
/// cross that hop and live then. None where no hop has a capacity.
fn fair_share(plan: &Plan, flow: &FlowPlan) -> Option<Rate> {
    let (from, to) = (flow.start, flow.stop);
    let capacities = flow.route.iter().filter_map(|hop| Some((*hop, plan.hops[*hop].capacity.as_ref()?)));
    let (hop, capacity): (usize, &Capacity) = capacities.min_by_key(|(_, c)| c.volume(from, to))?;
    let sharing: Vec<&FlowPlan> = plan.flows.iter().filter(|f| f.route.contains(&hop)).collect();
    let ends = sharing.iter().flat_map(|f| [f.start, f.stop]).filter(|t| from < *t && *t < to);
    let mut edges: Vec<Time> = [from, to].into_iter().chain(ends).collect();
    edges.sort_unstable();
    edges.dedup();
    let part = |edge: &[Time]| {
        let living = sharing.iter().filter(|f| f.start <= edge[0] && edge[0] < f.stop).count();
        capacity.volume(edge[0], edge[1]).as_bits() as f64 / living.max(1) as f64
    };
    let bits: f64 = edges.windows(2).map(part).sum();
    Some(Rate::from_bps_f64(bits / (to - from).as_secs_f64()))
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
        // 3 Mbit/s; from 0, 30 and 60 s to 100 s: alone 30 s, two for 30 s, three for 40 s.
        let max = "encoder = { max = \"4Mbps\" }\nstart =";
        let flows = [("a", "0s"), ("b", "30s"), ("c", "60s")].map(|(id, s)| media(id, &format!("{max} \"{s}\"")));
        let plan = plan("[path.forward]\ncapacity = \"3Mbps\"", &flows.concat());
        // a: (30 x 3 + 30 x 1.5 + 40 x 1) / 100 = 1.75; b: (30 x 1.5 + 40 x 1) / 70 = 1.2143; c: 1; times 0.85.
        rates(&plan, &[1487.5, 1032.143, 850.0]);
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
        // a: 1/2 each. b has `both`, `last` and from 50 s on the TCP: (50 x 2/2 + 50 x 2/3) / 100 = 0.8333.
        let plan = plan(path, &(flows + tcp));
        rates(&plan, &[425.0, 425.0, 708.333]);
        assert!(null_sender(&plan).flows[3].media().is_none());
    }
}
