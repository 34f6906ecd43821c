// SPDX-License-Identifier: MIT OR Apache-2.0
//! Coupled flows (RFC 8699): their rates have the ratio of their priorities, and their sum is about that of one flow.

use crate::fixtures::{self, within};
use paceline::Registry;
use paceline_lab::metrics::WindowResult;

/// Those of the controllers that can be coupled whose rates were looked at on this path.
const COUPLED: [&str; 5] = ["nada", "nada-sender", "googcc", "googcc-2024", "gcc-tfb"];

/// Flows of these names and keys on 3 Mbit/s, for two minutes.
fn text(flows: &[(&str, &str)]) -> String {
    let mut text =
        "id = \"test/coupled\"\ntitle = \"Coupled\"\nduration = \"120 s\"\n[path.forward]\ncapacity = \"3 Mbps\"\n\
                    delay = \"50 ms\"\n[path.reverse]\ndelay = \"50 ms\"\n"
            .to_owned();
    for (id, keys) in flows {
        text += &format!(
            "[[flow]]\nid = \"{id}\"\nencoder = {{ source = \"ideal\", min = \"50 kbps\", max = \"4 Mbps\" }}\n{keys}\n"
        );
    }
    text
}

fn coupled(controller: &str, priority: f64, more: &str) -> String {
    format!("controller = \"{controller}\"\ncoupling = {{ group = \"sender\", priority = {priority} }}\n{more}")
}

/// Returns the rates of the flows in kbit/s, over the last minute of a run.
fn rates(text: &str) -> Vec<f64> {
    let bounds = "[[assert]]\nid = \"x\"\nmetric = \"throughput_bps\"\nflow = \"one\"\nwindow = [\"60 s\", \"120 s\"]\nbounds = [0, inf]\n";
    let result = fixtures::run(&format!("{text}{bounds}"), &[]);
    let window: &WindowResult = result.windows.first().expect("the window of the bound");
    window.flows.iter().map(|flow| flow.throughput_bps / 1e3).collect()
}

/// One to two, within one part in fifty; the sum is that of one flow, within one part in ten.
#[test]
fn priorities_set_the_ratio_and_the_sum_is_that_of_one_flow() {
    for controller in COUPLED {
        let alone = rates(&text(&[("one", &format!("controller = \"{controller}\""))]))[0];
        let (first, second) = (coupled(controller, 1.0, ""), coupled(controller, 2.0, ""));
        let [one, two] = rates(&text(&[("one", &first), ("two", &second)]))[..] else { panic!("two flows") };
        within(controller, two / one, 1.96, 2.04);
        within(controller, (one + two) / alone, 0.9, 1.1);
    }
}

/// Without coupling, two flows of googcc that start together are not equal, and its flows do not know priorities.
#[test]
fn without_coupling_the_ratio_is_another() {
    let plain = "controller = \"googcc\"";
    let [one, two] = rates(&text(&[("one", plain), ("two", plain)]))[..] else { panic!("two flows") };
    assert!(!(1.8..2.2).contains(&(two / one)), "{one} and {two}");
}

/// The conservative algorithm has the same ratio. Each decrease of googcc, to 85 % of what arrived, is one of the aggregate; two in
/// a row leave 72 % of the link, 2170 kbit/s.
#[test]
fn conservative_algorithm_keeps_the_ratio() {
    let flow = |priority| {
        format!(
            "controller = \"googcc\"\ncoupling = {{ group = \"sender\", priority = {priority}, algorithm = \"conservative\" }}\n"
        )
    };
    let [one, two] = rates(&text(&[("one", &flow(1)), ("two", &flow(3))]))[..] else { panic!("two flows") };
    within("googcc", two / one, 2.9, 3.1);
    within("googcc", one + two, 2170.0, 2850.0);
}

/// A flow of at most 400 kbit/s leaves the rest to the other, and a flow that stops leaves all.
#[test]
fn other_flows_get_what_a_flow_cannot_use() {
    let limited = format!("{}max_rate = \"400 kbps\"", coupled("nada", 1.0, ""));
    let [one, two] = rates(&text(&[("one", &coupled("nada", 1.0, "")), ("two", &limited)]))[..] else {
        panic!("two flows")
    };
    within("the limited flow", two, 350.0, 401.0);
    within("the other", one, 2400.0, 2650.0);
    let stops = coupled("nada", 1.0, "stop = \"60 s\"");
    let [one, _] = rates(&text(&[("one", &coupled("nada", 1.0, "")), ("two", &stops)]))[..] else {
        panic!("two flows")
    };
    within("the flow that stays", one, 2800.0, 3000.0);
}

/// A flow that joins later has its share within seconds: its rate over the last minute is the same.
#[test]
fn late_flow_has_its_share() {
    let late = coupled("googcc", 1.0, "start = \"40 s\"");
    let [one, two] = rates(&text(&[("one", &coupled("googcc", 1.0, "")), ("two", &late)]))[..] else {
        panic!("two flows")
    };
    within("one over two", one / two, 0.98, 1.02);
}

/// A group of one flow is a flow without coupling, to the bit, as long as its rate is below the maximum of its source.
#[test]
fn group_of_one_flow_changes_nothing() {
    for entry in Registry::standard().iter().filter(|entry| entry.couples()) {
        let run = |keys: &str| fixtures::run(&text(&[("one", keys)]), &["flow.one.encoder.max=20 Mbps"]);
        let plain = run(&format!("controller = \"{}\"", entry.name()));
        let grouped = run(&coupled(entry.name(), 1.0, ""));
        assert_eq!(grouped.trace_hash, plain.trace_hash, "{}", entry.name());
    }
}
