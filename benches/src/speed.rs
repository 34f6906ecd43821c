// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the CPU time of the simulator. `cargo xtask bench` prints the table; `cargo xtask callgrind` counts the instructions
//! of `simulate`, `cubic`, `hundred` and `receive`.

use paceline::Registry;
use paceline_benches::{BareHeap, GymLoop, ReceiveLoop, SendLoop, Simulation};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: speed table [CPU seconds] | simulate [runs [controller]] | cubic [runs] | hundred [simulated seconds] | gym [CPU seconds] | receive [packets]; default: 5";

/// Controllers whose halves are timed.
const HALVES: [&str; 5] = ["gcc-tfb", "nada", "nada-sender", "scream", "scream-cpp"];
/// Controllers that are simulated with one flow over 2 Mbit/s.
const VIDEOS: [&str; 5] = ["gcc-2016", "nada", "nada-sender", "scream", "scream-cpp"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let size = arguments.get(1).map_or(Some(5), |text| text.parse().ok());
    match (arguments.first().map(String::as_str), size) {
        (Some("table"), Some(seconds)) => table(Duration::from_secs(seconds)),
        (Some("simulate"), Some(runs)) => match arguments.get(2) {
            Some(name) if Registry::standard().get(name).is_none() => {
                eprintln!("no controller is called {name}");
                return ExitCode::from(2);
            }
            Some(name) => simulate(&Simulation::one_video(name), runs),
            None => simulate(&Simulation::one_gcc(), runs),
        },
        (Some("cubic"), Some(runs)) => simulate(&Simulation::one_cubic(), runs),
        (Some("hundred"), Some(seconds)) => hundred(seconds),
        (Some("gym"), Some(seconds)) => gym(Duration::from_secs(seconds)),
        (Some("receive"), Some(packets)) => receive(packets),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Runs seeds 1 to `runs`. Prints the number of delivered packets and the simulated time.
fn simulate(flow: &Simulation, runs: u64) {
    let delivered: u64 = (1..=runs).map(|seed| flow.run(seed).delivered).sum();
    println!("{delivered} {}", runs as f64 * flow.duration().as_secs_f64());
}

/// Runs the hundred flows for this simulated time. Prints the same as [`simulate`], and the peak memory.
fn hundred(seconds: u64) {
    simulate(&Simulation::a_hundred(seconds), 1);
    eprintln!("{} at most", memory_at_most());
}

fn memory_at_most() -> String {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let line = status.as_deref().and_then(|text| text.lines().find_map(|l| l.strip_prefix("VmHWM:")));
    let kib = line.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    kib.map_or_else(|| "–".to_owned(), |kib| format!("{:.0} MB", kib * 1024.0 / 1e6))
}

/// Measures gym steps of 100 ms per CPU second, with an agent that keeps each link full.
fn gym(at_least: Duration) {
    println!("| {:<24} | {:>20} | {:>16} |", "link", "steps per CPU second", "packets per step");
    println!("|:{:-<24}-|-{:->20}:|-{:->16}:|", "", "", "");
    for mbps in [1, 10] {
        let mut gym = GymLoop::new(mbps);
        gym.run(100);
        let (mut steps, before) = (0, gym.packets());
        let taken = timed(at_least, || {
            gym.run(1000);
            steps += 1000;
        });
        let packets = (gym.packets() - before) as f64 / steps as f64;
        let rate = steps as f64 / taken.as_secs_f64();
        println!("| {:<24} | {rate:>20.0} | {packets:>16.1} |", format!("{mbps} Mbit/s, 60 ms"));
    }
}

/// Measures CPU time per delivered packet and simulated seconds per CPU second of a scenario.
fn rate(simulation: &Simulation, at_least: Duration) -> (f64, f64) {
    let (mut runs, mut delivered) = (0, 0);
    let taken = timed(at_least, || {
        runs += 1;
        delivered += simulation.run(runs).delivered;
    });
    let simulated = simulation.duration().as_secs_f64() * runs as f64;
    (taken.as_nanos() as f64 / delivered as f64, simulated / taken.as_secs_f64())
}

/// Passes this many packets through the receive half.
fn receive(packets: u64) {
    let mut receiver = ReceiveLoop::new(&Registry::standard());
    (0..packets).for_each(|_| receiver.step());
    println!("{packets}");
}

/// The two hops and the two ends of one flow.
const COMPONENTS: usize = 4;

fn table(at_least: Duration) {
    println!("| {:<42} | {:>24} | {:>6} |", "what", "measured", "share");
    println!("|:{:-<42}-|-{:->24}:|-{:->6}:|", "", "", "");
    let row = |what: &str, measured: String, share: String| println!("| {what:<42} | {measured:>24} | {share:>6} |");
    let plain = |what: &str, measured: String| row(what, measured, String::new());

    let flow = Simulation::one_gcc();
    flow.run(0); // caches and predictors
    let (mut runs, mut delivered, mut events) = (0, 0, 0);
    let simulating = timed(at_least, || {
        let outcome = flow.run(runs + 1);
        runs += 1;
        delivered += outcome.delivered;
        events += outcome.events;
    });
    let packet = simulating.as_nanos() as f64 / delivered as f64;
    let per_packet = events as f64 / delivered as f64;
    let simulated = flow.duration().as_secs_f64() * runs as f64;
    let share = |of: f64| format!("{:.0} %", 100.0 * of / packet);
    row("one GCC flow, per delivered packet", format!("{packet:.0} ns"), share(packet));
    plain("simulated seconds per CPU second", format!("{:.0}", simulated / simulating.as_secs_f64()));
    plain("packets delivered", format!("{delivered} in {runs} runs"));
    plain("events per delivered packet", format!("{per_packet:.2}"));

    let second = Duration::from_secs(1).min(at_least);
    let mut heap = BareHeap::new(COMPONENTS);
    let bare = per_call(second, || heap.step());
    plain("a heap of four events, pop and push", format!("{bare:.1} ns"));
    row("the same, per delivered packet", format!("{:.1} ns", bare * per_packet), share(bare * per_packet));
    let mut receiver = ReceiveLoop::new(&Registry::standard());
    let half = per_call(second, || receiver.step());
    row("receive half of gcc-2016, per packet", format!("{half:.1} ns"), share(half));
    for name in HALVES {
        let mut halves = SendLoop::new(&Registry::standard(), name);
        let packet = per_call(second, || halves.step());
        plain(&format!("halves of {name}, script included"), format!("{packet:.1} ns"));
    }

    let simulated = |what: &str, simulation: &Simulation| {
        let (packet, seconds) = rate(simulation, at_least);
        plain(&format!("{what}, per delivered packet"), format!("{packet:.0} ns"));
        plain("simulated seconds per CPU second", format!("{seconds:.0}"));
    };
    for name in VIDEOS {
        simulated(&format!("one {name} flow"), &Simulation::one_video(name));
    }
    simulated("one CUBIC flow", &Simulation::one_cubic());
    simulated("GCC among 99 CUBIC", &Simulation::a_hundred(200));
    plain("memory of all this, at most", memory_at_most());
    println!("\n{:.1} CPU seconds of simulation, metrics and trace hash on, nothing written", simulating.as_secs_f64());
}

/// Measures the CPU time of one call, ns.
fn per_call(at_least: Duration, mut work: impl FnMut()) -> f64 {
    const BATCH: u64 = 100_000;
    let mut calls = 0;
    let taken = timed(at_least, || {
        (0..BATCH).for_each(|_| work());
        calls += BATCH;
    });
    taken.as_nanos() as f64 / calls as f64
}

/// Repeats the work until it has taken this much CPU time. Returns the CPU time.
fn timed(at_least: Duration, mut work: impl FnMut()) -> Duration {
    let began = cpu_time();
    loop {
        work();
        let taken = cpu_time() - began;
        if taken >= at_least {
            return taken;
        }
    }
}

/// Returns the CPU time of this program, or the wall time if the kernel does not provide it.
fn cpu_time() -> Duration {
    // The first number is CPU time in nanoseconds.
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanos = schedstat.as_deref().and_then(|text| text.split(' ').next()?.parse().ok()).filter(|n| *n > 0);
    nanos.map_or_else(passed, Duration::from_nanos)
}

fn passed() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}
