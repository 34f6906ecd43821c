//! NADA of RFC 8698 over whole paths: computed at the receiver and at the sender, and under marks.

use paceline::Registry;
use paceline_lab::metrics::WindowResult;
use paceline_lab::run::Runner;
use paceline_lab::scenario::{Changes, Origin, load};
use paceline_lab::sim::Simulator;

/// A minute on 1 Mbit/s with a maximum of 2.5.
fn run(controller: &str, path: &str) -> WindowResult {
    let text = format!(
        "id = \"test/nada\"\ntitle = \"A NADA flow\"\nduration = \"60s\"\n[path]\nrtt = \"100ms\"\n[path.forward]\n\
         capacity = \"1Mbps\"\n{path}\n[[flow]]\nid = \"video\"\ncontroller = \"{controller}\"\n\
         encoder = {{ source = \"ideal\", max = \"2.5Mbps\" }}\n[measure]\nqueue = \"one-way\"\n"
    );
    let registry = Registry::standard();
    let plan = load(&Origin::from_text("nada.toml", &text), &Changes::default(), &registry);
    let plan = plan.unwrap_or_else(|problem| panic!("{problem} {:?}", problem.hint()));
    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    runner.run(&plan, 1, None).unwrap().whole
}

#[track_caller]
fn within(what: &str, value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{what}: {value}, wanted {low} to {high}");
}

/// The equilibrium is 10 ms times 2.5: both ways fill the link at that delay, and come to the same within a few percent.
#[test]
fn both_ways_agree_on_a_clean_path() {
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

/// A queue that marks all packets from 1500 bytes on, 12 ms at 1 Mbit/s: a burst of marks is a signal of seconds, and the rate saws between its
/// minimum and the link. The queue is a quarter of what it is without marks, and of the link a third is used.
#[test]
fn marks_count_both_ways() {
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
