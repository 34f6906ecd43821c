//! What a link of real packets decided, computed again from what came to it: one model, two arms.

use paceline::Registry;
use paceline_lab::network::{End, Network, Wake};
use paceline_lab::plan::Plan;
use paceline_lab::rows::{Row, RowSink};
use paceline_lab::scenario::{self, Changes, Origin};
use paceline_lab::world::World;
use paceline_live::Testbed;
use paceline_units::{Streams, Time};

const SEED: u64 = 7;

/// Three seconds in which all that a link can do happens: steps of capacity, overflow, random loss, jitter, TCP beside media.
const BUSY: &str = r#"
id = "test/two-arms"
title = "Everything that a link can do"
duration = "3s"
[path.forward]
capacity = [["0s", "2Mbps"], ["1s", "600kbps"], ["2s", "3Mbps"]]
queue = { discipline = "drop-tail", limit = "60ms" }
delay = "20ms"
jitter = { std = "3ms", limit = "10ms" }
loss = "2%"
[path.reverse]
capacity = "10Mbps"
delay = "20ms"
[[flow]]
id = "video"
controller = "fixed"
start_rate = "1Mbps"
encoder = { max = "2Mbps" }
[[flow]]
id = "back"
direction = "reverse"
controller = "gcc-2016"
start = "300ms"
[[flow]]
id = "tcp"
kind = "tcp"
start = "500ms"
"#;

#[derive(Default)]
struct Kept(Vec<Row>);

impl RowSink for Kept {
    fn row(&mut self, row: &Row) {
        self.0.push(*row);
    }
}

impl Kept {
    /// What the network did, without what the ends say.
    fn of_the_network(&self) -> Vec<Row> {
        let of = |row: &&Row| {
            matches!(row, Row::Sent { .. } | Row::Crossed { .. } | Row::Dropped { .. } | Row::Arrived { .. })
        };
        self.0.iter().filter(of).copied().collect()
    }
}

fn plan() -> Plan {
    scenario::load(&Origin::from_text("two-arms", BUSY), &Changes::default(), &Registry::standard()).unwrap()
}

/// The second arm: the packets of `rows`, at the times at which they came, through the network of the simulator.
fn replayed(plan: &Plan, rows: &[Row]) -> (u64, Vec<Row>) {
    let (streams, mut kept) = (Streams::new(SEED), Kept::default());
    let mut network = Network::new(plan, &streams, &mut kept);
    let serve = |network: &mut Network<&mut Kept>, until: Time| {
        while let Some((_, wake)) = network.poll(until) {
            let Wake::Arrived { handle, .. } = wake else { panic!("no end asked to be woken") };
            network.give_back(handle);
        }
    };
    for row in rows {
        let Row::Sent { at, packet } = *row else { continue };
        serve(&mut network, at);
        let from = if packet.class.goes_back() { End::Receiver } else { End::Sender };
        let handle = network.blank();
        network.launch(at, packet.flow.0 as usize, from, packet.class, packet.size, handle);
    }
    serve(&mut network, Time::ZERO + plan.duration);
    let hash = network.outcome().trace_hash;
    (hash, kept.of_the_network())
}

#[test]
fn both_arms_decide_the_same_to_the_nanosecond() {
    if !common::track() {
        return;
    }
    let plan = plan();
    let mut kept = Kept::default();
    let outcome = Testbed::default().run(&plan, &Registry::standard(), SEED, &mut kept).unwrap();
    let real = kept.of_the_network();
    let (hash, again) = replayed(&plan, &real);
    assert_eq!(again, real);
    assert_eq!(hash, outcome.trace_hash);

    let count = |of: fn(&Row) -> bool| real.iter().filter(|row| of(row)).count();
    let (sent, dropped) = (count(|r| matches!(r, Row::Sent { .. })), count(|r| matches!(r, Row::Dropped { .. })));
    assert!((300..5000).contains(&sent) && (20..sent / 2).contains(&dropped), "{sent} sent, {dropped} dropped");
    // A test that could not tell would be no test: one packet an instant later is another run.
    let mut moved = real.clone();
    let Some(Row::Sent { at, .. }) = moved.iter_mut().find(|r| matches!(r, Row::Sent { .. })) else {
        panic!("some were")
    };
    *at += paceline_units::TimeDelta::from_nanos(1);
    assert_ne!(replayed(&plan, &moved).0, hash);
}

#[path = "common/mod.rs"]
mod common;
