// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of flows in a scenario file changes no result: flows that start at the same time do so in the order of their ids.

use crate::fixtures::{metric, observe, scenario};
use std::collections::BTreeMap;

const PATH: &str = r#"
id = "test/order"
title = "Flows that start together"
duration = "20s"
[path]
rtt = "40ms"
[path.forward]
capacity = "3 Mbps"
queue = { limit = "60 ms" }
[path.reverse]
capacity = "3 Mbps"
"#;

/// Frames of equal size at equal times: nearly every event of one flow is at the time of an event of another.
const FLOWS: [&str; 4] = [
    "[[flow]]\nid = \"one\"\ncontroller = \"googcc\"\nencoder = { source = \"ideal\" }\n",
    "[[flow]]\nid = \"two\"\ncontroller = \"googcc\"\nencoder = { source = \"ideal\" }\n",
    "[[flow]]\nid = \"bulk\"\nkind = \"tcp\"\ncount = 11\nstart = \"5 s\"\nstop = \"10 s\"\n",
    "[[flow]]\nid = \"back\"\ncontroller = \"gcc-2016\"\ndirection = \"reverse\"\nencoder = { source = \"ideal\" }\n",
];
const METRICS: [&str; 4] = ["throughput_bps", "loss_ratio", "owd_p50_ms", "owd_p95_ms"];

/// Returns the metrics of each flow, to the bit, when the file lists the flows in this order.
fn results(order: [usize; 4]) -> BTreeMap<String, Vec<u64>> {
    let text = order.iter().fold(PATH.to_owned(), |text, index| text + FLOWS[*index]);
    let scenario = scenario(&text, &[]);
    let run = observe(&scenario, 1, |_| ());
    let ids = scenario.plan.flows.iter().map(|flow| flow.id.clone()).enumerate();
    ids.map(|(index, id)| {
        let value = |metric_id: &&str| metric(&run.whole, metric_id, Some(index)).unwrap().to_bits();
        (id, METRICS.iter().map(value).collect())
    })
    .collect()
}

#[test]
fn permuted_flows_have_equal_results() {
    let expected = results([0, 1, 2, 3]);
    assert_eq!(expected.len(), 14);
    assert_ne!(expected["one"], expected["two"], "one of the two comes first");
    for order in [[1, 0, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]] {
        assert_eq!(results(order), expected, "{order:?}");
    }
}
