// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds in each window: values computed by hand from a constant rate.

use crate::fixtures;

/// 600 kbit/s from 2 to 8 s, in packets of one size, over a link of 1 Mbit/s, then 2 Mbit/s.
const SCENARIO: &str = r#"id = "test/each"
title = "Windows"
duration = "10 s"

[path.forward]
capacity = [["0 s", "1 Mbps"], ["5 s", "2 Mbps"]]
delay = "10 ms"

[[flow]]
id = "call"
controller = "fixed"
start = "2 s"
stop = "8 s"
config = { rate_bps = 600e3 }

[[flow.stream]]
id = "large"
encoder = { source = "ideal", max = "400 kbps" }

[[flow.stream]]
id = "small"
encoder = { source = "ideal", max = "200 kbps" }

[[flow]]
id = "half"
controller = "fixed"
start = "2 s"
stop = "8 s"
encoder = { source = "ideal", max = "300 kbps" }
config = { rate_bps = 300e3 }

[[assert]]
id = "bound"
"#;

fn share(bound: &str) -> f64 {
    let scenario = fixtures::scenario(&format!("{SCENARIO}{bound}"), &[]);
    let result = fixtures::simulator().run_all(&scenario, &[1]).unwrap();
    result.assertions[0].measured.expect("a share of windows")
}

/// The flow lives in six of ten seconds. What arrives after its stop is below the bounds.
#[test]
fn counts_the_windows_within_the_bounds() {
    let throughput = "metric = \"throughput_bps\"\nflow = \"call\"\nwindow = [\"0 s\", \"10 s\"]\n";
    assert_eq!(share(&format!("{throughput}each = \"1 s\"\nbounds = [500e3, 700e3]")), 0.6);
    assert_eq!(share(&format!("{throughput}each = \"1 s\"\nbounds = [0, 500e3]")), 0.4);
    assert_eq!(share(&format!("{throughput}each = \"1 s\"\nbounds = [700e3, inf]")), 0.0);
    // 1.8 of 4 Mbit, then 3.6 of 7 Mbit. The last 2 s are no whole window.
    let used = "metric = \"utilization\"\nwindow = [\"0 s\", \"10 s\"]\neach = \"4 s\"\n";
    assert_eq!(share(&format!("{used}bounds = [0.42, 0.48]")), 0.5);
    assert_eq!(share(&format!("{used}bounds = [0.42, 0.55]")), 1.0);
}

/// The link is used by 90 %, from 5 s on by 45 %.
#[test]
fn a_window_lasts_from_one_change_of_the_path_to_the_next() {
    let used = "metric = \"utilization\"\nwindow = [\"3 s\", \"8 s\"]\neach = \"change\"\n";
    assert_eq!(share(&format!("{used}bounds = [0.85, 0.95]")), 0.5);
    assert_eq!(share(&format!("{used}bounds = [0.4, 0.5]")), 0.5);
    assert_eq!(share(&format!("{used}bounds = [0.4, 0.95]")), 1.0);
}

/// A window without a value is not within bounds: before and after the flow there is no ratio.
#[test]
fn a_reference_is_measured_in_the_same_window() {
    let ratio = "metric = \"throughput_bps\"\nflow = \"call\"\nrelative_to = { flow = \"half\" }\neach = \"1 s\"\n";
    assert_eq!(share(&format!("{ratio}window = [\"3 s\", \"8 s\"]\nbounds = [1.9, 2.1]")), 1.0);
    assert_eq!(share(&format!("{ratio}window = [\"0 s\", \"4 s\"]\nbounds = [1.9, 2.1]")), 0.5);
    assert_eq!(share(&format!("{ratio}window = [\"3 s\", \"8 s\"]\nbounds = [0, 1.9]")), 0.0);
}

#[test]
fn a_stream_has_its_own_rate() {
    let goodput = |stream: &str, bounds: &str| {
        share(&format!(
            "metric = \"goodput_bps\"\nflow = \"call\"\nstream = \"{stream}\"\nwindow = [\"3 s\", \"8 s\"]\n\
             each = \"1 s\"\nbounds = {bounds}"
        ))
    };
    assert_eq!(goodput("large", "[350e3, 410e3]"), 1.0);
    assert_eq!(goodput("small", "[350e3, 410e3]"), 0.0);
    assert_eq!(goodput("small", "[170e3, 210e3]"), 1.0);
}
