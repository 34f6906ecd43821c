//! The pages of the documentation that are made of the committed tables: the leaderboard and the verdicts on papers.

use super::suites::OTHERS;
use super::{PAPERS, SUITES, papers, suites, tables};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Whether a controller is of a kind.
type Belongs = fn(&str) -> bool;

/// The kinds of controllers on the leaderboard, each with its heading.
const KINDS: [(&str, Belongs); 4] = [
    ("Controllers", |name| !is_other(name) && !is_oracle(name) && !is_faulty(name)),
    ("Other implementations: controllers of other libraries", is_other),
    ("Oracles: senders that know the path", is_oracle),
    ("Faulty controllers: each has one fault, which the suites have to find", is_faulty),
];

fn is_other(name: &str) -> bool {
    OTHERS.iter().any(|other| name.starts_with(other))
}

fn is_oracle(name: &str) -> bool {
    ["ideal", "causal"].contains(&name)
}

fn is_faulty(name: &str) -> bool {
    name.starts_with("faulty-")
}

const BOARD: &str = "# Leaderboard\n\n\
    Each cell is the share of the bounds of a suite that hold under a controller, in per cent. A bound holds if the 95 % interval of the mean over \
    the runs is within it. A dash: the suite has no result of this controller. [Yardsticks](explanation/yardsticks.md) explains faulty \
    controllers and oracles, [other implementations](explanation/other-implementations.md) the controllers of other libraries.\n\n\
    `paceline suite NAME --controllers all --out DIR` runs a suite again, and writes a page with each bound, its reason and the measured value.\n";

/// Returns the leaderboard.
pub fn leaderboard() -> Result<String, String> {
    Ok(board(&tables(SUITES)?))
}

fn board(tables: &[(String, String)]) -> String {
    // The bounds that hold and all bounds, of each controller in each suite.
    let mut counts: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for (at, (_, table)) in tables.iter().enumerate() {
        for row in table.lines().filter_map(suites::Row::read) {
            let count = &mut counts.entry(row.controller).or_insert_with(|| vec![(0, 0); tables.len()])[at];
            *count = (count.0 + row.held, count.1 + row.bounds);
        }
    }
    let share = |(held, bounds): (u64, u64)| match bounds {
        0 => "–".to_owned(),
        _ => format!("{:.0}", 100.0 * held as f64 / bounds as f64),
    };
    let total = |counts: &[(u64, u64)]| counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    let part = |counts: &[(u64, u64)]| {
        let (held, bounds) = total(counts);
        held as f64 / bounds.max(1) as f64
    };
    let mut text = BOARD.to_owned();
    let names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
    for (title, belongs) in KINDS {
        let mut rows: Vec<_> = counts.iter().filter(|(name, _)| belongs(name)).collect();
        rows.sort_by(|a, b| part(b.1).total_cmp(&part(a.1)));
        _ = write!(text, "\n## {title}\n\n| controller | all | {} |\n|---|---:|", names.join(" | "));
        text += &"---:|".repeat(names.len());
        text.push('\n');
        for (name, counts) in rows {
            let cells: Vec<String> = counts.iter().map(|count| share(*count)).collect();
            _ = writeln!(text, "| {name} | {} | {} |", share(total(counts)), cells.join(" | "));
        }
    }
    text
}

const VERDICTS: &str = "# Verdicts on papers\n\n\
    Each row counts the published values and bounds (cells) of one experiment that this version reproduces. ✓: reproduced; ≈: in direction \
    (outside the tolerance, but the claim that the value supports holds); ✗: neither. The second half excludes cells that a sender without \
    congestion control (the null sender) also reproduces; they are no evidence.\n\n\
    `paceline reproduce PAPER` prints each cell with its published and measured value; with `--out DIR` it also \
    writes an HTML page. All five papers take about a minute and a half.\n\n\
    | experiment | cells | ✓ | ≈ | ✗ | claims | cells without null | ✓ | ≈ | ✗ | claims |\n\
    |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";

/// Returns the counts of verdicts on each experiment.
pub fn verdicts() -> Result<String, String> {
    Ok(matrix(&tables(PAPERS)?))
}

fn matrix(tables: &[(String, String)]) -> String {
    let mut text = VERDICTS.to_owned();
    for (paper, table) in tables {
        let rows: Vec<papers::Row<'_>> = table.lines().filter_map(papers::Row::read).collect();
        let experiments: BTreeSet<&str> = rows.iter().map(|row| row.experiment).collect();
        text += &counts(&format!("**[{paper}]({paper}.md)**"), &rows.iter().collect::<Vec<_>>());
        for experiment in experiments {
            let of_one: Vec<_> = rows.iter().filter(|row| row.experiment == experiment).collect();
            text += &counts(experiment, &of_one);
        }
    }
    let all: Vec<papers::Row<'_>> =
        tables.iter().flat_map(|(_, table)| table.lines().filter_map(papers::Row::read)).collect();
    text + &counts("**all**", &all.iter().collect::<Vec<_>>())
}

/// Returns a row: of all cells, and of those that the null sender does not reproduce.
fn counts(name: &str, rows: &[&papers::Row<'_>]) -> String {
    // The cells of each claim. It holds if all of them are reproduced.
    let mut claims: BTreeMap<(&str, &str), Vec<&papers::Row<'_>>> = BTreeMap::new();
    for row in rows {
        if let Some(claim) = row.claim {
            claims.entry((row.experiment, claim)).or_default().push(row);
        }
    }
    let half = |with_null: bool| {
        let of = |verdict: &str| {
            let verdicts = rows.iter().filter(|row| with_null || !row.null).map(|row| row.verdict);
            verdicts.filter(|one| verdict.is_empty() || *one == verdict).count()
        };
        let judged = claims.values().filter(|rows| with_null || rows.iter().any(|row| !row.null));
        let (held, all) = judged.fold((0, 0), |(held, all), rows| {
            (held + u32::from(rows.iter().all(|row| row.verdict == "reproduced")), all + 1)
        });
        let claims = if all > 0 { format!("{held} of {all}") } else { String::new() };
        format!("{} | {} | {} | {} | {claims}", of(""), of("reproduced"), of("direction"), of("not"))
    };
    format!("| {name} | {} | {} |\n", half(true), half(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_bounds_and_sorted() {
        let table = |name: &str, rows: &[&str]| (name.to_owned(), rows.join("\n"));
        let text = board(&[
            table("one", &["a\tone/x\t1/4\tu\tab", "b\tone/x\t3/4\tu\tcd", "ideal\tone/x\t4/4\t-\tef"]),
            table("two", &["a\ttwo/x\t1/1\t-\tab", "b\ttwo/x\t1/1\t-\tcd"]),
        ]);
        assert!(text.contains("|---|---:|---:|---:|\n| b | 80 | 75 | 100 |\n| a | 40 | 25 | 100 |\n"), "{text}");
        assert!(text.contains("| ideal | 100 | 100 | – |\n"), "{text}");
    }

    #[test]
    fn papers_precede_their_experiments_and_add_up() {
        let line = |cell: &str| format!("{cell}\tab");
        let one = [
            "one/t q=a\tnada\tx\t-\treproduced\tnull",
            "one/t q=a\tnada\ty\tgood\treproduced\t-",
            "one/t q=b\tnada\ty\tgood\tnot\tnull",
            "one/u\tnada\ty\tgood\treproduced\tnull",
            "one/u q=c\t-\t-\t-\t-\t-",
        ];
        let two = ["two/t\tnada\tx\t-\tdirection\t-"];
        let table =
            |name: &str, cells: &[&str]| (name.to_owned(), cells.iter().map(|cell| line(cell) + "\n").collect());
        let text = matrix(&[table("one", &one), table("two", &two)]);
        let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("|---")).skip(1).collect();
        assert_eq!(
            rows,
            [
                "| **[one](one.md)** | 4 | 3 | 0 | 1 | 1 of 2 | 1 | 1 | 0 | 0 | 0 of 1 |",
                "| one/t | 3 | 2 | 0 | 1 | 0 of 1 | 1 | 1 | 0 | 0 | 0 of 1 |",
                "| one/u | 1 | 1 | 0 | 0 | 1 of 1 | 0 | 0 | 0 | 0 |  |",
                "| **[two](two.md)** | 1 | 0 | 1 | 0 |  | 1 | 0 | 1 | 0 |  |",
                "| two/t | 1 | 0 | 1 | 0 |  | 1 | 0 | 1 | 0 |  |",
                "| **all** | 5 | 3 | 1 | 1 | 1 of 2 | 2 | 1 | 1 | 0 | 0 of 1 |",
            ]
        );
    }
}
