// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leaderboard of the committed tables: `paceline report` writes it from a document that has what is in them.

use super::row::{OTHERS, Row, USUAL_USE};
use super::{SUITES, keep, tables};
use crate::steps::{program, read, root, run, target, write};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the leaderboard with its pictures, and the page of suites, into a folder, which it returns. `paceline` is the program.
pub fn leaderboard(paceline: &Path) -> Result<PathBuf, String> {
    let folder = target().join("scoreboard/board");
    let suites: Vec<Value> = tables(SUITES)?.iter().map(|(name, table)| document(name, table)).collect();
    _ = fs::remove_dir_all(&folder);
    write(&folder.join("suites.json"), json!({ "suites": suites }).to_string())?;
    run(program(paceline, "report").arg(&folder))?;
    Ok(folder)
}

/// Controllers of products of today.
const IN_USE: [&str; 4] = ["googcc", "scream-v2", "scream-v2-cpp", "nada"];
/// Faulty controllers that must be poor over all families, and the score of the possible that none may reach.
const POOR: [&str; 4] =
    ["faulty-never-increases", "faulty-ignores-feedback", "faulty-oscillates", "faulty-ignores-delay"];
const POOR_LIMIT: f64 = 30.0;
/// A fault that is harmless on many paths, and the controller that it was made from.
const MILD: (&str, &str) = ("faulty-ignores-loss", "googcc");

/// The committed leaderboard, without pictures.
const BOARD: &str = "scoreboard/leaderboard.md";

/// Writes or compares the committed leaderboard, and checks that the suites of the committed tables find the faulty controllers: the
/// condition for a release.
pub fn keep_board(check: bool, paceline: &Path) -> Result<(), String> {
    let folder = leaderboard(paceline)?;
    let text = read(&folder.join("leaderboard.md"))?;
    let mut kept: String =
        text.lines().filter(|line| !line.starts_with("![")).map(|line| line.to_owned() + "\n").collect();
    while kept.contains("\n\n\n") {
        kept = kept.replace("\n\n\n", "\n\n");
    }
    keep(check, &root().join(BOARD), &kept)?;
    let scores = scores(&text);
    match problems(&scores)? {
        problems if problems.is_empty() => Ok(()),
        problems => Err(format!("the suites do not find faulty controllers:\n{}", problems.join("\n"))),
    }
}

/// Returns the score over all families of each row of a leaderboard.
fn scores(leaderboard: &str) -> BTreeMap<&str, f64> {
    let row = |line| {
        let mut cells = str::split(line, '|').map(str::trim).skip(2);
        let (name, score) = (cells.next()?, cells.next()?);
        Some((name, score.split(' ').next()?.parse().ok()?))
    };
    leaderboard.lines().filter_map(row).collect()
}

fn problems(scores: &BTreeMap<&str, f64>) -> Result<Vec<String>, String> {
    let score = |name: &str| scores.get(name).copied().ok_or_else(|| format!("the leaderboard lacks {name}"));
    let mut problems = Vec::new();
    let mut below = |name: &str, limit: f64, of: &str| -> Result<(), String> {
        let score = score(name)?;
        if score >= limit {
            problems.push(format!("{name} has {score} points; it must be below {limit}{of}"));
        }
        Ok(())
    };
    for faulty in POOR {
        below(faulty, POOR_LIMIT, "")?;
        for used in IN_USE {
            below(faulty, score(used)?, &format!(", those of {used}"))?;
        }
    }
    let (mild, parent) = MILD;
    below(mild, score(parent)?, &format!(", those of {parent}"))?;
    Ok(problems)
}

/// Returns the document of a suite: tests without bounds of their own, with one bound that says whether all hold.
fn document(name: &str, table: &str) -> Value {
    let value =
        |key: &str| table.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('\t')).unwrap_or_default();
    let uses: BTreeMap<&str, &str> =
        table.lines().filter_map(|line| line.strip_prefix("use\t")?.split_once('\t')).collect();
    let mut tests: Vec<&str> = table.lines().filter_map(Row::read).map(|row| row.test).collect();
    tests.sort_unstable();
    tests.dedup();
    let mut rows: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for row in table.lines().filter_map(Row::read) {
        let results = rows.entry(row.controller).or_insert_with(|| vec![json!({}); tests.len()]);
        let verdict = match (row.passes, row.failed.is_empty()) {
            (true, _) => "holds",
            (false, true) => "undecided",
            (false, false) => "fails",
        };
        let scores: Vec<f64> = row.score.into_iter().collect();
        if let Ok(at) = tests.binary_search(&row.test) {
            results[at] = json!({"scores": scores, "others_keep": row.others_keep, "bounds": [{"verdict": verdict, "pass": row.passes}]});
        }
    }
    let test = |name: &&str| {
        let media_use = uses.get(name).copied().unwrap_or(USUAL_USE);
        json!({"scenario": name, "run": name, "media_use": media_use, "bounds": [{"id": "all"}]})
    };
    let row = |(name, results): (&str, Vec<Value>)| json!({"controller": name, "kind": kind(name), "results": results});
    let (sequential, repeats) = match value("up to") {
        "" => (false, value("repeats")),
        most => (true, most),
    };
    json!({
        "id": name,
        "title": value("title"),
        "family": value("family"),
        "developed": value("developed").split_whitespace().collect::<Vec<_>>(),
        "repeats": repeats.parse::<u64>().unwrap_or_default(),
        "sequential": sequential,
        "tests": tests.iter().map(test).collect::<Vec<_>>(),
        "rows": rows.into_iter().map(row).collect::<Vec<_>>(),
    })
}

/// Returns the purpose of a row.
fn kind(name: &str) -> &'static str {
    match name {
        "ideal" | "causal" => "oracle",
        name if name.starts_with("faulty-") => "faulty",
        name if OTHERS.iter().any(|other| name.starts_with(other)) => "other-implementation",
        _ => "controller",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faulty_controller_that_is_not_poor_is_named() {
        let row = |(name, score): &(&str, f64)| format!("| 1 = | {name} | {score} ± 5 | 40 | 3/4 |\n");
        let mut all = IN_USE.map(|name| (name, 40.0)).to_vec();
        all.extend(POOR.map(|name| (name, -3.0)).into_iter().chain([(MILD.0, 39.0)]));
        let found = |all: &[(&str, f64)]| {
            let text: String = all.iter().map(row).collect();
            problems(&scores(&format!("| place | controller | all | a | tests |\n|---|---|---:|---:|---:|\n{text}")))
        };
        assert_eq!(found(&all), Ok(Vec::new()));
        all[4].1 = 35.0;
        assert_eq!(found(&all).unwrap(), ["faulty-never-increases has 35 points; it must be below 30"]);
        all[4].1 = 40.0;
        assert_eq!(found(&all).unwrap().len(), 5);
        assert!(found(&all[..8]).unwrap_err().contains("lacks faulty-ignores-loss"));
    }

    #[test]
    fn a_document_has_the_rows_of_a_table() {
        let table = "up to\t10\ntitle\tOwn paths\nfamily\tpaths\ndeveloped\tdrc nada\nuse\town/b\tgame\n\
                     causal\town/b\t1/1\t-\t90.5\t0.9\tab\ndrc\town/a\t1/2\tuse\t-\t-\tab\ndrc\town/b\t1/1\t-\t70.0\t-\tcd\n";
        let found = document("own", table);
        assert_eq!(
            (&found["family"], &found["repeats"], &found["sequential"]),
            (&json!("paths"), &json!(10), &json!(true))
        );
        assert_eq!(found["developed"], json!(["drc", "nada"]));
        let uses: Vec<&Value> = found["tests"].as_array().unwrap().iter().map(|test| &test["media_use"]).collect();
        assert_eq!(uses, ["conversation", "game"]);
        let [causal, drc] = &found["rows"].as_array().unwrap()[..] else { panic!("{found}") };
        assert_eq!((&causal["kind"], &causal["results"][0]), (&json!("oracle"), &json!({})));
        assert_eq!(
            (&causal["results"][1]["scores"], &causal["results"][1]["others_keep"]),
            (&json!([90.5]), &json!(0.9))
        );
        assert_eq!(
            (&drc["results"][0]["scores"], &drc["results"][0]["bounds"][0]["verdict"]),
            (&json!([]), &json!("fails"))
        );
    }
}
