// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that several commands share. Each means the same in all of them.

use super::check_controllers;
use crate::worlds;
use clap::Args;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::done_runs::DoneRuns;
use paceline_lab::suite::{ALL, SHORT, Subject};
use paceline_lab::yardsticks::Oracle;
use paceline_scenario::Catalogue;
use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

/// The seeds of runs.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedOptions {
    /// Makes one run, with this seed. With --repeats: the first seed.
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = one_seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Number of runs, on seeds from 1. If absent: 1 in `run`, 3 in `validate`, 10 in `choose`, as many as the verdicts need in `suite`, else the number
    /// in the file.
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: Option<u32>,
    /// Seeds of the runs: a range such as 1..10, both ends included, or a list such as 1,4,9.
    #[arg(long, value_name = "A..B")]
    seeds: Option<SeedList>,
}

/// Reads a seed.
pub fn one_seed(text: &str) -> std::result::Result<u64, String> {
    text.parse().map_err(|_| {
        let more = if text.contains(['.', ',']) { "; --seeds names several" } else { "" };
        format!("a seed is a whole number from 0{more}")
    })
}

/// Seeds in the order of their runs, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SeedList(Vec<u64>);

impl FromStr for SeedList {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |text: &str| {
            text.trim()
                .parse::<u64>()
                .map_err(|_| format!("`{text}` is no seed; write a range such as 1..10, or 1,4,9"))
        };
        let seeds: Vec<u64> = match text.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last || last - first >= 10_000 {
                    return Err("a range has its smaller seed first, and at most 10000 seeds".to_owned());
                }
                (first..=last).collect()
            }
            None => text.split(',').map(number).collect::<std::result::Result<_, _>>()?,
        };
        match seeds[..] {
            [one] if !text.contains("..") => {
                Err(format!("one number is no range: write 1..{one}, or --seed {one} for one run"))
            }
            _ if BTreeSet::from_iter(&seeds).len() < seeds.len() => Err("name each seed once".to_owned()),
            _ => Ok(Self(seeds)),
        }
    }
}

impl SeedOptions {
    /// Returns the options of one run.
    pub fn one(seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::default() }
    }

    /// Returns the seeds; `default` is the number of runs if no option is given.
    ///
    /// # Errors
    /// The last seed is above the largest one.
    pub fn list(&self, default: u32) -> Result<Vec<u64>> {
        if let Some(SeedList(seeds)) = &self.seeds {
            return Ok(seeds.clone());
        }
        let count = self.repeats.unwrap_or(if self.seed.is_some() { 1 } else { default });
        consecutive_seeds(self.seed.unwrap_or(1), count)
    }

    /// Returns the number of runs, on seeds from 1; `None` if no option is given. `why` states why other seeds are refused.
    pub fn count(&self, why: &str) -> Result<Option<u64>> {
        if *self == Self::default() {
            return Ok(None);
        }
        let seeds = self.list(1)?;
        let last = seeds.last().copied().unwrap_or(1);
        match seeds.iter().copied().eq(1..=seeds.len() as u64) {
            true => Ok(Some(last)),
            false => Err(miette!(
                help = format!("write --seeds 1..{0} or --repeats {0}", last.clamp(1, 10_000)),
                "these runs have seeds from 1: {why}"
            )),
        }
    }
}

/// Returns so many seeds from this one.
///
/// # Errors
/// The last seed is above the largest one.
pub fn consecutive_seeds(first: u64, count: u32) -> Result<Vec<u64>> {
    let last = first.checked_add(u64::from(count.max(1)) - 1);
    let largest = u64::MAX - u64::from(count.max(1)) + 1;
    let help = format!("for {count} runs write --seed {largest} or less");
    let last =
        last.ok_or_else(|| miette!(help = help, "{count} seeds from {first} exceed the largest seed, {}", u64::MAX))?;
    Ok((first..=last).collect())
}

/// Returns these seeds as options.
pub fn seed_options(seeds: &[u64]) -> Vec<String> {
    match seeds {
        [first, rest @ ..] if rest.iter().zip(1..).any(|(seed, n)| first.checked_add(n) != Some(*seed)) => {
            vec!["--seeds".to_owned(), seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(",")]
        }
        [first, ..] => {
            ["--seed", &first.to_string(), "--repeats", &seeds.len().to_string()].map(str::to_owned).to_vec()
        }
        [] => Vec::new(),
    }
}

/// Describes several seeds: `seeds 1 to 10`, `seeds 1, 4, 9`.
pub fn seeds_text(seeds: &[u64]) -> String {
    match seeds {
        [one] => format!("seed {one}"),
        [first, .., last] if last.checked_sub(*first) == Some(seeds.len() as u64 - 1) => {
            format!("seeds {first} to {last}")
        }
        _ => format!("seeds {}", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// How many runs are made at the same time.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct JobOptions {
    /// Number of runs at the same time. If absent: the number of cores, and 1 in real time. `run --out` and `compare --out` make one run
    /// at a time.
    #[arg(long, alias = "threads", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub jobs: Option<u64>,
}

impl JobOptions {
    /// Starts the threads of the runs.
    pub fn start(self) -> Result<()> {
        let Some(threads) = self.jobs else { return Ok(()) };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build_global();
        pool.map_err(|error| miette!(help = "use a smaller --jobs", "cannot start {threads} threads: {error}"))
    }
}

/// The controllers of runs.
#[derive(Args, Clone, Debug, Default)]
pub struct ControllerOptions {
    /// Controllers for every media flow, one after the other: names (see `paceline list controllers`), the oracles `ideal` and
    /// `causal`, which know the path, or `all`. If absent: those of the scenario.
    #[arg(id = "controllers", long = "controllers", visible_alias = "controller", value_delimiter = ',', value_name = "A,B[,…]",
        value_parser = Names(controllers), hide_possible_values = true)]
    pub names: Vec<String>,
}

impl ControllerOptions {
    /// Returns what the names stand for; nothing without names.
    pub fn subjects(&self, registry: &Registry) -> Result<Vec<Subject>> {
        match self.names.is_empty() {
            true => Ok(Vec::new()),
            false => subjects(&self.names, registry),
        }
    }

    /// Returns the controllers to run under, one after the other, where there are no oracles: `None` for the scenario's own.
    pub fn without_oracles(&self, registry: &Registry) -> Result<Vec<Option<String>>> {
        let subjects = self.subjects(registry)?;
        let is_oracle = |name: &&String| Oracle::find(name).is_some();
        if let Some(name) = self.names.iter().find(is_oracle) {
            let help = "`paceline run`, `compare` and `suite` run it in the simulator";
            return Err(miette!(help = help, "the oracle `{name}` knows the path in advance, so it has no run here"));
        }
        let named = subjects.into_iter().filter(|subject| subject.oracle.is_none()).map(|subject| Some(subject.name));
        Ok(if self.names.is_empty() { vec![None] } else { named.collect() })
    }

    /// Returns whether `all` is named.
    pub fn is_all(&self) -> bool {
        self.names.iter().any(|name| name == ALL)
    }
}

/// Returns the controllers and oracles that the names stand for; those of a suite without names.
pub fn subjects(names: &[String], registry: &Registry) -> Result<Vec<Subject>> {
    if names.iter().all(|name| name != ALL) {
        let (oracles, controllers): (Vec<_>, Vec<_>) =
            names.iter().cloned().partition(|name| Oracle::find(name).is_some());
        check_controllers(&controllers, registry)?;
        if let Some((_, name)) = oracles.iter().enumerate().find(|(n, name)| oracles[..*n].contains(name)) {
            return Err(miette!(help = "name each oracle once", "the oracle `{name}` is named twice"));
        }
    }
    Ok(Subject::named(names, registry))
}

/// Returns the finished runs of a folder. Without `resume`, the folder must have none.
pub fn done_runs(folder: Option<&Path>, resume: bool) -> Result<Option<DoneRuns>> {
    let Some(folder) = folder else { return Ok(None) };
    let done = DoneRuns::open(folder).into_diagnostic()?;
    match done.count() {
        0 => {}
        count if resume => eprintln!("{count} finished runs are in the folder"),
        count => {
            let help = "--resume uses them; to start again, name a new folder";
            return Err(miette!(help = help, "`{}` holds {count} finished runs", folder.display()));
        }
    }
    Ok(Some(done))
}

/// Accepts any name that is not empty, without blanks around it; shells complete the names of the function.
#[derive(Clone, Copy)]
pub struct Names(pub fn() -> Vec<String>);

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> std::result::Result<String, clap::Error> {
        let text = |text: &str| match text.trim() {
            "" => Err("a name is empty"),
            name => Ok(name.to_owned()),
        };
        StringValueParser::new().try_map(move |value| text(&value)).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// Returns the names of controllers and oracles, and `all`.
pub fn controllers() -> Vec<String> {
    let registry = worlds::registry("sim");
    let own = registry.iter().map(|entry| entry.name());
    own.chain(Oracle::ALL.map(Oracle::name)).chain([ALL]).map(str::to_owned).collect()
}

/// Returns the ids of scenarios.
pub fn scenarios() -> Vec<String> {
    Catalogue.ids().map(str::to_owned).collect()
}

/// Returns the ids of suites, and `all`.
pub fn suites() -> Vec<String> {
    Catalogue.suites().chain([ALL, SHORT]).map(str::to_owned).collect()
}

/// Returns the ids of sweeps.
pub fn sweeps() -> Vec<String> {
    Catalogue.sweeps().map(str::to_owned).collect()
}

/// Returns the names of papers.
pub fn papers() -> Vec<String> {
    let papers: BTreeSet<&str> = Catalogue.ids().filter_map(|id| Some(id.split_once('/')?.0)).collect();
    papers.into_iter().map(str::to_owned).collect()
}

/// Returns what can be reproduced: papers, experiments, tables of formulas, and `all`.
pub fn targets() -> Vec<String> {
    let tables = Catalogue.formula_tables().map(str::to_owned);
    papers().into_iter().chain(scenarios()).chain(tables).chain([ALL.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_ranges_or_lists() {
        let list = |text: &str| text.parse().map(|SeedList(seeds)| seeds);
        assert_eq!((list("1..3"), list("4,2,9")), (Ok(vec![1, 2, 3]), Ok(vec![4, 2, 9])));
        assert_eq!(list("7..7"), Ok(vec![7]));
        for (text, message) in [("10", "write 1..10"), ("3..1", "smaller seed first"), ("1,1", "once"), ("x", "1..10")]
        {
            assert!(list(text).unwrap_err().contains(message), "{text}");
        }
        let of = |seed, repeats, seeds: Option<&str>| SeedOptions {
            seed,
            repeats,
            seeds: seeds.map(|text| text.parse().unwrap()),
        };
        let list = |seed, repeats| of(seed, repeats, None).list(3).map_err(|error| error.to_string());
        assert_eq!(list(None, None).unwrap(), [1, 2, 3]);
        assert_eq!(list(Some(5), None).unwrap(), [5]);
        assert_eq!(list(Some(5), Some(2)).unwrap(), [5, 6]);
        assert_eq!(list(Some(u64::MAX - 2), Some(3)).unwrap(), [u64::MAX - 2, u64::MAX - 1, u64::MAX]);
        assert!(list(Some(u64::MAX - 1), Some(3)).unwrap_err().contains("exceed the largest seed"));
        let count = |options: SeedOptions| options.count("why").map_err(|error| error.help().unwrap().to_string());
        assert_eq!((count(of(None, None, None)).unwrap(), count(of(None, Some(4), None)).unwrap()), (None, Some(4)));
        assert_eq!(count(of(None, None, Some("1..4"))).unwrap(), Some(4));
        assert_eq!(count(of(Some(3), None, None)).unwrap_err(), "write --seeds 1..3 or --repeats 3");
    }

    #[test]
    fn seeds_are_written_as_they_can_be_read() {
        assert_eq!(seed_options(&[7, 8, 9]).join(" "), "--seed 7 --repeats 3");
        assert_eq!(seed_options(&[7, 9]).join(" "), "--seeds 7,9");
        assert_eq!(seed_options(&[u64::MAX, 0]).join(" "), format!("--seeds {},0", u64::MAX));
        assert_eq!([&[1, 2, 3][..], &[4], &[1, 3]].map(seeds_text), ["seeds 1 to 3", "seed 4", "seeds 1, 3"]);
    }
}
