// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulated network reproduces every decision of a link of real packets from its arrivals.

use paceline::Registry;
use paceline_live::testbed::Testbed;
use paceline_netsim::network::{FlowEnd, Network, Wake};
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_netsim::world::World;
use paceline_scenario::{self, Changes, Origin};
use paceline_units::{RandomStreams, Time};

const SEED: u64 = 7;

/// Three seconds with capacity steps, overflow, random loss, jitter, media and TCP.
const BUSY: &str = r#"
id = "test/two-arms"
title = "Every feature of a link"
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
struct Events(Vec<EventRecord>);

impl EventObserver for Events {
    fn on_event(&mut self, event: &EventRecord) {
        self.0.push(*event);
    }
}

impl Events {
    /// Returns the events of the network, without those of endpoints.
    fn of_the_network(&self) -> Vec<EventRecord> {
        use EventRecord::{Arrived, Crossed, Dropped, Sent};
        let of = |event: &&EventRecord| matches!(event, Sent { .. } | Crossed { .. } | Dropped { .. } | Arrived { .. });
        self.0.iter().filter(of).copied().collect()
    }
}

fn plan() -> Plan {
    paceline_scenario::load(&Origin::from_text("two-arms", BUSY), &Changes::default(), &Registry::standard())
        .unwrap()
        .plan
}

/// Passes the packets of `events`, at their arrival times, through the network of the simulator.
fn replay(plan: &Plan, events: &[EventRecord]) -> (u64, Vec<EventRecord>) {
    let (streams, mut replayed) = (RandomStreams::new(SEED), Events::default());
    let mut network = Network::new(plan, &streams, &mut replayed);
    let serve = |network: &mut Network<&mut Events>, until: Time| {
        while let Some((_, wake)) = network.poll(until) {
            let Wake::Arrived { handle, .. } = wake else { panic!("no endpoint set a timeout") };
            network.packets.free(handle);
        }
    };
    for event in events {
        let EventRecord::Sent { at, packet } = *event else { continue };
        serve(&mut network, at);
        let from = if packet.class.is_from_receiver() { FlowEnd::Receiver } else { FlowEnd::Sender };
        let handle = network.packets.alloc();
        network.send(at, packet.flow.0 as usize, from, packet.class, packet.size, handle);
    }
    serve(&mut network, Time::ZERO + plan.duration);
    let hash = network.outcome().trace_hash;
    (hash, replayed.of_the_network())
}

#[test]
fn simulator_reproduces_the_link_to_the_nanosecond() {
    if !crate::common::is_testbed_available() {
        return;
    }
    let plan = plan();
    let mut events = Events::default();
    let outcome = Testbed::default().run(&plan, &Registry::standard(), SEED, &mut events).unwrap();
    let real = events.of_the_network();
    let (hash, again) = replay(&plan, &real);
    assert_eq!(again, real);
    assert_eq!(hash, outcome.trace_hash);

    let count = |of: fn(&EventRecord) -> bool| real.iter().filter(|event| of(event)).count();
    let (sent, dropped) =
        (count(|r| matches!(r, EventRecord::Sent { .. })), count(|r| matches!(r, EventRecord::Dropped { .. })));
    assert!((300..5000).contains(&sent) && (20..sent / 2).contains(&dropped), "{sent} sent, {dropped} dropped");
    // The comparison is sensitive: one packet one nanosecond later is a different run.
    let mut moved = real.clone();
    let Some(EventRecord::Sent { at, .. }) = moved.iter_mut().find(|r| matches!(r, EventRecord::Sent { .. })) else {
        panic!("some were")
    };
    *at += paceline_units::TimeDelta::from_nanos(1);
    assert_ne!(replay(&plan, &moved).0, hash);
}
