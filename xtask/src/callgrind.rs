// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask callgrind`: instructions, counted by valgrind. A count is the difference between a long and a short run, so that
//! loading the scenario, setting up and reading the metrics cancel.

use crate::dist;
use crate::steps::{Problem, create, output, program, read, target};
use std::collections::BTreeMap;
use std::path::Path;

/// Prints the tables of `docs/explanation/benchmarks.md`.
pub fn table() -> Result<(), Problem> {
    let folder = dist::guided()?;
    const PACKETS: [u64; 2] = [100_000, 600_000];
    const RUNS: [u64; 2] = [1, 6];
    let halves = |what| difference(&folder.join("examples/senders"), &[what], PACKETS).map(|more| more.per_packet());
    let speed = |what: &[&str], sizes| difference(&folder.join("speed"), what, sizes);
    let script = halves("script")?;
    println!("| what                                   | instructions per packet |");
    println!("|:---------------------------------------|------------------------:|");
    let row = |what: &str, instructions: f64| println!("| {what:<38} | {instructions:>23.0} |");
    row("one GCC flow, per delivered packet", speed(&["simulate"], RUNS)?.per_packet());
    row("one CUBIC flow, per delivered packet", speed(&["cubic"], RUNS)?.per_packet());
    row("GCC among 99 CUBIC, the same", speed(&["hundred"], [20, 120])?.per_packet());
    row("receive half of gcc-2016", speed(&["receive"], PACKETS)?.per_packet());
    for name in ["gcc-tfb", "nada-sender", "scream", "scream-cpp"] {
        row(&format!("send half of {name}"), halves(name)? - script);
    }
    row("both halves of nada", halves("nada")? - script);
    row("rtc-interceptor's GCC, same script", halves("theirs")? - script);
    println!("\n| one flow over 2 Mbit/s | instructions per delivered packet | per simulated second |");
    println!("|:-----------------------|----------------------------------:|---------------------:|");
    for name in ["gcc-2016", "nada", "nada-sender", "scream", "scream-cpp"] {
        let more = speed(&["simulate", name], RUNS)?;
        println!("| {name:<22} | {:>33.0} | {:>20.0} |", more.per_packet(), more.per_second());
    }
    eprintln!("\nby function: callgrind_annotate target/callgrind/simulate.out, simulate-scream.out ...");
    Ok(())
}

/// What a run executes, or the difference between two runs.
pub struct Count {
    instructions: f64,
    packets: f64,
    /// Simulated time, if time is simulated.
    seconds: Option<f64>,
    /// Instructions by family of functions, without those of called functions.
    families: BTreeMap<String, f64>,
}

impl Count {
    pub fn per_packet(&self) -> f64 {
        self.instructions / self.packets
    }

    fn per_second(&self) -> f64 {
        self.seconds.map_or(f64::NAN, |seconds| self.instructions / seconds)
    }

    /// Returns the instructions per packet of each family.
    pub fn families_per_packet(&self) -> impl Iterator<Item = (&str, f64)> {
        self.families.iter().map(|(name, instructions)| (name.as_str(), instructions / self.packets))
    }
}

/// Runs a program twice. The first argument is `what[0]`, the second the size, then follows the rest of
/// `what`. Returns what the run of size `more` executes beyond that of size `less`.
pub fn difference(program: &Path, what: &[&str], [less, more]: [u64; 2]) -> Result<Count, String> {
    let (few, many) = (counted(program, what, less)?, counted(program, what, more)?);
    let mut families = many.families;
    for (name, instructions) in few.families {
        *families.entry(name).or_default() -= instructions;
    }
    Ok(Count {
        instructions: many.instructions - few.instructions,
        packets: many.packets - few.packets,
        seconds: many.seconds.zip(few.seconds).map(|(many, few)| many - few),
        families,
    })
}

/// Returns the instructions of one run, and the packets and simulated seconds that it prints.
fn counted(path: &Path, what: &[&str], size: u64) -> Result<Count, String> {
    let folder = target().join("callgrind");
    create(&folder)?;
    let file = folder.join(what.join("-")).with_extension("out");
    let (stdout, stderr) = output(
        program("valgrind", "--tool=callgrind")
            .arg(format!("--callgrind-out-file={}", file.display()))
            .arg(path)
            .arg(what[0])
            .arg(size.to_string())
            .args(&what[1..]),
    )?;
    let profile = read(&file)?;
    let mut printed = stdout.split_whitespace().map_while(|word| word.parse().ok());
    let (packets, seconds) = (printed.next(), printed.next());
    let summary = profile.lines().find_map(|line| line.strip_prefix("summary: ")?.parse().ok());
    summary
        .zip(packets)
        .map(|(instructions, packets)| Count { instructions, packets, seconds, families: families(&profile) })
        .ok_or_else(|| format!("no count in {}:\n{stderr}", file.display()))
}

/// Returns the instructions of each family of functions in a profile, those of called functions not included.
fn families(profile: &str) -> BTreeMap<String, f64> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut families = BTreeMap::new();
    let (mut function, mut is_call) = ("", false);
    for line in profile.lines() {
        let named = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn="));
        if let Some(named) = named {
            // `(7) name` at the first mention, `(7)` later.
            let (id, name) = named.split_once(' ').unwrap_or((named, ""));
            let name = if name.is_empty() { names.get(id).copied().unwrap_or(id) } else { name };
            names.insert(id, name);
            if line.starts_with("fn=") {
                function = name;
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            // The line after `calls=` is the cost of the called function.
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<f64>().ok());
            if let Some(cost) = cost.filter(|_| !is_call) {
                *families.entry(family(function)).or_default() += cost;
            }
            is_call = false;
        }
    }
    families
}

/// Returns the family of a function: crate and module if it is one of this workspace, the crate of other Rust functions, and
/// `libc` for the rest.
fn family(function: &str) -> String {
    let path = function.trim_start_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let path = path.trim_start_matches("mut ").trim_start_matches("dyn ");
    let words: Vec<&str> = path.split("::").collect();
    let is_name =
        |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    match words[..] {
        [name, module, _, ..] if name.starts_with("paceline") && is_name(&module) => format!("{name}::{module}"),
        [name, _, ..] => name.to_owned(),
        _ => "libc".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_crate_and_module() {
        for (function, expected) in [
            ("paceline_netsim::flow::sender::MediaSender::poll_transmit", "paceline_netsim::flow"),
            ("<paceline_netsim::sim::Simulator as paceline_netsim::world::World>::run", "paceline_netsim::sim"),
            ("<&mut core::fmt::Formatter as core::fmt::Write>::write_str", "core"),
            ("xxhash_rust::xxh3::update", "xxhash_rust"),
            ("__memcpy_avx_unaligned_erms", "libc"),
        ] {
            assert_eq!(family(function), expected, "{function}");
        }
    }

    #[test]
    fn costs_of_called_functions_do_not_count() {
        let caller = "fn=(1) paceline::gcc::one\n0 3\n+2 4\ncfn=(2) libm::two\ncalls=2 0\n0 11\n* 1\n";
        let profile = format!("summary: 18\n{caller}\nfn=(2)\n0 10\n");
        let expected = BTreeMap::from([("libm".to_owned(), 10.0), ("paceline::gcc".to_owned(), 8.0)]);
        assert_eq!(families(&profile), expected);
    }
}
