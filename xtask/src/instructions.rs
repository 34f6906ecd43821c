// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask callgrind --check` and `--accept REASON`: instructions per delivered packet, compared with the committed ones of
//! `benches/instructions.toml`.

use crate::callgrind::{self, Count, difference};
use crate::steps::{Problem, command, need, output, read, root, run, target, write};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use toml::Value;

/// A count may differ by this share of the stored one, in either direction.
const TOLERANCE: f64 = 0.02;

/// Families below this share of the instructions are not stored, and smaller changes of a family are not shown.
const SMALL: f64 = 0.005;

/// A run of the `speed` program, and two sizes whose difference is counted.
struct Case {
    name: &'static str,
    arguments: &'static [&'static str],
    sizes: [u64; 2],
}

/// Sizes are runs, and simulated seconds for the hundred flows.
const CASES: [Case; 3] = [
    Case { name: "table1", arguments: &["simulate"], sizes: [1, 6] },
    Case { name: "cubic", arguments: &["cubic"], sizes: [1, 6] },
    Case { name: "hundred", arguments: &["hundred"], sizes: [5, 15] },
];

/// Instructions per delivered packet of a case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Entry {
    instructions: f64,
    /// Why they have this value.
    reason: String,
    /// The part of each family of functions that is not small.
    families: BTreeMap<String, f64>,
}

/// The committed file.
#[derive(Deserialize)]
struct File {
    compiler: String,
    #[serde(flatten)]
    cases: BTreeMap<String, Entry>,
}

/// Prints instructions per packet. With `--check`, compares them with the stored ones; with `--accept REASON`, stores them.
pub fn callgrind(arguments: &[String]) -> Result<(), Problem> {
    need("valgrind --version", "Get it with the system's packages: `apt-get install valgrind`.")?;
    match arguments {
        [] => callgrind::table(),
        [flag] if flag == "--check" => check(),
        [flag, reason] if flag == "--accept" && !reason.is_empty() => accept(reason),
        _ => Err(Problem::Usage("takes `--check`, `--accept REASON` or nothing".into())),
    }
}

/// Fails if a count differs from the stored one by more than the tolerance. Counts of another compiler are not compared.
fn check() -> Result<(), Problem> {
    let (stored, compiler) = parse(&read(&path())?)?;
    let here = self::compiler()?;
    if here != compiler {
        eprintln!("NOT CHECKED: the stored counts are of {compiler}, and this is {here};");
        eprintln!("`cargo xtask callgrind --accept REASON` stores counts of this compiler");
        return Ok(());
    }
    let mut wrong = String::new();
    for (name, now) in count()? {
        let Some(before) = stored.get(name) else {
            wrong += &format!("{name} is not stored\n");
            continue;
        };
        if is_outside(before, &now) {
            wrong += &format!("{name}: {}\n{}", change(before.instructions, now.instructions), moved(before, &now));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let tolerance = 100.0 * TOLERANCE;
    wrong += "if this is intended, run `cargo xtask callgrind --accept REASON`";
    Err(Problem::Failed(format!("instructions per packet changed by more than {tolerance:.0} %:\n{wrong}")))
}

/// Stores the counts that differ by more than the tolerance, with this reason. The others stay, so that small changes add up
/// until they are noticed.
fn accept(reason: &str) -> Result<(), Problem> {
    // The first time there is no file.
    let stored = if path().exists() { parse(&read(&path())?)? } else { Default::default() };
    let compiler = compiler()?;
    // Counts of another compiler are not kept.
    let stored = if stored.1 == compiler { stored.0 } else { BTreeMap::new() };
    let mut entries = Vec::new();
    for (name, now) in count()? {
        let kept = stored.get(name).filter(|before| !is_outside(before, &now));
        entries.push((name, kept.cloned().unwrap_or(Entry { reason: reason.to_owned(), ..now })));
    }
    let text = written(&entries, &compiler);
    Ok(write(&path(), text)?)
}

/// Counts all cases, and prints a table of them.
fn count() -> Result<Vec<(&'static str, Entry)>, Problem> {
    // With the command, whose libraries are then shared.
    run(command("cargo build --quiet --release --package paceline-cli --package paceline-benches --bins"))?;
    let counted = CASES.iter().map(|case| {
        let count = difference(&target().join("release/speed"), case.arguments, case.sizes)?;
        Ok((case.name, Entry::from(&count)))
    });
    let counted = counted.collect::<Result<Vec<_>, String>>()?;
    println!("| profile `release` | instructions per delivered packet |");
    println!("|:------------------|----------------------------------:|");
    for (name, entry) in &counted {
        println!("| {name:<17} | {:>33.1} |", entry.instructions);
    }
    Ok(counted)
}

impl From<&Count> for Entry {
    fn from(count: &Count) -> Self {
        let instructions = count.per_packet();
        let large = count.families_per_packet().filter(|(_, of)| of.abs() >= SMALL * instructions);
        let families = large.map(|(name, of)| (name.to_owned(), of)).collect();
        Self { instructions, reason: String::new(), families }
    }
}

fn is_outside(before: &Entry, now: &Entry) -> bool {
    (now.instructions / before.instructions - 1.0).abs() > TOLERANCE
}

fn change(before: f64, now: f64) -> String {
    format!("{before:.0} before, {now:.0} now ({:+.1} %)", 100.0 * (now / before - 1.0))
}

/// Returns a line for each family whose change is not small, the largest change first.
fn moved(before: &Entry, now: &Entry) -> String {
    let of = |entry: &Entry, name: &String| entry.families.get(name).copied().unwrap_or_default();
    let mut names: Vec<&String> = before.families.keys().chain(now.families.keys()).collect();
    names.sort();
    names.dedup();
    let changed = |name: &String| (of(now, name) - of(before, name)).abs();
    names.retain(|name| changed(name) >= SMALL * before.instructions);
    names.sort_by(|a, b| changed(b).total_cmp(&changed(a)));
    names.into_iter().fold(String::new(), |mut lines, name| {
        let (before, now) = (of(before, name), of(now, name));
        let _ = writeln!(lines, "  {name:<28} {before:>6.0} before {now:>6.0} now {:>+6.0}", now - before);
        lines
    })
}

fn path() -> std::path::PathBuf {
    root().join("benches/instructions.toml")
}

/// Returns the compiler's version and target, for which the counts hold.
fn compiler() -> Result<String, String> {
    let (text, _) = output(command("rustc --version --verbose"))?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown");
    Ok(format!("rustc {} for {}", field("release: "), field("host: ")))
}

const HEAD: &str = "\
# Instructions per delivered packet, counted by callgrind with the profile `release`, and the families of functions that execute
# them (0.5 % and more). CI fails if a total changes by more than 2 %; `cargo xtask callgrind --accept REASON` writes this file.
";

fn written(entries: &[(&str, Entry)], compiler: &str) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text = format!("{HEAD}\ncompiler = {}\n", quoted(compiler));
    for (name, entry) in entries {
        text += &format!("\n[{name}]\ninstructions = {:.0}\nreason = {}\n", entry.instructions, quoted(&entry.reason));
        text += &format!("[{name}.families]\n");
        for (family, instructions) in &entry.families {
            text += &format!("{} = {instructions:.0}\n", quoted(family));
        }
    }
    text
}

/// Returns the entries by name, and the compiler.
fn parse(text: &str) -> Result<(BTreeMap<String, Entry>, String), String> {
    let File { compiler, cases } = toml::from_str(text).map_err(|error| format!("instructions.toml: {error}"))?;
    Ok((cases, compiler))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(instructions: f64, families: &[(&str, f64)]) -> Entry {
        let families = families.iter().map(|(name, of)| ((*name).to_owned(), *of)).collect();
        Entry { instructions, reason: "a \"reason\"".into(), families }
    }

    #[test]
    fn two_percent_are_allowed_in_either_direction() {
        let before = entry(5000.0, &[]);
        for (now, outside) in [(4899.0, true), (4901.0, false), (5000.0, false), (5099.0, false), (5101.0, true)] {
            assert_eq!(is_outside(&before, &entry(now, &[])), outside, "{now}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let one = entry(1234.0, &[("paceline::gcc", 1000.0), ("libc", 200.0)]);
        let text = written(&[("one", one.clone())], "rustc 1.0");
        assert_eq!(parse(&text), Ok((BTreeMap::from([("one".to_owned(), one)]), "rustc 1.0".to_owned())));
        assert!(parse("[one]\ninstructions = 3").is_err());
    }

    #[test]
    fn families_that_moved_come_largest_first() {
        let before = entry(1000.0, &[("a", 300.0), ("b", 200.0), ("c", 100.0)]);
        let now = entry(1100.0, &[("a", 310.0), ("b", 202.0), ("d", 90.0)]);
        let lines = moved(&before, &now);
        let names: Vec<&str> = lines.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["c", "d", "a"], "{lines}");
    }

    #[test]
    fn the_committed_file_has_every_case() {
        let (stored, _) = parse(&read(&path()).unwrap()).unwrap();
        let names: Vec<&str> = stored.keys().map(String::as_str).collect();
        assert_eq!(names, ["cubic", "hundred", "table1"]);
        assert!(stored.values().all(|entry| entry.instructions > 100.0 && !entry.reason.is_empty()));
    }
}
