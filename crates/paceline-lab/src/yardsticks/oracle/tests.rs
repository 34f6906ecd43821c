// SPDX-License-Identifier: MIT OR Apache-2.0
//! Oracles on paths whose results are computed by hand.

use super::*;
use crate::registries;
use crate::run::Runner;
use paceline::Registry;
use paceline_scenario::{Changes, Origin, load};
use paceline_units::TimeDelta;

const CALL: &str =
    "[[flow]]\nid = \"call\"\ncontroller = \"googcc\"\nencoder = { source = \"ideal\", max = \"8 Mbps\" }\n";
const TCP: &str = "[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\nstart = \"10 s\"\nstop = \"20 s\"\n";

fn scenario(text: &str, controller: Option<&str>) -> Scenario {
    let registry = Oracle::add_all(Registry::standard());
    let changes = Changes { controller: controller.map(str::to_owned), ..Changes::default() };
    load(&Origin::from_text("a.toml", text.to_owned()), &changes, registries(&registry)).unwrap()
}

/// Returns a scenario of 30 s with an RTT of 100 ms under an oracle.
fn under(oracle: Oracle, forward: &str, flows: &str) -> Option<Scenario> {
    let text = format!(
        "id = \"a\"\ntitle = \"a\"\nduration = \"30 s\"\n[path]\nrtt = \"100 ms\"\n[path.forward]\n{forward}\n{flows}\n\
         [measure]\nqueue = \"packet\"\n"
    );
    oracle.scenario(&scenario(&text, None), scenario(&text, Some(oracle.name())))
}

/// Runs a scenario and returns the results of its bottleneck.
fn link(scenario: &Scenario) -> serde_json::Value {
    let registry = Oracle::add_all(Registry::standard());
    let run = Runner::simulator(&registry).run(scenario, 1, None).unwrap();
    serde_json::to_value(&run).unwrap()["link"].clone()
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap()
}

const STEPS: &str =
    "capacity = [[\"0 s\", \"4 Mbps\"], [\"10 s\", \"1 Mbps\"], [\"20 s\", \"4 Mbps\"]]\nqueue = { limit = \"1 s\" }";

/// By hand: 99 % of the capacity is used, less what the first packet needs to arrive, 50 ms of 4 Mbit/s, 0.2 %. A packet waits for
/// the one before it: 1240 bytes at 1 Mbit/s are 10 ms. Before the rise, the mean over the next 100 ms exceeds 1 Mbit/s.
#[test]
fn ideal_fills_the_link_and_leaves_its_queue_empty() {
    let link = link(&under(Oracle::Ideal, STEPS, CALL).unwrap());
    let [p50, p95, p99] = ["p50", "p95", "p99"].map(|p| number(&link["queue_ms"][p]));
    let utilization = number(&link["utilization"]);
    assert!((0.98..=0.995).contains(&utilization), "{utilization}");
    assert!(p50 < 1.0 && (5.0..10.0).contains(&p95) && (10.0..30.0).contains(&p99), "{p50} {p95} {p99}");
}

/// By hand: after the fall, 100 ms of 4 Mbit/s meet 1 Mbit/s, and in the next 100 ms the mean falls to 1 Mbit/s. They leave 300 and
/// 150 kbit, 450 ms of queue. After the rise, as much is not used, 0.45 of 90 Mbit. Of about 9000 packets, 60 arrive in the 200 ms of
/// the growing queue, so the 95th percentile is low.
#[test]
fn causal_exceeds_a_fall_for_one_round_trip() {
    let causal = link(&under(Oracle::Causal, STEPS, CALL).unwrap());
    let ideal = link(&under(Oracle::Ideal, STEPS, CALL).unwrap());
    let [highest, p95] = ["max", "p95"].map(|p| number(&causal["queue_ms"][p]));
    assert!((430.0..=480.0).contains(&highest) && (1.0..10.0).contains(&p95), "{highest} {p95}");
    let lost = number(&ideal["utilization"]) - number(&causal["utilization"]);
    assert!((0.5..=2.0).contains(&(lost * 90.0 / 0.45)), "{lost}");
}

/// By hand: of 28 s of 4 Mbit/s, those of 100 ms meet an outage of 2 s under `causal`, and half of the next 100 ms. Each of these
/// packets waits for about 2 s, so the mean delay is 150/28000 of that, 10.7 ms. Under `ideal` it is that of frames.
#[test]
fn ideal_stops_before_an_outage() {
    let outage = "capacity = [[\"0 s\", \"4 Mbps\"], [\"10 s\", \"0 bps\"], [\"12 s\", \"4 Mbps\"]]\nqueue = { limit = \"1000 packets\" }";
    let mean = |oracle| number(&link(&under(oracle, outage, CALL).unwrap())["queue_ms"]["mean"]);
    let (ideal, causal) = (mean(Oracle::Ideal), mean(Oracle::Causal));
    assert!((0.1..1.5).contains(&ideal) && (9.0..13.0).contains(&causal), "{ideal} {causal}");
}

/// 4 Mbit/s for the call and TCP from 10 to 20 s: 2 Mbit/s each. TCP with breaks is not counted, and sources limit the rate.
#[test]
fn share_is_max_min_fair_among_active_flows() {
    let share = |flows: &str| {
        let text = format!(
            "id = \"a\"\ntitle = \"a\"\nduration = \"30 s\"\n[path]\nrtt = \"100 ms\"\n[path.forward]\ncapacity = \"4 Mbps\"\n{flows}"
        );
        share::over_time(&scenario(&text, None).plan, 0, &[true, false], |capacity| capacity)
    };
    let kbps = |steps: Steps| steps.iter().map(|(at, bps)| (at.as_secs_f64(), bps / 1e3)).collect::<Vec<_>>();
    assert_eq!(kbps(share(&format!("{CALL}{TCP}"))), [(0.0, 4000.0), (10.0, 2000.0), (20.0, 4000.0)]);
    let breaks = format!("{CALL}{TCP}workload = {{ kind = \"on-off\", on = \"1 s\", off = \"1 s\" }}\n");
    assert_eq!(kbps(share(&breaks)), [(0.0, 4000.0)]);
    // A flow of less than half leaves the rest.
    let small = CALL.replace("call", "small").replace("8 Mbps", "1 Mbps");
    let rest = kbps(share(&format!("{CALL}{small}")));
    assert!(
        rest.len() == 1 && (2900.0..2990.0).contains(&rest[0].1),
        "3 Mbit/s less the headers of the other: {rest:?}"
    );
}

/// Packets of an access line of 200 ms meet the capacity 200 ms later, so the sender changes its rate 200 ms earlier.
#[test]
fn a_packet_meets_the_capacity_after_the_delay_before_the_link() {
    let far = CALL.replace("controller", "access_delay = \"200 ms\"\ncontroller");
    let text = format!("id = \"a\"\ntitle = \"a\"\nduration = \"30 s\"\n[path.forward]\n{STEPS}\n{far}");
    let steps = share::over_time(&scenario(&text, None).plan, 0, &[true, false], |capacity| capacity);
    let at: Vec<Time> = steps.iter().map(|(at, _)| *at).collect();
    let earlier = TimeDelta::from_millis(200);
    assert_eq!(at, [Time::ZERO, Time::from_secs(10) - earlier, Time::from_secs(20) - earlier]);
}

/// A call and a constant flow of cross traffic: only the call is replaced.
#[test]
fn cross_traffic_keeps_its_rate() {
    let cross = "[[flow]]\nid = \"cross\"\ncontroller = \"fixed\"\ncross_traffic = true\nconfig = { rate_bps = 1e6 }\n\
                 encoder = { source = \"ideal\", max = \"3 Mbps\" }\n";
    let scenario = under(Oracle::Ideal, "capacity = \"4 Mbps\"", &format!("{CALL}{cross}")).unwrap();
    let media = |flow: usize| scenario.plan.flows[flow].media().unwrap();
    let [(Time::ZERO, bounds)] = media(0).controller.limits[..] else { panic!("{:?}", media(0).controller) };
    assert!((2.9e6..3e6).contains(&bounds.max.as_bps_f64()), "99 % of 3 Mbit/s: {bounds:?}");
    assert_eq!(media(1).controller.config, [("rate_bps".to_owned(), 1e6)]);
}

/// On a shared medium an oracle sends the rate that the scenario names, if it names one.
#[test]
fn a_shared_medium_has_a_constant_rate_as_its_oracle() {
    let air = "hops = [{ id = \"a\", server = { kind = \"wifi\", medium = \"air\" }, capacity = \"20 Mbps\" }]";
    assert!(under(Oracle::Ideal, air, CALL).is_none());
    let named = format!("{CALL}[measure]\noracle_rate = \"2 Mbps\"\n");
    let text = format!("id = \"a\"\ntitle = \"a\"\nduration = \"10 s\"\n[path.forward]\n{air}\n{named}");
    let [written, replaced] = [None, Some("causal")].map(|controller| scenario(&text, controller));
    let oracle = Oracle::Causal.scenario(&written, replaced).unwrap();
    let registry = Oracle::add_all(Registry::standard());
    let run = Runner::simulator(&registry).run(&oracle, 1, None).unwrap();
    let rate = number(&serde_json::to_value(&run).unwrap()["flows"][0]["throughput_bps"]);
    assert!((1.9e6..=2.05e6).contains(&rate), "{rate}");
}

/// The rates that an oracle knows are its own: runs of one scenario have one hash, whatever sends.
#[test]
fn an_oracle_is_a_controller_of_the_same_scenario() {
    use crate::run_identity::ScenarioHashes;
    let text = format!("id = \"a\"\ntitle = \"a\"\nduration = \"30 s\"\n[path.forward]\n{STEPS}\n{CALL}");
    let [written, replaced] = [None, Some("causal")].map(|controller| scenario(&text, controller));
    let oracle = Oracle::Causal.scenario(&written, replaced).unwrap();
    let [written, oracle] = [&written, &oracle].map(ScenarioHashes::of);
    assert_eq!(written.scenario, oracle.scenario);
    assert_ne!(written.plan, oracle.plan);
}
