// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of the documentation that is made of the committed tables of papers: their verdicts.

use super::{PAPERS, papers, tables};
use std::collections::{BTreeMap, BTreeSet};

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
