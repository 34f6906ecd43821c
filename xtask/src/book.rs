// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask book`: the documentation as a book: the pages of `docs/`, pages that are made of the program's output and of the committed
//! verdicts, and the playground.
//!
//! ```text
//! docs/ ──────────────────────────┐
//! paceline list, schema, --help ──┤
//! the source of the package ──────┼─▶ target/book-src ──mdbook──▶ target/book
//! scoreboard/ ────────────────────┘
//! ```

use crate::steps::{Problem, command, copy, files_in, need, read, root, run, target, write};
use crate::{playground, reference, scoreboard};
use std::fs;
use std::path::{Path, PathBuf};

/// The playground in the book.
const PLAYGROUND: &str = "playground.html";

/// Builds the book. With `--pages` only its pages, as Markdown; with `--results` also the complete results that
/// `cargo xtask scoreboard` left.
pub fn book(arguments: &[String]) -> Result<(), Problem> {
    let (mut only_pages, mut with_results) = (false, false);
    for word in arguments {
        match word.as_str() {
            "--pages" => only_pages = true,
            "--results" => with_results = true,
            _ => return Err(Problem::Usage("takes `--pages`, `--results` or nothing".into())),
        }
    }
    let paceline = reference::paceline()?;
    let source = pages(&paceline)?;
    let results = with_results.then(scoreboard::all_results).transpose()?;
    if let Some([_, suites]) = &results {
        leaderboard(suites, &source)?;
    }
    eprintln!("the pages are in {}", source.display());
    if only_pages {
        return Ok(());
    }
    need("mdbook --version", "Get it with `cargo install --locked mdbook`.")?;
    let folder = target().join("book");
    run(command("mdbook build").arg(&source).arg("--dest-dir").arg(&folder))?;
    copy(&playground::page()?, &folder.join(PLAYGROUND))?;
    if let Some([papers, suites]) = results {
        copy(&papers.join("scoreboard.html"), &folder.join("scoreboard.html"))?;
        copy(&suites.join("suites.html"), &folder.join("suites.html"))?;
    }
    eprintln!("open {}", folder.join("index.html").display());
    Ok(())
}

/// Writes all pages into a folder, which it returns: those of `docs/`, and those that are made from the output of this program and from
/// the committed verdicts.
pub fn pages(paceline: &Path) -> Result<PathBuf, Problem> {
    let folder = target().join("book-src");
    _ = fs::remove_dir_all(&folder);
    copy(&root().join("docs"), &folder)?;
    for (name, text) in reference::pages(paceline)? {
        write(&folder.join("reference").join(name), &text)?;
    }
    need("python3 --version", "Get Python from the system's packages: `apt-get install python3`.")?;
    run(command("python3 python/tools/reference.py").arg(folder.join("reference/python.md")))?;
    leaderboard(&scoreboard::leaderboard(paceline)?, &folder)?;
    write(&folder.join("experiments/verdicts.md"), &scoreboard::verdicts()?)?;
    Ok(folder)
}

/// Writes the leaderboard of results with its pictures.
fn leaderboard(results: &Path, source: &Path) -> Result<(), String> {
    let text = read(&results.join("leaderboard.md"))?;
    // The pictures have a folder of their own.
    let more = "\n[Yardsticks](explanation/yardsticks.md) explains oracles and faulty controllers, [the score](explanation/score.md) the scale, and \
        [other implementations](explanation/other-implementations.md) the controllers of other libraries. `paceline suite NAME --controllers all \
        --out DIR` runs a suite again, and writes a page with each bound, its reason and the measured value.\n";
    write(&source.join("leaderboard.md"), &(text.replace("](", "](figures/suites/") + more))?;
    for picture in files_in(results)? {
        if let Some(name) = picture.file_name().filter(|_| picture.extension().is_some_and(|end| end == "svg")) {
            copy(&picture, &source.join("figures/suites").join(name))?;
        }
    }
    Ok(())
}
