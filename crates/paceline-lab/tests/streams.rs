//! Several streams in one flow: each gets by its weight, between its least and its most, and waits by its weight.

use paceline::Registry;
use paceline_lab::metrics::{FlowResult, StreamResult};
use paceline_lab::run::Runner;
use paceline_lab::scenario::{Changes, Origin, load};
use paceline_lab::sim::Simulator;

const SCREAM: [&str; 2] = ["scream", "scream-cpp"];

/// A minute of two streams, of this weight and encoder each, in one flow over `mbps`.
fn run(controller: &str, mbps: f64, streams: [(f64, &str); 2]) -> FlowResult {
    let [first, second] =
        streams.map(|(priority, encoder)| format!("priority = {priority}\nencoder = {{ {encoder} }}\n"));
    let text = format!(
        "id = \"test/streams\"\ntitle = \"Two streams\"\nduration = \"60s\"\n[path]\nrtt = \"50ms\"\n[path.forward]\n\
         capacity = \"{mbps} Mbps\"\n[[flow]]\nid = \"call\"\ncontroller = \"{controller}\"\n\
         [[flow.stream]]\nid = \"first\"\n{first}[[flow.stream]]\nid = \"second\"\n{second}"
    );
    let registry = Registry::standard();
    let plan = load(&Origin::from_text("streams.toml", &text), &Changes::default(), &registry);
    let plan = plan.unwrap_or_else(|problem| panic!("{problem} {:?}", problem.hint()));
    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    runner.run(&plan, 1, None).unwrap().whole.flows.remove(0)
}

/// What was rendered of each, kbit/s.
fn kbps(controller: &str, mbps: f64, streams: [(f64, &str); 2]) -> [f64; 2] {
    let flow = run(controller, mbps, streams);
    let of = |stream: &StreamResult| stream.throughput_bps / 1e3;
    [of(&flow.streams[0]), of(&flow.streams[1])]
}

#[track_caller]
fn within(what: &str, value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{what}: {value}, wanted {low} to {high}");
}

/// Beyond their minima of 50 kbit/s two streams of weights 1 and 0.5 share what SCReAM lets through as two to one.
#[test]
fn weights_divide_what_scream_lets_through() {
    const IDEAL: &str = "source = \"ideal\", max = \"2.5 Mbps\"";
    for controller in SCREAM {
        let [first, second] = kbps(controller, 2.0, [(1.0, IDEAL), (0.5, IDEAL)]);
        within(controller, (first - 50.0) / (second - 50.0), 1.9, 2.1);
        within("both", first + second, 1500.0, 1950.0);
    }
}

/// The least comes before weights, and what one cannot use the other has.
#[test]
fn the_least_and_the_most_of_a_stream_hold() {
    const WIDE: &str = "source = \"ideal\", max = \"2.5 Mbps\"";
    for controller in SCREAM {
        let demanding = "source = \"ideal\", min = \"800 kbps\", max = \"2.5 Mbps\"";
        let [first, second] = kbps(controller, 1.2, [(1.0, WIDE), (0.5, demanding)]);
        within("one that makes 800 kbit/s at least", second, 795.0, 950.0);
        within("the other", first, 100.0, 400.0);
        let [first, second] = kbps(controller, 2.0, [(1.0, "source = \"ideal\", max = \"400 kbps\""), (0.5, WIDE)]);
        within("one that makes 400 kbit/s at most", first, 380.0, 401.0);
        within("the other", second, 1000.0, 1600.0);
    }
}

/// Both streams make their most, whatever their weight. The key frames of the second do not hold up the first where the
/// first is the heavier.
#[test]
fn the_heavier_stream_waits_less() {
    for controller in SCREAM {
        let delay = |priority| {
            let steady = "source = \"ideal\", max = \"300 kbps\"";
            let bursts = "max = \"700 kbps\", key_period = \"1 s\", size_noise = 0, interval_noise = 0";
            let flow = run(controller, 2.0, [(priority, steady), (1.0, bursts)]);
            let rate = flow.streams[0].throughput_bps;
            within("it makes its most, once it may", rate, 255e3, 301e3);
            flow.streams[0].frame_delay_ms.expect("frames were rendered").p95
        };
        let (heavy, light) = (delay(8.0), delay(0.125));
        within(controller, heavy / light, 0.3, 0.9);
    }
}
