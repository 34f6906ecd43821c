// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss protection on a whole path: its share of the target, and that the metrics add up.

use crate::fixtures::{metric, scenario, within};
use paceline::Registry;
use paceline_lab::metrics::WindowResult;
use paceline_lab::run::{RunResult, Runner};
use paceline_netsim::records::{EventObserver, EventRecord, PacketClass};

/// The testbed of fhmn13 (2 Mbit/s, RTT of 50 ms, buffer of 60 KB, encoder of up to 2 Mbit/s), with two seconds in which
/// a fifth is lost.
const LOSSY: &str = r#"
id = "test/protection"
title = "One protected flow"
duration = "80s"
[path]
rtt = "50ms"
[path.forward]
capacity = "2Mbps"
queue = { limit = "60 KB" }
loss = [["0s", "0 %"], ["40s", "20 %"], ["42s", "0 %"]]
[[flow]]
id = "video"
controller = "gcc-2016"
encoder = { max = "2Mbps" }
protection = { fec = "ulpfec", resend_budget = "rtt" }
[[assert]]
id = "before"
metric = "fec_share"
window = ["0s", "40s"]
bounds = [0.0, 0.0]
[[assert]]
id = "after"
metric = "fec_share"
window = ["44s", "50s"]
bounds = [0.45, 0.51]
[[assert]]
id = "later"
metric = "fec_share"
window = ["56s", "80s"]
bounds = [0.0, 0.0]
"#;

/// Bits of FEC sent and of the target, in each second.
#[derive(Default)]
struct FecBins {
    fec_bits: Vec<f64>,
    target_bits: Vec<f64>,
    target: f64,
    at: f64,
}

impl FecBins {
    fn add(bins: &mut Vec<f64>, second: usize, value: f64) {
        bins.resize(bins.len().max(second + 1), 0.0);
        bins[second] += value;
    }
    fn settle(&mut self, at: f64) {
        while self.at < at {
            let second = self.at as usize;
            let next = at.min(second as f64 + 1.0);
            Self::add(&mut self.target_bits, second, self.target * (next - self.at));
            self.at = next;
        }
    }
    fn fec_over_target(&self, from: usize, to: usize) -> f64 {
        let sum = |bins: &[f64]| bins.iter().take(to).skip(from).sum::<f64>();
        sum(&self.fec_bits) / sum(&self.target_bits)
    }
}

impl EventObserver for FecBins {
    fn on_event(&mut self, event: &EventRecord) {
        match event {
            EventRecord::Sent { at, packet } if packet.class == PacketClass::Fec => {
                Self::add(&mut self.fec_bits, at.as_secs_f64() as usize, packet.size.as_bits() as f64);
            }
            EventRecord::Decision { at, target, .. } => {
                self.settle(at.as_secs_f64());
                self.target = target.as_bps_f64();
            }
            _ => {}
        }
    }
}

fn run(settings: &[&str]) -> (RunResult, FecBins) {
    let (scenario, registry) = (scenario(LOSSY, settings), Registry::standard());
    let mut bins = FecBins::default();
    let result = Runner::simulator(&registry).run(&scenario, 1, Some(&mut bins)).unwrap();
    bins.settle(scenario.plan.duration.as_secs_f64());
    bins.fec_bits.resize(bins.target_bits.len(), 0.0);
    (result, bins)
}

fn value(result: &WindowResult, id: &str) -> Option<f64> {
    metric(result, id, Some(0))
}

/// fhmn13, figure 4: FEC takes half of A_s after losses, and nothing without losses.
#[test]
fn fec_takes_half_of_the_target_after_losses_and_nothing_without() {
    let (result, bins) = run(&[]);
    assert_eq!(bins.fec_over_target(0, 40), 0.0);
    within("r_FEC / A_s", bins.fec_over_target(44, 50), 0.45, 0.5);
    assert_eq!(bins.fec_over_target(56, 80), 0.0);
    let [before, after, later] = &result.windows[..] else { panic!("{} windows", result.windows.len()) };
    let share = |window: &WindowResult| value(window, "fec_share").unwrap();
    assert_eq!((share(before), share(later)), (0.0, 0.0));
    // A FEC packet is a few bytes longer than what it protects, and reports take a little of the target too.
    within("of what was sent", share(after), 0.45, 0.51);
    within("largest of 5 s", value(&result.whole, "fec_over_target_max").unwrap(), 0.45, 0.5);
    // The encoder gets what FEC and retransmissions leave, headers included.
    let sent_of_target = result.whole.flows[0].sent_over_target.unwrap();
    within("least sent over target", sent_of_target.0, 0.85, 1.0);
    within("most sent over target", sent_of_target.1, 0.97, 1.08);
}

/// U = g + r_FEC / b + r_RTX / b (fhmn13, section 3), except for sender reports and padding.
#[test]
fn utilisation_is_media_fec_and_retransmissions() {
    let (result, _) = run(&[]);
    for window in result.windows.iter().chain([&result.whole]) {
        let of = |metric| value(window, metric).unwrap();
        let sum = of("good_utilization") + of("fec_utilization") + of("rtx_utilization");
        within("the sum over U", sum / of("utilization"), 0.99, 1.0);
    }
    let whole = |metric| value(&result.whole, metric).unwrap();
    // 11 s of 80 with half of the rate.
    within("FEC", whole("fec_utilization"), 0.02, 0.08);
    within("retransmissions", whole("rtx_utilization"), 0.0005, 0.02);
    within("media", whole("good_utilization"), 0.5, 0.8);
}

#[test]
fn protection_is_off_by_default() {
    let (plain, bins) = run(&["flow.video.protection={}"]);
    assert_eq!(bins.fec_over_target(0, 80), 0.0);
    let none = ["fec_share", "fec_utilization", "fec_over_target_max"].map(|metric| value(&plain.whole, metric));
    assert_eq!(none, [None; 3], "a flow without FEC has no share of it");
    within("retransmissions", value(&plain.whole, "rtx_share").unwrap(), 0.002, 0.02);
    // The losses are those of the path: repair changes neither how many packets it loses nor what reports say.
    let (protected, _) = run(&[]);
    within("loss", plain.whole.flows[0].loss_ratio, 0.002, 0.02);
    within("loss with FEC", protected.whole.flows[0].loss_ratio, 0.002, 0.02);
    assert_ne!(plain.trace_hash, protected.trace_hash);
}

/// A cumulative count that retransmissions fill misses only what was not repaired.
#[test]
fn repaired_losses_are_missing_from_the_cumulative_count() {
    let settings = ["path.forward.loss=\"3 %\"", "flow.video.protection={}", "duration=60s"];
    let losses = |retransmit: &str| {
        let (result, _) = run(&[&settings[..], &[retransmit]].concat());
        ["loss_ratio", "cumulative_loss_ratio"].map(|metric| value(&result.whole, metric).unwrap())
    };
    let [lost, missing] = losses("flow.video.retransmit=true");
    within("loss", lost, 0.02, 0.04);
    within("loss that was not repaired", missing, 0.0, 0.01);
    let [lost, missing] = losses("flow.video.retransmit=false");
    within("loss without retransmissions", lost, 0.02, 0.04);
    assert_eq!(lost, missing);
}

/// On a long path retransmissions are late but FEC is in time, so fewer frames wait.
#[test]
fn fec_shortens_frame_delays_on_a_long_path() {
    let delay = |fec: &str| {
        let protection = format!("flow.video.protection.fec={fec}");
        let settings = [protection.as_str(), "path.rtt=\"200ms\"", "path.forward.loss=\"3 %\"", "duration=60s"];
        let (result, _) = run(&settings);
        result.whole.flows[0].streams[0].frame_delay_ms.unwrap().p95
    };
    let (without, with) = (delay("none"), delay("ulpfec"));
    within("95 % of frame delays without FEC, ms", without, 300.0, 1500.0);
    within("the same with FEC, ms", with, 100.0, without - 100.0);
}
