//! `cargo xtask scoreboard`: the verdicts on the published values of every paper. They are committed under `scoreboard/`, so that
//! the diff of a change shows its effect on them.

use crate::steps::{Problem, command, program, root, run, shown, target};
use serde_json::{Value, from_slice};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// The committed files in the folder of each paper.
const FILES: [&str; 2] = ["scoreboard.json", "scoreboard.md"];

/// The matrix of all papers, next to their folders.
const MATRIX: &str = "README.md";

/// Writes the scoreboards. With `--check`, compares new ones with the committed ones.
pub fn scoreboard(arguments: &[String]) -> Result<(), Problem> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err(Problem::Usage("takes `--check` or nothing".into())),
    };
    run(command("cargo build --quiet --release"))?;
    let kept = root().join("scoreboard");
    let place = if check { target().join("scoreboard") } else { kept.clone() };
    let mut rows = Vec::new();
    for paper in papers()? {
        rows.extend(make(&paper, &place.join(&paper))?);
        if check {
            let (kept, made) = (kept.join(&paper), place.join(&paper));
            numbers_are_equal(&kept, &made)?;
            FILES.iter().try_for_each(|name| texts_are_equal(&kept.join(name), &made.join(name)))?;
        }
    }
    let made = place.join(MATRIX);
    fs::write(&made, matrix(&rows)).map_err(|error| format!("{}: {error}", made.display()))?;
    if check {
        texts_are_equal(&kept.join(MATRIX), &made)?;
    }
    Ok(())
}

/// Returns the papers: the folders of scenarios with a file of constants.
fn papers() -> Result<Vec<String>, String> {
    let folder = root().join("scenarios");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|p| p.join("constants.toml").is_file());
    let mut names: Vec<String> = folders.filter_map(|p| Some(p.file_name()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

fn paceline(arguments: &str) -> std::process::Command {
    program(target().join("release/paceline"), arguments)
}

/// Writes the files of a paper. Returns its rows of the matrix.
fn make(paper: &str, folder: &Path) -> Result<Vec<Value>, String> {
    for file in FILES.map(|name| folder.join(name)).iter().filter(|file| file.exists()) {
        fs::remove_file(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let mut reproduce = paceline(&format!("reproduce {paper} --json --out"));
    reproduce.arg(folder).stderr(Stdio::inherit());
    eprintln!("\n==> {}", shown(&reproduce));
    let done = reproduce.output().map_err(|error| format!("`{}` did not start: {error}", shown(&reproduce)))?;
    // 1 means that a claim fails, which the scoreboard shows.
    match done.status.code() {
        Some(0 | 1) if FILES.iter().all(|name| folder.join(name).is_file()) => {}
        _ => return Err(format!("`{}` failed: {}", shown(&reproduce), done.status)),
    }
    let printed: Value = from_slice(&done.stdout).map_err(|error| format!("`{}`: {error}", shown(&reproduce)))?;
    printed["papers"].as_array().cloned().ok_or_else(|| format!("`{}` prints no papers", shown(&reproduce)))
}

const HEAD: &str = "\
# Scoreboard

How many of each paper's published values and bounds (cells) this version reproduces, an experiment a row. ≈: in direction,
which is outside the tolerance, but the claim holds that the value supports; ✗: neither. The second half leaves out what a
sender without congestion control reproduces too, and so proves nothing. A paper's name leads to its cells. Made by
`cargo xtask scoreboard`; `paceline reproduce all --out DIR` makes it a page to look at.

| experiment | cells | ✓ | ≈ | ✗ | claims | cells without null | ✓ | ≈ | ✗ | claims | runs |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// Returns the matrix: each paper before its experiments, then the total.
fn matrix(papers: &[Value]) -> String {
    let mut text = HEAD.to_owned();
    let mut total = [0; 13];
    for paper in papers {
        let name = paper["paper"].as_str().unwrap_or_default();
        let counts = counts(paper);
        text += &row(&format!("**[{name}]({name}/scoreboard.md)**"), &counts);
        for experiment in paper["experiments"].as_array().into_iter().flatten() {
            text += &row(experiment["id"].as_str().unwrap_or_default(), &self::counts(experiment));
        }
        total.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    text + &row("**all**", &total)
}

/// Returns the numbers of a row from left to right. Claims are two numbers: those that pass and all.
fn counts(row: &Value) -> [u64; 13] {
    let without = &row["without_null"];
    [
        &row["cells"],
        &row["reproduced"],
        &row["direction"],
        &row["not"],
        &row["claims_held"],
        &row["claims"],
        &without["cells"],
        &without["reproduced"],
        &without["direction"],
        &without["not"],
        &row["claims_held_without_null"],
        &row["claims_without_null"],
        &row["runs"],
    ]
    .map(|count| count.as_u64().unwrap_or_default())
}

fn row(name: &str, counts: &[u64; 13]) -> String {
    let half = |of: &[u64]| {
        let claims = if of[5] > 0 { format!("{} of {}", of[4], of[5]) } else { String::new() };
        format!("{} | {} | {} | {} | {claims}", of[0], of[1], of[2], of[3])
    };
    format!("| {name} | {} | {} | {} |\n", half(&counts[..6]), half(&counts[6..12]), counts[12])
}

const ACCEPT: &str = "if this is intended, run `cargo xtask scoreboard` and explain it in the commit";

/// Fails if a number differs.
fn numbers_are_equal(kept: &Path, made: &Path) -> Result<(), String> {
    let mut diff = paceline("diff");
    diff.args([kept, made]);
    let here = kept.strip_prefix(root()).unwrap_or(kept);
    run(diff).map_err(|_| format!("the results of this version differ from {}; {ACCEPT}", here.display()))
}

/// Fails if the text of a file differs.
fn texts_are_equal(kept: &Path, made: &Path) -> Result<(), String> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let (old, new) = (read(kept)?, read(made)?);
    if old == new {
        return Ok(());
    }
    let same = old.lines().zip(new.lines()).take_while(|(o, n)| o == n).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("").to_owned();
    let (old, new) = (line(&old), line(&new));
    let at = format!("{}:{}", kept.strip_prefix(root()).unwrap_or(kept).display(), same + 1);
    Err(format!("the numbers are equal, but {at} is\n  {old}\nand in this version\n  {new}\n{ACCEPT}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn papers_precede_their_experiments_and_add_up() {
        let counts = |cells: u64, claims: u64, runs: u64| {
            json!({
                "cells": cells, "reproduced": cells - 3, "direction": 1, "not": 2,
                "without_null": { "cells": 4, "reproduced": 2, "direction": 0, "not": 2 },
                "claims": claims, "claims_held": claims / 2, "claims_without_null": claims / 2,
                "claims_held_without_null": 0, "runs": runs, "wall_s": 1.5,
            })
        };
        let with = |mut row: Value, key: &str, value: Value| {
            row[key] = value;
            row
        };
        let paper = |name: &str, cells, claims, runs| {
            let experiment = with(counts(cells, claims, runs), "id", json!(format!("{name}/table1")));
            with(with(counts(cells, claims, runs), "paper", json!(name)), "experiments", json!([experiment]))
        };
        let text = matrix(&[paper("one", 10, 0, 5), paper("two", 7, 6, 30)]);
        let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("|---")).skip(1).collect();
        assert_eq!(
            rows,
            [
                "| **[one](one/scoreboard.md)** | 10 | 7 | 1 | 2 |  | 4 | 2 | 0 | 2 |  | 5 |",
                "| one/table1 | 10 | 7 | 1 | 2 |  | 4 | 2 | 0 | 2 |  | 5 |",
                "| **[two](two/scoreboard.md)** | 7 | 4 | 1 | 2 | 3 of 6 | 4 | 2 | 0 | 2 | 0 of 3 | 30 |",
                "| two/table1 | 7 | 4 | 1 | 2 | 3 of 6 | 4 | 2 | 0 | 2 | 0 of 3 | 30 |",
                "| **all** | 17 | 11 | 2 | 4 | 3 of 6 | 8 | 4 | 0 | 4 | 0 of 3 | 35 |",
            ]
        );
        assert!(!text.contains("1.5"), "wall time depends on the machine");
    }
}
