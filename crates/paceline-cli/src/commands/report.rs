//! `paceline report`.

use miette::{IntoDiagnostic, Result, miette};
use paceline_lab::reproduce::SCOREBOARD_FILE;
use paceline_lab::store::{MANIFEST_FILE, Manifest, Store};
use paceline_lab::sweep::SweepFolder;
use paceline_report::{page, scoreboard, svg};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `report`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of results, as `run --out` and `compare --out` make it, or of a scoreboard, as `reproduce --out` makes it.
    dir: PathBuf,
    /// Where the page goes; into the folder, as report.html or scoreboard.html, if absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Writes pictures as SVG in place of the page, into this folder; into figures in the folder of results, if none is named.
    #[arg(long, value_name = "OUTDIR", num_args = 0..=1, conflicts_with = "out")]
    svg: Option<Option<PathBuf>>,
}

/// Draws what is in a folder of results.
pub fn report(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(id) = SweepFolder::id_at(&arguments.dir) {
        let dir = arguments.dir.display();
        let help = format!(
            "its pictures are in {dir}/{}; `paceline sweep … --out {dir} --resume` draws them anew from what is stored",
            svg::FIGURES_FOLDER
        );
        return Err(miette!(help = help, "`{dir}` holds the sweep {id}, and a report is of runs"));
    }
    take_up(&arguments.dir);
    if let Some(into) = &arguments.svg {
        let within = || arguments.dir.join(svg::FIGURES_FOLDER);
        let into = into.clone().unwrap_or_else(within);
        let files = svg::write(&arguments.dir, &into).into_diagnostic()?;
        eprintln!("{} pictures are in {}", files.len(), into.display());
        return Ok(ExitCode::SUCCESS);
    }
    let dir = &arguments.dir;
    let holds = |file: &str| dir.join(file).is_file();
    let to = |file: &str| arguments.out.clone().unwrap_or_else(|| dir.join(file));
    if holds(SCOREBOARD_FILE) && !holds(MANIFEST_FILE) {
        let to = to(scoreboard::SCOREBOARD_PAGE);
        scoreboard::write(dir, &to).into_diagnostic()?;
        eprintln!("the scoreboard is {}", to.display());
    } else {
        write(dir, &to(page::REPORT_FILE))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes runs of what killed processes left, if the folder can be written, and says which runs were cut. A folder that
/// cannot be read is for those who draw it to complain of.
fn take_up(dir: &Path) {
    let taken = Store::take_up(dir);
    let Ok(manifest) = Manifest::read(dir) else { return };
    if let Err(problem) = taken {
        eprintln!("what a killed run left was not taken up: {problem}");
    }
    for run in &manifest.runs {
        if let Some(end_s) = run.cut_at_s {
            eprintln!("{} was cut at {end_s} s: it has rows until then and no result", run.directory);
        }
    }
}

/// Draws a folder into the folder. The page is a copy of what is there: a run is no worse without it.
pub fn report_within(dir: &Path) {
    if let Err(problem) = write(dir, &dir.join(page::REPORT_FILE)) {
        eprintln!("no report was written: {problem:?}");
    }
}

fn write(dir: &Path, to: &Path) -> Result<()> {
    page::write(dir, to).into_diagnostic()?;
    eprintln!("the report is {}", to.display());
    Ok(())
}
