//! Several senders on the same links: a table of their calls, and a figure for each case with the rates of all.
//!
//! ```console
//! cargo run --release -p paceline-lab --example beside -- RUNS FIGURES chromium googcc simulator
//! ```
//!
//! `RUNS` contains `CASE/SENDER-SEED`, as `cargo xtask beside` writes it. The first sender is the reference.

use paceline_lab::report::read::{Event, Results, Run};
use std::error::Error;
use std::fmt::Write as _;
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

const COLORS: [&str; 3] = ["#3b6fb6", "#d1622b", "#4a8f3c"];

/// The figures of a call.
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
    if !(2..=COLORS.len()).contains(&senders.len()) {
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
        fs::write(Path::new(figures).join(format!("{name}.svg")), page(&name, senders, &calls))?;
    }
    Ok(())
}

/// Reads the calls of a sender in the folder of a case.
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
    run.tables().packets(|rows| {
        for row in rows {
            let bin = ((row.time_ns as f64 * 1e-9 / BIN_S) as usize).min(bins - 1);
            let is_counted = row.time_ns as f64 >= FROM_S * 1e9;
            match row.event {
                Event::Arrived { .. } if row.is_forward && row.flow == 0 => {
                    let bits = f64::from(row.size_bytes) * 8.0;
                    rate[bin] += bits * 1e-6 / BIN_S;
                    received_bits += if is_counted { bits } else { 0.0 };
                    let step = ((row.time_ns as f64 * 1e-9 / STEP_S) as usize).min(steps.len() - 1);
                    steps[step] += bits;
                }
                Event::Crossed { hop: 0, waited_ns, .. } => {
                    let wait_ms = waited_ns as f64 * 1e-6;
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

/// A panel of a page: its place, its axis, and the values of a call.
struct Panel {
    top: f64,
    height: f64,
    title: &'static str,
    most: f64,
    step: f64,
    values: fn(&Call) -> &[f64],
}

const LEFT: f64 = 56.0;
const WIDTH: f64 = 760.0;

impl Panel {
    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - (value / self.most).min(1.0))
    }
}

/// Returns the page of a case as SVG: received rates above, the longest wait in the queue below. Thin lines are single calls.
fn page(name: &str, senders: &[String], calls: &[Vec<Call>]) -> String {
    let duration = calls[0][0].duration_s;
    let capacity = &calls[0][0].capacity;
    let most = capacity.iter().map(|(_, bps)| bps * 1e-6).fold(0.0, f64::max);
    let x = |s: f64| LEFT + WIDTH * s / duration;
    let step = if most > 2.6 {
        1.0
    } else if most > 1.1 {
        0.5
    } else {
        0.25
    };
    let panels = [
        Panel {
            top: 64.0,
            height: 240.0,
            title: "received rate, Mbit/s",
            most: 1.15 * most,
            step,
            values: |call| &call.rate,
        },
        Panel {
            top: 350.0,
            height: 130.0,
            title: "longest wait in the queue, ms",
            most: 320.0,
            step: 100.0,
            values: |call| &call.queue,
        },
    ];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 840 530\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"840\" height=\"530\" fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"20\" font-size=\"15\">link {name}: means of {} calls in bins of {BIN_S} s</text>\n",
        calls.iter().map(|of| of.len().to_string()).collect::<Vec<_>>().join(", ")
    );
    for (index, sender) in senders.iter().enumerate() {
        let at = LEFT + 110.0 * index as f64;
        let color = COLORS[index];
        let _ = writeln!(
            svg,
            "<path d=\"M{at} 38h22\" stroke=\"{color}\" stroke-width=\"2.5\"/><text x=\"{}\" y=\"42\">{sender}</text>",
            at + 28.0
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{0} 38h22\" stroke=\"#444\" stroke-dasharray=\"5 3\"/><text x=\"{1}\" y=\"42\">capacity</text>",
        LEFT + 110.0 * senders.len() as f64,
        LEFT + 110.0 * senders.len() as f64 + 28.0
    );
    for panel in &panels {
        axes(&mut svg, panel, duration, x);
        for (of, color) in calls.iter().zip(COLORS) {
            let lines = of.iter().map(|call| (panel.values)(call).to_vec());
            lines.for_each(|line| polyline(&mut svg, panel, &line, color, "0.8\" stroke-opacity=\"0.35", x));
            polyline(&mut svg, panel, &mean(of, panel.values), color, "2", x);
        }
    }
    let mut path = String::new();
    for (index, (from, bps)) in capacity.iter().enumerate() {
        let until = capacity.get(index + 1).map_or(duration, |(next, _)| *next);
        let y = panels[0].y(bps * 1e-6);
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {y:.1}L{:.1} {y:.1}", x(*from), x(until));
    }
    let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"#444\" stroke-dasharray=\"5 3\"/>");
    svg.push_str("</svg>\n");
    svg
}

fn axes(svg: &mut String, panel: &Panel, duration: f64, x: impl Fn(f64) -> f64) {
    let (bottom, right) = (panel.top + panel.height, LEFT + WIDTH);
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\" fill=\"#444\">{}</text>", panel.top - 6.0, panel.title);
    let mut tick = 0.0;
    while tick <= panel.most {
        let y = panel.y(tick);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#e2e2e2\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            LEFT - 6.0,
            y + 4.0
        );
        tick += panel.step;
    }
    for s in (0..=duration as u32).step_by(10) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{s}</text>",
            x(f64::from(s)),
            bottom + 16.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444\">time, s</text>",
        bottom + 30.0
    );
}

fn mean(calls: &[Call], values: fn(&Call) -> &[f64]) -> Vec<f64> {
    let bins = calls.iter().map(|call| values(call).len()).min().unwrap_or(0);
    (0..bins).map(|bin| calls.iter().map(|call| values(call)[bin]).sum::<f64>() / calls.len() as f64).collect()
}

fn polyline(svg: &mut String, panel: &Panel, values: &[f64], color: &str, width: &str, x: impl Fn(f64) -> f64) {
    let points = values
        .iter()
        .enumerate()
        .map(|(bin, value)| format!("{:.1},{:.1}", x((bin as f64 + 0.5) * BIN_S), panel.y(*value)));
    let points: Vec<String> = points.collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"/>",
        points.join(" ")
    );
}
