//! The program of `examples/embed`, which has a link of its own, beside the simulator on the same path.

#[path = "../../../../examples/embed/src/call.rs"]
mod call;

use crate::fixtures::{load_from, metric};
use call::{Link, call};
use paceline::Registry;
use paceline_lab::run::Runner;
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
encoder = { source = \"ideal\", min = \"10 kbps\", max = \"10 Mbps\" }
";

/// Rate and mean queue of the two agree within 10 %, or half a millisecond, for a controller of each kind of feedback.
#[test]
fn embedded_senders_behave_as_in_the_simulator() {
    const SEEDS: u64 = 40;
    let mean =
        |values: &[(f64, f64)], part: fn(&(f64, f64)) -> f64| values.iter().map(part).sum::<f64>() / SEEDS as f64;
    let registry = Registry::standard();
    for name in ["googcc", "scream-v2", "drc", "nada", "gcc-2016"] {
        let origin = Origin::from_text("embedded.toml", SCENARIO.replace("NAME", name));
        let scenario = load_from(&origin, None, &[], &registry);
        let runner = Runner::simulator(&registry);
        let simulated: Vec<(f64, f64)> = (1..=SEEDS)
            .map(|seed| {
                let run = runner.run(&scenario, seed, None).unwrap();
                let of = |id| metric(&run.whole, id, None).unwrap();
                (2000.0 * of("utilization"), of("queue_mean_ms"))
            })
            .collect();
        // Neighbouring seeds of a linear congruential generator have correlated losses.
        let embedded: Vec<(f64, f64)> = (1..=SEEDS)
            .map(|seed| {
                let mut link = Link::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                call(name, &mut link, 60).unwrap();
                let (rate, queue) = link.means();
                (rate.as_bps_f64() / 1e3, queue.as_millis_f64())
            })
            .collect();
        let (rates, queues) =
            ([&embedded, &simulated].map(|of| mean(of, |v| v.0)), [&embedded, &simulated].map(|of| mean(of, |v| v.1)));
        println!("{name:10} kbit/s {rates:.0?}, mean queue {queues:.1?} ms: embedded, simulated");
        assert!((rates[0] / rates[1] - 1.0).abs() < 0.1, "{name}: {rates:?} kbit/s");
        assert!((queues[0] - queues[1]).abs() < (0.1 * queues[1]).max(0.5), "{name}: {queues:?} ms");
    }
}
