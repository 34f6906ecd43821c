// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the hosts and the encoder of a call add: the round-trip times of a path without delay, and the rate after each
//! step of the encoder's maximum.
//!
//! ```console
//! paceline call real/chromium-hosts --controllers chromium --repeats 3 --out hosts
//! cargo run --release -p paceline-lab --example hosts -- hosts 15 25 35 45 55.1 75
//! ```
//!
//! The numbers are the times of the steps, s, and the end of the last one.

use paceline_lab::report::read::{Results, Run};
use paceline_netsim::records::EventRecord;
use std::error::Error;
use std::path::Path;

/// The rate before and after a step is the mean of this many last seconds.
const STEADY_S: f64 = 4.0;
/// The reaction is seen in means over three frames, s.
const REACTION_S: f64 = 0.1;
/// The new rate is reached in means over this time, s.
const REACHED_S: f64 = 0.5;
/// The new rate is reached within this share of it.
const REACHED_WITHIN: f64 = 0.1;
/// Distance of the means, s.
const GRID_S: f64 = 0.01;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("a folder of results is missing")?;
    let times = args.map(|time| time.parse()).collect::<Result<Vec<f64>, _>>()?;
    let results = Results::open(Path::new(&dir))?;
    println!("run   rtt: n   5 %   median   95 %   mean ms");
    let mut means = Vec::new();
    for run in &results.runs {
        let mut rtts = round_trips(run)?;
        rtts.sort_by(f64::total_cmp);
        let at = |share: f64| rtts[((rtts.len() - 1) as f64 * share).round() as usize];
        let mean = rtts.iter().sum::<f64>() / rtts.len() as f64;
        println!(
            "{:>3} {:>8} {:>6.2} {:>7.2} {:>6.2} {mean:>7.2}",
            run.about.run.seed,
            rtts.len(),
            at(0.05),
            at(0.5),
            at(0.95)
        );
        means.push(mean);
    }
    println!("mean of the runs: {} ms\n", summary(&means));
    println!(
        "step at   from     to kbit/s   reaction s   reached s   least and most in the first second, of the new rate"
    );
    let sent = results.runs.iter().map(sent).collect::<Result<Vec<_>, _>>()?;
    for span in times.windows(2) {
        let steps: Vec<Step> = sent.iter().map(|sent| sent.step(span[0], span[1])).collect();
        let of = |value: fn(&Step) -> f64| summary(&steps.iter().map(value).collect::<Vec<_>>());
        let [from, to, reaction] = [of(|s| s.from_kbps), of(|s| s.to_kbps), of(|s| s.reaction_s)];
        println!(
            "{:>7}   {from}   {to}   {reaction}   {}   {}   {}",
            span[0],
            of(|s| s.reached_s),
            of(|s| s.least),
            of(|s| s.most)
        );
    }
    Ok(())
}

/// Returns the mean and the smallest and largest value.
fn summary(values: &[f64]) -> String {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let [low, high] =
        [values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(f64::MIN, f64::max)];
    let digits = if mean >= 100.0 { 0 } else { 2 };
    format!("{mean:.digits$} ({low:.digits$} to {high:.digits$})")
}

/// Returns the round-trip times of a run, ms.
fn round_trips(run: &Run) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut all = Vec::new();
    run.tables().flows(|events| {
        all.extend(events.iter().filter_map(|event| match event {
            EventRecord::RoundTrip { rtt, .. } => Some(rtt.as_millis_f64()),
            _ => None,
        }));
    })?;
    match all.is_empty() {
        true => Err("a run without round-trip times".into()),
        false => Ok(all),
    }
}

/// The packets of a sender: time, s, and the bytes sent until then.
struct Sent(Vec<(f64, f64)>);

/// The response to a step.
struct Step {
    from_kbps: f64,
    to_kbps: f64,
    /// Time until the mean of three frames has passed the middle of both rates.
    reaction_s: f64,
    /// Time until the mean of half a second is the new rate.
    reached_s: f64,
    /// Least and most of the mean of half a second that begins within a second after the step, of the new rate.
    least: f64,
    most: f64,
}

fn sent(run: &Run) -> Result<Sent, Box<dyn Error>> {
    let (mut sent, mut bytes) = (Vec::new(), 0.0);
    run.tables().packets(|events| {
        for event in events {
            if let EventRecord::Sent { at, packet } = event
                && !packet.class.is_from_receiver()
            {
                bytes += packet.size.as_bytes() as f64;
                sent.push((at.as_secs_f64(), bytes));
            }
        }
    })?;
    Ok(Sent(sent))
}

impl Sent {
    fn bytes_until(&self, time: f64) -> f64 {
        let after = self.0.partition_point(|(at, _)| *at < time);
        after.checked_sub(1).map_or(0.0, |last| self.0[last].1)
    }

    /// Returns the mean rate between two times, kbit/s.
    fn kbps(&self, from: f64, to: f64) -> f64 {
        (self.bytes_until(to) - self.bytes_until(from)) * 8e-3 / (to - from)
    }

    fn step(&self, at: f64, until: f64) -> Step {
        let (from_kbps, to_kbps) = (self.kbps(at - STEADY_S, at), self.kbps(until - STEADY_S, until));
        let grid = || (0..).map(|n| f64::from(n) * GRID_S).take_while(move |after| at + after + REACHED_S < until);
        let middle = (from_kbps + to_kbps) / 2.0;
        let first = |holds: &dyn Fn(f64) -> bool| grid().find(|after| holds(at + after)).unwrap_or(f64::NAN);
        let early = |worse: fn(f64, f64) -> f64| {
            let means =
                grid().take_while(|after| *after <= 1.0).map(|after| self.kbps(at + after, at + after + REACHED_S));
            means.reduce(worse).unwrap_or(f64::NAN) / to_kbps
        };
        Step {
            from_kbps,
            to_kbps,
            reaction_s: first(&|time| (self.kbps(time, time + REACTION_S) > middle) == (to_kbps > from_kbps)),
            reached_s: first(&|time| (self.kbps(time, time + REACHED_S) / to_kbps - 1.0).abs() < REACHED_WITHIN),
            least: early(f64::min),
            most: early(f64::max),
        }
    }
}
