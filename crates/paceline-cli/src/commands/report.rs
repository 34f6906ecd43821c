// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline report`.

use super::suite::write_leaderboard;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use paceline_lab::metrics;
use paceline_lab::report::{page, scoreboard, suites, svg};
use paceline_lab::results::database::DATABASE_FILE;
use paceline_lab::results::{SCOREBOARD_FILE, SUITES_FILE, Store, SuitesReport};
use paceline_lab::sweep::SweepFolder;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `report`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of results that `run --out` or `compare --out` wrote, of a scoreboard that `reproduce --out` wrote, or of suites
    /// that `suite --out` wrote.
    dir: PathBuf,
    /// File for the page; report.html, scoreboard.html, or suites.html with leaderboard.md in the folder if absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Writes plots as SVG files into this folder instead of the page; into `figures` in the folder of results if none is
    /// named.
    #[arg(long, value_name = "OUTDIR", num_args = 0..=1, conflicts_with = "out")]
    svg: Option<Option<PathBuf>>,
}

/// Draws the contents of a folder of results.
pub fn report(arguments: &Arguments) -> Result<ExitCode> {
    let dir = &arguments.dir;
    let has_runs = || Store::read(dir).is_ok_and(|contents| !contents.runs.is_empty());
    if let Some(id) = SweepFolder::id_at(dir).filter(|_| !has_runs()) {
        let dir = dir.display();
        let plots = match arguments.dir.join(svg::FIGURES_FOLDER).is_dir() {
            true => format!("its plots are in {dir}/{}; ", svg::FIGURES_FOLDER),
            false => String::new(),
        };
        let help = format!(
            "{plots}its tables are in {dir}; `paceline sweep … --out {dir} --resume` writes both again from the stored results"
        );
        return Err(miette!(help = help, "`{dir}` holds the sweep {id}; a report needs a folder of runs"));
    }
    let has = |file: &str| dir.join(file).is_file();
    if ![DATABASE_FILE, SCOREBOARD_FILE, SUITES_FILE].into_iter().any(has) {
        let help = "`paceline run … --out DIR`, `compare`, `reproduce` and `suite` write such a folder";
        return Err(miette!(help = help, "`{}` is no folder of results", dir.display()));
    }
    recover(dir);
    let output = |file: &str| arguments.out.clone().unwrap_or_else(|| dir.join(file));
    if let Some(into) = &arguments.svg {
        let into = into.clone().unwrap_or_else(|| dir.join(svg::FIGURES_FOLDER));
        let files = svg::write(dir, &into).into_diagnostic()?;
        eprintln!("{} plots are in {}", files.len(), into.display());
    } else if has(SUITES_FILE) {
        let page = output(suites::SUITES_PAGE);
        suites::write(dir, &page, metrics::catalogue()).into_diagnostic()?;
        eprintln!("the page of suites is {}", page.display());
        if arguments.out.is_none() {
            write_leaderboard(dir, &SuitesReport::read(&dir.join(SUITES_FILE)).into_diagnostic()?)?;
        }
    } else if has(SCOREBOARD_FILE) && !has(DATABASE_FILE) {
        let page = output(scoreboard::SCOREBOARD_PAGE);
        scoreboard::write(dir, &page, metrics::catalogue()).into_diagnostic()?;
        eprintln!("the scoreboard is {}", page.display());
    } else {
        write(dir, &output(page::REPORT_FILE))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Recovers the runs of killed processes, if the folder is writable, and prints which runs are incomplete. Drawing reports
/// a folder that cannot be read.
fn recover(dir: &Path) {
    let recovered = Store::recover(dir);
    let Ok(contents) = Store::read(dir) else { return };
    if let Err(problem) = recovered {
        eprintln!("runs of a killed process were not recovered: {problem}");
    }
    contents.notes.iter().for_each(|note| eprintln!("{note}"));
    for run in contents.runs.iter().map(|run| &run.about.run) {
        if let Some(end_s) = run.cut_at_s {
            eprintln!("{} was cut at {end_s} s: it has events until then and no result", run.directory);
        }
    }
}

/// Prints where results are, and writes their report.
///
/// # Errors
/// The report cannot be written; the results are stored.
pub fn finish_folder(dir: Option<&Path>) -> Result<()> {
    let Some(dir) = dir else { return Ok(()) };
    eprintln!("events and results are in {}", dir.display());
    write(dir, &dir.join(page::REPORT_FILE)).wrap_err("the report was not written")
}

fn write(dir: &Path, page: &Path) -> Result<()> {
    page::write(dir, page, metrics::catalogue()).into_diagnostic()?;
    eprintln!("the report is {}", page.display());
    Ok(())
}
