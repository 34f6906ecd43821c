// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fits of simulated paths whose parameters are known.

use paceline::Registry;
use paceline_explain::fit::comparison::Measures;
use paceline_explain::fit::observation::{Clocks, Collector, Observation};
use paceline_explain::fit::{PathFit, fit, scenario};
use paceline_lab::run::Runner;
use paceline_scenario::{Changes, Origin};
use paceline_units::RandomStreams;
use rayon::prelude::*;

/// Runs a scenario and returns what its ends know.
fn observe(text: &str, clocks: Clocks, seed: u64) -> Observation {
    let registry = Registry::standard();
    let origin = Origin::from_text("fit.toml", text.to_owned());
    let scenario =
        paceline_lab::load(&origin, &Changes::default(), &registry).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let header = scenario.plan.header(&registry, "sim", seed);
    let mut collector = Collector::new(&header, Some(&scenario.plan.describe(&registry)), clocks);
    Runner::simulator(&registry).run(&scenario, seed, Some(&mut collector)).expect("it runs");
    collector.finish().expect("packets arrive")
}

/// A path.
#[derive(Clone, Copy, Debug)]
struct Path {
    bps: f64,
    delay_ms: f64,
    loss: f64,
    queue_ms: f64,
}

impl Path {
    /// Draws a path: capacity evenly on a logarithmic scale, all else evenly.
    fn draw(number: u64) -> Self {
        let mut random = RandomStreams::new(number).stream("fit/path");
        let magnitude = random.uniform(0.0, 2.0);
        Self {
            bps: 0.5e6 * libm::pow(10.0, magnitude),
            delay_ms: random.uniform(5.0, 150.0),
            loss: random.uniform(0.0, 0.05),
            queue_ms: random.uniform(50.0, 500.0),
        }
    }

    /// Returns a scenario of one flow over this path.
    fn scenario(&self, flow: &str) -> String {
        let Self { bps, delay_ms, loss, queue_ms } = self;
        format!(
            "id = \"fit/path\"\ntitle = \"A known path\"\nduration = \"30 s\"\n\
             [path]\nrtt = \"{:.6} ms\"\n[path.forward]\ncapacity = \"{bps:.0} bps\"\nloss = \"{:.6} %\"\n\
             queue = {{ limit = \"{queue_ms:.3} ms\" }}\n[[flow]]\nid = \"media\"\n{flow}\n",
            2.0 * delay_ms,
            loss * 100.0
        )
    }
}

/// A flow that fills each of the paths.
const FILLING: &str = "controller = \"googcc\"\nencoder = { max = \"60Mbps\" }";

/// Returns whether a fit has the capacity within 5 %, the delay within 1 ms, and the loss within its interval.
fn is_right(path: &Path, fitted: &PathFit) -> [bool; 3] {
    let capacity = fitted.capacity.steps[0].1 / path.bps - 1.0;
    let delay_ms = fitted.forward_s * 1e3 - path.delay_ms;
    let (low, high) = fitted.loss.interval;
    let one_step = fitted.capacity.steps.len() == 1 && fitted.has_capacity();
    [one_step && capacity.abs() < 0.05, delay_ms.abs() < 1.0, low <= path.loss && path.loss <= high]
}

#[test]
fn twenty_paths_are_known_after_a_session_of_30_s() {
    let fits: Vec<(Path, PathFit)> = (1..=20u64)
        .into_par_iter()
        .map(|number| {
            let path = Path::draw(number);
            (path, fit(&observe(&path.scenario(FILLING), Clocks::Apart, number)))
        })
        .collect();
    println!("  Mbit/s  fitted   delay ms  fitted    loss %  fitted, 95 %       queue ms  longest wait");
    let mut right = 0;
    for (path, fitted) in &fits {
        let checks = is_right(path, fitted);
        right += usize::from(checks == [true; 3]);
        let (low, high) = fitted.loss.interval;
        println!(
            "{:8.3} {:8.3} {:9.3} {:8.3} {:8.3} {:6.3} {:6.3}-{:.3} {:10.1} {:8.1}{} {}",
            path.bps / 1e6,
            fitted.capacity.steps[0].1 / 1e6,
            path.delay_ms,
            fitted.forward_s * 1e3,
            path.loss * 100.0,
            fitted.loss.ratio * 100.0,
            low * 100.0,
            high * 100.0,
            path.queue_ms,
            fitted.longest_wait_s * 1e3,
            if fitted.was_full { " full" } else { "" },
            if checks == [true; 3] { "" } else { "wrong" }
        );
        assert_eq!(fitted.loss.bursts, None, "losses are independent: {path:?}");
        // The interval is that of a ratio, not more: z √(p (1 − p) / n), and a little where p is small.
        let half = 1.96 * (path.loss * (1.0 - path.loss) / fitted.loss.packets as f64).sqrt();
        assert!((high - low) / 2.0 < 1.3 * half + 0.001, "{path:?} {:?}", fitted.loss);
        if fitted.was_full {
            let ratio = fitted.longest_wait_s * 1e3 / path.queue_ms;
            assert!((0.95..1.1).contains(&ratio), "the queue holds {} ms: {ratio}", path.queue_ms);
        } else {
            assert!(fitted.longest_wait_s * 1e3 < 1.1 * path.queue_ms, "{path:?}");
        }
    }
    println!("{right} of 20 are right");
    assert!(right >= 18, "{right} of 20");
    // A path is not that of its neighbour.
    let crossed = fits.iter().zip(fits.iter().skip(1)).filter(|((path, _), (_, other))| is_right(path, other)[0]);
    assert_eq!(crossed.count(), 0);
}

#[test]
fn a_flow_below_the_capacity_gives_a_lower_bound() {
    let path = Path { bps: 50e6, delay_ms: 20.0, loss: 0.0, queue_ms: 300.0 };
    let flow = "controller = \"fixed\"\nstart_rate = \"1Mbps\"\nencoder = { max = \"1Mbps\" }";
    let fitted = fit(&observe(&path.scenario(flow), Clocks::Same, 1));
    assert!(!fitted.has_capacity(), "{fitted:?}");
    assert!((1e6..50e6).contains(&fitted.capacity.steps[0].1), "{fitted:?}");
    assert_eq!((fitted.loss.lost, fitted.was_full), (0, false));
}

#[test]
fn steps_of_the_capacity_and_bursts_of_losses_are_found() {
    let text = "id = \"fit/steps\"\ntitle = \"Steps\"\nduration = \"60 s\"\n[path]\nrtt = \"40 ms\"\n[path.forward]\n\
                capacity = [[\"0 s\", \"2 Mbps\"], [\"20 s\", \"6 Mbps\"], [\"40 s\", \"1 Mbps\"]]\n\
                loss = { model = \"gilbert-elliott\", to_bad = \"0.3 %\", to_good = \"40 %\" }\n\
                [[flow]]\nid = \"media\"\ncontroller = \"googcc\"\nencoder = { max = \"10Mbps\" }\n";
    let fitted = fit(&observe(text, Clocks::Same, 1));
    println!("{fitted:?}");
    assert_eq!(fitted.capacity.steps.len(), 3, "{fitted:?}");
    for ((at, bps), (start, expected)) in fitted.capacity.steps.iter().zip([(0.0, 2e6), (20.0, 6e6), (40.0, 1e6)]) {
        assert!((bps / expected - 1.0).abs() < 0.05 && (at - start).abs() < 1.0, "{:?}", fitted.capacity);
    }
    let (to_bad, to_good) = fitted.loss.bursts.expect("losses come in bursts");
    assert!((0.002..0.0045).contains(&to_bad) && (0.3..0.5).contains(&to_good), "{:?}", fitted.loss);
    assert!((fitted.forward_s * 1e3 - 20.0).abs() < 1.0 && (fitted.reverse_s.unwrap() * 1e3 - 20.0).abs() < 1.0);
}

#[test]
fn the_same_session_on_the_fitted_path_has_the_same_measures() {
    for number in 1..=3 {
        let path = Path { loss: 0.01, ..Path::draw(number) };
        let seen = observe(&path.scenario(FILLING), Clocks::Apart, number);
        let fitted = fit(&seen);
        let text = scenario::write(&fitted, &seen, "a test", 30.0, &format!("[[flow]]\nid = \"media\"\n{FILLING}\n"));
        let [before, after] = [Measures::of(&seen), Measures::of(&observe(&text, Clocks::Apart, number + 100))];
        println!("{path:?}\n{before:?}\n{after:?}");
        let near = |a: f64, b: f64, share: f64, more: f64| (a - b).abs() < share * b.abs() + more;
        assert!(near(after.received_bps, before.received_bps, 0.1, 0.0), "{before:?}\n{after:?}");
        assert!(near(after.loss_ratio, before.loss_ratio, 0.3, 0.003), "{before:?}\n{after:?}");
        assert!(near(after.rtt_p50_ms.unwrap(), before.rtt_p50_ms.unwrap(), 0.1, 5.0), "{before:?}\n{after:?}");
        assert!(near(after.variation_p50_ms, before.variation_p50_ms, 0.3, 5.0), "{before:?}\n{after:?}");
    }
}
