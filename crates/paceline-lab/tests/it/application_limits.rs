// SPDX-License-Identifier: MIT OR Apache-2.0
//! Application-limited phases of `googcc`: the estimate while the sources send little, and after they resume.

use crate::fixtures::{observe, scenario, within};
use paceline_netsim::records::EventRecord;
use paceline_units::Rate;

/// What a flow sends and receives in each second, and its target at the end of it, bit/s.
struct Seconds {
    sent: Vec<f64>,
    received: Vec<f64>,
    target: Vec<f64>,
}

const DURATION: usize = 150;
/// The application limits the flow until then, s.
const RESUMED: usize = 120;
const LINK_BPS: f64 = 2e6;

/// The camera has a highest rate of 300 kbit/s until [`RESUMED`].
const SMALL: &str = "max_rate = [[\"0s\", \"300 kbps\"], [\"120s\", \"2.5 Mbps\"]]";
/// The camera fills the link for 30 s, and is then muted until [`RESUMED`].
const MUTED: &str = "muted = [[\"0s\", false], [\"30s\", true], [\"120s\", false]]";
const PAUSED: &str = "max_rate = [[\"0s\", \"2.5 Mbps\"], [\"30s\", \"0 bps\"], [\"120s\", \"2.5 Mbps\"]]";
/// libwebrtc probes an application-limited flow if it shares a screen.
const PERIODIC: &str = "flow.call.config.probe_periodic=1";

/// Runs audio and a camera that changes as `camera` says.
fn run(controller: &str, camera: &str, settings: &[&str], seed: u64) -> Seconds {
    let text = format!(
        "id = \"test/limited\"\ntitle = \"Limited\"\nduration = \"{DURATION}s\"\n[path]\nrtt = \"50ms\"\n\
         [path.forward]\ncapacity = \"2 Mbps\"\n[[flow]]\nid = \"call\"\ncontroller = \"{controller}\"\n\
         [[flow.stream]]\nid = \"audio\"\nencoder = {{ source = \"audio-32k\" }}\n\
         [[flow.stream]]\nid = \"camera\"\nencoder = {{ source = \"720p30\" }}\n\
         {camera}\n"
    );
    let scenario = scenario(&text, settings);
    let zero = || vec![0.0; DURATION + 1];
    let mut run = Seconds { sent: zero(), received: zero(), target: zero() };
    let mut target = Rate::ZERO;
    observe(&scenario, seed, |event| match *event {
        EventRecord::Sent { at, packet } if !packet.class.is_from_receiver() => {
            let second = at.as_secs_f64() as usize;
            run.sent[second] += packet.size.as_bits() as f64;
            run.target[second] = target.as_bps_f64();
        }
        EventRecord::Crossed { at, hop: 0, packet, .. } => {
            run.received[at.as_secs_f64() as usize] += packet.size.as_bits() as f64;
        }
        EventRecord::Decision { target: next, .. } => target = next,
        _ => {}
    });
    run
}

impl Seconds {
    /// Returns the highest and the lowest target over what is sent, once the application has limited the flow for 30 s.
    fn target_over_sent(&self) -> (f64, f64) {
        let limited = 60..RESUMED;
        let sent = self.sent[limited.clone()].iter().sum::<f64>() / limited.len() as f64;
        let ratios = self.target[limited].iter().map(|target| target / sent);
        ratios.fold((0.0, f64::INFINITY), |(high, low), ratio| (f64::max(high, ratio), low.min(ratio)))
    }

    /// Returns the seconds from the end of the limit until the flow receives 80 % of the link in a second.
    fn seconds_until_used(&self) -> f64 {
        let used = (RESUMED..DURATION).find(|second| self.received[*second] >= 0.8 * LINK_BPS);
        used.map_or(f64::INFINITY, |second| (second + 1 - RESUMED) as f64)
    }

    /// Returns whether the target is at most three times what is sent and does not collapse, and whether the link is used again
    /// within 5 s.
    fn passes(&self) -> bool {
        let (high, low) = self.target_over_sent();
        high <= 3.0 && low >= 1.0 && self.seconds_until_used() <= 5.0
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Up to twice what the sources can send is probed, and no more.
#[test]
fn estimate_stays_near_what_is_sent_and_the_link_is_used_again() {
    for settings in [&[][..], &[PERIODIC]] {
        let mut times = Vec::new();
        for seed in 1..=8 {
            let run = run("googcc", SMALL, settings, seed);
            let (high, low) = run.target_over_sent();
            within(&format!("{settings:?}, seed {seed}: target over sent"), high, 1.4, 3.0);
            within(&format!("{settings:?}, seed {seed}: lowest"), low, 1.0, 2.5);
            times.push(run.seconds_until_used());
        }
        println!("{settings:?}: seconds until the link is used {times:?}");
        within("median of the seconds until the link is used", median(times), 1.0, 5.0);
    }
}

/// The estimate of a camera that was muted or paused stays what the link had, as in libwebrtc: it does not grow, and does not
/// collapse.
#[test]
fn estimate_is_held_while_the_camera_is_muted_or_pauses() {
    for camera in [MUTED, PAUSED] {
        let mut times = Vec::new();
        for seed in 1..=8 {
            let run = run("googcc", camera, &[], seed);
            let before = run.target[20..30].iter().copied().fold(0.0, f64::max);
            let highest = run.target[40..RESUMED].iter().copied().fold(0.0, f64::max);
            // The rate may grow by 8 % in the second after which the acknowledged rate contains no more video.
            within(&format!("{camera}, seed {seed}: highest target over that before"), highest / before, 0.8, 1.09);
            within(&format!("{camera}, seed {seed}: last over highest"), run.target[RESUMED - 1] / highest, 0.95, 1.0);
            times.push(run.seconds_until_used());
        }
        println!("{camera}: seconds until the link is used {times:?}");
        if camera == MUTED {
            within("median of the seconds until the link is used", median(times), 1.0, 5.0);
        }
    }
}

/// A constant rate up to three times what is sent does not use the link, and a higher one is too high before.
#[test]
fn a_constant_rate_fails() {
    for kbps in [100, 300, 700, 1100, 1500, 1700, 2000] {
        for camera in [SMALL, MUTED] {
            let rate = format!("flow.call.config.rate_bps={}", kbps * 1000);
            assert!(!run("fixed", camera, &[&rate], 1).passes(), "{kbps} kbit/s, {camera}");
        }
    }
}
