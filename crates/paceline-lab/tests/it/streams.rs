// SPDX-License-Identifier: MIT OR Apache-2.0
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

/// A flow with a camera of 50 to 2000 kbit/s of encoded media, and these keys.
fn camera(keys: &str) -> String {
    format!(
        "id = \"test/camera\"\ntitle = \"A camera\"\nduration = \"60s\"\n[path]\nrtt = \"50ms\"\n[path.forward]\n\
         capacity = \"1 Mbps\"\n[[flow]]\nid = \"call\"\ncontroller = \"fixed\"\nconfig = {{ rate_bps = 500000 }}\n\
         [[flow.stream]]\nid = \"camera\"\nencoder = {{ source = \"ideal\" }}\n{keys}"
    )
}

/// From 10 s at most 400 kbit/s, from 20 s a pause, from 40 s 1 Mbit/s, from 45 s muted, removed at 50 s.
#[test]
fn highest_rate_of_a_stream_follows_its_schedule() {
    let keys = "max_rate = [[\"0s\", \"2 Mbps\"], [\"10s\", \"400 kbps\"], [\"20s\", \"0 bps\"], [\"40s\", \"1 Mbps\"]]\n\
                muted = [[\"0s\", false], [\"45s\", true]]\nstop = \"50s\"\n";
    let scenario = fixtures::scenario(&camera(keys), &[]);
    let stream = &scenario.plan.flows[0].media().unwrap().streams[0];
    let s = paceline_units::Time::from_secs;
    let kbps = |from, to| stream.mean_max(s(from), s(to)).as_bps() / 1000;
    assert_eq!([kbps(0, 10), kbps(10, 20), kbps(5, 15), kbps(20, 40), kbps(30, 50)], [2000, 400, 1200, 0, 262]);
    assert_eq!([kbps(45, 50), kbps(50, 60), kbps(40, 40)], [50, 0, 1000]);
    let pause = |from, to| stream.pause_between(s(from), s(to));
    assert_eq!([pause(0, 20), pause(0, 21), pause(25, 30), pause(40, 50)], [None, Some(s(20)), Some(s(25)), None]);
    assert_eq!(pause(45, 60), Some(s(50)));

    let flow = fixtures::run(&camera(keys), &[]).whole.flows.remove(0);
    let stream = &flow.streams[0];
    within("freezes: none is a pause", stream.freezes as f64, 0.0, 0.0);
    // With headers: 20 s at 500, 400 and 420, 10 s at 500 kbit/s less overhead, 5 s at 50.
    within("rate of the stream", stream.throughput_bps, 140e3, 230e3);
}

#[test]
fn a_schedule_that_a_source_cannot_follow_is_an_error() {
    for (keys, expected) in [
        ("max_rate = \"40 kbps\"", "the source needs 50 kbps"),
        ("max_rate = [[\"5s\", \"400 kbps\"]]", "times must start at 0s"),
        ("stop = \"0s\"", "stops before its flow starts"),
    ] {
        let origin = paceline_scenario::Origin::from_text("test.toml", camera(keys));
        let registry = paceline::Registry::standard();
        let error = paceline_scenario::load(&origin, &Default::default(), &registry).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
