// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the training set of delivery-rate control and prints every measure with its goal.
//!
//! ```text
//! cargo run --release -p paceline-lab --example drc -- [CONTROLLER] [KEY=VALUE…] [--only NAME] [--seed FIRST] [--seeds N] [--trace STEP_S] [--held-out]
//! ```
//!
//! `--held-out` takes seeds, of runs and of cellular models, that no number was chosen on.

#[path = "../tests/it/drc/paths.rs"]
mod paths;

use paceline_netsim::records::{EventObserver, EventRecord};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Seeds of cellular models for the final run.
const HELD_OUT: [u64; 5] = [201, 202, 203, 204, 205];

/// Prints the last value of every signal, once in a step.
struct Trace {
    step: f64,
    next: f64,
    values: BTreeMap<(u32, u8), f64>,
}

impl EventObserver for Trace {
    fn on_event(&mut self, event: &EventRecord) {
        let &EventRecord::Signal { at, flow, signal, value, .. } = event else { return };
        if at.as_secs_f64() >= self.next {
            let text = self.values.iter().map(|((flow, signal), value)| {
                let value = if *value > 1e4 { format!("{:.0}k", value / 1e3) } else { format!("{value:.0}") };
                if *signal == 0 { format!("| f{flow} {value}") } else { value }
            });
            println!("{:7.2} {}", self.next, text.collect::<Vec<_>>().join(" "));
            self.next += self.step;
        }
        self.values.insert((flow.0.into(), signal), value);
    }
    fn wants_signals(&self) -> bool {
        true
    }
}

fn main() {
    let (mut step, mut first) = (0.0_f64, 1001);
    let mut of: fn(&[u64]) -> Vec<paths::Path> = paths::training;
    let mut cellular: &[u64] = &paths::TRAINING;
    let (mut controller, mut config, mut only, mut seeds) = ("drc".to_owned(), Vec::new(), String::new(), 1);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--only" => only = words.next().expect("--only needs a part of a name"),
            "--goals" => of = paths::goals,
            "--held-out" => (cellular, first) = (&HELD_OUT, 5001),
            "--trace" => step = words.next().and_then(|n| n.parse().ok()).expect("--trace needs seconds"),
            "--seed" => first = words.next().and_then(|n| n.parse().ok()).expect("--seed needs a number"),
            "--seeds" => seeds = words.next().and_then(|n| n.parse().ok()).expect("--seeds needs a number"),
            setting if setting.contains('=') => config.push(setting.to_owned()),
            name => controller = name.to_owned(),
        }
    }
    let paths: Vec<_> = of(cellular).into_iter().filter(|path| path.name.contains(&only)).collect();
    if step > 0.0 {
        for path in &paths {
            let mut trace = Trace { step, next: 0.0, values: BTreeMap::new() };
            path.observe(&controller, &config, first, Some(&mut trace));
        }
        return;
    }
    let jobs: Vec<_> = paths.iter().flat_map(|path| (0..seeds).map(move |seed| (path, first + seed))).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    let results: Vec<Vec<paths::Measure>> =
        pool.install(|| jobs.par_iter().map(|(path, seed)| path.run(&controller, &config, *seed)).collect());
    let (mut reached, mut total) = (0, 0);
    for ((path, seed), measures) in jobs.iter().zip(results) {
        let text = measures.iter().map(|m| {
            let counts = usize::from(m.is_goal());
            (reached, total) = (reached + counts * usize::from(m.reached()), total + counts);
            let value = if m.value.abs() < 10.0 { format!("{:.3}", m.value) } else { format!("{:.0}", m.value) };
            format!("{} {value}{}", m.name, if m.reached() { "" } else { "!" })
        });
        println!("{} [{seed}]: {}", path.name, text.collect::<Vec<_>>().join(", "));
    }
    println!("{controller} {config:?}: {reached} of {total} goals");
}
