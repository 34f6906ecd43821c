// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates of a link during a run, applied to plans of scenarios.

use paceline::Registry;
use paceline_netsim::link::LossModel;
use paceline_netsim::link::queue::QueueLimit;
use paceline_netsim::link_control::{LinkControl, describe_updates};
use paceline_netsim::plan::Plan;
use paceline_netsim::records::LinkUpdate;
use paceline_scenario::{Changes, Origin, load};
use paceline_units::{Fraction, Rate, Time, TimeDelta};

const STEPS: &str = r#"
id = "test/updates"
title = "Steps"
duration = "60s"
[path]
rtt = "50ms"
[path.forward]
capacity = [["0s", "1Mbps"], ["20s", "2Mbps"], ["40s", "3Mbps"]]
queue = { discipline = "drop-tail", limit = "300ms" }
[[flow]]
id = "video"
controller = "gcc-2016"
"#;

fn plan() -> Plan {
    load(&Origin::from_text("updates.toml", STEPS), &Changes::default(), &Registry::standard()).unwrap().plan
}

fn s(t: f64) -> Time {
    Time::from_secs_f64(t)
}

/// Returns the rates of the forward hop, each from its time on, in s and kbit/s.
fn steps(plan: &Plan) -> Vec<(f64, u64)> {
    let steps = plan.hops[0].capacity.as_ref().unwrap().steps(s(60.0), TimeDelta::from_millis(100));
    steps.into_iter().map(|(at, rate)| (at.as_secs_f64(), rate.as_bps() / 1000)).collect()
}

#[test]
fn an_updated_plan_has_the_capacity_of_the_link() {
    let (scenario, mut plan) = (plan(), plan());
    plan.update_hop(&scenario, s(10.0), 0, LinkUpdate::Capacity(Rate::from_kbps(500)));
    assert_eq!(steps(&plan), [(0.0, 1000), (10.0, 500)], "the update replaces later steps");
    plan.update_hop(&scenario, s(15.0), 0, LinkUpdate::Outage(TimeDelta::from_secs(3)));
    assert_eq!(steps(&plan), [(0.0, 1000), (10.0, 500), (15.0, 0), (18.0, 500)]);
    plan.update_hop(&scenario, s(25.0), 0, LinkUpdate::Scenario);
    assert_eq!(steps(&plan), [(0.0, 1000), (10.0, 500), (15.0, 0), (18.0, 500), (25.0, 2000), (40.0, 3000)]);
    // The scenario changes the rate during this outage; afterwards the rate is that of the scenario.
    plan.update_hop(&scenario, s(39.0), 0, LinkUpdate::Outage(TimeDelta::from_secs(2)));
    assert_eq!(steps(&plan)[4..], [(25.0, 2000), (39.0, 0), (41.0, 3000)]);
    assert_eq!(steps(&scenario), [(0.0, 1000), (20.0, 2000), (40.0, 3000)]);
}

#[test]
fn updates_in_quick_succession_are_one_note() {
    let rate = |kbps| LinkUpdate::Capacity(Rate::from_kbps(kbps));
    let mut updates: Vec<(Time, usize, LinkUpdate)> =
        (0..50).map(|n| (s(10.0 + 0.1 * n as f64), 0, rate(500 + n))).collect();
    updates.push((s(20.0), 0, rate(900)));
    updates.push((s(20.1), 0, LinkUpdate::Outage(TimeDelta::from_secs(3))));
    updates.push((s(20.2), 0, rate(800)));
    let expected = [
        "forward: from 14.9 s capacity 549 kbps, by hand",
        "forward: from 20.0 s capacity 900 kbps, by hand",
        "forward: from 20.1 s an outage of 3 s, by hand",
        "forward: from 20.2 s capacity 800 kbps, by hand",
    ];
    assert_eq!(describe_updates(&plan(), &updates), expected);
}

#[test]
fn delay_loss_and_queue_change_from_the_time_of_the_update_on() {
    let (scenario, mut plan) = (plan(), plan());
    let ms = TimeDelta::from_millis;
    let loss = Fraction::new(0.05).unwrap();
    plan.update_hop(&scenario, s(10.0), 0, LinkUpdate::Delay(ms(200)));
    plan.update_hop(&scenario, s(11.0), 0, LinkUpdate::Loss(loss));
    plan.update_hop(&scenario, s(12.0), 0, LinkUpdate::Queue(ms(40)));
    let hop = &plan.hops[0];
    assert_eq!((*hop.delay.at(s(9.9)), *hop.delay.at(s(10.0))), (ms(25), ms(200)));
    let lost = LossModel::Bernoulli(loss);
    assert_eq!((*hop.loss.at(s(10.9)), *hop.loss.at(s(11.0))), (LossModel::NONE, lost));
    let limit = |plan: &Plan| plan.hops[0].queue.limit;
    assert_eq!(limit(&plan), QueueLimit::DrainTime(ms(40)));
    assert_eq!(plan.flows[0].base_rtt_at(&plan, s(30.0)), ms(225));
    let changes = plan.update_hop(&scenario, s(20.0), 0, LinkUpdate::Scenario);
    assert_eq!(changes.len(), 4);
    assert_eq!((limit(&plan), plan.flows[0].base_rtt_at(&plan, s(30.0))), (limit(&scenario), ms(50)));
    assert_eq!(*plan.hops[0].loss.at(s(20.0)), LossModel::NONE);
    assert_eq!(*plan.hops[0].loss.at(s(19.9)), lost, "the past stays");
}

#[test]
fn the_latest_update_of_each_kind_is_taken_in_order() {
    let control = LinkControl::default();
    assert_eq!(control.take_requests(), []);
    let rate = |kbps| LinkUpdate::Capacity(Rate::from_kbps(kbps));
    (1..500).for_each(|kbps| control.clone().request(0, rate(kbps)));
    control.request(1, rate(7));
    control.request(0, LinkUpdate::Scenario);
    control.request(0, rate(900));
    assert_eq!(control.take_requests(), [(1, rate(7)), (0, LinkUpdate::Scenario), (0, rate(900))]);
    assert_eq!(control.take_requests(), []);
    assert!(!control.is_stopped());
    control.clone().stop();
    assert!(control.is_stopped());
}
