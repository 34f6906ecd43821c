// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths that no developer of a controller has looked at: calls over random paths, made from a seed.
//!
//! `fresh:SEED/alone` and `fresh:SEED/beside-tcp` are scenarios, and `fresh:SEED` is the suite of both. The suite `fresh` has a seed that no
//! release before it had. All distributions are choices: what a call on the Internet may meet, with capacities over a factor of 40.

use paceline_units::{RandomStream, RandomStreams};
use std::fmt::Write as _;

/// The id of the suite, and what the names of its scenarios begin with.
const FRESH: &str = "fresh";
/// The scenarios: whether a call is alone, and the number of paths.
const KINDS: [(&str, usize); 2] = [("alone", 16), ("beside-tcp", 8)];
/// The length of a call, s.
const DURATION: u32 = 30;
/// Sources: resolution, and the highest rate, Mbit/s, which is that of the best quality in the score.
const SOURCES: [(&str, f64); 3] = [("360p", 0.8), ("720p", 2.5), ("1080p", 5.0)];
/// The limits of the capacity, Mbit/s.
const CAPACITY: (f64, f64) = (0.3, 12.0);
const TCP: [&str; 2] = ["cubic", "bbr"];

/// Returns the seed of a name such as `fresh:7`, and what follows it.
fn seed_of(name: &str) -> Option<(u64, &str)> {
    let rest = name.strip_prefix(FRESH)?.strip_prefix(':')?;
    let (seed, kind) = rest.split_once('/').unwrap_or((rest, ""));
    // One name for each seed: without sign and leading zeros.
    let number: u64 = seed.parse().ok()?;
    (number.to_string() == seed).then_some((number, kind))
}

/// Returns the text of the scenario of this name; `None` for other names.
pub(super) fn scenario(name: &str) -> Option<String> {
    let (seed, kind) = seed_of(name)?;
    let (kind, paths) = KINDS.into_iter().find(|(known, _)| *known == kind)?;
    let is_alone = kind == KINDS[0].0;
    let (tcp, beside) = match is_alone {
        true => ("", ""),
        false => ("\n[[flow]]\nid = \"download\"\nkind = \"tcp\"\nstart = \"5 s\"\n", ", beside a TCP flow"),
    };
    let mut text = format!(
        "# Made from the seed {seed}.\nid = \"{name}\"\ntitle = \"Calls over random paths{beside}, seed {seed}\"\n\
         source = \"a generator; the distributions are choices\"\nduration = \"{DURATION} s\"\n\n[path.forward]\ncapacity = \"1 Mbps\"\n\n\
         [[flow]]\nid = \"call\"\ncontroller = \"googcc\"\nencoder = {{ resolution = \"720p\", max = \"2.5 Mbps\" }}\n{tcp}\n\
         [[assert]]\nid = \"frozen\"\nmetric = \"freeze_ratio\"\nflow = \"call\"\nbounds = [0, 0.05]\n\
         why = \"Video that stands still for a twentieth of the time disturbs a conversation; the path may force it.\"\n"
    );
    for path in 1..=paths {
        let mut random = RandomStreams::new(seed).stream(&format!("{FRESH}/{kind}/{path}"));
        _ = write!(text, "\n[[case]]\nlabel = {{ path = \"{path}\" }}\n[case.set]\n");
        for (key, value) in settings(&mut random, is_alone) {
            _ = writeln!(text, "\"{key}\" = {value}");
        }
    }
    Some(text)
}

/// Returns the text of the manifest of `fresh:SEED`, which is that of `fresh` with other scenarios; `None` for other names.
pub(super) fn manifest(name: &str) -> Option<String> {
    let (seed, "") = seed_of(name)? else { return None };
    let scenarios = KINDS.map(|(kind, _)| format!("\"{FRESH}:{seed}/{kind}\"")).join(", ");
    Some(format!(
        "id = \"{FRESH}:{seed}\"\ntitle = \"Calls over random paths, made from the seed {seed}\"\nfamily = \"{FRESH}\"\n\
         repeats = 10\nscenarios = [{scenarios}]\n"
    ))
}

/// Returns how a call meets its path: keys and their values.
fn settings(random: &mut RandomStream, is_alone: bool) -> Vec<(&'static str, String)> {
    let (resolution, max) = SOURCES[below(random, SOURCES.len())];
    let queue = match below(random, 10) {
        0 => "{ discipline = \"codel\" }".to_owned(),
        1 => "{ discipline = \"pie\" }".to_owned(),
        2 | 3 => "{ discipline = \"fq-codel\" }".to_owned(),
        _ => format!("{{ discipline = \"drop-tail\", limit = \"{:.0} ms\" }}", log_uniform(random, 40.0, 800.0)),
    };
    let mut settings = vec![
        ("path.rtt", format!("\"{:.0} ms\"", log_uniform(random, 15.0, 250.0))),
        ("path.forward.queue", queue),
        ("path.forward.capacity", capacity(random)),
        ("flow.call.encoder", format!("{{ resolution = \"{resolution}\", max = \"{max} Mbps\" }}")),
    ];
    if random.chance(0.4) {
        settings.push(("path.forward.loss", format!("\"{:.2} %\"", log_uniform(random, 0.1, 3.0))));
    }
    if random.chance(0.4) {
        settings.push(("path.forward.jitter", format!("{{ std = \"{:.1} ms\" }}", log_uniform(random, 1.0, 15.0))));
    }
    if !is_alone {
        settings.push(("flow.download.congestion", format!("\"{}\"", TCP[below(random, TCP.len())])));
    }
    settings
}

/// Returns the capacity over time: constant, with one to three changes, or a walk with a change each second and perhaps an outage.
fn capacity(random: &mut RandomStream) -> String {
    let (low, high) = CAPACITY;
    let mut rate = log_uniform(random, low, high);
    let mut times = vec![(0.0, rate)];
    match below(random, 4) {
        0 => {}
        1 => {
            let changes = 1 + below(random, 3);
            for change in 0..changes {
                rate = (rate * log_uniform(random, 0.25, 4.0)).clamp(low, high);
                // Each change has a part of the call from 6 to 24 s.
                let part = 18.0 / changes as f64;
                times.push((6.0 + part * (change as f64 + random.unit()), rate));
            }
        }
        _ => {
            let outage = random.chance(0.5).then(|| {
                // Not at a second, where the walk has a step.
                ((6 + below(random, 18)) as f64 + random.uniform(0.1, 0.9), random.uniform(0.3, 1.5))
            });
            for second in 1..DURATION {
                rate = (rate * libm::exp(0.25 * random.normal())).clamp(low, high);
                times.push((f64::from(second), rate));
            }
            if let Some((from, length)) = outage {
                let after = times.iter().rev().find(|(at, _)| *at <= from + length).map_or(rate, |(_, rate)| *rate);
                times.retain(|(at, _)| *at < from || *at > from + length + 0.01);
                times.extend([(from, 0.0), (from + length, after)]);
                times.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
        }
    }
    let steps: Vec<String> = times.iter().map(|(at, rate)| format!("[\"{at:.2} s\", \"{rate:.2} Mbps\"]")).collect();
    format!("[{}]", steps.join(", "))
}

/// Returns an index below `count`.
fn below(random: &mut RandomStream, count: usize) -> usize {
    (random.unit() * count as f64) as usize
}

fn log_uniform(random: &mut RandomStream, low: f64, high: f64) -> f64 {
    low * libm::pow(high / low, random.unit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, SUITE};

    /// The ranges of what is drawn for many seeds; every text is TOML, and depends on its seed alone.
    #[test]
    fn paths_cover_their_ranges() {
        let (mut low, mut high, mut outages, mut lossy, mut cases) = (f64::INFINITY, 0.0_f64, 0, 0, 0);
        for seed in 0..40 {
            for (kind, paths) in KINDS {
                let name = format!("fresh:{seed}/{kind}");
                let text = Catalogue.find(&name).unwrap().text;
                assert_eq!(text, Catalogue.find(&name).unwrap().text);
                let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
                let of_text = table["case"].as_array().unwrap();
                assert_eq!(of_text.len(), paths);
                for case in of_text {
                    let steps = case["set"]["path.forward.capacity"].as_array().unwrap();
                    let number =
                        |text: &toml::Value| text.as_str().unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
                    let steps: Vec<(f64, f64)> =
                        steps.iter().map(|step| (number(&step[0]), number(&step[1]))).collect();
                    assert!(steps.is_sorted_by(|a, b| a.0 < b.0) && steps[0].0 == 0.0, "{steps:?}");
                    outages += usize::from(steps.iter().any(|(_, rate)| *rate == 0.0));
                    lossy += usize::from(case["set"].get("path.forward.loss").is_some());
                    let rates = steps.iter().map(|(_, rate)| *rate).filter(|rate| *rate > 0.0);
                    (low, high) = rates.fold((low, high), |(low, high), rate| (low.min(rate), high.max(rate)));
                    cases += 1;
                }
            }
        }
        assert!((0.3..0.31).contains(&low) && (11.8..=12.0).contains(&high), "{low} to {high} Mbit/s");
        let [outages, lossy] =
            [outages, lossy].map(|count| f64::from(u32::try_from(count).unwrap()) / f64::from(cases));
        assert!((0.2..0.3).contains(&outages) && (0.36..0.44).contains(&lossy), "{outages}, {lossy} of {cases}");
        assert_ne!(
            Catalogue.find("fresh:1/alone").unwrap().text.replace("seed 1", "seed 2").replace("fresh:1", "fresh:2"),
            Catalogue.find("fresh:2/alone").unwrap().text
        );
    }

    #[test]
    fn a_seed_names_a_suite_of_its_scenarios() {
        let text = Catalogue.find_suite("fresh:7").unwrap().text;
        assert!(text.contains("scenarios = [\"fresh:7/alone\", \"fresh:7/beside-tcp\"]"), "{text}");
        for name in ["fresh:", "fresh:x", "fresh:-1", "fresh:+7", "fresh:007", "fresh:7/alone", "fresh7"] {
            assert_eq!(manifest(name), None, "{name}");
        }
        for name in ["fresh:7", "fresh:7/", "fresh:7/other", "fresh:/alone", "fresh/alone"] {
            assert_eq!(scenario(name), None, "{name}");
        }
        // The version 1.2.3 has the seed 10,203.
        let parts = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
        let seed = parts.into_iter().fold(0, |seed, part| 100 * seed + part.parse::<u64>().unwrap());
        let shipped = Catalogue.find_suite(FRESH).unwrap();
        assert!(
            shipped.text.contains(&format!("[\"fresh:{seed}/alone\"")),
            "a release has a new seed: {}",
            shipped.text
        );
        assert!(shipped.name.ends_with(SUITE) && shipped.text.contains("/beside-tcp\"]"), "{shipped:?}");
    }
}
