//! Two controllers on the same links: a table of their calls, and a page for each case with the rates of both.
//!
//! ```console
//! cargo run --release -p paceline-lab --example beside -- RUNS FIGURES chromium googcc
//! ```
//!
//! `RUNS` contains `CASE/CONTROLLER-SEED`, as `cargo xtask beside` writes it. The first controller is the reference.

use paceline_lab::report::read::{Event, Results, Run};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Length of a bin of a figure, s.
const BIN_S: f64 = 0.5;
/// Utilisations agree within this many points.
const WITHIN_POINTS: f64 = 5.0;
/// The 95th percentiles of the queue agree within this time, ms, or within this share of the reference.
const WITHIN_MS: f64 = 30.0;
const WITHIN_SHARE: f64 = 0.25;

/// A start is over when the packets of one second fill this share of the link; in steps of this time, s.
const START_SHARE: f64 = 0.9;
const STEP_S: f64 = 0.1;

const COLORS: [&str; 2] = ["#3b6fb6", "#d1622b"];

/// The figures of a call.
struct Call {
    /// Received share of the capacity, %.
    used: f64,
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

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [runs, figures, first, second] = args.as_slice() else {
        return Err("takes RUNS FIGURES REFERENCE OTHER".into());
    };
    let controllers = [first.as_str(), second.as_str()];
    let mut cases: Vec<_> = fs::read_dir(runs)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    cases.retain(|case| case.is_dir());
    cases.sort();
    println!(
        "| link | utilisation: {first} | {second} | points | queue, p95: {first} | {second} | ms | start: {first} | {second} | n |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for case in cases {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let calls = [calls(&case, controllers[0])?, calls(&case, controllers[1])?];
        if calls.iter().any(Vec::is_empty) {
            eprintln!("{name}: no run of one of the controllers");
            continue;
        }
        println!("{}", row(&name, &calls));
        fs::write(Path::new(figures).join(format!("{name}.svg")), page(&name, controllers, &calls))?;
    }
    Ok(())
}

/// Reads the calls of a controller in the folder of a case.
fn calls(case: &Path, controller: &str) -> Result<Vec<Call>, Box<dyn Error>> {
    let mut folders: Vec<_> = fs::read_dir(case)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    folders.sort();
    let is_of = |folder: &Path| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.rsplit_once('-').is_some_and(|(of, seed)| of == controller && seed.parse::<u64>().is_ok())
    };
    let mut all = Vec::new();
    for folder in folders.iter().filter(|folder| is_of(folder) && folder.join("results").is_dir()) {
        for run in &Results::open(folder)?.runs {
            all.push(call(run)?);
        }
    }
    Ok(all)
}

fn call(run: &Run) -> Result<Call, Box<dyn Error>> {
    let number = |value: &serde_json::Value| value.as_f64().ok_or("a number is missing in the result");
    let flow = &run.result["flows"][0];
    let used = 100.0 * number(&flow["received_bytes"])? / number(&flow["capacity_bytes"])?;
    let queue_p95_ms = number(&run.result["links"][0]["queue_ms"]["p95"])?;
    let duration_s = run.duration_s();
    let bins = (duration_s / BIN_S).ceil() as usize;
    let mut steps = vec![0.0; (duration_s / STEP_S).ceil() as usize];
    let (mut rate, mut queue) = (vec![0.0; bins], vec![0.0f64; bins]);
    run.tables().packets(|rows| {
        for row in rows {
            let bin = ((row.time_ns as f64 * 1e-9 / BIN_S) as usize).min(bins - 1);
            match row.event {
                Event::Arrived { .. } if row.is_forward && row.flow == 0 => {
                    rate[bin] += f64::from(row.size_bytes) * 8e-6 / BIN_S;
                    let step = ((row.time_ns as f64 * 1e-9 / STEP_S) as usize).min(steps.len() - 1);
                    steps[step] += f64::from(row.size_bytes) * 8.0;
                }
                Event::Crossed { hop: 0, waited_ns, .. } => queue[bin] = queue[bin].max(waited_ns as f64 * 1e-6),
                _ => {}
            }
        }
    })?;
    let description = run.description().ok_or("a folder of an older version")?;
    let capacity = description.hops[0].capacity.clone().unwrap_or_default();
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

/// Returns mean, smallest and largest value as text, and the mean.
fn summary(calls: &[Call], digits: usize, value: fn(&Call) -> f64) -> (String, f64) {
    let values: Vec<f64> = calls.iter().map(value).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let low = values.iter().copied().fold(f64::MAX, f64::min);
    let high = values.iter().copied().fold(f64::MIN, f64::max);
    (format!("{mean:.digits$} ({low:.digits$} to {high:.digits$})"), mean)
}

fn row(name: &str, calls: &[Vec<Call>; 2]) -> String {
    let [used, other_used] = [0, 1].map(|of| summary(&calls[of], 1, |call| call.used));
    let [queue, other_queue] = [0, 1].map(|of| summary(&calls[of], 0, |call| call.queue_p95_ms));
    let (points, ms) = (other_used.1 - used.1, other_queue.1 - queue.1);
    let mark = |outside: bool| if outside { " outside" } else { "" };
    format!(
        "| {name} | {} % | {} % | {points:+.1}{} | {} ms | {} ms | {ms:+.0}{} | {} s | {} s | {}, {} |",
        used.0,
        other_used.0,
        mark(points.abs() > WITHIN_POINTS),
        queue.0,
        other_queue.0,
        mark(ms.abs() > WITHIN_MS.max(WITHIN_SHARE * queue.1)),
        starts(&calls[0]),
        starts(&calls[1]),
        calls[0].len(),
        calls[1].len()
    )
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
fn page(name: &str, controllers: [&str; 2], calls: &[Vec<Call>; 2]) -> String {
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
         <rect width=\"840\" height=\"530\" fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"20\" font-size=\"15\">link {name}: means of {} and {} calls in bins of {BIN_S} s</text>\n",
        calls[0].len(),
        calls[1].len()
    );
    for (index, controller) in controllers.iter().enumerate() {
        let at = LEFT + 110.0 * index as f64;
        let color = COLORS[index];
        let _ = writeln!(
            svg,
            "<path d=\"M{at} 38h22\" stroke=\"{color}\" stroke-width=\"2.5\"/><text x=\"{}\" y=\"42\">{controller}</text>",
            at + 28.0
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{0} 38h22\" stroke=\"#444\" stroke-dasharray=\"5 3\"/><text x=\"{1}\" y=\"42\">capacity</text>",
        LEFT + 220.0,
        LEFT + 248.0
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
