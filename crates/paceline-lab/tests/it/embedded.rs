//! The program of `examples/embed`, which has a link of its own, beside the simulator on the same path.

#[path = "../../../../examples/embed/src/call.rs"]
mod call;

use crate::fixtures::{load_from, metric, registry, simulator};
use call::{Link, call};
use paceline_netsim::records::Summary;
use paceline_scenario::Origin;

const SCENARIO: &str = "
id = \"test/embedded\"
title = \"The path of examples/embed\"
duration = \"60 s\"
[path]
rtt = \"50 ms\"
[path.forward]
capacity = \"2 Mbps\"
loss = \"1 %\"
queue = { limit = \"300 ms\" }
[[flow]]
id = \"video\"
controller = \"NAME\"
start_rate = \"300 kbps\"
min_rate = \"50 kbps\"
retransmit = false
host = { packet_time = \"0 s\" }
encoder = { source = \"ideal\", min = \"10 kbps\", max = \"9.77 Mbps\" }
";

/// Mean rate and queue of the two agree within 10 %, half a millisecond, or the 95 % interval of the difference, for a controller of each kind of
/// feedback. 9.77 Mbit/s of the source are 10 Mbit/s with headers.
#[test]
fn embedded_senders_behave_as_in_the_simulator() {
    const SEEDS: u64 = 60;
    let runner = simulator();
    for name in ["googcc", "scream-v2", "drc", "nada", "gcc-2016"] {
        let origin = Origin::from_text("embedded.toml", SCENARIO.replace("NAME", name));
        let scenario = load_from(&origin, None, &[], registry());
        let (mut rates, mut queues) = ([[0.0; SEEDS as usize]; 2], [[0.0; SEEDS as usize]; 2]);
        for (index, seed) in (1..=SEEDS).enumerate() {
            let mut link = Link::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            call(name, &mut link, 60).unwrap();
            let (rate, queue) = link.means();
            (rates[0][index], queues[0][index]) = (rate.as_bps_f64() / 1e3, queue.as_millis_f64());
            let run = runner.run(&scenario, seed, None).unwrap();
            let of = |id| metric(&run.whole, id, None).unwrap();
            (rates[1][index], queues[1][index]) = (2000.0 * of("utilization"), of("queue_mean_ms"));
        }
        for (what, values) in [("rate, kbit/s", rates), ("queue, ms", queues)] {
            let [embedded, simulated] = values.map(|values| Summary::from_values(&values).unwrap());
            let allowed = (0.1 * simulated.mean).max(libm::hypot(embedded.ci95, simulated.ci95)).max(0.5);
            println!("{name:10} {what}: embedded {:.1}, simulated {:.1}", embedded.mean, simulated.mean);
            assert!((embedded.mean - simulated.mean).abs() < allowed, "{name}, {what}: {embedded:?}, {simulated:?}");
        }
    }
}
