// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several senders on the same links: a table of their calls, and a figure for each case with the rates of all.
//!
//! ```console
//! cargo run --release -p paceline-lab --example beside -- RUNS FIGURES chromium googcc simulator
//! ```
//!
//! `RUNS` contains `CASE/SENDER-SEED`, as `cargo xtask beside` writes it. The first sender is the reference.

use paceline_lab::report::figure::{Axis, Figure, Panel, Role, Series, SeriesKind, Subject};
use paceline_lab::report::read::{Results, Run};
use paceline_lab::report::svg;
use paceline_netsim::records::{EventRecord, Summary};
use std::error::Error;
use std::fs;
use std::path::Path;

/// Length of a bin of a figure, s.
const BIN_S: f64 = 0.5;
/// Utilisation and queue are those from this time on, s; the start has a column of its own.
const FROM_S: f64 = 10.0;
/// Utilisations agree within this many points.
const WITHIN_POINTS: f64 = 3.0;
/// The 95th percentiles of the queue agree within this time, ms.
const WITHIN_MS: f64 = 20.0;

/// A start is over when the packets of one second fill this share of the link; in steps of this time, s.
const START_SHARE: f64 = 0.9;
const STEP_S: f64 = 0.1;

/// Most senders of a figure.
const SENDERS_MAX: usize = 3;

struct Call {
    /// Received share of the capacity from [`FROM_S`] on, %.
    used: f64,
    /// 95th percentile of the waits in the queue from then on, ms.
    queue_p95_ms: f64,
    /// The time at which the start is over, s; `None` for never.
    start_s: Option<f64>,
    /// Received rate in each bin, Mbit/s.
    rate: Vec<f64>,
    /// Longest wait in the queue in each bin, ms.
    queue: Vec<f64>,
    capacity: Vec<(f64, f64)>,
    duration_s: f64,
}

const USAGE: &str = "takes RUNS FIGURES REFERENCE OTHER [OTHER]";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [runs, figures, senders @ ..] = args.as_slice() else { return Err(USAGE.into()) };
    if !(2..=SENDERS_MAX).contains(&senders.len()) {
        return Err(USAGE.into());
    }
    let mut cases: Vec<_> = fs::read_dir(runs)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    cases.retain(|case| case.is_dir());
    cases.sort();
    let names = senders.join(" | ");
    println!(
        "| link | utilisation from {FROM_S} s, %: {names} | queue from {FROM_S} s, p95, ms: {names} | start, s: {names} |"
    );
    println!("|---{}|", "|---:".repeat(3 * senders.len()));
    for case in cases {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let calls: Vec<_> = senders.iter().map(|sender| calls(&case, sender)).collect::<Result<_, _>>()?;
        if calls.iter().any(Vec::is_empty) {
            eprintln!("{name}: no run of one of the senders");
            continue;
        }
        println!("{}", row(&name, &calls));
        fs::write(Path::new(figures).join(format!("{name}.svg")), svg::draw(&figure(&name, senders, &calls)))?;
    }
    Ok(())
}

fn calls(case: &Path, sender: &str) -> Result<Vec<Call>, Box<dyn Error>> {
    let mut folders: Vec<_> = fs::read_dir(case)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    folders.sort();
    let is_of = |folder: &Path| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.rsplit_once('-').is_some_and(|(of, seed)| of == sender && seed.parse::<u64>().is_ok())
    };
    let mut all = Vec::new();
    for folder in folders.iter().filter(|folder| is_of(folder) && folder.join("results.sqlite").is_file()) {
        for run in &Results::open(folder)?.runs {
            all.push(call(run)?);
        }
    }
    Ok(all)
}

fn call(run: &Run) -> Result<Call, Box<dyn Error>> {
    let duration_s = run.duration_s();
    let bins = (duration_s / BIN_S).ceil() as usize;
    let mut steps = vec![0.0; (duration_s / STEP_S).ceil() as usize];
    let (mut rate, mut queue) = (vec![0.0; bins], vec![0.0f64; bins]);
    let (mut received_bits, mut waits_ms) = (0.0, Vec::new());
    run.tables().packets(|events| {
        for event in events {
            let at = event.at().as_secs_f64();
            let bin = ((at / BIN_S) as usize).min(bins - 1);
            let is_counted = at >= FROM_S;
            match event {
                EventRecord::Arrived { packet, .. } if !packet.class.is_from_receiver() && packet.flow.0 == 0 => {
                    let bits = packet.size.as_bits() as f64;
                    rate[bin] += bits * 1e-6 / BIN_S;
                    received_bits += if is_counted { bits } else { 0.0 };
                    let step = ((at / STEP_S) as usize).min(steps.len() - 1);
                    steps[step] += bits;
                }
                EventRecord::Crossed { hop: 0, waited, .. } => {
                    let wait_ms = waited.as_millis_f64();
                    queue[bin] = queue[bin].max(wait_ms);
                    waits_ms.extend(is_counted.then_some(wait_ms));
                }
                _ => {}
            }
        }
    })?;
    let description = run.description().ok_or("a folder of an older version")?;
    let capacity = description.hops[0].capacity.clone().unwrap_or_default();
    let until = |place: usize| capacity.get(place + 1).map_or(duration_s, |(next, _)| *next);
    let bits_of = |(place, (from, bps)): (usize, &(f64, f64))| bps * (until(place) - from.max(FROM_S)).max(0.0);
    let used = 100.0 * received_bits / capacity.iter().enumerate().map(bits_of).sum::<f64>();
    waits_ms.sort_by(f64::total_cmp);
    let place = (waits_ms.len() as f64 * 0.95).ceil() as usize;
    let queue_p95_ms = *place.checked_sub(1).and_then(|place| waits_ms.get(place)).ok_or("no packet was counted")?;
    let goal = START_SHARE * capacity.first().map_or(f64::INFINITY, |(_, bps)| *bps);
    let second = (1.0 / STEP_S).round() as usize;
    let start = steps.windows(second).position(|bits| bits.iter().sum::<f64>() >= goal);
    let start_s = start.map(|first| (first + second) as f64 * STEP_S);
    Ok(Call { used, queue_p95_ms, start_s, rate, queue, capacity, duration_s })
}

/// Returns the times at which the starts are over, as text.
fn starts(calls: &[Call]) -> String {
    let times = calls.iter().map(|call| call.start_s.map_or("never".to_owned(), |time| format!("{time:.1}")));
    times.collect::<Vec<_>>().join(", ")
}

/// Returns mean, smallest and largest value of each sender as cells; a mean further from the reference's is marked.
fn cells(calls: &[Vec<Call>], digits: usize, within: f64, value: fn(&Call) -> f64) -> String {
    let mean = |calls: &[Call]| calls.iter().map(value).sum::<f64>() / calls.len() as f64;
    let cells = calls.iter().map(|of| {
        let low = of.iter().map(value).fold(f64::MAX, f64::min);
        let high = of.iter().map(value).fold(f64::MIN, f64::max);
        let mark = if (mean(of) - mean(&calls[0])).abs() > within { ", **outside**" } else { "" };
        format!("{:.digits$} ({low:.digits$} to {high:.digits$}){mark}", mean(of))
    });
    cells.collect::<Vec<_>>().join(" | ")
}

fn row(name: &str, calls: &[Vec<Call>]) -> String {
    let used = cells(calls, 1, WITHIN_POINTS, |call| call.used);
    let queue = cells(calls, 0, WITHIN_MS, |call| call.queue_p95_ms);
    let starts: Vec<String> = calls.iter().map(|of| starts(of)).collect();
    format!("| {name} | {used} | {queue} | {} |", starts.join(" | "))
}

/// Returns the figure of a case: received rates above, the longest wait in the queue below, each the mean of the calls with its interval.
fn figure(name: &str, senders: &[String], calls: &[Vec<Call>]) -> Figure {
    let Call { duration_s, capacity, .. } = &calls[0][0];
    let counts: Vec<String> = calls.iter().map(|of| of.len().to_string()).collect();
    let title = format!("link {name}: means of {} calls in bins of {BIN_S} s", counts.join(", "));
    let mut limit = Series::new("capacity", "capacity", 0, Role::Limit, SeriesKind::Steps);
    limit.subject = None;
    capacity.iter().for_each(|(from, bps)| limit.push(*from, bps * 1e-6));
    limit.push(*duration_s, capacity.last().map_or(f64::NAN, |(_, bps)| bps * 1e-6));
    let panel = |label: &str, unit: &str, limits: Vec<Series>, values: fn(&Call) -> &[f64]| Panel {
        id: label.to_owned(),
        title: title.clone(),
        caption: String::new(),
        x: Axis::time(*duration_s),
        y: Axis::new(label, unit),
        series: calls.iter().enumerate().map(|(sender, of)| mean(sender, of, values)).chain(limits).collect(),
    };
    Figure {
        id: name.to_owned(),
        scenario: String::new(),
        title: String::new(),
        subjects: senders.iter().map(|name| Subject::named(name)).collect(),
        panels: vec![
            panel("received rate", "Mbit/s", vec![limit], |call| &call.rate),
            panel("longest wait in the queue", "ms", Vec::new(), |call| &call.queue),
        ],
    }
}

/// Returns the mean of the calls of a sender in each bin, with its interval.
fn mean(sender: usize, calls: &[Call], values: fn(&Call) -> &[f64]) -> Series {
    let mut line = Series::new("mean", "mean", sender, Role::Main, SeriesKind::Line);
    let bins = calls.iter().map(|call| values(call).len()).min().unwrap_or(0);
    for bin in 0..bins {
        let of_bin: Vec<f64> = calls.iter().map(|call| values(call)[bin]).collect();
        let Some(Summary { mean, ci95, .. }) = Summary::from_values(&of_bin) else { continue };
        line.push((bin as f64 + 0.5) * BIN_S, mean);
        line.ci95.push(if ci95.is_finite() { ci95 } else { 0.0 });
    }
    line
}
