// SPDX-License-Identifier: MIT OR Apache-2.0
//! The score of ten runs, computed a second time from their frames: the picture that a viewer sees in the middle of each millisecond, by the
//! formulas of `docs/explanation/score.md`.

use crate::fixtures::{self, observe};
use paceline_netsim::records::EventRecord;

/// A call from 0 to 24 s.
const SCENARIO: &str = r#"id = "test/score"
title = "One call"
duration = "24 s"
[path]
rtt = "50 ms"
[path.forward]
capacity = "2.5 Mbps"
queue = { discipline = "drop-tail", limit = "300 ms" }
[[flow]]
id = "call"
controller = "googcc"
encoder = { resolution = "720p", max = "2.5 Mbps" }
"#;

const STEP: &str = "path.forward.capacity=[[\"0s\", \"2.5Mbps\"], [\"9s\", \"400kbps\"], [\"16s\", \"2.5Mbps\"]]";
const GAME: &str = "flow.call.encoder={ resolution = \"1080p\", fps = 60, min = \"1 Mbps\", max = \"30 Mbps\" }";

/// What a run changes, the ages up to which a picture is as good as new and from which on it is worth nothing, s, the rates of the worst and of the
/// best quality, bit/s, and whether frames wait in a jitter buffer.
type Run = (&'static [&'static str], (f64, f64), (f64, f64), bool);

const CALL: (f64, f64) = (0.15, 1.0);
const HD: (f64, f64) = (100e3, 2.5e6);
const RUNS: [Run; 10] = [
    (&[], CALL, HD, true),
    (&["path.forward.capacity=600kbps"], CALL, HD, true),
    (&[STEP], CALL, HD, true),
    (&[STEP, "flow.call.controller=fixed", "flow.call.config={ rate_bps = 1e6 }"], CALL, HD, true),
    (&["path.forward.loss=3 %", "flow.call.controller=nada"], CALL, HD, true),
    (&["path.forward.jitter={ std = \"30 ms\" }"], CALL, HD, true),
    (&["path.rtt=600ms", "flow.call.controller=scream-v2"], CALL, HD, true),
    (
        &["flow.call.encoder.resolution=1080p", "flow.call.encoder.max=6 Mbps", "path.forward.capacity=5Mbps"],
        CALL,
        (200e3, 5e6),
        true,
    ),
    (&[GAME, "flow.call.use=game", "path.forward.capacity=20Mbps"], (0.06, 0.3), (1e6, 30e6), false),
    (&["flow.call.use=teleoperation", "flow.call.controller=drc", STEP], (0.1, 0.5), HD, false),
];

/// A frame that was rendered, s and bytes.
#[derive(Clone, Copy)]
struct Frame {
    at: f64,
    captured: f64,
    size: f64,
}

fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// Returns the frames with the times at which they leave the jitter buffer.
fn rendered(complete: &[Frame]) -> Vec<Frame> {
    let (mut mean, mut variance, mut length, mut last) = (0.0, 4e-6_f64, 0.0_f64, 0.0);
    let mut all = Vec::new();
    for (n, frame) in complete.iter().enumerate() {
        let delay = |frame: &Frame| frame.at - frame.captured;
        let known = complete[..=n].iter().filter(|earlier| earlier.at >= frame.at - 2.0);
        let least = known.map(delay).fold(f64::INFINITY, f64::min);
        if n > 0 {
            let (change, limit) = (delay(frame) - delay(&complete[n - 1]), 3.5 * variance.sqrt() + 5e-4);
            let weight = 1.0 / n.min(400) as f64;
            let deviation = change.min(limit).max(-limit) - mean;
            mean += weight * deviation;
            variance = ((1.0 - weight) * variance + weight * deviation * deviation).max(1e-6);
            let most = 0.1 * (frame.captured - complete[n - 1].captured);
            length += (2.33 * variance.sqrt() - length).clamp(-most, most);
        }
        last = (frame.captured + least + length).max(frame.at).max(last);
        all.push(Frame { at: last, ..*frame });
    }
    all
}

/// Returns the quality of each frame when it is displayed.
fn qualities(frames: &[Frame], (worst, best): (f64, f64)) -> Vec<f64> {
    let quality = |n: usize| {
        let captured = frames[n].captured;
        let time = captured.clamp(0.1, 1.0);
        let bytes: f64 =
            frames[..=n].iter().filter(|frame| frame.captured > captured - time).map(|frame| frame.size).sum();
        (ln((bytes * 8.0 / time / worst).max(1.0)) / ln(best / worst)).min(1.0)
    };
    (0..frames.len()).map(quality).collect()
}

/// Returns 100 times the mean over tens of seconds of the mean of their means and their worst second, weighted by their length.
fn pooled(seconds: &[f64]) -> f64 {
    let ten = |ten: &[f64]| {
        let (sum, least) = (ten.iter().sum::<f64>(), ten.iter().copied().fold(1.0, f64::min));
        (sum + least * ten.len() as f64) / 2.0
    };
    100.0 * seconds.chunks(10).map(ten).sum::<f64>() / seconds.len() as f64
}

/// Returns the score and the points lost to rate.
fn score(frames: &[Frame], (free, useless): (f64, f64), quality: &[f64], duration: usize) -> (f64, f64) {
    let mut seconds = vec![[0.0; 2]; duration];
    let mut displayed: Option<usize> = None;
    let mut next = 0;
    for ms in 0..duration * 1000 {
        let now = (ms as f64 + 0.5) / 1000.0;
        while next < frames.len() && frames[next].at <= now {
            if displayed.is_none_or(|shown| frames[next].captured > frames[shown].captured) {
                displayed = Some(next);
            }
            next += 1;
        }
        let age = displayed.map_or(f64::INFINITY, |shown| now - frames[shown].captured);
        let worth = if age <= free { 1.0 } else { (ln(useless / age) / ln(useless / free)).max(0.0) };
        // Without a picture its quality is 1, and it is frozen.
        let quality = displayed.map_or(1.0, |shown| quality[shown]);
        let second = &mut seconds[ms / 1000];
        second[0] += quality * worth / 1000.0;
        second[1] += quality / 1000.0;
    }
    let [all, rate] = [0, 1].map(|n| pooled(&seconds.iter().map(|second| second[n]).collect::<Vec<_>>()));
    (all, 100.0 - rate)
}

#[test]
fn ten_runs_have_the_score_of_their_frames() {
    let mut scores = Vec::new();
    for (settings, ages, rates, waits) in RUNS {
        let scenario = fixtures::scenario(SCENARIO, settings);
        let mut complete = Vec::new();
        let run = observe(&scenario, 1, |event| {
            if let EventRecord::Frame { at, captured, size, .. } = *event {
                let [at, captured] = [at, captured].map(|time| (time - paceline_units::Time::ZERO).as_secs_f64());
                complete.push(Frame { at, captured, size: size.as_bytes() as f64 });
            }
        });
        let frames = if waits { rendered(&complete) } else { complete };
        let (score, lost_to_rate) = score(&frames, ages, &qualities(&frames, rates), 24);
        let found = run.whole.flows[0].score.unwrap();
        println!("{settings:?} {found:?} {score} {lost_to_rate}");
        assert!((found.score - score).abs() < 0.03, "{settings:?}: {found:?}, by hand {score}");
        assert!((found.lost_to_rate - lost_to_rate).abs() < 0.03, "{settings:?}: {found:?}, by hand {lost_to_rate}");
        scores.push(score);
    }
    // They are of good calls and of bad ones.
    let (least, most) =
        scores.iter().fold((100.0_f64, 0.0_f64), |(least, most), score| (least.min(*score), most.max(*score)));
    assert!(least < 40.0 && most > 80.0, "{scores:?}");
}
