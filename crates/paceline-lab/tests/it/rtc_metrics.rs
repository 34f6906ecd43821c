// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of RFC 8868 over whole runs: values computed by hand from constant rates.

use crate::fixtures;
use paceline_lab::run::RunsResult;

const HEAD: &str = r#"id = "test/rtc"
title = "Constant rates"
duration = "20 s"
"#;

fn run(body: &str) -> RunsResult {
    let scenario = fixtures::scenario(&format!("{HEAD}{body}"), &[]);
    fixtures::simulator().run_all(&scenario, &[1]).unwrap()
}

fn flow(id: &str, kbps: u32, more: &str) -> String {
    format!(
        "[[flow]]\nid = \"{id}\"\ncontroller = \"fixed\"\nencoder = {{ source = \"ideal\", max = \"{kbps} kbps\" }}\n\
         config = {{ rate_bps = {kbps}e3, pacing_factor = 1.0 }}\n{more}\n"
    )
}

#[track_caller]
fn within(what: &str, value: f64, least: f64, most: f64) {
    assert!((least..=most).contains(&value), "{what} is {value}, not from {least} to {most}");
}

/// (600 + 300)² / (2 (600² + 300²)) = 0.9 with two active flows; with a third one at 0 it is 0.6.
#[test]
fn active_jain_leaves_out_flows_that_do_not_send() {
    let paused = "max_rate = [[\"0 s\", \"0 bps\"], [\"14 s\", \"300 kbps\"]]";
    let flows = [
        flow("always", 600, ""),
        flow("early", 300, "start = \"2 s\"\nstop = \"8 s\""),
        format!(
            "[[flow]]\nid = \"paused\"\ncontroller = \"fixed\"\nconfig = {{ rate_bps = 300e3 }}\n[[flow.stream]]\nid = \"s\"\nencoder = {{ source = \"ideal\", max = \"300 kbps\" }}\n{paused}\n"
        ),
    ];
    let result = run(&format!("[path.forward]\ncapacity = \"2 Mbps\"\ndelay = \"10 ms\"\n{}", flows.concat()));
    let whole = &result.runs[0].whole;
    within("active_jain", whole.active_jain.unwrap(), 0.88, 0.91);
    within("jain, of all three from 2 to 8 s", whole.jain.unwrap(), 0.58, 0.62);
}

/// The capacity doubles at 10 s and the flow at 13 s: its first second at 90 % ends 4 s after the change.
#[test]
fn convergence_is_measured_after_each_change() {
    let share = |bounds: &str| {
        let bound = format!(
            "[[assert]]\nid = \"b\"\nmetric = \"convergence_time_s\"\nflow = \"a\"\nwindow = [\"0 s\", \"20 s\"]\n\
             each = \"change\"\nbounds = {bounds}\n"
        );
        let path = "[path.forward]\ncapacity = [[\"0 s\", \"500 kbps\"], [\"10 s\", \"1 Mbps\"]]\ndelay = \"10 ms\"\n";
        let steps = "max_rate = [[\"0 s\", \"500 kbps\"], [\"13 s\", \"1 Mbps\"]]";
        let flow = flow("a", 1000, steps).replace("rate_bps = 1000e3, ", "");
        run(&format!("{path}{flow}{bound}")).assertions[0].measured.unwrap()
    };
    assert_eq!(share("[0.0, 1.5]"), 0.5, "from the start");
    assert_eq!(share("[3.5, 4.5]"), 0.5, "after the change");
    assert_eq!(share("[0.0, 10.0]"), 1.0);
}

/// The rate falls from 600 to 150 kbit/s from 8 to 11 s, once by itself and once because the capacity does.
#[test]
fn dips_are_those_that_the_path_does_not_explain() {
    let steps = "[\"0 s\", \"600 kbps\"], [\"8 s\", \"150 kbps\"], [\"11 s\", \"600 kbps\"]";
    let dips = |capacity: &str| {
        let flow = flow("a", 600, &format!("max_rate = [{steps}]")).replace("rate_bps = 600e3, ", "");
        let path = format!("[path.forward]\ncapacity = [{capacity}]\ndelay = \"10 ms\"\n");
        let result = run(&format!("{path}{flow}"));
        let flow = result.runs[0].whole.flows[0].clone();
        (flow.dips.unwrap(), flow.oscillations.unwrap())
    };
    let (own, swing) = dips("[\"0 s\", \"1 Mbps\"]");
    assert_eq!(own.count, 1);
    within("depth", own.depth, 0.72, 0.78);
    assert_eq!((swing.count, swing.period_s), (1, None));
    within("amplitude", swing.amplitude, 0.72, 0.78);
    let (path, _) = dips(steps);
    assert_eq!((path.count, path.depth), (0, 0.0));
}

/// Constant frames and packets: the rates over 200 ms vary by at most a packet, and nothing is discarded. Loss of half of the
/// packets makes the receive rate vary, not the sending rate. Reports of 5 % at most.
#[test]
fn constant_rates_do_not_vary() {
    let result = run(&format!("[path.forward]\ncapacity = \"2 Mbps\"\ndelay = \"10 ms\"\n{}", flow("a", 1000, "")));
    let call = &result.runs[0].whole.flows[0];
    let (sent, received) = call.rate_cv_200ms;
    within("sending", sent.unwrap(), 0.0, 0.08);
    within("receiving", received.unwrap(), 0.0, 0.08);
    assert_eq!(call.streams[0].discard_ratio, Some(0.0));
    let metrics = &result.summary;
    within("feedback_overhead", metrics["feedback_overhead"].mean, 0.0005, 0.06);
    within("sending_rate_bps", metrics["sending_rate_bps"].mean, 0.98e6, 1.02e6);
    let lossy = format!(
        "[path.forward]\ncapacity = \"2 Mbps\"\ndelay = \"10 ms\"\nloss = \"50 %\"\n{}",
        flow("a", 1000, "retransmit = false")
    );
    let (sent, received) = run(&lossy).runs[0].whole.flows[0].rate_cv_200ms;
    within("sending", sent.unwrap(), 0.0, 0.08);
    // 21 packets of 1200 B: the share that arrives has a standard deviation of √(0.25 / 21) = 11 % of all, 22 % of the mean.
    within("receiving with losses", received.unwrap(), 0.16, 0.28);
}

/// A change of the delay by 150 ms delays each later frame by more than the playout buffer of 100 ms, one of 50 ms none.
#[test]
fn frames_behind_a_longer_path_are_discarded() {
    let discarded = |delay: &str| {
        let path =
            format!("[path.forward]\ncapacity = \"2 Mbps\"\ndelay = [[\"0 s\", \"10 ms\"], [\"15 s\", \"{delay}\"]]\n");
        run(&format!("{path}{}", flow("a", 500, ""))).summary["discard_ratio"].mean
    };
    within("after 160 ms", discarded("160 ms"), 0.24, 0.26);
    assert_eq!(discarded("60 ms"), 0.0);
}

/// 720 lines at 2.38 Mbit/s without headers, of an age from 104 ms, 100 of them propagation, to 137 ms, a frame interval later. By the
/// formulas Q is 0.984, or 0.46 of a game, and the mean of D is 1, 0.57, 0.88 and 1.
#[test]
fn score_follows_the_use_of_media() {
    let result = |media_use: &str| {
        let bound = "[[assert]]\nid = \"b\"\nmetric = \"score\"\nwindow = [\"10 s\", \"20 s\"]\nbounds = [0, 100]\n";
        let flow = flow("a", 2500, media_use).replace("pacing_factor = 1.0", "pacing_factor = 10.0");
        let result = run(&format!("[path.forward]\ncapacity = \"100 Mbps\"\ndelay = \"100 ms\"\n{flow}{bound}"));
        (result.assertions[0].measured.unwrap(), result.runs[0].trace_hash.clone())
    };
    let (absent, trace) = result("");
    for (media_use, least, most) in [
        ("conversation", 98.0, 99.0),
        ("game", 25.5, 27.5),
        ("teleoperation", 86.5, 88.5),
        ("contribution", 98.0, 99.0),
    ] {
        let (score, same) = result(&format!("use = \"{media_use}\""));
        within(media_use, score, least, most);
        assert_eq!(same, trace, "{media_use} changes more than the score");
        assert!(media_use != "conversation" || score == absent, "{score}, without the key {absent}");
    }
}
