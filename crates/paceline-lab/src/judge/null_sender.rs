// SPDX-License-Identifier: MIT OR Apache-2.0
//! The null sender: the same scenario with media at 85 % of the capacity in force and no congestion control. A published value
//! that it reproduces, too, is no evidence for a controller.

use paceline::Bounds;
use paceline_netsim::plan::{ControllerPlan, FlowChange, FlowPlan};
use paceline_scenario::Scenario;
use paceline_units::{Rate, Time, TimeDelta};
use std::collections::BTreeSet;

/// The rate of the null sender, as a part of its fair share.
const PART: f64 = 0.85;
/// The lowest rate, bit/s: 0 would mean the maximum of the sources.
const LOWEST: f64 = 1.0;
/// A capacity of single transmissions is averaged over this time.
const BIN: TimeDelta = TimeDelta::from_secs(1);

/// Returns the scenario with every media flow under `fixed` at 85 % of its fair share of the capacity in force.
pub fn null_sender(scenario: &Scenario) -> Scenario {
    let mut null = scenario.clone();
    for (index, flow) in null.plan.flows.iter_mut().enumerate() {
        let steps = rates(scenario, &scenario.plan.flows[index]);
        let Some(media) = flow.media_mut() else { continue };
        let [(_, first), later @ ..] = &steps[..] else { continue };
        let config = vec![("rate_bps".to_owned(), first.as_bps_f64())];
        media.controller = ControllerPlan { name: "fixed".to_owned(), config, overuse: None, limits: Vec::new() };
        media.changes.retain(|(_, change)| !matches!(change, FlowChange::Bounds(_)));
        let bounds = |rate: &Rate| FlowChange::Bounds(Bounds::new(*rate, *rate));
        // A route change starts the controller again with limits of its own.
        let restarts = media.changes.iter().filter(|(_, change)| matches!(change, FlowChange::Route(_)));
        let in_force = |now: Time| steps.iter().rev().find(|(at, _)| *at <= now).map_or(first, |(_, rate)| rate);
        let again: Vec<_> = restarts.map(|(at, _)| (*at, bounds(in_force(*at)))).collect();
        media.changes.extend(again);
        media.changes.extend(later.iter().map(|(at, rate)| (*at, bounds(rate))));
        media.changes.sort_by_key(|(at, _)| *at);
    }
    null
}

/// Returns 85 % of the fair share of a media flow over time, or the maximum of its sources where that is less. Nothing for
/// another kind of flow.
fn rates(scenario: &Scenario, flow: &FlowPlan) -> Vec<(Time, Rate)> {
    let Some(most) = flow.media().map(|media| media.max_rate()) else { return Vec::new() };
    let rate = |share: f64| Rate::from_bps_f64((PART * share).min(most.as_bps_f64()).max(LOWEST));
    let mut steps: Vec<(Time, Rate)> = Vec::new();
    for (at, share) in fair_shares(scenario, flow) {
        if steps.last().is_none_or(|(_, last)| *last != rate(share)) {
            steps.push((at, rate(share)));
        }
    }
    steps
}

/// Returns the fair share of a flow over time, in bit/s: the least, over the hops of its route, of the capacity divided by
/// the number of flows that cross the hop. Infinite without a capacity.
fn fair_shares(scenario: &Scenario, flow: &FlowPlan) -> Vec<(Time, f64)> {
    let end = Time::ZERO + scenario.plan.duration;
    let sharing = |hop: &usize| scenario.plan.flows.iter().filter(|f| f.route.contains(hop)).count() as f64;
    let of_hop = |hop: &usize| Some((scenario.plan.hops[*hop].capacity.as_ref()?.steps(end, BIN), sharing(hop)));
    let hops: Vec<_> = flow.route.iter().filter_map(of_hop).collect();
    let times: BTreeSet<Time> = hops.iter().flat_map(|(steps, _)| steps.iter().map(|(at, _)| *at)).collect();
    let share_at = |now: Time| {
        let of_hop = |(steps, sharing): &(Vec<(Time, Rate)>, f64)| {
            let index = steps.partition_point(|(at, _)| *at <= now).saturating_sub(1);
            steps.get(index).map_or(f64::INFINITY, |(_, rate)| rate.as_bps_f64() / sharing)
        };
        hops.iter().map(of_hop).fold(f64::INFINITY, f64::min)
    };
    let times = if times.is_empty() { BTreeSet::from([Time::ZERO]) } else { times };
    times.into_iter().map(|at| (at, share_at(at))).collect()
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
    fn the_capacity_in_force_and_the_sources_limit_the_rate() {
        let path = "[path.forward]\ncapacity = [[\"0s\", \"1Mbps\"], [\"25s\", \"2.5Mbps\"], [\"50s\", \"500kbps\"]]";
        let steps = scenario(path, &media("a", "encoder = { max = \"5Mbps\" }"));
        rates(&steps, &[850.0]);
        let changes = null_sender(&steps).plan.flows[0].media().unwrap().changes.clone();
        let kbps = changes.iter().map(|(at, change)| match change {
            FlowChange::Bounds(Bounds { min, max, .. }) if min == max => (at.as_secs_f64(), max.as_bps() / 1000),
            _ => panic!("{change:?}"),
        });
        assert_eq!(kbps.collect::<Vec<_>>(), [(25.0, 2125), (50.0, 425)]);
        // After a route change the capacity in force counts again.
        let route = scenario(path, &media("a", "encoder = { max = \"5Mbps\" }\nroute_change_at = [\"30s\"]"));
        let changes = null_sender(&route).plan.flows[0].media().unwrap().changes.clone();
        let kinds = changes.iter().map(|(at, change)| match change {
            FlowChange::Bounds(bounds) => (at.as_secs_f64(), bounds.max.as_bps() / 1000),
            _ => (at.as_secs_f64(), 0),
        });
        assert_eq!(kinds.collect::<Vec<_>>(), [(25.0, 2125), (30.0, 0), (30.0, 2125), (50.0, 425)]);
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
