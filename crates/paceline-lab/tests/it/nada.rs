// SPDX-License-Identifier: MIT OR Apache-2.0
//! NADA of RFC 8698 over whole paths: computed at the receiver and at the sender, and under marks.

use crate::fixtures::{self, within};
use paceline_lab::metrics::WindowResult;

/// Runs a flow with a maximum of 2.5 Mbit/s for a minute over 1 Mbit/s.
fn run(controller: &str, path: &str) -> WindowResult {
    let text = format!(
        "id = \"test/nada\"\ntitle = \"A NADA flow\"\nduration = \"60s\"\n[path]\nrtt = \"100ms\"\n[path.forward]\n\
         capacity = \"1Mbps\"\n{path}\n[[flow]]\nid = \"video\"\ncontroller = \"{controller}\"\n\
         encoder = {{ source = \"ideal\", max = \"2.5Mbps\" }}\n[measure]\nqueue = \"one-way\"\n"
    );
    fixtures::run(&text, &[]).whole
}

/// The equilibrium is 10 ms times 2.5: both variants fill the link at that delay, and agree within a few percent.
#[test]
fn receiver_and_sender_variants_agree_on_a_clean_path() {
    let [there, here] = ["nada", "nada-sender"].map(|controller| run(controller, ""));
    let median = |result: &WindowResult| result.pooled.one_way.expect("packets arrived").p50;
    for result in [&there, &here] {
        within("throughput", result.flows[0].throughput_bps, 0.9e6, 1.0e6);
        within("median of the delay over propagation", median(result), 15.0, 40.0);
        within("loss", result.flows[0].loss_ratio, 0.0, 0.001);
    }
    within("throughput", here.flows[0].throughput_bps / there.flows[0].throughput_bps, 0.96, 1.04);
    within("delay", median(&here) - median(&there), -5.0, 5.0);
}

/// A queue that marks all packets from 1500 bytes on, 12 ms at 1 Mbit/s. A burst of marks is a signal of seconds, so the rate
/// oscillates between its minimum and the capacity: the queue is a quarter of that without marks, and a third of the
/// capacity is used.
#[test]
fn marks_shorten_the_queue_in_both_variants() {
    for controller in ["nada", "nada-sender"] {
        let mean = |path| run(controller, path).pooled.one_way.expect("packets arrived").mean;
        let (plain, marked) = (mean(""), run(controller, "queue = { limit = \"300ms\", mark = \"1500 B\" }"));
        let flow = &marked.flows[0];
        within("marked", flow.marked_packets as f64 / flow.ecn_packets as f64, 0.02, 0.15);
        let shorter = marked.pooled.one_way.expect("packets arrived").mean / plain;
        within(controller, shorter, 0.1, 0.5);
        within("throughput", flow.throughput_bps, 0.2e6, 0.6e6);
    }
}
