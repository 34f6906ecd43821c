// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends packets of many flows through one queue discipline on a link that is slightly too slow for them. A profiler that counts
//! instructions shows the cost of a packet:
//!
//! ```text
//! cargo build --release -p paceline-netsim --example queue_cost
//! valgrind --tool=callgrind target/release/examples/queue_cost fq-codel 10000 1000000
//! ```

use paceline_netsim::link::queue::{DISCIPLINES, QueueLimit, QueuePlan};
use paceline_netsim::link::{Capacity, Descriptor, HopPlan, Link};
use paceline_netsim::parameter::{Value, Values};
use paceline_units::{DataSize, Dscp, Ecn, FlowId, RandomStreams, Rate, Time};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, flows, packets] = &arguments[..] else { panic!("usage: queue_cost DISCIPLINE FLOWS PACKETS") };
    let (flows, packets): (u64, u32) = (flows.parse().expect("a number"), packets.parse().expect("a number"));
    let discipline = DISCIPLINES.iter().find(|entry| entry.name == *name).expect("a discipline");
    // A queue for each flow.
    let queues = ("queues", Value::Count(65_536));
    let given = discipline.parameters.iter().any(|parameter| parameter.name == "queues").then_some(queues);
    let values = Values::new(discipline.parameters, given.as_slice());
    let streams = RandomStreams::new(1);
    let limit = QueueLimit::Packets(10_240);
    let queue = QueuePlan { discipline, limit, values };
    let capacity = Some(Capacity::constant(Rate::from_kbps(1_000_000)));
    let mut link = Link::new(HopPlan { capacity, queue, ..HopPlan::new("cost", limit) }, &streams);
    let mut random = streams.stream("flows");
    let mut outputs = 0_u32;
    for id in 0..packets {
        // A packet of 1250 bytes takes 10 µs; one arrives each 9.
        let now = Time::from_nanos(9_000 * i64::from(id));
        while link.poll_output(now).is_some() {
            outputs += 1;
        }
        let (flow, size) = (FlowId((random.bits() % flows) as u16), DataSize::from_bytes(1250));
        link.handle_packet(now, Descriptor { id, flow, size, ecn: Ecn::NotEct, dscp: Dscp::DEFAULT });
    }
    println!("{outputs} of {packets} packets left or were dropped");
}
