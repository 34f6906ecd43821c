//! Several streams in one flow: their priorities divide the rate between their minima and maxima, and the waiting time.

use crate::fixtures::{self, within};
use paceline_lab::metrics::{FlowResult, StreamResult};

const SCREAM: [&str; 2] = ["scream", "scream-cpp"];

/// Runs two streams with these priorities and encoders for a minute, in one flow over `mbps`.
fn run(controller: &str, mbps: f64, streams: [(f64, &str); 2]) -> FlowResult {
    let [first, second] =
        streams.map(|(priority, encoder)| format!("priority = {priority}\nencoder = {{ {encoder} }}\n"));
    let text = format!(
        "id = \"test/streams\"\ntitle = \"Two streams\"\nduration = \"60s\"\n[path]\nrtt = \"50ms\"\n[path.forward]\n\
         capacity = \"{mbps} Mbps\"\n[[flow]]\nid = \"call\"\ncontroller = \"{controller}\"\n\
         [[flow.stream]]\nid = \"first\"\n{first}[[flow.stream]]\nid = \"second\"\n{second}"
    );
    fixtures::run(&text, &[]).whole.flows.remove(0)
}

/// Returns the rate of rendered frames of each stream, kbit/s.
fn kbps(controller: &str, mbps: f64, streams: [(f64, &str); 2]) -> [f64; 2] {
    let flow = run(controller, mbps, streams);
    let of = |stream: &StreamResult| stream.throughput_bps / 1e3;
    [of(&flow.streams[0]), of(&flow.streams[1])]
}

/// Above their minima of 50 kbit/s two streams of priorities 1 and 0.5 share the rate of SCReAM as two to one.
#[test]
fn priorities_divide_the_rate_of_scream() {
    const IDEAL: &str = "source = \"ideal\", max = \"2.5 Mbps\"";
    for controller in SCREAM {
        let [first, second] = kbps(controller, 2.0, [(1.0, IDEAL), (0.5, IDEAL)]);
        within(controller, (first - 50.0) / (second - 50.0), 1.9, 2.1);
        within("both", first + second, 1500.0, 1950.0);
    }
}

/// Minima take precedence over priorities, and what one stream cannot use the other gets.
#[test]
fn minimum_and_maximum_of_a_stream_hold() {
    const WIDE: &str = "source = \"ideal\", max = \"2.5 Mbps\"";
    for controller in SCREAM {
        let demanding = "source = \"ideal\", min = \"800 kbps\", max = \"2.5 Mbps\"";
        let [first, second] = kbps(controller, 1.2, [(1.0, WIDE), (0.5, demanding)]);
        within("with a minimum of 800 kbit/s", second, 795.0, 950.0);
        within("the other", first, 100.0, 400.0);
        let [first, second] = kbps(controller, 2.0, [(1.0, "source = \"ideal\", max = \"400 kbps\""), (0.5, WIDE)]);
        within("with a maximum of 400 kbit/s", first, 380.0, 401.0);
        within("the other", second, 1000.0, 1600.0);
    }
}

/// Both streams reach their maximum at any priority. Key frames of the second do not delay the first where that has the
/// higher priority.
#[test]
fn the_stream_of_higher_priority_waits_less() {
    for controller in SCREAM {
        let delay = |priority| {
            let steady = "source = \"ideal\", max = \"300 kbps\"";
            let bursts = "max = \"700 kbps\", key_period = \"1 s\", size_noise = 0, interval_noise = 0";
            let flow = run(controller, 2.0, [(priority, steady), (1.0, bursts)]);
            let rate = flow.streams[0].throughput_bps;
            within("the rate near its maximum", rate, 255e3, 301e3);
            flow.streams[0].frame_delay_ms.expect("frames were rendered").p95
        };
        let (heavy, light) = (delay(8.0), delay(0.125));
        within(controller, heavy / light, 0.3, 0.9);
    }
}
